// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A runtime from a table of somebody else's: what gcap_runtime_create_from refuses, what absent members default to,
// what reaches the members, and tables and runs of other versions. Nothing here is on a device.

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gcap/runtime_ops.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::HeapFailure;
using gcap::testing::LogCatcher;
using Names = std::vector<std::string>;

// What the members of the tables below were called with, and what they answer.
struct Recorder {
  Names calls;
  gcap_run_t run = {};
  int id = 0;
  gcap_status_t run_status = nullptr;
  bool answer = true;
  bool fails = false;
  gcap_code_t code = GCAP_INTERNAL;  // of a failure
  gcap_run_resources_t resources;

  Recorder() { gcap_run_resources_init(&resources); }
  gcap_status_t Record(const char* name) {
    calls.push_back(name);
    return fails ? GCAP_STATUS(code, "%s was told to fail", name) : nullptr;
  }
  gcap_status_t Record(const char* name, const gcap_run_t* given) {
    run = *given;
    return Record(name);
  }
  gcap_status_t Record(const char* name, int given) {
    id = given;
    return Record(name);
  }
  bool Ask(const char* name) {
    calls.push_back(name);
    return answer;
  }
};

Recorder* Of(const void* self) { return static_cast<Recorder*>(const_cast<void*>(self)); }

// Only what is required.
gcap_runtime_ops_t Least(Recorder* recorder) {
  gcap_runtime_ops_t ops = {};
  ops.struct_size = sizeof(ops);
  ops.self = recorder;
  ops.get_resources = [](void* self, gcap_run_resources_t* out) {
    *out = Of(self)->resources;
    return Of(self)->Record("get_resources");
  };
  ops.synchronize = [](void* self) { return Of(self)->Record("synchronize"); };
  return ops;
}

gcap_runtime_ops_t Full(Recorder* recorder) {
  gcap_runtime_ops_t ops = Least(recorder);
  ops.begin_run = [](void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind, void**) {
    *out_kind = GCAP_GRAPH_RUN_CAPTURE;
    return Of(self)->Record("begin_run", run);
  };
  ops.end_run = [](void* self, const gcap_run_t* run, gcap_status_t run_status) {
    Of(self)->run_status = run_status;
    return gcap_status_join(run_status, Of(self)->Record("end_run", run));
  };
  ops.is_captured = [](void* self, int id) {
    Of(self)->id = id;
    return Of(self)->Ask("is_captured");
  };
  ops.replay = [](void* self, const gcap_run_t* run, bool* out_replayed) {
    *out_replayed = Of(self)->answer;
    return Of(self)->Record("replay", run);
  };
  ops.is_graph_capture_enabled = [](const void* self) { return Of(self)->Ask("is_graph_capture_enabled"); };
  ops.release = [](void* self, int id) { return Of(self)->Record("release", id); };
  ops.explain = [](void* self, int id, gcap_graph_question_t) { return Of(self)->Record("explain", id); };
  ops.moves_buffers = ops.checks_bindings = ops.takes_keys = true;
  ops.is_concurrent_run_supported = [](const void* self) { return Of(self)->Ask("is_concurrent_run_supported"); };
  ops.can_copy = [](const void* self, gcap_memory_t, gcap_memory_t) { return Of(self)->Ask("can_copy"); };
  ops.copy_tensors = [](void* self, const gcap_copy_t*, size_t) { return Of(self)->Record("copy_tensors"); };
  ops.copies_in_default_stream = [](const void* self) { return !Of(self)->Ask("copies_in_default_stream"); };
  ops.create_stream = [](void* self, gcap_stream_t**) { return Of(self)->Record("create_stream"); };
  ops.get_allocator = [](void* self, gcap_memory_kind_t, gcap_allocator_t**) {
    return Of(self)->Record("get_allocator");
  };
  ops.fork = [](void* self, size_t, gcap_stream_t**) { return Of(self)->Record("fork"); };
  ops.join = [](void* self) { return Of(self)->Record("join"); };
  ops.destroy = [](void* self) { return Of(self)->Record("destroy"); };
  return ops;
}

