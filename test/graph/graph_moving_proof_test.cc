// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A graph moves only where its captures prove that a capture would be the same: how buffers lie to one another, numbers
// that are computed from addresses, addresses that do not move, and nodes that the driver does not change. Each work
// computes on the run's buffers, so whatever answers OK must have the result of an eager run.

#include <algorithm>
#include <functional>

#include "gcap/allocator.h"
#include "gcap/graph_buffers.h"
#include "gcap/scratch.h"
#include "test/graph/moving_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kMemoryBytes = 1 << 20;

// Work whose kernel adds `addend` to the first 8 floats of buffer 0, into buffer 1.
gcap_status_t AddToEight(cudaStream_t stream, void* const* at, uint64_t addend) {
  return AddTo(stream, at[0], at[1], addend, 8);
}

class GraphMovingProof : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // What one graph is for. Others of the id would be captured where it is not.
    CreateWith([](gcap_graph_manager_options_t* options) { options->max_variants = 1; });
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), kMemoryBytes), cudaSuccess);
    ASSERT_EQ(cudaMemset(memory_, 0, kMemoryBytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  void TearDown() override {
    GraphMoving::TearDown();
    GCAP_EXPECT_CUDA(cudaFree(memory_));
  }

  char* At(size_t offset) const { return memory_ + offset; }
  float FirstOf(const void* address) const {
    float value = 0;
    GCAP_EXPECT_CUDA(cudaMemcpy(&value, address, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
  }
  void Fill(void* address, float value) const {
    const std::vector<float> values(8, value);
    GCAP_EXPECT_CUDA(cudaMemcpy(address, values.data(), 8 * sizeof(float), cudaMemcpyHostToDevice));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  static std::vector<gcap_graph_buffer_t> Two(char* input, char* output, size_t alignment = 4) {
    return {{"input", input, kFloatsBytes, alignment}, {"output", output, kFloatsBytes, alignment}};
  }

  // A run of a captured id on the buffers: OK, and the first float of the output is the input's and `addend`. Answers
  // whether it was a replay.
  bool IsReplayed(const std::vector<gcap_graph_buffer_t>& items, const WorkOn& work, uint64_t addend) {
    Fill(items[1].address, -50);
    Fill(items[0].address, 7);
    calls_ = 0;
    const Outcome outcome = RunOn(items, work);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(FirstOf(items[1].address), 7 + static_cast<float>(addend));
    return calls_ == 0;
  }
  // The reason why the last run was eager.
  std::string WhyEager() const {
    return Outcome(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_EAGER)).message;
  }

  char* memory_ = nullptr;
};

// --- How buffers lie ------------------------------------------------------------------------------------------------

struct Relation {
  const char* name;
  ptrdiff_t shift;  // of the output behind the input
};
constexpr ptrdiff_t kBytes = kFloatsBytes;
const Relation kRelations[] = {{"apart", 4 * kBytes},        {"apart, before", -4 * kBytes},       {"equal", 0},
                               {"overlapping", kBytes / 2},  {"overlapping, before", -kBytes / 2}, {"touching", kBytes},
                               {"touching, before", -kBytes}};

// Captured in each relation and run in each other: a replay only where the relation is the same, or where buffers that
// touched come apart.
TEST_F(GraphMovingProof, BuffersThatLieOtherwiseAreNotReplayedOn) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) { return AddToEight(stream, at, 1); };
  for (const Relation& captured : kRelations) {
    char* const first = At(8192);
    const auto items = Two(first, first + captured.shift);
    ASSERT_TRUE(RunOn(items, work).ok());
    EXPECT_TRUE(WhyNotMovable().ok()) << captured.name << ": " << WhyNotMovable().message;
    size_t next = 16384;
    for (const Relation& run : kRelations) {
      SCOPED_TRACE(std::string(captured.name) + " in the capture, then " + run.name);
      char* const second = At(next += 16384);  // both buffers move each time
      const bool is_apart = std::abs(run.shift) > kBytes;
      const bool was_apart = std::abs(captured.shift) >= kBytes;
      const bool is_same = captured.shift == run.shift || (is_apart && was_apart);
      EXPECT_EQ(IsReplayed(Two(second, second + run.shift), work, 1), is_same);
      if (is_same) continue;
      const std::string why = WhyEager();
      for (const char* name : {"'input'", "'output'", "in the capture"}) {
        EXPECT_NE(why.find(name), std::string::npos) << why;
      }
    }
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// What an engine does that has a kernel of its own for buffers that overlap or touch.
TEST_F(GraphMovingProof, WorkThatFollowsHowBuffersLieIsRightEverywhere) {
  const auto addend_of = [](const void* input, const void* output) -> uint64_t {
    const ptrdiff_t shift = static_cast<const char*>(output) - static_cast<const char*>(input);
    return std::abs(shift) > kBytes ? 1 : static_cast<uint64_t>(3 + (shift + kBytes) / (kBytes / 2));
  };
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    return AddToEight(stream, at, addend_of(at[0], at[1]));
  };
  for (const Relation& captured : kRelations) {
    char* const first = At(8192);
    ASSERT_TRUE(RunOn(Two(first, first + captured.shift), work).ok());
    for (const Relation& run : kRelations) {
      SCOPED_TRACE(std::string(captured.name) + " in the capture, then " + run.name);
      char* const second = At(65536);
      (void)IsReplayed(Two(second, second + run.shift), work, addend_of(second, second + run.shift));
    }
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

TEST_F(GraphMovingProof, BuffersThatShareBytesAreBoundTogetherOrNotAtAll) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) { return AddToEight(stream, at, 1); };
  ASSERT_TRUE(RunOn(Two(At(0), At(64)), work).ok());
  for (const size_t buffer : {0, 1}) {
    GCAP_EXPECT_FAILS(Bind(buffer, At(8192)), GCAP_FAILED_PRECONDITION,
                      "buffers 0 'input' and 1 'output' share bytes in the capture, and lie otherwise here");
  }
  GCAP_EXPECT_OK(ReplayAt({At(8192), At(8192 + 64)}));
  GCAP_EXPECT_FAILS(ReplayAt({At(0), At(128)}), GCAP_FAILED_PRECONDITION, "lie otherwise here");
  GCAP_EXPECT_OK(ReplayAt({At(8192), At(8192 + 64)}));
}

TEST_F(GraphMovingProof, ABindOntoAnotherBufferIsRefused) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) { return AddToEight(stream, at, 1); };
  ASSERT_TRUE(RunOn(Two(At(0), At(8192)), work).ok());
  for (const size_t place : {size_t{8192}, size_t{8192 - 4}, size_t{8192 + kFloatsBytes - 4}}) {
    GCAP_EXPECT_FAILS(Bind(0, At(place)), GCAP_FAILED_PRECONDITION, "share bytes here, and do not in the capture");
  }
  for (const size_t place : {size_t{8192 - kFloatsBytes}, size_t{8192 + kFloatsBytes}}) {
    GCAP_EXPECT_FAILS(Bind(0, At(place)), GCAP_FAILED_PRECONDITION, "touch here, and do not in the capture");
  }
  GCAP_EXPECT_OK(Bind(0, At(8192 - kFloatsBytes - 4)));
  GCAP_EXPECT_OK(Bind(0, At(8192 + kFloatsBytes + 4)));
  GCAP_EXPECT_OK(ReplayAt({At(8192), At(0)}));  // they change places at once
}

