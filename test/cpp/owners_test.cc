// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What owns moves, and ends what it owns: each owner and lease of gcap.hpp, an end that is refused, and one that loses
// a part.

#include <cuda_runtime_api.h>

#include <string>
#include <type_traits>
#include <utility>

#include "gcap/kit/kit.hpp"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// What the objects of the tests stand on.
struct Stand {
  stream on = own<gcap_stream_create>(0).value_or_throw();
  allocator device = own<gcap_device_allocator_create>(0).value_or_throw();
  scratch arena = own<gcap_scratch_create>(device.get(), nullptr).value_or_throw();
  cudaStream_t handle() const { return gcap_stream_handle(on.get()); }
};

// A model of one node on the host.
class ReluSession {
 public:
  ReluSession() {
    values_[0] = {"x", GCAP_DTYPE_F32, 1, {2}, nullptr};
    values_[1] = {"y", GCAP_DTYPE_F32, 1, {2}, nullptr};
    node_.op_type = "Relu";
    node_.name = "relu";
    node_.inputs = &indices_[0];
    node_.outputs = &indices_[1];
    node_.num_inputs = node_.num_outputs = 1;
    const gcap_model_t model = {values_, 2, &node_, 1, &indices_[0], 1, &indices_[1], 1, nullptr, 0};
    gcap_ep_t* const eps[] = {cpu_.get()};
    relu = own<gcap_session_create>(&model, eps, size_t{1}, nullptr).value_or_throw();
  }
  gcap_session_t* get() const { return relu.get(); }

 private:
  gcap_value_t values_[2] = {};
  int indices_[2] = {0, 1};
  gcap_node_t node_ = {};
  ep cpu_ = own<gcap_cpu_ep_create>().value_or_throw();

 public:
  session relu;
};

// Expects that the object goes from owner to owner, and ends once: the caller compares what lives.
template <class Owner>
void ExpectMovesAndEnds(Owner made) {
  static_assert(!std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>, "");
  static_assert(std::is_nothrow_move_constructible_v<Owner> && std::is_nothrow_move_assignable_v<Owner>, "");
  auto* const object = made.get();
  ASSERT_TRUE(made);
  Owner constructed(std::move(made));
  EXPECT_FALSE(made);
  EXPECT_EQ(constructed.get(), object);
  Owner assigned;
  assigned = std::move(constructed);
  EXPECT_FALSE(constructed);
  EXPECT_EQ(assigned.get(), object);
  Owner& itself = assigned;
  assigned = std::move(itself);
  EXPECT_EQ(assigned.get(), object);
  const status outcome = assigned.destroy();
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_FALSE(assigned);
  EXPECT_TRUE(assigned.destroy().ok());  // of nothing
}

// Twice: once ended by destroy(), once by the destructor.
template <class Make>
void ExpectOwned(Make make) {
  const Handles before = LiveHandles();
  const LogCatcher log;
  ExpectMovesAndEnds(make());
  EXPECT_EQ(LiveHandles(), before);
  { const auto owned = make(); }
  EXPECT_EQ(LiveHandles(), before);
  EXPECT_EQ(log.text(), "");
}

using Owners = DeviceTest;

TEST_F(Owners, OfStreamsMoveAndEnd) {
  const Stand stand;
  ExpectOwned([] { return own<gcap_stream_create>(0).value_or_throw(); });
  ExpectOwned([&] { return own<gcap_notification_create>(stand.on.get()).value_or_throw(); });
}

TEST_F(Owners, OfMemoryMoveAndEnd) {
  const Stand stand;
  ExpectOwned([] { return own<gcap_device_allocator_create>(0).value_or_throw(); });
  ExpectOwned([] { return own<gcap_pinned_allocator_create>().value_or_throw(); });
  ExpectOwned([] {
    auto options = filled_by<gcap_pool_allocator_options_init>();
    return own<gcap_pool_allocator_create>(&options).value_or_throw();
  });
  ExpectOwned([&] { return own<gcap_scratch_create>(stand.device.get(), nullptr).value_or_throw(); });
  ExpectOwned([&] { return own<gcap_scratch_reservation_open>(stand.arena.get(), stand.on.get()).value_or_throw(); });
}

