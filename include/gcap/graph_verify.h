// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_verify.h: a replay compared with the work that its graph was captured from (gcap_run_t.verify).
//
// A run that is verified does its work twice. gcap copies what is named, replays the graph, waits, and keeps what the
// replay left. Then gcap puts back what was there before, issues the work eagerly, waits, and compares. The buffers
// then have what the eager run left, whatever the comparison says.
//
// If a buffer differs, the run fails with GCAP_REPLAY_DIFFERS. The message names the graph, the buffer, the first
// element that differs, and both values; the number of elements that differ, the largest difference, and the first NaN
// that came in. The id then cools down as after a failed capture, so the graph is not launched again.
//
// Only whole runs can be verified (gcap_graph_manager_run, gcap_runtime_run, a session's run), since the work is
// needed. A run whose id has no graph for it, and one with capture_only, is what it would be without `verify`, and
// gcap_graph_verify_report_t.is_verified is false. So is a run whose graph is released, captured anew, or found to be
// another variant, after the copies and before the look behind the replay: `save` was called then, `restore` was not.
// gcap_run_result_t has the outcome REPLAYED of a verified run without a difference, and NOT_DONE, with was_issued, of
// one with a difference.
//
// What is copied and put back:
//   - the buffers of the run (gcap_run_t.buffers), and those of `buffers` below. They may share bytes, as outputs that
//     overlap inputs do: each byte is copied once, and each buffer is compared as it says;
//   - the scratch that the graph keeps (scratch.h), which the search alone compares (`bisect`). The eager run has
//     other scratch, with other bytes where neither run wrote. If it had the graph's, from the same bytes, both runs
//     would read the same there, and work that reads scratch before it writes would not be found. Make a tap of what is
//     to be compared;
//   - taps (graph_taps.h), which are compared before all buffers: byte by byte, or with the type and the tolerance of a
//     listed buffer whose name is the label. The work's taps take the place of the replay's, and gcap_run_t.taps gets
//     them, whatever the comparison says;
//   - what `save` and `restore` care for.
// Bindings (gcap_run_t.bindings) are neither copied nor compared, also not by the search: they have no type, so their
// size is unknown, and what cannot be put back has something else at each look. List them as buffers; a session does.
// Both runs get the same values (gcap_graph_buffers_t.values). What is not put back:
//   - memory that nobody named. If the work changes such memory, as an accumulator, the run changes it twice, and the
//     comparison may blame the graph for that;
//   - effects on the host: host functions and functions of holes are called twice, by the replay and by the eager run,
//     and so is what they write, send and count;
//   - what other devices and processes see, such as a collective: all ranks verify the same run, or none does.
// Bytes that nothing has written yet are compared as any others, which a checker of uninitialized reads reports: fill
// them, or list their buffer as `is_state`. The work must do the same twice from the same memory: name the tolerance of
// work whose sums have no fixed order.
#ifndef GCAP_GRAPH_VERIFY_H_
#define GCAP_GRAPH_VERIFY_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/api.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// A buffer of a verification. Those of the run are compared byte by byte without being listed. One that is listed with
// the address and the bytes of a buffer of the run says how that one is compared; of two such, the last one.
// Thread, Capture and Lifetime as of gcap_graph_verify_t.
typedef struct gcap_graph_verify_buffer {
  const char* name;  // for messages; may be NULL
  void* address;     // in one allocation of device memory, managed or pinned memory
  size_t bytes;      // a multiple of an element's
  // Of an element, for tolerances, values in messages, and NaN. GCAP_DTYPE_BOOL: a byte.
  gcap_dtype_t type;
  // An element may differ by absolute + relative * |eager value|. Both 0: not in one bit. Otherwise a NaN equals a NaN,
  // and an infinity itself alone.
  double absolute, relative;
  bool is_state;  // copied and put back, and not compared: a cache, the state of a generator
} gcap_graph_verify_buffer_t;

