// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a run reads of its taps once it is done. An eager run has its copies already, or has issued them.
//
// Locking: the manager's mutex to find the graph. The copies are made without it, and the references of a copied list
// keep their memory.

#include "lib/graph/inner.h"
#include "lib/graph/manager.h"
#include "lib/graph/variants.h"
#include "lib/internal/synchronize.h"

// The taps of the graph that the id's last run launched.
static gcap_status_t copy_of_launched(gcap_graph_manager_t* manager, int id, gcap_graph_tap_list_t* out_list,
                                      cudaStream_t* stream) {
  const gcap_graph_slot_t* launched = gcap_graph_find_launched(manager, id);
  *out_list = (gcap_graph_tap_list_t){0};
  if (launched == NULL) return NULL;  // released meanwhile, by another thread
  if (*stream == GCAP_RUN_OWN_STREAM) *stream = launched->graph->stream;
  return gcap_graph_tap_list_copy(&launched->graph->taps, out_list);
}

gcap_status_t gcap_graph_give_taps(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                   const gcap_run_result_t* result, cudaStream_t stream) {
  if (run->num_taps == 0 || result->outcome == GCAP_RUN_RECORDED) return NULL;
  if (result->outcome == GCAP_RUN_EAGER) return gcap_synchronize_stream(stream);
  gcap_graph_tap_list_t list;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = copy_of_launched(manager, result->id, &list, &stream);
  pthread_mutex_unlock(&manager->mutex);
  if (status == NULL && stream != GCAP_RUN_OWN_STREAM) {
    status = gcap_graph_taps_read(&list, run->taps, run->num_taps, stream);
  }
  gcap_graph_tap_list_free(&list);
  return gcap_graph_name_failure_of(manager, result->id, status);
}