constexpr gcap_memory_t kHost = {GCAP_MEMORY_HOST, 0}, kDevice = {GCAP_MEMORY_DEVICE, 0};

class RuntimeOfTable : public ::testing::Test {
 protected:
  // In the place of the one before.
  void Create(const gcap_runtime_ops_t& ops) {
    TearDown();
    recorder_.calls.clear();
    GCAP_ASSERT_OK(gcap_runtime_create_from(&ops, &runtime_));
  }
  void TearDown() override {
    recorder_.fails = false;
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    runtime_ = nullptr;
  }
  // Asks for all that a table can answer.
  std::vector<gcap_code_t> AskAll() {
    gcap_run_resources_t resources;
    gcap_stream_t* stream = nullptr;
    gcap_allocator_t* allocator = nullptr;
    float data = 0;
    bool replayed = false;
    const gcap_tensor_t tensor = {&data, GCAP_DTYPE_F32, 0, {}};
    const gcap_copy_t copy = {&tensor, kHost, &tensor, kDevice, nullptr};
    const gcap_status_t all[] = {gcap_runtime_get_resources(runtime_, &resources),
                                 gcap_runtime_synchronize(runtime_),
                                 BeginRun(runtime_, 3),
                                 EndRun(runtime_, nullptr, /*synchronize=*/false),
                                 TryReplay(runtime_, 3, /*synchronize=*/false, &replayed),
                                 gcap_runtime_release(runtime_, 3),
                                 gcap_runtime_explain(runtime_, 3, GCAP_GRAPH_WHY_CAPTURE_FAILED),
                                 gcap_runtime_copy_tensors(runtime_, &copy, 1),
                                 gcap_runtime_create_stream(runtime_, &stream),
                                 gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &allocator),
                                 gcap_runtime_fork(runtime_, 1, &stream),
                                 gcap_runtime_join(runtime_)};
    std::vector<gcap_code_t> codes;
    for (gcap_status_t status : all) {
      codes.push_back(gcap_status_code(status));
      gcap_status_free(status);
    }
    return codes;
  }

  Recorder recorder_;
  gcap_runtime_t* runtime_ = nullptr;
};

