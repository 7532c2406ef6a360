// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/allocator.h, allocator_ops.h, external_allocator.h and scratch.h.

#include "gcap/allocator_ops.h"
#include "gcap/capture.h"
#include "gcap/external_allocator.h"
#include "gcap/scratch.h"
#include "test/fault/stream_scene.h"

namespace gcap {
namespace testing {
namespace {

// After the memory was given back there is nothing to tell the caller.
const std::set<std::string> kAfterFree = {"cudaThreadExchangeStreamCaptureMode"};

constexpr size_t kBytes = 4096;
constexpr size_t kRegionBytes = size_t{1} << 20;  // scratch's first region

// An allocator and a scratch over it beside the streams of the other walks.
class MemoryScene : public StreamScene {
 public:
  MemoryScene() {
    GCAP_EXPECT_OK(gcap_device_allocator_create(0, &allocator));
    GCAP_EXPECT_OK(gcap_scratch_create(allocator, nullptr, &scratch));
  }
  void ExpectNextRunWorks() override {
    StreamScene::ExpectNextRunWorks();
    void* memory = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, kBytes, &memory));
    GCAP_EXPECT_OK(gcap_allocator_free(allocator, memory));
    if (scratch == nullptr || stream == nullptr) return;
    GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kBytes, stream, &memory));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 1, kBytes, Handle()));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, memory));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  }
  gcap_status_t End() override {
    if (reservation != nullptr) gcap_scratch_reservation_release(reservation);
    gcap_status_t status = gcap_allocator_free(allocator, block);
    if (gcap_scratch_block != nullptr)
      status = gcap_status_join(status, gcap_scratch_free(scratch, gcap_scratch_block));
    status = gcap_status_join(status, gcap_scratch_destroy(scratch));
    if (second_block != nullptr) status = gcap_status_join(status, gcap_allocator_free(second, second_block));
    gcap_allocator_destroy(second);
    gcap_allocator_destroy(allocator);
    return gcap_status_join(status, StreamScene::End());
  }

  gcap_allocator_t* allocator = nullptr;
  gcap_allocator_t* second = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_scratch_reservation_t* reservation = nullptr;
  void* block = nullptr;               // of the allocator
  void* second_block = nullptr;        // of the second allocator
  void* gcap_scratch_block = nullptr;  // of the scratch
};

using S = MemoryScene;

// --- Allocators -----------------------------------------------------------------------------------------------------

void WithBlock(S* s) { GCAP_EXPECT_OK(gcap_allocator_alloc(s->allocator, kBytes, &s->block)); }

gcap_status_t CreatePool(S* s) {
  gcap_pool_allocator_options_t options;
  gcap_pool_allocator_options_init(&options);
  return gcap_pool_allocator_create(&options, &s->second);
}
gcap_status_t CreateExternal(S* s) {
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.alloc = [](size_t) -> void* { return nullptr; };
  options.free = [](void*) {};
  return gcap_external_allocator_create(&options, &s->second);
}
gcap_status_t CreateOfTable(S* s) {
  gcap_allocator_ops_t ops = {};
  ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
  ops.device_id = -1;
  ops.alignment = 256;
  ops.alloc = [](void*, size_t, void**) { return gcap_status_t{}; };
  ops.free = [](void*, void*) { return gcap_status_t{}; };
  return gcap_allocator_create(&ops, &s->second);
}

void WithPool(S* s) { GCAP_EXPECT_OK(CreatePool(s)); }
gcap_status_t AllocSecond(S* s) { return gcap_allocator_alloc(s->second, kBytes, &s->second_block); }
gcap_status_t AllocSecondOnStream(S* s) {
  return gcap_allocator_alloc_on_stream(s->second, kBytes, s->stream, &s->second_block);
}
void WithPoolBlock(S* s) {
  WithPool(s);
  GCAP_EXPECT_OK(AllocSecondOnStream(s));
}