TEST_F(Owners, OfRunsMoveAndEnd) {
  const ReluSession relu;
  ExpectOwned([] { return own<gcap_graph_manager_create>(nullptr).value_or_throw(); });
  ExpectOwned([] { return own<gcap_runtime_create>(nullptr).value_or_throw(); });
  ExpectOwned([] { return own<gcap_cpu_ep_create>().value_or_throw(); });
  ExpectOwned([&] { return own<gcap_io_binding_create>(relu.get()).value_or_throw(); });
  ExpectMovesAndEnds(std::move(ReluSession().relu));
}

TEST_F(Owners, OfCapturesMoveAndEnd) {
  const Stand stand;
  const auto begin = [&] { return own<gcap_capture_begin>(stand.handle(), nullptr).value_or_throw(); };
  ExpectOwned(begin);
  EXPECT_FALSE(gcap_thread_is_capturing());
  ExpectOwned([&] {
    capture scope = begin();
    return std::move(end_capture(scope).value_or_throw().graph);
  });
  ExpectOwned([&] {
    capture scope = begin();
    GCAP_EXPECT_OK(gcap_capture_retain(
        scope.get(), [](void*) {}, /*bytes=*/nullptr, nullptr));
    return std::move(end_capture(scope).value_or_throw().retained);
  });
}

TEST_F(Owners, OfLabelsCloseThemAlsoWhereTheScopeThrows) {
  const Stand stand;
  const capture scope = own<gcap_capture_begin>(stand.handle(), nullptr).value_or_throw();
  const auto noted = [&]() -> std::string {
    GCAP_CAPTURE_NOTE("a call", nullptr);
    gcap_capture_call_t call = {};
    gcap_capture_get_calls(scope.get(), &call, 1);
    return call.label;
  };
  try {
    const label outer("outer");
    const label unnamed(nullptr);
    EXPECT_EQ(noted(), "outer > ");
    throw 17;
  } catch (int) {
  }
  EXPECT_EQ(noted(), "");
}

TEST_F(Owners, OfLeasesMoveAndGiveBack) {
  const Stand stand;
  ExpectOwned([&] { return own<gcap_allocator_alloc>(stand.device.get(), size_t{64}).value_or_throw(); });
  ExpectOwned([&] { return own<gcap_allocator_reserve>(stand.device.get(), size_t{64}).value_or_throw(); });
  ExpectOwned([&] {
    return own<gcap_allocator_alloc_on_stream>(stand.device.get(), size_t{64}, stand.on.get()).value_or_throw();
  });
  // A first block makes the arena grow, which is no leak.
  { const auto first = own<gcap_scratch_alloc>(stand.arena.get(), size_t{64}, stand.on.get()); }
  ExpectOwned([&] { return own<gcap_scratch_alloc>(stand.arena.get(), size_t{64}, stand.on.get()).value_or_throw(); });
  EXPECT_EQ(filled_by<gcap_scratch_get_stats>(stand.arena.get()).requested_in_use_bytes, 0u);
}

TEST_F(Owners, AreEmptyWhereNothingWasMade) {
  auto made = own<gcap_stream_create>(-1);
  EXPECT_FALSE(made);
  EXPECT_FALSE(*made);
  EXPECT_EQ(made.failure().code(), GCAP_INVALID_ARGUMENT);
  GCAP_EXPECT_FAILS(std::move(made).failure().release(), GCAP_INVALID_ARGUMENT, "-1");
}

TEST_F(Owners, KeepWhatCannotBeDestroyedYet) {
  Stand stand;
  capture scope = own<gcap_capture_begin>(stand.handle(), nullptr).value_or_throw();
  GCAP_EXPECT_FAILS(stand.on.destroy().release(), GCAP_FAILED_PRECONDITION, "captur");
  EXPECT_EQ(gcap_stream_from_handle(stand.handle()), stand.on.get());
  scope = capture();  // aborts it
  const status outcome = stand.on.destroy();
  EXPECT_TRUE(outcome.ok()) << outcome.message();
}