// What is wrong with the graph, where a verification with `bisect` differs.
typedef enum gcap_graph_fault {
  GCAP_GRAPH_FAULT_UNKNOWN = 0,         // none of these is seen
  GCAP_GRAPH_FAULT_STALE_POINTER,       // an argument leads to other memory than a fresh capture's, or to nobody's
  GCAP_GRAPH_FAULT_FROZEN_VALUE,        // an argument, a grid or a kernel that is another one in a fresh capture
  GCAP_GRAPH_FAULT_DROPPED_CALL,        // the work makes the call, and its capture did not
  GCAP_GRAPH_FAULT_HOST_DECISION,       // the capture made a call that the work does not make now
  GCAP_GRAPH_FAULT_MISSING_JOIN,        // two nodes work on the same memory, one writes, and no path orders them
  GCAP_GRAPH_FAULT_OUTSIDE_OF_CAPTURE,  // the capture made the call, and the graph has no node of it
  GCAP_GRAPH_FAULT_HOLE,                // the function of a hole left something else in a replay than in the work
  // A node reads memory without a name that no node wrote before. If a hole comes before, its function may have done
  // that, and not the same each time: the message names the hole.
  GCAP_GRAPH_FAULT_UNINITIALIZED,
} gcap_graph_fault_t;

// What a verification found.
// Thread:   plain data, which the call of the run writes before it returns.
// Capture:  as of gcap_run_t.
// Lifetime: the caller's, until the call returns.
typedef struct gcap_graph_verify_report {
  size_t struct_size;       // set by gcap_graph_verify_report_init
  bool is_verified;         // the run replayed, was due, and was compared. False: nothing below says anything
  uint64_t compared_bytes;  // of all buffers
  // The first buffer that differs: its index among those of the run; behind them come those of the verification that
  // are not the run's. SIZE_MAX: none differs.
  size_t buffer;
  size_t element;             // its first that differs
  double replayed, eager;     // the two values of that element; an integer beyond 2^53 is rounded
  uint64_t different;         // elements that differ, of all buffers
  double largest_difference;  // of two numbers, among those
  // The first buffer with a NaN of the replay where the work has none; SIZE_MAX: none has, or a tap has one.
  size_t nan_buffer;
  size_t nan_element;  // the first such element
  // The first tap that differs (graph_taps.h), among those of the work in its order; SIZE_MAX: none does. Then `buffer`
  // is SIZE_MAX, and `element` and its values are of the tap.
  size_t tap;
  // With `bisect`, of a difference. The first call of the work that is noted (capture.h) behind which the replay and
  // the work differ in what is compared or in scratch, counted from 0; a hole counts as one, and what comes behind the
  // last call as one more. A wrong value in unknown memory, such as what the application allocates and does
  // not list, shows behind the call that brings it into what is compared; the causes that are seen in a node, an edge
  // or its arguments are then looked for in all calls before too. SIZE_MAX: none was found, or nobody looked. The
  // message of the failure names the call, its file and line, node, argument and memory.
  size_t step;
  gcap_graph_fault_t fault;
  size_t node;     // as in gcap_graph_difference_t, of the graph; SIZE_MAX: no node is known
  size_t earlier;  // of a MISSING_JOIN: an edge from this node to `node` is missing; else SIZE_MAX
  // The first buffer that differs behind the step, as `buffer`; SIZE_MAX: that is a tap, or scratch, or there is no
  // step.
  size_t step_buffer;
  size_t step_element;  // of scratch: the byte
  double step_replayed, step_eager;
  uint64_t replays;  // of beginnings of the graph, to find the step
  bool is_linear;    // the steps were looked at one by one, since the first find had no cause
} gcap_graph_verify_report_t;

// Says how large the struct is, and that nothing was verified. Every run that has the report does so too.
static inline void gcap_graph_verify_report_init(gcap_graph_verify_report_t* report) {
  const gcap_graph_verify_report_t nothing = {
      sizeof(*report),          false,    0,        SIZE_MAX, 0, 0, 0, 0, 0,    SIZE_MAX, 0, SIZE_MAX, SIZE_MAX,
      GCAP_GRAPH_FAULT_UNKNOWN, SIZE_MAX, SIZE_MAX, SIZE_MAX, 0, 0, 0, 0, false};
  *report = nothing;
}