TEST(RuntimeTable, CreateFromRefusesATableThatIsNotWhole) {
  const std::pair<const char*, std::function<void(gcap_runtime_ops_t*)>> rows[] = {
      // what the message names
      {"get_resources is NULL", [](gcap_runtime_ops_t* o) { o->get_resources = nullptr; }},
      {"synchronize is NULL", [](gcap_runtime_ops_t* o) { o->synchronize = nullptr; }},
      {"begin_run is NULL", [](gcap_runtime_ops_t* o) { o->begin_run = nullptr; }},
      {"end_run is NULL", [](gcap_runtime_ops_t* o) { o->end_run = nullptr; }},
      {"can_copy is NULL", [](gcap_runtime_ops_t* o) { o->can_copy = nullptr; }},
      {"copy_tensors is NULL", [](gcap_runtime_ops_t* o) { o->copy_tensors = nullptr; }},
      {"fork is NULL", [](gcap_runtime_ops_t* o) { o->fork = nullptr; }},
      {"join is NULL", [](gcap_runtime_ops_t* o) { o->join = nullptr; }},
      {"struct_size is 0", [](gcap_runtime_ops_t* o) { o->struct_size = 0; }},
      {"struct_size is 8", [](gcap_runtime_ops_t* o) { o->struct_size = 8; }},
      {"no version's", [](gcap_runtime_ops_t* o) { --o->struct_size; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.first);
    Recorder recorder;
    gcap_runtime_ops_t ops = Full(&recorder);
    row.second(&ops);
    gcap_runtime_t* runtime = reinterpret_cast<gcap_runtime_t*>(&recorder);
    GCAP_EXPECT_FAILS(gcap_runtime_create_from(&ops, &runtime), GCAP_INVALID_ARGUMENT, row.first);
    EXPECT_EQ(runtime, nullptr);
    EXPECT_TRUE(recorder.calls.empty()) << "destroy is not called on failure";
  }
}

TEST(RuntimeTable, CreateFromWithoutHostMemoryIsRefused) {
  Recorder recorder;
  const gcap_runtime_ops_t ops = Full(&recorder);
  gcap_runtime_t* runtime = reinterpret_cast<gcap_runtime_t*>(&recorder);
  const HeapFailure failure;
  GCAP_EXPECT_FAILS(gcap_runtime_create_from(&ops, &runtime), GCAP_RESOURCE_EXHAUSTED, "a runtime");
  EXPECT_EQ(runtime, nullptr);
}

TEST_F(RuntimeOfTable, AbsentMembersHaveDefaults) {
  recorder_.resources.allocator = reinterpret_cast<gcap_allocator_t*>(&recorder_);  // is not followed
  recorder_.resources.scratch = reinterpret_cast<gcap_scratch_t*>(&recorder_);
  Create(Least(&recorder_));
  EXPECT_FALSE(RuntimeInfo(runtime_).supports_concurrent_runs);
  EXPECT_FALSE(RuntimeInfo(runtime_).is_graph_capture_enabled);
  EXPECT_FALSE(gcap_runtime_is_captured(runtime_, 3));
  EXPECT_FALSE(gcap_runtime_can_copy(runtime_, kHost, kDevice));
  EXPECT_TRUE(RuntimeInfo(runtime_).copies_in_default_stream);
  EXPECT_EQ(AskAll(), std::vector<gcap_code_t>({GCAP_OK, GCAP_OK, GCAP_OK, GCAP_OK, GCAP_OK, GCAP_FAILED_PRECONDITION,
                                                GCAP_OK, GCAP_INVALID_ARGUMENT, GCAP_UNIMPLEMENTED, GCAP_UNIMPLEMENTED,
                                                GCAP_UNIMPLEMENTED, GCAP_UNIMPLEMENTED}));
  gcap_allocator_t* allocator = nullptr;
  GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_DEVICE, &allocator));
  EXPECT_EQ(allocator, recorder_.resources.allocator);
  EXPECT_EQ(gcap_runtime_scratch(runtime_), recorder_.resources.scratch);
  GCAP_EXPECT_FAILS(gcap_runtime_release(runtime_, 5), GCAP_FAILED_PRECONDITION, "graph id 5");
  const gcap_run_t run = RunOf(4);
  GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &run, nullptr), GCAP_NOT_FOUND, "graph id 4");
  recorder_.calls.clear();
  GCAP_EXPECT_OK(EndRun(runtime_, nullptr, /*synchronize=*/true));
  EXPECT_EQ(recorder_.calls, Names({"synchronize"}));
  recorder_.fails = true;
  GCAP_EXPECT_FAILS(EndRun(runtime_, nullptr, /*synchronize=*/true), GCAP_INTERNAL, "synchronize");
}

TEST_F(RuntimeOfTable, AMemberThatIsNotThereIsNamed) {
  Create(Least(&recorder_));
  gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(&recorder_);
  GCAP_EXPECT_FAILS(gcap_runtime_fork(runtime_, 1, &stream), GCAP_UNIMPLEMENTED,
                    "gcap_runtime_fork: the table of the runtime has no fork");
  EXPECT_EQ(stream, nullptr);
  GCAP_EXPECT_FAILS(gcap_runtime_join(runtime_), GCAP_UNIMPLEMENTED,
                    "gcap_runtime_join: the table of the runtime has no join");
  stream = reinterpret_cast<gcap_stream_t*>(&recorder_);
  GCAP_EXPECT_FAILS(gcap_runtime_create_stream(runtime_, &stream), GCAP_UNIMPLEMENTED,
                    "gcap_runtime_create_stream: the table of the runtime has no create_stream");
  EXPECT_EQ(stream, nullptr);
  gcap_allocator_t* allocator = reinterpret_cast<gcap_allocator_t*>(&recorder_);
  GCAP_EXPECT_FAILS(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_DEVICE, &allocator), GCAP_UNIMPLEMENTED,
                    "gcap_runtime_get_allocator: the table of the runtime has no get_allocator");
  EXPECT_EQ(allocator, nullptr);
  recorder_.fails = true;
  GCAP_EXPECT_FAILS(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_DEVICE, &allocator), GCAP_INTERNAL,
                    "get_resources was told to fail");
  EXPECT_EQ(allocator, nullptr);
}

