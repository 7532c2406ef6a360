// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// replay.h: the graphs of an EP, as ONNX Runtime asks for them.
#ifndef GCAP_ORT_REPLAY_H_
#define GCAP_ORT_REPLAY_H_

#include "ort/objects.h"

// Members of OrtEp.
gcap_ort_status_t* gcap_ort_sync(gcap_ort_ep_t* self);
bool gcap_ort_is_graph_capture_enabled(const gcap_ort_ep_t* self);
bool gcap_ort_is_graph_captured(const gcap_ort_ep_t* self, int graph_id);
gcap_ort_status_t* gcap_ort_replay_graph(gcap_ort_ep_t* self, int graph_id);

#endif  // GCAP_ORT_REPLAY_H_