// When a run is verified, and what is compared.
// Thread:   plain data. One thread at a time writes the struct; the run writes `*report` alone. While a run is verified
//           nobody else uses the memory that is copied. Other threads may use the manager meanwhile.
// Capture:  a capturing thread is refused, as by each run.
// Lifetime: the struct, and what it points to, is read before the call of the run returns.
//
// A run with `verify` may also fail with
//   INVALID_ARGUMENT     a size that is no version's; no buffers although there is a count; of a buffer: no address, no
//                        bytes, bytes that are no multiple of an element's, no such type, a tolerance that is negative
//                        or NaN, or memory that is not wholly in one allocation: all before anything was issued. Or the
//                        call is a replay or a begin, which has no work to compare with
//   FAILED_PRECONDITION  another run verifies the graph: nothing was issued
//   UNIMPLEMENTED        the runtime is not gcap's own, or the driver is older than CUDA 12.4
//   RESOURCE_EXHAUSTED   neither device nor host memory for two copies of what is named: nothing was issued
//   CUDA_ERROR           a copy or a wait failed; gcap_run_result_t.was_issued says whether that came behind the replay
//   REPLAY_DIFFERS       see above
//   others               what `save` or `restore` returned. The run ends: behind `save` nothing was issued, behind
//                        `restore` the buffers have what was there before the replay
// If a callback or the work does not return, because of an exception or a cancelled thread, the copies are freed, and
// the buffers have what the last step left.
typedef struct gcap_graph_verify {
  size_t struct_size;                         // set by gcap_graph_verify_init
  const gcap_graph_verify_buffer_t* buffers;  // default NULL: those of the run alone
  size_t num_buffers;
  // For what gcap cannot copy: state of the host, a generator. Called before the replay, and before the eager run,
  // with the stream of the run, without a lock. What they issue is ordered with the run. NULL, the default: nothing.
  gcap_status_t (*save)(void* user, cudaStream_t stream);
  gcap_status_t (*restore)(void* user, cudaStream_t stream);
  void* user;
  // Which replays are verified, of those that runs with `verify` make of a graph: each nth, so 1 is this one; 0, the
  // default, is none. Counted from the capture of the graph on.
  uint64_t each;
  // And the first n since the graph was captured, and since a run moved its buffers. Default 0.
  uint64_t first;
  gcap_graph_verify_report_t* report;  // default NULL: nobody asks
  // Looks for the first step where a difference shows, and for its cause. Default false. The steps are those of
  // captures that the manager made since its first run with this: each of their calls costs a few questions to the
  // driver, and 300 bytes of the host's memory. Of an older graph the cause alone is looked for.
  //
  // The beginning of the graph is replayed, and the work issued eagerly, for at most log2(n) + 2 of n calls, each time
  // from the memory of before; and the work is captured once more, into a graph that is thrown away. So functions on
  // the host are called as often. If the place that is found has no cause, all places before it are tried, one by one.
  // A difference that comes and goes, as that of a race, may be found behind a later call: where that is a hole, and
  // two nodes before it lack an order, their place is looked at up to 8 times more.
  //
  // Where nothing differs that is compared, scratch is: what the thread of the work gets from gcap's arenas, of the
  // same size between the same calls, as long as the work has it. In the search each byte of such memory is 0 before
  // the graph is launched, and 0xff when an eager run gets it. A place where the two differ has a second eager run,
  // which gets 0: what is not the same in both was not written, and does not count. Addresses of such memory in such
  // memory are compared by what they lead to. If scratch differs without a cause, as that of work which does not do the
  // same twice may, the search continues without scratch.
  //
  // The buffers have what the work left, whatever is found. A search that fails says so behind the message of the
  // difference. The search waits for the whole device, and for those whose memory a buffer is in, while no other thread
  // captures through gcap.
  bool bisect;
  // A difference is also written to this file, which is made or emptied, as events (docs/doctor_events.md), for
  // gcap-doctor explain. Default NULL: no file. That a file cannot be written is logged.
  const char* events;
} gcap_graph_verify_t;

// Fills in the defaults: nothing is verified.
static inline void gcap_graph_verify_init(gcap_graph_verify_t* verify) {
  const gcap_graph_verify_t defaults = {sizeof(*verify), NULL, 0, NULL, NULL, NULL, 0, 0, NULL, false, NULL};
  *verify = defaults;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_VERIFY_H_