// What an engine does whose own memory is no buffer, and that has a kernel for an output which is that memory.
TEST_F(GraphMovingProof, ARunOnMemoryThatTheGraphKnowsOtherwiseIsEager) {
  char* const state = At(8192);
  const auto addend_of = [&](const void* output) -> uint64_t { return output == state ? 2 : 1; };
  const WorkOn kernel = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], state, 5, 8));
    return AddToEight(stream, at, addend_of(at[1]));
  };
  const WorkOn fill = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(state - 64, 0, 128, stream)));
    return AddToEight(stream, at, addend_of(at[1]));
  };
  for (const WorkOn& work : {kernel, fill}) {
    ASSERT_TRUE(RunOn(Two(At(0), At(1024)), work).ok());
    EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
    EXPECT_TRUE(IsReplayed(Two(At(16384), At(2048)), work, 1));
    EXPECT_FALSE(IsReplayed(Two(At(16384), state), work, 2));
    EXPECT_NE(WhyEager().find("buffer 1 'output'"), std::string::npos) << WhyEager();
    EXPECT_NE(WhyEager().find("that does not move"), std::string::npos) << WhyEager();
    EXPECT_TRUE(IsReplayed(Two(At(16384), At(1024)), work, 1));
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// The groups of many buffers are compared by a sort: in each order, and with one pair that is wrong.
TEST_F(GraphMovingProof, ManyBuffersMayLieInAnyOrderButNotOnOneAnother) {
  constexpr size_t kMany = 24;
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    for (size_t i = 0; i < kMany; ++i) GCAP_RETURN_IF_ERROR(AddTo(stream, at[i], at[i], 1, 8));
    return static_cast<gcap_status_t>(nullptr);
  };
  std::vector<size_t> order(kMany);
  for (size_t i = 0; i < kMany; ++i) order[i] = i;
  const auto items = [&] {
    std::vector<gcap_graph_buffer_t> all;
    for (const size_t place : order) all.push_back({nullptr, At(place * 2 * kFloatsBytes), kFloatsBytes, 4});
    return all;
  };
  ASSERT_TRUE(RunOn(items(), work).ok());
  EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
  calls_ = 0;
  for (int round = 0; round < 10; ++round) {
    std::next_permutation(order.begin(), order.end());
    std::rotate(order.begin(), order.begin() + 7, order.end());
    ASSERT_TRUE(RunOn(items(), work).ok());
    EXPECT_EQ(calls_, 0) << "a replay";
  }
  for (size_t i = 1; i < kMany; i += 5) {
    std::vector<gcap_graph_buffer_t> wrong = items();
    for (gcap_graph_buffer_t& item : wrong) item.address = static_cast<char*>(item.address) + kMemoryBytes / 2;
    wrong[i].address = static_cast<char*>(wrong[i - 1].address) + kFloatsBytes - 4;
    calls_ = 0;
    ASSERT_TRUE(RunOn(wrong, work).ok());
    EXPECT_EQ(calls_, 1) << "an eager run";
  }
}