// Frees a block; a failure leaves it handed out, so End tries again.
gcap_status_t GiveBack(gcap_status_t status, void** block) {
  if (status == nullptr) *block = nullptr;
  return status;
}
gcap_status_t Free(S* s) { return GiveBack(gcap_allocator_free(s->allocator, s->block), &s->block); }
gcap_status_t FreeSecond(S* s) { return GiveBack(gcap_allocator_free(s->second, s->second_block), &s->second_block); }
gcap_status_t FreeScratch(S* s) {
  return GiveBack(gcap_scratch_free(s->scratch, s->gcap_scratch_block), &s->gcap_scratch_block);
}

std::vector<Walk> AllocatorWalks() {
  return {
      WalkOf<S>(CALL(gcap_device_allocator_create, 0, &s->second)),
      WalkOf<S>(CALL(gcap_pinned_allocator_create, &s->second)).MakesNoCall(),
      WalkOf<S>("gcap_external_allocator_create", CreateExternal).MakesNoCall(),
      WalkOf<S>("gcap_allocator_create", CreateOfTable).MakesNoCall(),
      WalkOf<S>(CALL(gcap_allocator_alloc, s->allocator, kBytes, &s->block)),
      WalkOf<S>(CALL(gcap_allocator_alloc_on_stream, s->allocator, kBytes, s->stream, &s->block)),
      WalkOf<S>(CALL(gcap_allocator_reserve, s->allocator, kBytes, &s->block)),
      WalkOf<S>("gcap_allocator_free", Free, WithBlock).RecoversFrom(kAfterFree),
      WalkOf<S>(CALL(gcap_allocator_trim, s->allocator), WithBlock).MakesNoCall(),
      WalkOf<S>("gcap_pool_allocator_create", CreatePool),
      WalkOf<S>("gcap_allocator_alloc", AllocSecond, WithPool, "pool"),
      WalkOf<S>("gcap_allocator_alloc_on_stream", AllocSecondOnStream, WithPool, "pool"),
      WalkOf<S>(CALL(gcap_allocator_reserve, s->second, kBytes, &s->second_block), WithPool, "pool"),
      WalkOf<S>("gcap_allocator_free", FreeSecond, WithPoolBlock, "pool").RecoversFrom(kAfterFree),
      WalkOf<S>(CALL(gcap_allocator_trim, s->second), WithPoolBlock, "pool"),
  };
}

// --- Scratch --------------------------------------------------------------------------------------------------------

gcap_status_t Alloc(S* s) { return gcap_scratch_alloc(s->scratch, kBytes, s->stream, &s->gcap_scratch_block); }
void WithScratchBlock(S* s) { GCAP_EXPECT_OK(Alloc(s)); }
void WithFreeScratch(S* s) {
  WithScratchBlock(s);
  GCAP_EXPECT_OK(FreeScratch(s));
  GCAP_EXPECT_OK(gcap_stream_synchronize(s->stream));
}

gcap_status_t Create(S* s) { return gcap_scratch_create(s->allocator, nullptr, &s->scratch); }
gcap_status_t Destroy(S* s) {
  gcap_status_t status = gcap_scratch_destroy(s->scratch);
  if (status == nullptr) s->scratch = nullptr;
  return status;
}
void WithoutScratch(S* s) { GCAP_EXPECT_OK(Destroy(s)); }
gcap_scratch_options_t NewOptions(S* s) {
  WithoutScratch(s);
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  return options;
}

void WithDebugScratch(S* s) {
  gcap_scratch_options_t options = NewOptions(s);
  options.red_zones = options.poison_on_free = true;
  options.recorded_operations = 10;
  GCAP_EXPECT_OK(gcap_scratch_create(s->allocator, &options, &s->scratch));
  WithFreeScratch(s);
}
void WithDebugBlock(S* s) {
  WithDebugScratch(s);
  WithScratchBlock(s);
}

// Of nobody knows what stream.
gcap_status_t AllocUntagged(S* s) {
  return gcap_allocator_alloc(gcap_scratch_allocator(s->scratch), kRegionBytes, &s->gcap_scratch_block);
}
// The scratch's whole first region was used so.
void WithUntaggedScratch(S* s) {
  GCAP_EXPECT_OK(AllocUntagged(s));
  GCAP_EXPECT_OK(FreeScratch(s));
}

