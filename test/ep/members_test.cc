// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each member of the table, one by one: absent, the runtime answers, or the default where no runtime can; there, it
// wins. A member without a row fails the last test.

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gcap/ep_ops.h"
#include "gtest/gtest.h"
#include "test/ep/test_ep.h"
#include "test/support/device_floats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/replays.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::Outcome;

using Floats = std::vector<float>;

const char* called = nullptr;  // the member that was called last

gcap_status_t Called(const char* member) {
  called = member;
  return nullptr;
}

// An EP with a runtime that has captured graph 0, and has scratch.
struct World {
  World() {
    gcap_options_t options = gcap::testing::GraphOptions(1);
    options.do_copy_in_default_stream = false;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    const gcap_runtime_work_t work = [](void*, const gcap_run_resources_t* run) {
      void* block = nullptr;
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 4096, run->stream, &block));
      gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(block, 1, 4096, gcap_stream_handle(run->stream)));
      return gcap_status_join(status, gcap_scratch_free(run->scratch, block));
    };
    for (int run = 0; run < 3; ++run) GCAP_EXPECT_OK(gcap_runtime_run(runtime, 0, work, nullptr, true));
    ops.struct_version = GCAP_EP_OPS_VERSION;
    ops.struct_bytes = sizeof(ops);
    ops.name = "members";
    ops.runtime = runtime;
    ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return false; };
    ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t*) {
      return GCAP_STATUS(GCAP_UNAVAILABLE, "no kernel");
    };
  }
  ~World() { GCAP_EXPECT_OK(gcap_runtime_destroy(runtime)); }

  void Create() { GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep)); }
  // Ends the EP alone, unless it has ended its runtime.
  void EndEp() {
    if (ep == nullptr) return;
    GCAP_EXPECT_OK(gcap_ep_destroy(ep));
    if (ops.destroy == nullptr) runtime = nullptr;
  }
  bool HasOpenRun() const { return Outcome(gcap_runtime_join(runtime)).ok(); }
  void BeginRun() const { GCAP_EXPECT_OK(gcap_runtime_begin_run(runtime, GCAP_GRAPH_ID_NONE)); }
  void EndRun() const { GCAP_EXPECT_OK(gcap_runtime_end_run(runtime, nullptr, true)); }
  gcap_stream_t* Stream() const {
    gcap_run_resources_t run = {};
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &run));
    return run.stream;
  }
  uint64_t ScratchBytes() const {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(runtime), &stats);
    return stats.total_allocated_bytes;
  }

  gcap_runtime_t* runtime = nullptr;
  gcap_ep_ops_t ops = {};
  gcap_ep_t* ep = nullptr;
};

constexpr gcap_memory_t kDevice = {GCAP_MEMORY_DEVICE, 0};
constexpr gcap_memory_t kHost = {GCAP_MEMORY_HOST, 0};
const gcap_model_t kModel = {};
const gcap_node_t kNode = {"Op", "node", nullptr, 0, nullptr, 0, nullptr};

struct Row {
  const char* member;
  size_t offset;
  void (*add)(gcap_ep_ops_t*);
  // Asks the EP; true if the answer is that of the runtime, or the default that the header has.
  bool (*ask)(World*);
};

