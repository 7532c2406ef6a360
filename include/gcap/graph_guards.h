// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_guards.h: decisions of the host that a captured graph depends on. The work of a run states each decision while
// it is issued; a replay asks all of them first, and a graph for which one has changed is not launched.
#ifndef GCAP_GRAPH_GUARDS_H_
#define GCAP_GRAPH_GUARDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/api.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_graph_guard_kind {
  GCAP_GRAPH_GUARD_INTEGER = 0,  // an integer within `low` and `high`: a position below the end of a bucket, a switch
  GCAP_GRAPH_GUARD_POINTER,      // a pointer that is what it was: a table that is replaced when it grows
  GCAP_GRAPH_GUARD_BYTES,        // bytes that are what they were: a struct of choices
  GCAP_GRAPH_GUARD_ANSWER,       // a function whose answer is what it was
} gcap_graph_guard_kind_t;

#define GCAP_GRAPH_GUARD_MAX_BYTES 4096

// A decision.
// Thread:   plain data. One thread at a time writes the struct.
// Capture:  legal: nothing here calls CUDA.
// Lifetime: the struct and its name are copied. The memory at `address`, and `user`, live as long as the graph: a guard
//           on a variable of the work itself looks at memory that is gone. Who writes that memory does so on a thread
//           that replays, or while no thread does. The begin of a run and a replay look at that memory, and the end of
//           a capture; questions, such as gcap_graph_manager_get_info, answer from what these found, on any thread.
typedef struct gcap_graph_guard {
  size_t struct_size;  // set by gcap_graph_guard_init
  const char* name;    // for messages, of which it has the first 63 bytes; may be NULL
  gcap_graph_guard_kind_t kind;
  bool is_unsigned;  // of an INTEGER. Default false
  // INTEGER, POINTER, BYTES: host memory that holds the value; for POINTER the variable, not what it points to.
  const void* address;
  size_t bytes;       // INTEGER: 1, 2, 4 or 8. BYTES: 1 to GCAP_GRAPH_GUARD_MAX_BYTES
  int64_t low, high;  // INTEGER: both included
  // ANSWER: gives the answer of now, without a lock of a graph manager. May call a manager, but begins, runs and
  // replays nothing, states no guard, and makes no hole: FAILED_PRECONDITION. A failure means that no graph that
  // depends on the answer is launched. The device is current that was current when the guard was stated. A C++
  // exception reaches who runs, replays, begins or ends, and the run is over.
  gcap_status_t (*ask)(void* user, int64_t* out_answer);
  void* user;
} gcap_graph_guard_t;

// Fills in the defaults: an INTEGER without an address.
static inline void gcap_graph_guard_init(gcap_graph_guard_t* guard) {
  const gcap_graph_guard_t defaults = {sizeof(*guard), NULL, GCAP_GRAPH_GUARD_INTEGER, false, NULL, 0, 0, 0,
                                       NULL,           NULL};
  *guard = defaults;
}

// States a decision of the work that the calling thread issues for a run of a graph manager or of gcap's own runtime.
// Programs call GCAP_GRAPH_GUARD, which adds the line for messages.
//
// In a captured run the graph keeps the guard, with the value of now. Each replay asks the guards of a graph first. If
// one has another answer, another graph of the id is looked for, whose guards hold, and whose buffers lie as those of
// the run (graph_buffers.h; max_variants of gcap_graph_manager_options_t); if there is none the run is captured anew,
// and a replay alone answers as of an id that is not captured. gcap_graph_manager_explain
// (GCAP_GRAPH_WHY_OTHER_VARIANT) names the guard, both values and the line.
//
// In an eager run, also one that warms up, and in a plan, the guard is checked and not kept. Rehearsals and the capture
// of one run must state equal guards, in whatever order, and when the work has returned all of them must hold still:
// else the capture fails, since it is unknown for which decisions its graph would be, and the run is eager. A guard
// that is stated twice counts once.
//
// A failure here fails the capture too, whatever the work makes of it.
//   INVALID_ARGUMENT     a size that is no version's; no such kind; no address or function; a number of bytes or bounds
//                        that are not allowed; an integer that is not within its bounds now; or, in a run of one call,
//                        a variable on the stack of the work
//   FAILED_PRECONDITION  no run is open on this thread; the thread captures in a scope that is no run's; the function
//                        of a guard or of a hole states one; or `ask` left a capture open
//   RESOURCE_EXHAUSTED   no host memory
//   others               what `ask` returned
GCAP_API gcap_status_t gcap_graph_guard_state(const gcap_graph_guard_t* guard, const char* file,
                                              int line) GCAP_NODISCARD;
#define GCAP_GRAPH_GUARD(guard) gcap_graph_guard_state(guard, __FILE__, __LINE__)

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_GUARDS_H_