// What gcap's own runtime alone has.
TEST_F(RuntimeOfTable, HasNoGraphManagerAndNoWholeRuns) {
  Create(Full(&recorder_));
  gcap_graph_manager_t* graphs = reinterpret_cast<gcap_graph_manager_t*>(&recorder_);
  GCAP_EXPECT_FAILS(gcap_runtime_graphs(runtime_, &graphs), GCAP_UNIMPLEMENTED, "graphs of its own");
  EXPECT_EQ(graphs, nullptr);
}

TEST_F(RuntimeOfTable, CallsReachTheMembersWithTheirArguments) {
  const gcap_runtime_ops_t ops = Full(&recorder_);
  for (size_t at = 0; at < sizeof(ops); at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, reinterpret_cast<const char*>(&ops) + at, sizeof(word));
    EXPECT_NE(word, nullptr) << "the table above lacks the member at byte " << at;
  }
  Create(ops);
  EXPECT_EQ(AskAll(), std::vector<gcap_code_t>(12, GCAP_OK));
  EXPECT_EQ(recorder_.calls,
            Names({"is_concurrent_run_supported", "get_resources", "synchronize", "begin_run", "end_run", "replay",
                   "release", "explain", "copy_tensors", "create_stream", "get_allocator", "fork", "join"}));
  for (bool answer : {true, false, false}) {
    recorder_.answer = answer;
    // Asked for once: a turn must end as it began, whatever the implementer would answer by then.
    EXPECT_TRUE(RuntimeInfo(runtime_).supports_concurrent_runs);
    EXPECT_EQ(RuntimeInfo(runtime_).is_graph_capture_enabled, answer);
    EXPECT_EQ(gcap_runtime_is_captured(runtime_, 11), answer);
    EXPECT_EQ(recorder_.id, 11);
    EXPECT_EQ(gcap_runtime_can_copy(runtime_, kHost, kDevice), answer);
    EXPECT_EQ(RuntimeInfo(runtime_).copies_in_default_stream, !answer);
    bool replayed = !answer;
    GCAP_EXPECT_OK(TryReplay(runtime_, 12, /*synchronize=*/answer, &replayed));
    EXPECT_EQ(replayed, answer);
    EXPECT_EQ(recorder_.run.id, 12);
    EXPECT_EQ(recorder_.run.synchronize, answer);
  }
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  const gcap_run_t run = RunOf(13, /*synchronize=*/true);
  GCAP_EXPECT_OK(gcap_runtime_begin_run(runtime_, &run, &kind, nullptr));
  EXPECT_EQ(recorder_.run.id, 13);
  EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
  gcap_status_t run_status = GCAP_STATUS(GCAP_UNAVAILABLE, "the kernels' outcome");
  const gcap_status_t given = run_status;
  GCAP_EXPECT_FAILS(gcap_runtime_end_run(runtime_, &run, run_status), GCAP_UNAVAILABLE, "the kernels' outcome");
  EXPECT_EQ(recorder_.run_status, given);
  EXPECT_TRUE(recorder_.run.synchronize);
  GCAP_EXPECT_OK(gcap_runtime_end_run(runtime_, /*run=*/nullptr, nullptr));
  EXPECT_FALSE(recorder_.run.synchronize);
}

