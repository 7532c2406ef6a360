// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_holes.h: calls in the middle of a run that no graph can hold: a call that allocates or waits, a library that is
// not capturable, a decision of the host. The work hands such a call over as a function, in a hole. A captured run is
// then several graphs, the segments, with the holes between them. A replay launches the first segment, calls the
// function, launches the next segment, and so on, in order on the stream. For the manager all segments are one graph:
// one key, one reservation of scratch, one plan, one entry in the budget, one release. docs/graphs.md says when to
// choose a hole.
#ifndef GCAP_GRAPH_HOLES_H_
#define GCAP_GRAPH_HOLES_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/api.h"
#include "gcap/run.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A hole.
// Thread:   plain data. `work` is called on the thread of the run or of the replay, without a lock of the manager.
// Capture:  gcap_graph_hole_issue is for the thread that captures; `work` is never called while that thread captures,
//           unless break_where_refused is set.
// Lifetime: the struct and its name are copied. `user`, and all that the function uses, are the caller's, and live as
//           long as the graph. Each replay passes the same `user`: write there what the function shall find.
//           gcap_capture_retain gives `user` to the graph.
typedef struct gcap_graph_hole {
  size_t struct_size;  // set by gcap_graph_hole_init
  const char* name;    // for messages, of which it has the first 63 bytes; may be NULL
  // Does what cannot be captured. `resources` are those of the run or the replay that calls the function: its stream,
  // where its buffers are, and what its values are. `resources->stream` is NULL in a replay on another stream than that
  // of the capture. Of a runtime the device is current, in a replay as in each run. The function may issue work to the
  // stream, and to other streams that it joins by events (gcap_runtime_fork is for the work of the run); allocate;
  // wait; do nothing, or something else each time. The function frees the scratch that it takes. The function must not
  // begin, end, run or replay on the manager, state a guard, make a hole, or leave a capture open: at the latest
  // between two launches this is FAILED_PRECONDITION. A failure ends the run with that status, and an exception ends
  // the run too: what was launched before runs, what comes behind does not, and the graph stays. CAPTURE_INVALIDATED
  // becomes CUDA_ERROR: a run with that code has done nothing.
  gcap_work_t work;
  void* user;  // passed to `work`
  // A step that is a hole only if a capture refuses it: see gcap_graph_hole_issue. Default false: a hole.
  bool break_where_refused;
} gcap_graph_hole_t;

// Fills in the defaults: no function, and a hole.
static inline void gcap_graph_hole_init(gcap_graph_hole_t* hole) {
  const gcap_graph_hole_t defaults = {sizeof(*hole), NULL, NULL, NULL, false};
  *hole = defaults;
}

// Makes a hole in the work of a run. `resources` is what the work got.
//
// In an eager run, and outside of runs, calls the function and returns its status.
//
// In a captured run the call ends the segment and begins the next one. Nothing is executed yet, so the function is not
// called either: the end of the run launches the segments and calls the functions in turn, as each replay does. So the
// work behind the hole must not use on the host what the function makes: the capture comes before the function, and a
// replay does not call the work. Use such results on the device, or in another hole.
//
// If a capture fails, nothing of the run was executed, neither kernels nor functions, and the run is issued again
// eagerly as any other. Once the first segment was launched a run is not issued again: a failure of a function, or of a
// later launch, is the run's. Rehearsals, plans, and runs with capture_only call no function. The rehearsals and the
// capture of one run must make the same holes: else the capture fails.
//
// Memory that is written before a hole and read behind it belongs to the run: fixed addresses, buffers of the run, and
// scratch, which is one reservation for all segments. A function takes the addresses of buffers from its resources; a
// buffer that functions alone use is one that `may_be_unused`. Forked streams are joined before a hole, and forked
// again behind it. Guards are looked at before the first launch alone. A segment without work is not launched. An id
// with holes is not updated in place. From the first function to the last launch the manager refuses each run and each
// replay, and a bind or a release of this id, on any thread.
//
// With break_where_refused a captured run calls the function at once, and captures what it issues as part of the
// segment, as if there were no hole; so do rehearsals, plans, and runs with capture_only. The function keeps to the
// rules of a hole's. If the capture fails there, it fails as any: nothing was executed, and the run is issued again
// eagerly. The id then remembers the step, and in its next captures the step is a hole, in all variants, until the id
// is released or forgotten. gcap_log says once which step, which call was refused by which rule, and what the hole
// costs. The id does not cool down, since the reason is gone: the next run may be captured (GCAP_EAGER_STEP_REFUSED). A
// rehearsal, a plan, or a run with capture_only in one call captures again at once; a rehearsal without memory behind
// its addresses is first done with memory.
//   A step is its function and its name, whatever its data: a loop over layers hands one function over with data of
// each, and one failed capture makes holes of all. Steps that a capture treats otherwise get another name. An id
// remembers 64 steps; then all its steps with break_where_refused are holes.
//   The step is refused if the function breaks the capture, gives work to a stream outside of it, leaves work of a
// stream unjoined that was not before, or fails with FAILED_PRECONDITION, CAPTURE_INVALIDATED, CUDA_ERROR or
// LIBRARY_ERROR; also if it then ends with an exception. Any other failure in a whole capture is the function's own, as
// no host memory is: the capture fails, the id cools down, and the step stays what it is. CANCELLED ends the run as a
// cancelled one. In the function, the begin of a capture and the begin or the end of a run are refused. What the
// function does to the host happens in the failed capture and again in the eager run, as of any work.
//
// A failure here fails the capture, whatever the work makes of it.
//   INVALID_ARGUMENT     a size that is no version's; no function; or, in a run of one call, `user` on the stack of the
//                        work, which is gone when the function is called
//   FAILED_PRECONDITION  called by the function of a hole or of a guard; the stream is not that of the captured run, as
//                        a forked one is not; the stream captures, and this thread has no run that captures the stream;
//                        or work of a forked stream was not joined: the message names each stream, with its last call
//                        that was noted
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the driver refused to end the segment, or to begin the next one. If no next one began, the
//                        device executes at once what the work issues afterwards: such a run is never issued again
//   others               the capture failed before; or what the function returned in an eager run, or as a step with
//                        break_where_refused, or what such a step did to the capture; the message has the name
GCAP_API gcap_status_t gcap_graph_hole_issue(const gcap_run_resources_t* resources,
                                             const gcap_graph_hole_t* hole) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_HOLES_H_
