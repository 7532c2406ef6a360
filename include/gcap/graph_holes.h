// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_holes.h: what no graph can hold, in the middle of a run: a call that allocates or waits, a library that is not
// capturable, a decision of the host. The work hands it over as a function. A captured run is then several graphs, the
// segments, with holes between them; a replay is launch, function, launch, in order on the run's stream. The segments
// are one graph of the manager: one key, one reservation of scratch, one plan, one entry in the budget, one release.
#ifndef GCAP_GRAPH_HOLES_H_
#define GCAP_GRAPH_HOLES_H_

#include <stddef.h>

#include "gcap/api.h"
#include "gcap/run.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A hole.
// Thread:   plain data. `work` is called on the thread of the run, also of a replay, without a lock of the manager.
// Capture:  gcap_graph_hole_issue is for the thread that captures; `work` is never called while that thread captures.
// Lifetime: the struct and its name are copied. `user`, and what the function uses, are the caller's, and live as long
//           as the graph: what a function does differently at each replay it finds there, so a copy would be of no use.
//           gcap_capture_retain gives `user` to the graph.
typedef struct gcap_graph_hole {
  size_t struct_size;  // set by gcap_graph_hole_init
  const char* name;    // for messages, of which it has the first 63 bytes; may be NULL
  // Does what cannot be captured. Its resources are those of the run that it is called in: the stream, which is another
  // one if the replay goes to another one; where the buffers are and what the values are at this replay. `stream` is
  // NULL in a replay on another stream than that of the capture. The function may issue work to the stream, and to
  // others that it joins to the stream by events (gcap_runtime_fork is for the work itself); allocate; wait; and do
  // nothing or something else each time. It begins, ends, runs and replays nothing on the manager, states no guard,
  // makes no hole, and ends what it captures: FAILED_PRECONDITION. Scratch that it takes it frees. A failure ends the
  // run with that status, but for CAPTURE_INVALIDATED, which becomes CUDA_ERROR, since a run with that code has done
  // nothing; what was launched before runs, what comes behind does not, and the graph stays.
  gcap_work_t work;
  void* user;  // passed to `work`
} gcap_graph_hole_t;

// Fills in the defaults: no function.
static inline void gcap_graph_hole_init(gcap_graph_hole_t* hole) {
  const gcap_graph_hole_t defaults = {sizeof(*hole), NULL, NULL, NULL};
  *hole = defaults;
}

// Makes a hole, in the work of a run. `resources` is what the work got.
//
// In an eager run, and outside of runs, calls the function and returns its status.
//
// In a captured run nothing is executed yet, so the function is not called either: the segment ends here, the next one
// begins, and the end of the run does as a replay does: it launches the first segment, calls the function, launches the
// next one. So what a function made must not be used on the host by the work behind the hole, neither in a replay,
// which does not call the work, nor in the capture: take it on the device, or in another hole. If a capture fails,
// nothing of the run was executed, neither kernels nor functions, and the run is issued again eagerly as any other.
// Once the first segment was launched a run is not issued again: a failure of a function, or of a later launch, is the
// run's. Rehearsals and plans, and runs with capture_only, call no function. The captures of one run make the same
// holes.
//
// Memory that is written before a hole and read behind it belongs to the run: fixed addresses, buffers of the run, and
// scratch, which one reservation keeps over all segments. A function reads buffers from its resources; a buffer that
// functions alone use is one that `may_be_unused`. Forked streams are joined before a hole, and forked again behind it.
// Guards are looked at before the first launch alone. A segment without work is not launched. An id with holes is not
// updated in place. While a function runs, other calls that run, replay, bind or release the id are refused.
//
// A failure here fails the capture, whatever the work makes of it.
//   INVALID_ARGUMENT     a size that is no version's; no function; or, in a run of one call, `user` on the stack of the
//                        work, which is gone when the function is called
//   FAILED_PRECONDITION  called by the function of a hole; the stream is not that of the run, as a forked one is not;
//                        the stream captures, and this thread has no run that captures it; or work of a forked stream
//                        was not joined: the message names each stream, with its last call that was noted
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the driver refused the end of the segment, or the begin of the next one. If the begin, then
//                        what the work issues in spite of that is executed: such a run is never issued again
//   others               the capture failed before; or what the function returned in an eager run
GCAP_API gcap_status_t gcap_graph_hole_issue(const gcap_run_resources_t* resources,
                                             const gcap_graph_hole_t* hole) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_HOLES_H_