// --- Numbers from addresses -----------------------------------------------------------------------------------------

// Each is a number that work computes from the addresses of its buffers, which are promised to be multiples of 4.
TEST_F(GraphMovingProof, NumbersThatAreComputedFromAddressesFixTheGraph) {
  using Number = std::function<uint64_t(uintptr_t, uintptr_t)>;
  const struct {
    const char* name;
    Number number;
  } cases[] = {
      {"elements up to a multiple of 16 bytes", [](uintptr_t x, uintptr_t) { return (16 - x % 16) % 16 / 4; }},
      {"a multiple of 8 bytes", [](uintptr_t x, uintptr_t) { return x % 8 == 0 ? 1 : 2; }},
      {"a multiple of 16 bytes", [](uintptr_t x, uintptr_t) { return x % 16 == 0 ? 1 : 2; }},
      {"a multiple of 4096 bytes", [](uintptr_t x, uintptr_t) { return x % 4096 == 0 ? 1 : 2; }},
      {"both multiples of 16 bytes", [](uintptr_t x, uintptr_t y) { return (x | y) % 16 == 0 ? 1 : 2; }},
      {"one bit", [](uintptr_t x, uintptr_t) { return x >> 5 & 1; }},
      {"the place in a page", [](uintptr_t, uintptr_t y) { return y / 64 % 64; }},
      {"the order", [](uintptr_t x, uintptr_t y) { return x < y ? 1 : 2; }},
      {"the distance in pages", [](uintptr_t x, uintptr_t y) { return (y - x) >> 12 & 0xff; }},
      {"the upper half", [](uintptr_t x, uintptr_t) { return x >> 32 & 0xff; }},
  };
  const struct {
    size_t input, output;
  } places[] = {{0, 16384}, {4, 16384}, {8, 16384 + 12}, {4096 - 4, 16384}, {16384, 16}};
  for (const auto& c : cases) {
    const WorkOn work = [&](cudaStream_t stream, void* const* at) {
      return AddToEight(stream, at, c.number(reinterpret_cast<uintptr_t>(at[0]), reinterpret_cast<uintptr_t>(at[1])));
    };
    for (const auto& captured : places) {
      SCOPED_TRACE(c.name + (" at " + std::to_string(captured.input)));
      ASSERT_TRUE(RunOn(Two(At(captured.input), At(captured.output)), work).ok());
      EXPECT_TRUE(WhyNotMovable().Names("argument 2 is 0x")) << WhyNotMovable().message;
      for (const auto& place : places) {
        char *const x = At(65536 + place.input), *const y = At(65536 + place.output);
        const uint64_t number = c.number(reinterpret_cast<uintptr_t>(x), reinterpret_cast<uintptr_t>(y));
        EXPECT_FALSE(IsReplayed(Two(x, y), work, number & 0xff));
      }
      GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
    }
  }
}