#define MEMBER(name) #name, offsetof(gcap_ep_ops_t, name)
#define ADD(name, parameters, answer) \
  [](gcap_ep_ops_t* o) { o->name = [] parameters { return (void)Called(#name), answer; }; }

std::vector<Row> RunRows() {
  return {
      {MEMBER(supports), ADD(supports, (void*, const gcap_model_t*, const gcap_node_t*), true),
       [](World* w) { return !gcap_ep_supports(w->ep, &kModel, &kNode); }},
      {MEMBER(create_kernel),
       ADD(create_kernel, (void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t*),
           GCAP_STATUS(GCAP_INTERNAL, "the other one")),
       [](World* w) {
         gcap_kernel_t kernel;
         return Outcome(gcap_ep_create_kernel(w->ep, &kModel, &kNode, &kernel)).code == GCAP_UNAVAILABLE;
       }},
      {MEMBER(get_run_resources), ADD(get_run_resources, (void*, gcap_run_resources_t*), gcap_status_t{}),
       [](World* w) {
         gcap_run_resources_t run = {};
         GCAP_EXPECT_OK(gcap_ep_get_run_resources(w->ep, &run));
         return run.stream == w->Stream() && run.scratch == gcap_runtime_scratch(w->runtime);
       }},
      {MEMBER(synchronize), ADD(synchronize, (void*), gcap_status_t{}),
       [](World* w) {
         const uint64_t before = gcap_stream_sync_id(w->Stream());
         GCAP_EXPECT_OK(gcap_ep_synchronize(w->ep));
         return gcap_stream_sync_id(w->Stream()) == before + 1;
       }},
      {MEMBER(begin_run), ADD(begin_run, (void*, int), gcap_status_t{}),
       [](World* w) {
         GCAP_EXPECT_OK(gcap_ep_begin_run(w->ep, GCAP_GRAPH_ID_NONE));
         const bool opened = w->HasOpenRun();
         if (opened) w->EndRun();
         return opened;
       }},
      {MEMBER(end_run), ADD(end_run, (void*, gcap_status_t, bool), gcap_status_t{}),
       [](World* w) {
         w->BeginRun();
         GCAP_EXPECT_OK(gcap_ep_end_run(w->ep, nullptr, true));
         const bool ended = !w->HasOpenRun();
         if (!ended) w->EndRun();
         return ended;
       }},
      {MEMBER(is_concurrent_run_supported), ADD(is_concurrent_run_supported, (const void*), false),
       [](World* w) { return gcap_ep_supports_concurrent_runs(w->ep); }},
      {MEMBER(trim), ADD(trim, (void*), gcap_status_t{}),
       [](World* w) {
         GCAP_EXPECT_OK(gcap_runtime_release(w->runtime, 0));
         GCAP_EXPECT_OK(gcap_runtime_synchronize(w->runtime));  // what the stream may still use is not trimmed
         const uint64_t before = w->ScratchBytes();
         GCAP_EXPECT_OK(gcap_ep_trim(w->ep));
         return before > 0 && w->ScratchBytes() == 0;
       }},
      {MEMBER(input_place),
       ADD(input_place, (void*, const gcap_model_t*, const gcap_node_t*, int), GCAP_INPUT_SHAPE_ONLY),
       [](World* w) { return gcap_ep_input_place(w->ep, &kModel, &kNode, 0) == GCAP_INPUT_IN_EP_MEMORY; }},
      {MEMBER(infer_shapes),
       ADD(infer_shapes, (void*, const gcap_model_t*, const gcap_node_t*, const gcap_tensor_t*, gcap_tensor_t*),
           GCAP_STATUS(GCAP_UNAVAILABLE, "no shape")),
       [](World* w) {
         gcap_tensor_t output = {};
         return Outcome(gcap_ep_infer_shapes(w->ep, &kModel, &kNode, nullptr, &output)).ok();
       }},
  };
}

std::vector<Row> GraphRows() {
  return {
      {MEMBER(begin_run_on),
       ADD(begin_run_on, (void*, int, const gcap_graph_buffers_t*, gcap_graph_run_kind_t*, void**), gcap_status_t{}),
       [](World* w) {
         gcap_graph_buffers_t none;
         gcap_graph_buffers_init(&none);
         gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
         GCAP_EXPECT_OK(gcap_ep_begin_run_on(w->ep, GCAP_GRAPH_ID_NONE, &none, &kind, nullptr));
         return Outcome(gcap_ep_end_run(w->ep, nullptr, true)).ok();  // the runtime has an open run
       }},
      {MEMBER(is_graph_capture_enabled), ADD(is_graph_capture_enabled, (const void*), false),
       [](World* w) { return gcap_ep_is_graph_capture_enabled(w->ep); }},
      {MEMBER(is_graph_captured), ADD(is_graph_captured, (void*, int), false),
       [](World* w) { return gcap_ep_is_graph_captured(w->ep, 0); }},
      {MEMBER(replay_graph),
       ADD(replay_graph, (void*, int, const gcap_graph_replay_options_t*, bool*), gcap_status_t{}),
       [](World* w) {
         bool replayed = false;
         const gcap_graph_replay_options_t options = ReplayOptions(/*synchronize=*/true);
         GCAP_EXPECT_OK(gcap_ep_replay_graph(w->ep, 0, &options, &replayed));
         return replayed;
       }},
      {MEMBER(release_captured_graph), ADD(release_captured_graph, (void*, int), gcap_status_t{}),
       [](World* w) {
         GCAP_EXPECT_OK(gcap_ep_release_captured_graph(w->ep, 0));
         return !gcap_runtime_is_captured(w->runtime, 0);
       }},
      {MEMBER(sign_graph), ADD(sign_graph, (void*, const gcap_graph_binding_t*, size_t), gcap_status_t{}),
       [](World* w) {  // no run is open
         return Outcome(gcap_ep_sign_graph(w->ep, nullptr, 0)).code == GCAP_FAILED_PRECONDITION;
       }},
      {MEMBER(explain), ADD(explain, (void*, int, gcap_graph_question_t), gcap_status_t{}),
       [](World* w) {
         const auto no_question = static_cast<gcap_graph_question_t>(99);
         return Outcome(gcap_ep_explain(w->ep, 0, no_question)).code == GCAP_INVALID_ARGUMENT;
       }},
      {MEMBER(graph_capture_node_assignment_policy),
       ADD(graph_capture_node_assignment_policy, (const void*), GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES),
       [](World* w) { return gcap_ep_graph_capture_node_assignment_policy(w->ep) == GCAP_GRAPH_ALL_NODES_ON_EP; }},
      {MEMBER(destroy), ADD(destroy, (void*), gcap_status_t{}),
       [](World* w) {
         w->EndEp();
         w->ep = nullptr;
         return w->runtime == nullptr;
       }},
  };
}

std::vector<Row> HostRows() {
  return {
      {MEMBER(can_copy), ADD(can_copy, (const void*, gcap_memory_t, gcap_memory_t), false),
       [](World* w) { return gcap_ep_can_copy(w->ep, kHost, kDevice); }},
      {MEMBER(copy_tensors), ADD(copy_tensors, (void*, const gcap_copy_t*, size_t), gcap_status_t{}),
       [](World* w) {
         Floats host = {1, 2};
         DeviceFloats x({0, 0});
         const gcap_tensor_t src = {host.data(), GCAP_DTYPE_F32, 1, {2}}, dst = {x.get(), GCAP_DTYPE_F32, 1, {2}};
         const gcap_copy_t copy = {&src, kHost, &dst, kDevice, nullptr};
         GCAP_EXPECT_OK(gcap_ep_copy_tensor(w->ep, &copy));
         return x.Get() == host;
       }},
      {MEMBER(copies_in_default_stream), ADD(copies_in_default_stream, (const void*), true),
       [](World* w) { return !gcap_ep_copies_in_default_stream(w->ep); }},
      {MEMBER(create_stream), ADD(create_stream, (void*, gcap_stream_t**), gcap_status_t{}),
       [](World* w) {
         gcap_stream_t* stream = nullptr;
         GCAP_EXPECT_OK(gcap_ep_create_stream(w->ep, &stream));
         GCAP_EXPECT_OK(gcap_stream_destroy(stream));
         return stream != nullptr;
       }},
      {MEMBER(get_allocator), ADD(get_allocator, (void*, gcap_memory_kind_t, gcap_allocator_t**), gcap_status_t{}),
       [](World* w) {
         gcap_allocator_t* allocator = nullptr;
         GCAP_EXPECT_OK(gcap_ep_get_allocator(w->ep, GCAP_MEMORY_PINNED, &allocator));
         return allocator != nullptr;
       }},
      {MEMBER(fork), ADD(fork, (void*, size_t, gcap_stream_t**), gcap_status_t{}),
       [](World* w) {
         gcap_stream_t* stream = nullptr;
         w->BeginRun();
         GCAP_EXPECT_OK(gcap_ep_fork(w->ep, 1, &stream));
         GCAP_EXPECT_OK(gcap_runtime_join(w->runtime));
         w->EndRun();
         return stream != nullptr;
       }},
      {MEMBER(join), ADD(join, (void*), gcap_status_t{}),
       [](World* w) { return Outcome(gcap_ep_join(w->ep)).code == GCAP_FAILED_PRECONDITION; }},  // no run is open
  };
}

std::vector<Row> AllRows() {
  std::vector<Row> all = RunRows();
  for (const std::vector<Row>& rows : {GraphRows(), HostRows()}) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

class EpMembers : public gcap::testing::DeviceTest {};

TEST_F(EpMembers, AbsentTheRuntimeAnswersAndPresentTheyWin) {
  for (const Row& row : AllRows()) {
    for (const bool present : {false, true}) {
      SCOPED_TRACE(std::string(row.member) + (present ? " is there" : " is absent"));
      World world;
      if (present) row.add(&world.ops);
      called = "";
      world.Create();
      EXPECT_EQ(row.ask(&world), !present);
      EXPECT_STREQ(called, present ? row.member : "");
      world.EndEp();
    }
  }
}

// What the table holds besides functions.
const size_t kNoFunctions[] = {offsetof(gcap_ep_ops_t, struct_version), offsetof(gcap_ep_ops_t, name),
                               offsetof(gcap_ep_ops_t, self),           offsetof(gcap_ep_ops_t, struct_bytes),
                               offsetof(gcap_ep_ops_t, runtime),        offsetof(gcap_ep_ops_t, runs_on_host)};

TEST_F(EpMembers, EachHasARow) {
  std::vector<int> found(sizeof(gcap_ep_ops_t) / sizeof(void*));
  for (const Row& row : AllRows()) ++found[row.offset / sizeof(void*)];
  for (size_t offset : kNoFunctions) ++found[offset / sizeof(void*)];
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], 1) << "the member at byte " << i * sizeof(void*);
}

}  // namespace
