// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// replays.h: the replays that tests ask for again and again, a call each.
#ifndef GCAP_TEST_SUPPORT_REPLAYS_H_
#define GCAP_TEST_SUPPORT_REPLAYS_H_

#include "gcap/graph.h"
#include "gcap/runtime.h"

inline gcap_graph_replay_options_t ReplayOptions(bool synchronize) {
  gcap_graph_replay_options_t options;
  gcap_graph_replay_options_init(&options);
  options.synchronize = synchronize;
  return options;
}

inline gcap_status_t TryReplay(gcap_graph_manager_t* manager, int id, bool synchronize, bool* out_replayed) {
  const gcap_graph_replay_options_t options = ReplayOptions(synchronize);
  return gcap_graph_manager_replay(manager, id, &options, out_replayed);
}

inline gcap_status_t Replay(gcap_graph_manager_t* manager, int id, bool synchronize) {
  return TryReplay(manager, id, synchronize, nullptr);
}

inline gcap_status_t ReplayOn(gcap_graph_manager_t* manager, int id, cudaStream_t stream, bool synchronize) {
  gcap_graph_replay_options_t options = ReplayOptions(synchronize);
  options.on_stream = true;
  options.stream = stream;
  return gcap_graph_manager_replay(manager, id, &options, nullptr);
}

inline gcap_status_t ReplayBound(gcap_graph_manager_t* manager, int id, const gcap_graph_binding_t* bindings, size_t n,
                                 bool synchronize) {
  gcap_graph_replay_options_t options = ReplayOptions(synchronize);
  options.check_bindings = true;
  options.bindings = bindings;
  options.num_bindings = n;
  return gcap_graph_manager_replay(manager, id, &options, nullptr);
}

inline gcap_status_t TryReplay(gcap_runtime_t* runtime, int id, bool synchronize, bool* out_replayed) {
  const gcap_graph_replay_options_t options = ReplayOptions(synchronize);
  return gcap_runtime_replay(runtime, id, &options, out_replayed);
}

#endif  // GCAP_TEST_SUPPORT_REPLAYS_H_