// Two numbers that are side by side: an offset into the engine's memory, and a count. They differ as one pointer would.
TEST_F(GraphMovingProof, AnOffsetBesideACountFixesTheGraph) {
  char* const base = At(kMemoryBytes / 2);
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    const uint64_t offset = static_cast<uint32_t>(static_cast<char*>(at[0]) - base);
    GCAP_RETURN_IF_ERROR(AddToEight(stream, at, 1));
    return AddTo(stream, at[1], at[1], (uint64_t{64} << 32) + (offset & ~uint64_t{0xff}), 8);
  };
  for (const gcap_graph_stand_ins_t stand_ins : {GCAP_GRAPH_STAND_INS_ADDRESSES, GCAP_GRAPH_STAND_INS_MEMORY}) {
    const auto items = Two(base + 65536, base + 131072, 256), below = Two(base - 65536, base - 131072, 256);
    gcap_graph_buffers_t buffers = BuffersOf(items);
    buffers.stand_ins = stand_ins;
    ASSERT_TRUE(RunOn(buffers, work).ok());
    EXPECT_TRUE(WhyNotMovable().Names("node 1 of 2")) << WhyNotMovable().message;
    EXPECT_FALSE(IsReplayed(below, work, 1));
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// --- What stays behind ----------------------------------------------------------------------------------------------

// Work of an engine that kept an address of the buffers of its capture, in each kind of node, and names its run's own
// in eager runs.
TEST_F(GraphMovingProof, AnAddressThatWasKeptFixesTheGraph) {
  char *kept[2] = {}, *const spare = At(kMemoryBytes / 2);
  const auto copy = [](cudaStream_t stream, void* to, const void* from) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, 32, cudaMemcpyDeviceToDevice, stream));
  };
  const auto packed = [](cudaStream_t stream, void* x, void* y) {
    const gcap_test_packed_t args = {1, static_cast<float*>(x), static_cast<float*>(y), 8};
    return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_packed), args);
  };
  const struct {
    const char* name;
    WorkOn work;
  } cases[] = {
      {"memcpy: the source",
       [&](cudaStream_t stream, void* const* at) {
         GCAP_RETURN_IF_ERROR(AddToEight(stream, at, 0));
         GCAP_RETURN_IF_ERROR(copy(stream, spare, kept[0]));
         return AddTo(stream, spare, at[1], 1, 8);
       }},
      {"memcpy: the destination",
       [&](cudaStream_t stream, void* const* at) {
         GCAP_RETURN_IF_ERROR(AddToEight(stream, at, 0));
         GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], spare, 1, 8));
         return copy(stream, kept[1], spare);
       }},
      {"memset: the destination",
       [&](cudaStream_t stream, void* const* at) {
         GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(kept[1], 0, 32, stream)));
         return AddToEight(stream, at, 1);
       }},
      {"memset: the destination has an address",  // from before the buffer on
       [&](cudaStream_t stream, void* const* at) {
         GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(kept[1] - 64, 0, 128, stream)));
         return AddToEight(stream, at, 1);
       }},
      {"argument 0, byte 1 is an address",
       [&](cudaStream_t stream, void* const* at) {
         GCAP_RETURN_IF_ERROR(AddToEight(stream, at, 0));
         return packed(stream, kept[0], at[1]);
       }},
      {"argument 2 is an address",  // the end of the input, whose low byte is added
       [&](cudaStream_t stream, void* const* at) {
         GCAP_RETURN_IF_ERROR(AddToEight(stream, at, 1));
         return AddTo(stream, at[1], at[1], reinterpret_cast<uint64_t>(kept[0]) + kFloatsBytes, 8);
       }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto items = Two(At(65536), At(131072), 256), others = Two(At(262144), At(262144 + 65536), 256);
    kept[0] = At(65536), kept[1] = At(131072);
    ASSERT_TRUE(RunOn(items, c.work).ok());
    EXPECT_TRUE(WhyNotMovable().Names(c.name)) << WhyNotMovable().message;
    EXPECT_TRUE(WhyNotMovable().Names("that does not move with the buffer")) << WhyNotMovable().message;
    kept[0] = At(262144), kept[1] = At(262144 + 65536);
    EXPECT_FALSE(IsReplayed(others, c.work, 1));
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// Scratch that the work takes in each run, and that begins where a buffer ends: gcap knows whose the address is.
TEST_F(GraphMovingProof, ScratchBehindABufferIsNoEndOfTheBuffer) {
  constexpr size_t kBlock = 64 << 10;
  gcap_allocator_t* upstream = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &upstream));
  GCAP_ASSERT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_EXTERNAL, 0, 0, &stream));
  void* input = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kBlock, stream, &input));
  const auto items_of = [](void* first, void* second) -> std::vector<gcap_graph_buffer_t> {
    return {{"input", first, kBlock, 256}, {"output", second, kFloatsBytes, 256}};
  };
  void* own = nullptr;
  const WorkOn work = [&](cudaStream_t handle, void* const* at) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(scratch, kBlock, stream, &own));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(own, 0, kBlock, handle)));
    GCAP_RETURN_IF_ERROR(AddTo(handle, at[0], own, 1, 8));
    GCAP_RETURN_IF_ERROR(AddTo(handle, own, at[1], 1, 8));
    return gcap_scratch_free(scratch, own);
  };
  Fill(input, 7);
  ASSERT_TRUE(RunOn(items_of(input, At(0)), work).ok());
  ASSERT_EQ(own, static_cast<char*>(input) + kBlock);
  EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
  EXPECT_TRUE(IsReplayed(items_of(At(kBlock * 2), At(kBlock * 4)), work, 2));
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, input));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  gcap_allocator_destroy(upstream);
}

