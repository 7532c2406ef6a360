// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// release.h: the release of captured graphs by id, from any thread.
#ifndef GCAP_ORT_RELEASE_H_
#define GCAP_ORT_RELEASE_H_

#include "ort/objects.h"

void gcap_ort_releases_init(gcap_ort_releases_t* releases);
void gcap_ort_releases_deinit(gcap_ort_releases_t* releases);
// Gives up the calling thread's graphs of the ids that were released since it was here last.
gcap_status_t gcap_ort_releases_follow(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) GCAP_NODISCARD;
gcap_ort_status_t* gcap_ort_release_captured_graph(gcap_ort_ep_t* self, int graph_id);

#endif  // GCAP_ORT_RELEASE_H_