TEST_F(RuntimeOfTable, FailuresOfMembersAreHandedOn) {
  Create(Full(&recorder_));
  recorder_.fails = true;
  EXPECT_EQ(AskAll(), std::vector<gcap_code_t>(12, GCAP_INTERNAL));
  recorder_.resources.allocator = reinterpret_cast<gcap_allocator_t*>(&recorder_);
  gcap_run_resources_t resources;
  GCAP_EXPECT_FAILS(gcap_runtime_get_resources(runtime_, &resources), GCAP_INTERNAL, "get_resources");
  EXPECT_EQ(resources.allocator, nullptr) << "what a call that failed gave is not handed on";
}

TEST_F(RuntimeOfTable, WhatTheTableDoesNotFollowIsRefused) {
  const int64_t shape[] = {1};
  const gcap_graph_binding_t binding = {"x", shape, 1, shape};
  const gcap_graph_buffer_t buffer = {"x", &recorder_, 8, 0};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = &buffer;
  buffers.count = 1;
  const gcap_graph_key_t key = {shape, sizeof(shape), "decode"};
  gcap_run_t bound = RunOf(0), moving = RunOf(0), elsewhere = RunOf(0), keyed = RunOf(GCAP_GRAPH_ID_NONE);
  keyed.key = &key;
  bound.bindings = &binding;
  bound.num_bindings = 1;
  moving.buffers = &buffers;
  elsewhere.stream = reinterpret_cast<cudaStream_t>(&recorder_);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  void* address = nullptr;
  bool replayed = true;
  gcap_runtime_ops_t ops = Full(&recorder_);
  ops.moves_buffers = false;
  ops.checks_bindings = false;
  ops.takes_keys = false;
  Create(ops);
  recorder_.calls.clear();
  for (const gcap_run_t* run : {&bound, &moving, &keyed}) {
    const char* flag = run == &bound ? "checks_bindings" : run == &moving ? "moves_buffers" : "takes_keys";
    GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, run, &kind, &address), GCAP_FAILED_PRECONDITION, flag);
    GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, run, &replayed), GCAP_FAILED_PRECONDITION, flag);
    EXPECT_FALSE(replayed);
  }
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &elsewhere, &kind, nullptr), GCAP_INVALID_ARGUMENT, "run->stream");
  EXPECT_TRUE(recorder_.calls.empty());
  Create(Full(&recorder_));
  GCAP_EXPECT_OK(gcap_runtime_begin_run(runtime_, &bound, nullptr, nullptr));
  EXPECT_EQ(recorder_.run.bindings, &binding);
  GCAP_EXPECT_OK(gcap_runtime_begin_run(runtime_, &keyed, nullptr, nullptr));
  EXPECT_EQ(recorder_.run.key, &key);
  GCAP_EXPECT_OK(gcap_runtime_replay(runtime_, &moving, &replayed));
  EXPECT_TRUE(replayed);
  Create(Least(&recorder_));  // without a begin the run is eager, on the buffers as they are
  GCAP_EXPECT_OK(gcap_runtime_begin_run(runtime_, &moving, &kind, &address));
  EXPECT_EQ(address, &recorder_);
}

// A table that was made before there were values would replay those of the capture.
TEST_F(RuntimeOfTable, ValuesAreRefusedBeforeTheTableIsCalled) {
  const uint64_t low = 0, high = 9, now = 5;
  const gcap_graph_value_t value = {"v", &now, sizeof(now), GCAP_GRAPH_VALUE_UNSIGNED, &low, &high, false, false};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.values = &value;
  buffers.num_values = 1;
  gcap_run_t run = RunOf(0);
  run.buffers = &buffers;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  void* address = nullptr;
  bool replayed = true;
  Create(Full(&recorder_));
  recorder_.calls.clear();
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &run, &kind, &address), GCAP_FAILED_PRECONDITION, "has values");
  GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &run, &replayed), GCAP_FAILED_PRECONDITION, "has values");
  EXPECT_TRUE(recorder_.calls.empty());
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &run, &kind, nullptr), GCAP_INVALID_ARGUMENT, "out_addresses");
  Create(Least(&recorder_));  // without a begin the run is eager, with the values as they are
  GCAP_EXPECT_OK(gcap_runtime_begin_run(runtime_, &run, &kind, &address));
  EXPECT_EQ(address, &now);
}