// Scratch of nobody's run, such as what one step leaves to the next, behind a buffer. An end of the buffer that the
// work kept is the same number, in all captures, so the graph moves only where the work says which of the two it means.
TEST_F(GraphMovingProof, ScratchOfOthersBehindABufferIsNamedOrFixesTheGraph) {
  constexpr size_t kBlock = 64 << 10;
  gcap_allocator_t* upstream = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &upstream));
  GCAP_ASSERT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_EXTERNAL, 0, 0, &stream));
  void *pool = nullptr, *state = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kBlock, stream, &pool));
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kBlock, stream, &state));
  ASSERT_EQ(state, static_cast<char*>(pool) + kBlock);
  const auto items_of = [&](void* first, void* second, bool names_state) {
    std::vector<gcap_graph_buffer_t> items = {{"pool", first, kBlock, 256}, {"output", second, kFloatsBytes, 256}};
    if (names_state) items.push_back({"state", state, kBlock, 256});
    return items;
  };
  for (const bool names_state : {false, true}) {
    SCOPED_TRACE(names_state);
    const WorkOn work = [&](cudaStream_t handle, void* const* at) {
      void* const kept = names_state ? at[2] : state;
      GCAP_RETURN_IF_ERROR(AddTo(handle, at[0], kept, 1, 8));
      return AddTo(handle, kept, at[1], 1, 8);
    };
    Fill(pool, 7);
    ASSERT_TRUE(RunOn(items_of(pool, At(0), names_state), work).ok());
    EXPECT_EQ(FirstOf(At(0)), 9);
    if (!names_state) {
      EXPECT_TRUE(WhyNotMovable().Names("name the block as a buffer too")) << WhyNotMovable().message;
    }
    EXPECT_EQ(IsReplayed(items_of(At(kBlock * 2), At(kBlock * 4), names_state), work, 2), names_state);
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
  for (void* const block : {pool, state}) GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  gcap_allocator_destroy(upstream);
}

// As for batched products: the pointers are in pinned memory, which a captured copy reads. The work writes them for
// each run, or the engine did before, for the buffers of the capture.
TEST_F(GraphMovingProof, APointerThatIsCopiedFromTheHostFixesTheGraph) {
  void **table = nullptr, *on_device = At(kMemoryBytes / 2);
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&table), 2 * sizeof(void*)), cudaSuccess);
  bool is_written = true;
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    if (is_written) table[0] = at[0], table[1] = at[1];
    GCAP_RETURN_IF_ERROR(AddToEight(stream, at, 0));
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(on_device, table, 2 * sizeof(void*), cudaMemcpyHostToDevice, stream)));
    return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_table), on_device, uint32_t{8});
  };
  for (const char* reason : {"memcpy: what it copies from the host is other with the buffers elsewhere",
                             "memcpy: it copies from the host an address in buffer 0 'input'"}) {
    table[0] = At(0), table[1] = At(8192);
    GCAP_EXPECT_CUDA(cudaMemcpy(on_device, table, 2 * sizeof(void*), cudaMemcpyHostToDevice));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());  // a capture reads the table for the twin's accesses
    ASSERT_TRUE(RunOn(Two(At(0), At(8192)), work).ok());
    EXPECT_TRUE(WhyNotMovable().Names(reason)) << WhyNotMovable().message;
    is_written = true;
    EXPECT_FALSE(IsReplayed(Two(At(65536), At(131072)), work, 1));
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
    is_written = false;
  }
  GCAP_EXPECT_CUDA(cudaFreeHost(table));
}

