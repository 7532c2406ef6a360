// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A run on the streams of its EPs that its caller sees on a stream of its own: one event before the run, and one behind
// it, for each EP. The stream is the caller's, so it is wrapped for the call alone. A replay needs none of this: it is
// launched with the option on_stream.
//
// Locking: none; in a turn of the EPs.

#include "lib/session/user_stream.h"

static gcap_status_t order_ep(const gcap_session_parts_t* parts, int ep, gcap_stream_t* user, bool before) {
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_session_get_resources(parts, ep, &resources));
  if (gcap_stream_handle(resources.stream) == gcap_stream_handle(user)) return NULL;
  return before ? gcap_session_order(resources.stream, user) : gcap_session_order(user, resources.stream);
}

static gcap_status_t order_all(const gcap_session_parts_t* parts, cudaStream_t user_stream, bool before) {
  gcap_stream_t* user = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_wrap(user_stream, GCAP_STREAM_EXTERNAL, /*flags=*/0,
                                        parts->ep_facts[parts->main_ep].device_id, &user));
  gcap_status_t status = NULL;
  for (int i = 0; i < parts->num_used && status == NULL; ++i) {
    const int ep = parts->used[i];
    if (!parts->ep_facts[ep].runs_on_host) status = order_ep(parts, ep, user, before);
  }
  return gcap_status_join(status, gcap_stream_destroy(user));
}

gcap_status_t gcap_session_run_after(const gcap_session_parts_t* parts, cudaStream_t user_stream) {
  return order_all(parts, user_stream, /*before=*/false);
}

gcap_status_t gcap_session_run_before(const gcap_session_parts_t* parts, cudaStream_t user_stream) {
  return order_all(parts, user_stream, /*before=*/true);
}