TEST_F(RuntimeOfTable, RefusalOfDestroyLeavesTheRuntimeWholeAndALeakDoesNot) {
  Create(Full(&recorder_));
  recorder_.fails = true;
  for (gcap_code_t refusal : {GCAP_FAILED_PRECONDITION, GCAP_CUDA_ERROR, GCAP_INTERNAL}) {
    recorder_.code = refusal;
    GCAP_EXPECT_FAILS(gcap_runtime_destroy(runtime_), refusal, "destroy was told to fail");
    EXPECT_TRUE(RuntimeInfo(runtime_).supports_concurrent_runs);
  }
  recorder_.code = GCAP_LEAKED;
  GCAP_EXPECT_FAILS(gcap_runtime_destroy(runtime_), GCAP_LEAKED, "destroy was told to fail");
  runtime_ = nullptr;
}

// ONNX Runtime's host warns and disables capture too.
TEST_F(RuntimeOfTable, ThatSaysThatItCapturesAndCannotRunsWithoutCapture) {
  const std::pair<const char*, std::function<void(gcap_runtime_ops_t*)>> rows[] = {
      {"begin_run and end_run", [](gcap_runtime_ops_t* o) { o->begin_run = nullptr, o->end_run = nullptr; }},
      {"replay", [](gcap_runtime_ops_t* o) { o->replay = nullptr; }},
      {"is_captured", [](gcap_runtime_ops_t* o) { o->is_captured = nullptr; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.first);
    gcap_runtime_ops_t ops = Full(&recorder_);
    row.second(&ops);
    const LogCatcher log;
    Create(ops);
    for (int run = 0; run < 2; ++run) {
      EXPECT_FALSE(RuntimeInfo(runtime_).is_graph_capture_enabled);
      recorder_.run.id = GCAP_GRAPH_ID_NONE;
      GCAP_EXPECT_OK(BeginRun(runtime_, 3));
      EXPECT_EQ(recorder_.run.id, GCAP_GRAPH_ID_NONE);
    }
    EXPECT_EQ(log.text(), "a runtime says that it captures graphs, but its table has no " + std::string(row.first) +
                              "; it runs without capture")
        << "exactly one warning";
  }
}

// --- Other versions -------------------------------------------------------------------------------------------------

TEST_F(RuntimeOfTable, ANewerTableWorksAndItsTailIsNotRead) {
  struct {
    gcap_runtime_ops_t ops;
    unsigned char tail[256];
  } table;
  std::memset(&table, 0xA5, sizeof(table));
  table.ops = Full(&recorder_);
  table.ops.struct_size = sizeof(table);
  Create(table.ops);
  EXPECT_EQ(AskAll(), std::vector<gcap_code_t>(12, GCAP_OK));
}

TEST_F(RuntimeOfTable, AShorterTableLacksTheMembersAfterItsEnd) {
  gcap_runtime_ops_t ops = Full(&recorder_);
  ops.struct_size = offsetof(gcap_runtime_ops_t, begin_run);
  Create(ops);
  GCAP_EXPECT_OK(BeginRun(runtime_, 3));
  EXPECT_FALSE(RuntimeInfo(runtime_).supports_concurrent_runs);
  EXPECT_FALSE(gcap_runtime_is_captured(runtime_, 3));
  EXPECT_TRUE(recorder_.calls.empty());
}

TEST_F(RuntimeOfTable, RunsOfOtherSizesReachTheMembersInTheLibrarysLayout) {
  Create(Full(&recorder_));
  gcap_run_t shorter = RunOf(7);
  shorter.struct_size = offsetof(gcap_run_t, buffers);
  shorter.buffers = reinterpret_cast<const gcap_graph_buffers_t*>(&recorder_);  // is not the caller's
  shorter.synchronize = true;
  struct {
    gcap_run_t run;
    size_t later;
  } longer = {RunOf(8), 0};
  longer.run.struct_size = sizeof(longer);
  for (const gcap_run_t* run : {&shorter, &longer.run}) {
    bool replayed = false;
    const std::function<gcap_status_t()> calls[] = {
        [&] { return gcap_runtime_begin_run(runtime_, run, nullptr, nullptr); },
        [&] { return gcap_runtime_end_run(runtime_, run, nullptr); },
        [&] { return gcap_runtime_replay(runtime_, run, &replayed); },
    };
    for (const auto& call : calls) {
      recorder_.run = {};
      GCAP_EXPECT_OK(call());
      EXPECT_EQ(recorder_.run.struct_size, sizeof(gcap_run_t));
      EXPECT_EQ(recorder_.run.id, run == &shorter ? 7 : 8);
      EXPECT_EQ(recorder_.run.buffers, nullptr);
      EXPECT_FALSE(recorder_.run.synchronize);
    }
  }
  longer.later = 1;
  GCAP_EXPECT_FAILS(BeginRun(nullptr, 0), GCAP_INVALID_ARGUMENT, "runtime is NULL");
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &longer.run, nullptr, nullptr), GCAP_INVALID_ARGUMENT, "gcap_run");
  recorder_.calls.clear();
  GCAP_EXPECT_FAILS(gcap_runtime_end_run(runtime_, &longer.run, nullptr), GCAP_INVALID_ARGUMENT, "gcap_run");
  EXPECT_EQ(recorder_.calls, Names({"end_run"})) << "the run ends all the same";
}