// By a stream that is captured, and a block that the driver does not take back.
TEST_F(Owners, LogARefusedEndAndLeaveTheObjectWhole) {
  const Stand stand;
  const LogCatcher log;
  stream made = own<gcap_stream_create>(0).value_or_throw();
  gcap_stream_t* const raw = made.get();
  capture scope = own<gcap_capture_begin>(gcap_stream_handle(raw), nullptr).value_or_throw();
  { const stream dies = std::move(made); }
  EXPECT_NE(log.text().find("an owner cannot end its object, which is kept"), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("captur"), std::string::npos) << log.text();
  EXPECT_EQ(gcap_stream_from_handle(gcap_stream_handle(raw)), raw);
  scope = capture();
  GCAP_EXPECT_OK(gcap_stream_destroy(raw));

  const size_t first = log.text().size();
  memory block = own<gcap_allocator_alloc>(stand.device.get(), size_t{64}).value_or_throw();
  void* const bytes = block.get();
  gcap_sim_fail_nth("cudaFree", 1, cudaErrorUnknown);
  { const memory dies = std::move(block); }
  EXPECT_NE(log.text().find("an owner cannot end its object, which is kept", first), std::string::npos) << log.text();
  GCAP_EXPECT_OK(gcap_allocator_free(stand.device.get(), bytes));
}

TEST_F(Owners, LetGoOfWhatIsGoneButForAPart) {
  stream made = own<gcap_stream_create>(0).value_or_throw();
  gcap_sim_fail_nth("cudaStreamDestroy", 1, cudaErrorUnknown);
  GCAP_EXPECT_FAILS(made.destroy().release(), GCAP_LEAKED, "cudaStreamDestroy");
  EXPECT_FALSE(made);

  const LogCatcher log;
  {
    const stream dies = own<gcap_stream_create>(0).value_or_throw();
    gcap_sim_fail_nth("cudaStreamDestroy", 1, cudaErrorUnknown);
  }
  EXPECT_NE(log.text().find("what an owner has ended is gone, but"), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("cudaStreamDestroy"), std::string::npos) << log.text();
}

// The free frees the block, and says that something wrote beside it: of an arena, and of the arena's allocator.
TEST_F(Owners, LetGoOfABlockWithABrokenRedZone) {
  const Stand stand;
  auto options = filled_by<gcap_scratch_options_init>();
  options.red_zones = true;
  const scratch arena = own<gcap_scratch_create>(stand.device.get(), &options).value_or_throw();
  const auto expect_let_go = [&](auto block) {
    EXPECT_EQ(cudaMemsetAsync(static_cast<char*>(block.get()) + 64, 0, 1, stand.handle()), cudaSuccess);
    GCAP_EXPECT_FAILS(block.destroy().release(), GCAP_INTERNAL, "");
    EXPECT_FALSE(block);
    EXPECT_EQ(filled_by<gcap_scratch_get_stats>(arena.get()).requested_in_use_bytes, 0u);
  };
  expect_let_go(own<gcap_scratch_alloc>(arena.get(), size_t{64}, stand.on.get()).value_or_throw());
  gcap_allocator_t* const view = gcap_scratch_allocator(arena.get());
  expect_let_go(own<gcap_allocator_alloc_on_stream>(view, size_t{64}, stand.on.get()).value_or_throw());
}

TEST_F(Owners, HaveACaptureThatEndsBadlyNoMore) {
  const Stand stand;
  capture scope = own<gcap_capture_begin>(stand.handle(), nullptr).value_or_throw();
  const status cause = GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a kernel is wrong");
  gcap_capture_fail(scope.get(), cause.get());
  const auto ended = end_capture(scope);
  EXPECT_EQ(ended.failure().code(), GCAP_CAPTURE_INVALIDATED);
  EXPECT_FALSE(scope);
  EXPECT_FALSE(gcap_thread_is_capturing());
}

}  // namespace
}  // namespace testing
}  // namespace gcap
