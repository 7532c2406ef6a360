// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: a graph manager's options, and the struct of a run.
#ifndef GCAP_LIB_GRAPH_OPTIONS_H_
#define GCAP_LIB_GRAPH_OPTIONS_H_

#include "gcap/graph_options.h"
#include "gcap/run.h"
#include "lib/internal/sized.h"

extern const gcap_sized_type_t gcap_graph_manager_options_type;

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                              gcap_graph_manager_options_t* out_options) GCAP_NODISCARD;

// Of options in the library's layout.
//   INVALID_ARGUMENT  a capture mode, policy or audit level that does not exist, or too large a ledger
gcap_status_t gcap_graph_manager_options_check(const gcap_graph_manager_options_t* options) GCAP_NODISCARD;

// What a run of another version, or one with buffers, is copied into.
typedef struct gcap_run_copy {
  gcap_run_t run;
  gcap_graph_buffers_t buffers;
} gcap_run_copy_t;

// As gcap_run_read, of a run that is not of this version as it is.
gcap_status_t gcap_run_read_slowly(const gcap_run_t* given, gcap_run_copy_t* copy,
                                   const gcap_run_t** out_run) GCAP_NODISCARD;

// Whether the run is of this version, without buffers, and nobody asks for its result.
static inline bool gcap_run_is_plain(const gcap_run_t* run) {
  return run->struct_size == sizeof(*run) && run->buffers == NULL && run->result == NULL;
}

// The caller's run in the library's layout, its buffers too: `given` itself, or `copy`. The caller's result is cleared.
// Inline: every replay reads one.
//   INVALID_ARGUMENT  as gcap_sized_read; buffers as gcap_graph_buffers_read
static inline gcap_status_t gcap_run_read(const gcap_run_t* given, gcap_run_copy_t* copy, const gcap_run_t** out_run) {
  *out_run = given;
  return gcap_run_is_plain(given) ? NULL : gcap_run_read_slowly(given, copy, out_run);
}

// What the end of a run reads of it: what to wait for, and where the result goes. Without buffers, which the caller may
// have ended. NULL: the defaults. On failure `*out_run` has the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_run_read_end(const gcap_run_t* given, gcap_run_t* out_run) GCAP_NODISCARD;

// Gives the caller the result, if the caller asked for one. Both structs are of the library's version.
void gcap_run_give_result(const gcap_run_t* run, const gcap_run_result_t* result);

//   INVALID_ARGUMENT  as gcap_sized_read; no items although there is a count; or stand-ins that do not exist
gcap_status_t gcap_graph_buffers_read(const gcap_graph_buffers_t* given,
                                      gcap_graph_buffers_t* out_buffers) GCAP_NODISCARD;

// The buffers' own addresses, as an array that the caller frees.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_buffers_copy_addresses(const gcap_graph_buffers_t* buffers,
                                                void*** out_addresses) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_OPTIONS_H_