// As for a kernel that finds its buffers by offsets in a table.
TEST_F(GraphMovingProof, ATableOnTheHostThatFollowsTheBuffersFixesTheGraph) {
  uint64_t* table = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&table), 256), cudaSuccess);
  void* const on_device = At(kMemoryBytes / 2);
  const auto work_of = [&](bool follows) {
    return [=](cudaStream_t stream, void* const* at) {
      table[0] = follows ? static_cast<uint64_t>(static_cast<char*>(at[0]) - memory_) : 7;
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(on_device, table, 256, cudaMemcpyHostToDevice, stream)));
      return AddToEight(stream, at, 1);
    };
  };
  for (const bool follows : {false, true}) {
    std::fill_n(table, 32, uint64_t{0});
    ASSERT_TRUE(RunOn(Two(At(0), At(8192)), work_of(follows)).ok());
    EXPECT_EQ(WhyNotMovable().ok(), !follows) << WhyNotMovable().message;
    EXPECT_EQ(IsReplayed(Two(At(65536), At(131072)), work_of(follows), 1), !follows);
    if (follows) {
      EXPECT_TRUE(WhyNotMovable().Names("memcpy: what it copies from the host is other")) << WhyNotMovable().message;
    }
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
  GCAP_EXPECT_CUDA(cudaFreeHost(table));
}

TEST_F(GraphMovingProof, ABufferThatIsNotUsedMustBeSaidToBe) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) { return AddToEight(stream, at, 1); };
  std::vector<gcap_graph_buffer_t> items = Two(At(0), At(8192));
  items.push_back({"unused", At(16384), kFloatsBytes, 4});
  ASSERT_TRUE(RunOn(items, work).ok());
  EXPECT_TRUE(WhyNotMovable().Names("no argument points into buffer 2 'unused'")) << WhyNotMovable().message;
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  const bool may_be_unused[] = {false, false, true};
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.may_be_unused = may_be_unused;
  ASSERT_TRUE(RunOn(buffers, work).ok());
  EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
  GCAP_EXPECT_OK(Bind(2, At(65536)));
}

// --- Nodes that the driver does not change --------------------------------------------------------------------------

// As slices and concatenations are copied. Buffers in turn: no run fails, and none captures again.
TEST_F(GraphMovingProof, ACopyOfTwoDimensionsFixesTheGraph) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy2DAsync(at[1], 64, at[0], 32, 16, 4, cudaMemcpyDeviceToDevice, stream)));
    return AddTo(stream, at[1], at[1], 3, 4);
  };
  for (int run = 0; run < 8; ++run) {
    SCOPED_TRACE(run);
    const size_t place = run % 2 == 0 ? 0 : 65536;
    const bool is_replayed = IsReplayed(Two(At(place), At(place + 8192)), work, 3);
    EXPECT_EQ(is_replayed, run > 0 && run % 2 == 0);
  }
  EXPECT_TRUE(WhyNotMovable().Names("node 0 of 2, memcpy: the driver does not change this node in an executable"))
      << WhyNotMovable().message;
  EXPECT_TRUE(
      WhyNotMovable().Names("it copies 4 rows of 16 bytes, and only copies of one row change; remedy: a kernel "
                            "that copies the rows, or a copy of each row"))
      << WhyNotMovable().message;
  EXPECT_EQ(Info(kId).captures, 1u);
}

