// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runs.h: the runs of a runtime that tests ask for again and again, a call each.
#ifndef GCAP_TEST_SUPPORT_RUNS_H_
#define GCAP_TEST_SUPPORT_RUNS_H_

#include <vector>

#include "gcap/runtime_ops.h"

inline gcap_run_t RunOf(int id, bool synchronize = false) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.synchronize = synchronize;
  return run;
}

inline gcap_status_t BeginRun(gcap_runtime_t* runtime, int id) {
  const gcap_run_t run = RunOf(id);
  return gcap_runtime_begin_run(runtime, &run, nullptr, nullptr);
}

inline gcap_status_t EndRun(gcap_runtime_t* runtime, gcap_status_t run_status, bool synchronize) {
  const gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, synchronize);
  return gcap_runtime_end_run(runtime, &run, run_status);
}

inline gcap_status_t TryReplay(gcap_runtime_t* runtime, int id, bool synchronize, bool* out_replayed) {
  const gcap_run_t run = RunOf(id, synchronize);
  return gcap_runtime_replay(runtime, &run, out_replayed);
}

inline gcap_runtime_info_t RuntimeInfo(const gcap_runtime_t* runtime) {
  gcap_runtime_info_t info;
  gcap_runtime_get_info(runtime, &info);
  return info;
}

// Of the calling thread's graph; zeros if the thread has no graphs.
inline gcap_graph_info_t GraphInfo(gcap_runtime_t* runtime, int id) {
  gcap_graph_manager_t* graphs = nullptr;
  gcap_status_free(gcap_runtime_graphs(runtime, &graphs));
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(graphs, id, &info);
  return info;
}

// --- Whole runs -----------------------------------------------------------------------------------------------------

inline gcap_status_t RunOnRuntime(gcap_runtime_t* runtime, int id, gcap_work_t work, void* user, bool synchronize) {
  gcap_run_t run = RunOf(id, synchronize);
  run.work = work;
  run.user = user;
  return gcap_runtime_run(runtime, &run);
}

inline gcap_status_t RunOnRuntime(gcap_runtime_t* runtime, int id, const gcap_graph_buffers_t* buffers,
                                  gcap_work_t work, void* user, bool synchronize) {
  gcap_run_t run = RunOf(id, synchronize);
  run.work = work;
  run.user = user;
  run.buffers = buffers;
  return gcap_runtime_run(runtime, &run);
}

// A run that a plan counts.
struct PlannedWork {
  int id;
  gcap_work_t work;
  void* user;
};

inline gcap_status_t PlanOnRuntime(gcap_runtime_t* runtime, const PlannedWork* planned, size_t count,
                                   gcap_graph_plan_t* out_plan) {
  std::vector<gcap_run_t> runs(count);
  for (size_t i = 0; planned != nullptr && i < count; ++i) {
    runs[i] = RunOf(planned[i].id);
    runs[i].work = planned[i].work;
    runs[i].user = planned[i].user;
  }
  return gcap_runtime_plan(runtime, planned != nullptr ? runs.data() : nullptr, count, out_plan);
}

// A table whose members ask another runtime, which To finds by the table's self: as of a provider that has all of its
// own.
template <gcap_runtime_t* (*To)(const void* self)>
struct ForwardingOpsBy {
  // What is required.
  static gcap_runtime_ops_t Least(void* self) {
    gcap_runtime_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.self = self;
    ops.get_resources = [](void* self, gcap_run_resources_t* out) { return gcap_runtime_get_resources(To(self), out); };
    ops.synchronize = [](void* self) { return gcap_runtime_synchronize(To(self)); };
    return ops;
  }

  // And what runs and graphs need. Buffers and bindings are not followed.
  static gcap_runtime_ops_t Runs(void* self) {
    gcap_runtime_ops_t ops = Least(self);
    ops.begin_run = [](void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind, void** out_addresses) {
      return gcap_runtime_begin_run(To(self), run, out_kind, out_addresses);
    };
    ops.end_run = [](void* self, const gcap_run_t* run, gcap_status_t run_status) {
      return gcap_runtime_end_run(To(self), run, run_status);
    };
    ops.is_captured = [](void* self, int id) { return gcap_runtime_is_captured(To(self), id); };
    ops.replay = [](void* self, const gcap_run_t* run, bool* out_replayed) {
      return gcap_runtime_replay(To(self), run, out_replayed);
    };
    ops.is_graph_capture_enabled = [](const void* self) { return RuntimeInfo(To(self)).is_graph_capture_enabled; };
    ops.release = [](void* self, int id) { return gcap_runtime_release(To(self), id); };
    ops.explain = [](void* self, int id, gcap_graph_question_t question) {
      return gcap_runtime_explain(To(self), id, question);
    };
    ops.is_concurrent_run_supported = [](const void* self) { return RuntimeInfo(To(self)).supports_concurrent_runs; };
    return ops;
  }
};

// Whose self is the other runtime.
inline gcap_runtime_t* SelfAsRuntime(const void* self) { return static_cast<gcap_runtime_t*>(const_cast<void*>(self)); }
using ForwardingOps = ForwardingOpsBy<SelfAsRuntime>;

#endif  // GCAP_TEST_SUPPORT_RUNS_H_