TEST_F(RuntimeOfTable, ResourcesOfOtherSizesAreFilledInAsFarAsTheyGo) {
  recorder_.resources.cuda_stream = reinterpret_cast<cudaStream_t>(&recorder_);
  recorder_.resources.allocator = reinterpret_cast<gcap_allocator_t*>(&recorder_);
  Create(Full(&recorder_));
  struct {
    gcap_run_resources_t resources;
    size_t later;
  } given;
  for (const size_t bytes : {offsetof(gcap_run_resources_t, allocator), sizeof(given)}) {
    std::memset(&given, 0xA5, sizeof(given));
    given.resources.struct_size = bytes;
    GCAP_EXPECT_OK(gcap_runtime_read_resources(runtime_, &given.resources));
    EXPECT_EQ(given.resources.struct_size, bytes);
    EXPECT_EQ(given.resources.cuda_stream, recorder_.resources.cuda_stream);
    const bool has_all = bytes == sizeof(given);
    EXPECT_EQ(given.resources.allocator == recorder_.resources.allocator, has_all);
    EXPECT_EQ(given.later == 0, has_all);
  }
}

TEST_F(RuntimeOfTable, ResourcesOfASizeThatIsNoVersionsAreRefusedAndLeftAlone) {
  Create(Full(&recorder_));
  gcap_run_resources_t given;
  for (const size_t bytes : {size_t{0}, sizeof(size_t), sizeof(given) - 1, sizeof(given) + 1}) {
    std::memset(&given, 0xA5, sizeof(given));
    given.struct_size = bytes;
    const gcap_run_resources_t before = given;
    GCAP_EXPECT_FAILS(gcap_runtime_read_resources(runtime_, &given), GCAP_INVALID_ARGUMENT,
                      ("gcap_run_resources_t: struct_size is " + std::to_string(bytes) + ", ").c_str());
    EXPECT_EQ(std::memcmp(&given, &before, sizeof(given)), 0);
  }
}

}  // namespace
