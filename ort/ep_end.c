// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The end of an EP: when neither its session nor a tensor needs it.
//
// Locking: the factory's `mutex` while the EP leaves the list of those that live. What ends the EP runs without it.

#include "ort/ep_end.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "ort/release.h"
#include "ort/turn.h"

void gcap_ort_ep_free(gcap_ort_session_ep_t* ep) {
  free(atomic_load(&ep->warning));
  gcap_ort_releases_deinit(&ep->releases);
  pthread_mutex_destroy(&ep->open_mutex);
  gcap_ort_turn_deinit(&ep->turn);
  free(ep);
}

void gcap_ort_ep_retain(gcap_ort_session_ep_t* ep) { atomic_fetch_add(&ep->references, 1); }

static void list_remove(gcap_ort_session_ep_t* ep) {
  pthread_mutex_lock(&ep->factory->mutex);
  gcap_ort_session_ep_t** link = &ep->factory->eps;
  while (*link != ep) link = &(*link)->next;
  *link = ep->next;
  pthread_mutex_unlock(&ep->factory->mutex);
}

void gcap_ort_ep_release(gcap_ort_session_ep_t* ep) {
  if (atomic_fetch_sub(&ep->references, 1) != 1) return;
  list_remove(ep);
  gcap_status_t status = gcap_affine_destroy(ep->runs);
  status = gcap_status_join(status, gcap_ep_destroy(ep->ep));
  if (status != NULL) {
    gcap_log(GCAP_LOG_ERROR, "EP '%s' did not end well: %s", ep->factory->plugin->name, gcap_status_message(status));
  }
  gcap_status_ignore(status);  // the runtime does not ask
  gcap_ort_ep_free(ep);
}
