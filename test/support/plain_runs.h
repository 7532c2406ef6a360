// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plain_runs.h: runs of a graph manager, a call each, for tests whose work wants a stream, or a stream and addresses.
#ifndef GCAP_TEST_SUPPORT_PLAIN_RUNS_H_
#define GCAP_TEST_SUPPORT_PLAIN_RUNS_H_

#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"

using PlainWork = gcap_status_t (*)(void* user, cudaStream_t stream);
using PlainWorkOn = gcap_status_t (*)(void* user, cudaStream_t stream, void* const* addresses);

inline gcap_run_t RunOf(int id, cudaStream_t stream, bool synchronize = false) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.stream = stream;
  run.synchronize = synchronize;
  return run;
}

// A work and its argument. It lives as long as the run.
struct PlainCall {
  PlainWork work;
  PlainWorkOn work_on;
  void* user;
};

inline gcap_status_t CallPlain(void* call, const gcap_run_resources_t* resources) {
  const PlainCall* plain = static_cast<const PlainCall*>(call);
  if (plain->work != nullptr) return plain->work(plain->user, resources->cuda_stream);
  return plain->work_on(plain->user, resources->cuda_stream, resources->addresses);
}

inline gcap_status_t RunPlain(gcap_graph_manager_t* manager, int id, cudaStream_t stream, PlainWork work, void* user,
                              bool synchronize) {
  PlainCall call = {work, nullptr, user};
  gcap_run_t run = RunOf(id, stream, synchronize);
  run.work = work != nullptr ? CallPlain : nullptr;
  run.user = &call;
  return gcap_graph_manager_run(manager, &run);
}

inline gcap_status_t RunPlainOn(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                const gcap_graph_buffers_t* buffers, PlainWorkOn work, void* user, bool synchronize) {
  PlainCall call = {nullptr, work, user};
  gcap_run_t run = RunOf(id, stream, synchronize);
  run.work = CallPlain;
  run.user = &call;
  run.buffers = buffers;
  return gcap_graph_manager_run(manager, &run);
}

inline gcap_status_t BeginPlain(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                gcap_graph_run_kind_t* out_kind) {
  const gcap_run_t run = RunOf(id, stream);
  return gcap_graph_manager_begin_run(manager, &run, out_kind, nullptr);
}

inline gcap_status_t BeginPlainOn(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                  const gcap_graph_buffers_t* buffers, gcap_graph_run_kind_t* out_kind,
                                  void** out_addresses) {
  gcap_run_t run = RunOf(id, stream);
  run.buffers = buffers;
  return gcap_graph_manager_begin_run(manager, &run, out_kind, out_addresses);
}

// A run that a replay of its id can check its bindings against.
inline gcap_status_t BeginBound(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                const gcap_graph_binding_t* bindings, size_t n, gcap_graph_run_kind_t* out_kind) {
  gcap_run_t run = RunOf(id, stream);
  run.bindings = bindings;
  run.num_bindings = n;
  return gcap_graph_manager_begin_run(manager, &run, out_kind, nullptr);
}

inline gcap_status_t EndPlain(gcap_graph_manager_t* manager, gcap_status_t run_status, bool synchronize) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.synchronize = synchronize;
  return gcap_graph_manager_end_run(manager, &run, run_status);
}

// A run that a plan counts.
struct PlannedPlain {
  int id;
  PlainWork work;
  void* user;
};

inline gcap_status_t PlanPlain(gcap_graph_manager_t* manager, cudaStream_t stream, const PlannedPlain* planned,
                               size_t count, gcap_graph_plan_t* out_plan) {
  std::vector<PlainCall> calls(count);
  std::vector<gcap_run_t> runs(count);
  for (size_t i = 0; i < count; ++i) {
    calls[i] = {planned[i].work, nullptr, planned[i].user};
    runs[i] = RunOf(planned[i].id, stream);
    runs[i].work = planned[i].work != nullptr ? CallPlain : nullptr;
    runs[i].user = &calls[i];
  }
  return gcap_graph_manager_plan(manager, runs.data(), count, out_plan);
}

// --- Replays --------------------------------------------------------------------------------------------------------

inline gcap_run_t ReplayOf(int id, bool synchronize) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.synchronize = synchronize;
  return run;
}

inline gcap_status_t TryReplay(gcap_graph_manager_t* manager, int id, bool synchronize, bool* out_replayed) {
  const gcap_run_t run = ReplayOf(id, synchronize);
  return gcap_graph_manager_replay(manager, &run, out_replayed);
}

inline gcap_status_t Replay(gcap_graph_manager_t* manager, int id, bool synchronize) {
  return TryReplay(manager, id, synchronize, nullptr);
}

inline gcap_status_t ReplayOn(gcap_graph_manager_t* manager, int id, cudaStream_t stream, bool synchronize) {
  gcap_run_t run = ReplayOf(id, synchronize);
  run.stream = stream;
  return gcap_graph_manager_replay(manager, &run, nullptr);
}

inline gcap_status_t ReplayBound(gcap_graph_manager_t* manager, int id, const gcap_graph_binding_t* bindings, size_t n,
                                 bool synchronize) {
  gcap_run_t run = ReplayOf(id, synchronize);
  run.bindings = bindings;
  run.num_bindings = n;
  return gcap_graph_manager_replay(manager, &run, nullptr);
}

#endif  // GCAP_TEST_SUPPORT_PLAIN_RUNS_H_