gcap_status_t Reserve(S* s) {
  return gcap_allocator_reserve(gcap_scratch_allocator(s->scratch), kBytes, &s->gcap_scratch_block);
}
void WithReserve(S* s) { GCAP_EXPECT_OK(Reserve(s)); }

// The limit is reached, and the next large request has all to do that there is: a region is idle, one was used by its
// stream last, and one by nobody knows whom.
void WithoutMemory(S* s) {
  gcap_scratch_options_t options = NewOptions(s);
  options.extend_as_requested = true;
  options.memory_limit_bytes = 3 * kRegionBytes + kBytes;  // room for the next run
  GCAP_EXPECT_OK(gcap_scratch_create(s->allocator, &options, &s->scratch));
  void* blocks[3] = {};
  GCAP_EXPECT_OK(gcap_scratch_alloc(s->scratch, kRegionBytes, s->other, &blocks[0]));
  GCAP_EXPECT_OK(gcap_scratch_alloc(s->scratch, kRegionBytes, s->stream, &blocks[1]));
  GCAP_EXPECT_OK(gcap_allocator_alloc(gcap_scratch_allocator(s->scratch), kRegionBytes, &blocks[2]));
  for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(s->scratch, block));
  GCAP_EXPECT_OK(gcap_stream_synchronize(s->other));
}
gcap_status_t AllocAll(S* s) {
  return gcap_scratch_alloc(s->scratch, 3 * kRegionBytes, s->stream, &s->gcap_scratch_block);
}

std::vector<Walk> ScratchWalks() {
  return {
      WalkOf<S>("gcap_scratch_create", Create, WithoutScratch).MakesNoCall(),
      WalkOf<S>("gcap_scratch_destroy", Destroy, WithFreeScratch).RecoversFrom(kAfterFree),
      WalkOf<S>("gcap_scratch_alloc", Alloc, nullptr, "first region"),
      WalkOf<S>("gcap_scratch_alloc", Alloc, WithFreeScratch, "from a region").MakesNoCall(),
      WalkOf<S>("gcap_scratch_alloc", Alloc, WithDebugScratch, "debug options"),
      WalkOf<S>("gcap_scratch_alloc", AllocAll, WithoutMemory, "memory is out").Recovers(),
      WalkOf<S>("gcap_scratch_free", FreeScratch, WithScratchBlock).MakesNoCall(),
      WalkOf<S>("gcap_scratch_free", FreeScratch, WithDebugBlock, "debug options"),
      WalkOf<S>(CALL(gcap_scratch_keep, s->scratch, s->gcap_scratch_block), WithScratchBlock).MakesNoCall(),
      WalkOf<S>(CALL(gcap_scratch_forget_stream, s->scratch, s->stream), WithFreeScratch).MakesNoCall(),
      WalkOf<S>(CALL(gcap_scratch_trim, s->scratch), WithFreeScratch).RecoversFrom(kAfterFree),
      WalkOf<S>(CALL(gcap_scratch_trim, s->scratch), WithUntaggedScratch, "after a free of no stream")
          .RecoversFrom(kAfterFree),
      WalkOf<S>(CALL(gcap_scratch_validate, s->scratch), WithFreeScratch).MakesNoCall(),
      WalkOf<S>(CALL(gcap_scratch_validate, s->scratch), WithDebugBlock, "debug options"),
      // Where the wait fails it grows instead.
      WalkOf<S>("gcap_allocator_alloc", AllocUntagged, WithUntaggedScratch, "scratch, after a wait").Recovers(),
      WalkOf<S>("gcap_allocator_reserve", Reserve, nullptr, "scratch"),
      WalkOf<S>("gcap_allocator_free", FreeScratch, WithReserve, "scratch's reserve").RecoversFrom(kAfterFree),
  };
}

// --- Scratch of captures --------------------------------------------------------------------------------------------