// Both remedies that the message above names.
TEST_F(GraphMovingProof, RowsThatKernelsCopyMoveAndSoDoCopiesOfEachRow) {
  using CopyRow = gcap_status_t (*)(cudaStream_t stream, void* to, void* from);
  const CopyRow ways[] = {
      [](cudaStream_t stream, void* to, void* from) { return AddTo(stream, from, to, 0, 4); },
      [](cudaStream_t stream, void* to, void* from) {
        return GCAP_CUDA(cudaMemcpyAsync(to, from, 16, cudaMemcpyDefault, stream));
      },
  };
  for (const CopyRow copy : ways) {
    const WorkOn work = [copy](cudaStream_t stream, void* const* at) {
      for (int row = 0; row < 4; ++row) {
        GCAP_RETURN_IF_ERROR(copy(stream, static_cast<char*>(at[1]) + 64 * row, static_cast<char*>(at[0]) + 32 * row));
      }
      return AddTo(stream, at[1], at[1], 3, 4);
    };
    for (const size_t place : {0, 65536, 0, 131072}) {
      for (int row = 1; row < 4; ++row) {
        Fill(At(place) + 32 * row, static_cast<float>(20 + row));
        Fill(At(place + 8192) + 64 * row, -50);
      }
      const bool is_captured = gcap_graph_manager_is_captured(manager_, kId);
      EXPECT_EQ(IsReplayed(Two(At(place), At(place + 8192)), work, 3), is_captured) << place;
      for (int row = 1; row < 4; ++row) EXPECT_EQ(FirstOf(At(place + 8192) + 64 * row), 20 + row);
    }
    EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// --- Host functions -------------------------------------------------------------------------------------------------

class HostFunctions : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (float*& memory : pinned_) {
      ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&memory), kFloatsBytes), cudaSuccess);
      std::fill_n(memory, kFloats, 0.0f);
    }
  }
  void TearDown() override {
    GraphMoving::TearDown();
    for (float* memory : pinned_) GCAP_EXPECT_CUDA(cudaFreeHost(memory));
  }
  gcap_graph_buffers_t BuffersAt(int first, bool may_stay) {
    items_ = {{"input", pinned_[first], kFloatsBytes, 0}, {"output", pinned_[first + 1], kFloatsBytes, 0}};
    gcap_graph_buffers_t buffers = BuffersOf(items_);
    buffers.host_functions_may_stay = may_stay;
    return buffers;
  }

  float* pinned_[4] = {};
  std::vector<gcap_graph_buffer_t> items_;
};

void AddOneOnTheHost(void* addresses) {
  void* const* at = static_cast<void* const*>(addresses);
  for (uint32_t i = 0; i < kFloats; ++i) static_cast<float*>(at[1])[i] = static_cast<const float*>(at[0])[i] + 1;
}

// The work gives the array of its addresses to a host function, which reads it at each launch, also long after the run.
TEST_F(HostFunctions, FixTheGraphAndMayReadTheAddressesOfTheCapture) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    return GCAP_CUDA(cudaLaunchHostFunc(stream, AddOneOnTheHost, const_cast<void**>(at)));
  };
  for (int run = 1; run <= 6; ++run) {
    const int first = run % 3 == 0 ? 2 : 0;
    pinned_[first][0] = static_cast<float>(10 * run);
    const Outcome outcome = RunOn(BuffersAt(first, false), work);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(pinned_[first + 1][0], static_cast<float>(10 * run + 1)) << run;
  }
  EXPECT_TRUE(WhyNotMovable().Names("node 0 of 1, host: what a host function reads")) << WhyNotMovable().message;
  EXPECT_EQ(Info(kId).replays, 4u) << "the capture, and each run on its buffers";
}

TEST_F(HostFunctions, MayStayIfTheCallerSaysThatTheyDo) {
  int calls = 0;
  const auto count = [](void* user) { ++*static_cast<int*>(user); };
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddOne(stream, at));
    return GCAP_CUDA(cudaLaunchHostFunc(stream, count, &calls));
  };
  for (int run = 1; run <= 3; ++run) {
    const int first = run % 2 == 0 ? 2 : 0;
    pinned_[first][0] = static_cast<float>(10 * run);
    ASSERT_TRUE(RunOn(BuffersAt(first, true), work).ok());
    EXPECT_EQ(pinned_[first + 1][0], static_cast<float>(10 * run + 1)) << run;
    EXPECT_EQ(calls, run);
  }
  EXPECT_EQ(Info(kId).replays, 3u);
}

// What differs is seen, whatever the caller says.
TEST_F(HostFunctions, WhoseDataDifferFixTheGraph) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddOne(stream, at));
    return GCAP_CUDA(cudaLaunchHostFunc(stream, AddOneOnTheHost, const_cast<void**>(at)));
  };
  ASSERT_TRUE(RunOn(BuffersAt(0, true), work).ok());
  EXPECT_TRUE(WhyNotMovable().Names("host: the user's data is")) << WhyNotMovable().message;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