// A graph has all that the stream used.
void WithClosedReservation(S* s) {
  for (const bool reserves : {false, true}) {
    void* block = nullptr;
    if (reserves) GCAP_ASSERT_OK(gcap_scratch_reservation_open(s->scratch, s->stream, &s->reservation));
    GCAP_ASSERT_OK(gcap_scratch_alloc(s->scratch, kRegionBytes, s->stream, &block));
    GCAP_EXPECT_OK(gcap_scratch_free(s->scratch, block));
  }
  gcap_scratch_reservation_close(s->reservation);
}
// A capture with what it needs reserved.
void InCapture(S* s) {
  WithFreeScratch(s);
  s->BeginCapture();
  GCAP_ASSERT_OK(gcap_scratch_reservation_open(s->scratch, s->stream, &s->reservation));
}
void EndCapture(S* s) {
  GCAP_EXPECT_OK(FreeScratch(s));
  gcap_scratch_reservation_close(s->reservation);
  gcap_capture_abort(gcap_capture_current());
}
void CloseAndRelease(S* s) {
  gcap_scratch_reservation_close(s->reservation);
  gcap_scratch_reservation_release(s->reservation);
}

// A whole capture of both streams, in which nobody opens a reservation.
gcap_status_t CaptureWithoutReservation(S* s) {
  const cudaStream_t other = gcap_stream_handle(s->other);
  gcap_capture_t* capture = nullptr;
  gcap_status_t status = gcap_capture_begin(s->Handle(), nullptr, &capture);
  if (status == nullptr) status = gcap_capture_fork(capture, &other, 1);
  for (gcap_stream_t* stream : {s->stream, s->other}) {
    void* block = nullptr;
    if (status == nullptr) status = gcap_scratch_alloc(s->scratch, kBytes, stream, &block);
    gcap_status_t freed = gcap_scratch_free(s->scratch, block);
    if (freed != nullptr) s->gcap_scratch_block = block;  // for the end of the scene
    status = gcap_status_join(status, freed);
  }
  if (status == nullptr) status = gcap_capture_join(capture, &other, 1);
  // The end tells what failed first, which may be a question of the ledger.
  return capture == nullptr ? status : gcap_status_join(gcap_capture_end(capture, &s->graph, &s->retained), status);
}
// A whole capture, in which a block from before is freed.
gcap_status_t FreeInScope(S* s) {
  gcap_capture_t* capture = nullptr;
  gcap_status_t status = gcap_capture_begin(s->Handle(), nullptr, &capture);
  if (status == nullptr) status = FreeScratch(s);
  return capture == nullptr ? status : gcap_status_join(status, gcap_capture_end(capture, &s->graph, &s->retained));
}
void ReleaseGraph(S* s) {
  gcap_retained_release(s->retained);
  s->retained = nullptr;
}

std::vector<Walk> ReservationWalks() {
  const auto prepare = ACT(gcap_scratch_reservation_prepare(s->scratch, s->stream));
  return {
      WalkOf<S>("gcap_scratch_alloc", Alloc, InCapture, "in a capture").MakesNoCall().Then<S>(EndCapture),
      WalkOf<S>("gcap_scratch_alloc", CaptureWithoutReservation, WithFreeScratch,
                "in a scope that forks, without a reservation")
          .Then<S>(ReleaseGraph),
      WalkOf<S>("gcap_scratch_free", FreeInScope, WithScratchBlock, "in a scope, without a reservation")
          .Then<S>(ReleaseGraph),
      WalkOf<S>(CALL(gcap_scratch_reservation_open, s->scratch, s->stream, &s->reservation), WithFreeScratch)
          .MakesNoCall(),
      WalkOf<S>(CALL(gcap_scratch_reservation_reopen, s->reservation), WithClosedReservation)
          .MakesNoCall()
          .Then<S>(CloseAndRelease),
      WalkOf<S>("gcap_scratch_reservation_prepare", prepare, WithFreeScratch, "nothing lacks").MakesNoCall(),
      WalkOf<S>("gcap_scratch_reservation_prepare", prepare, WithClosedReservation, "grows"),
  };
}

}  // namespace

std::vector<Walk> MemoryWalks() { return Joined({AllocatorWalks(), ScratchWalks(), ReservationWalks()}); }

}  // namespace testing
}  // namespace gcap
