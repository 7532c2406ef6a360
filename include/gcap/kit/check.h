// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check.h: does an operation survive a capture? One call runs it eagerly, captures it, and replays it in the ways that
// break graphs. For tests of kernels and operators, on a GPU and on the simulator. docs/capturable.md is its page.
//
// The operation works on fixed addresses. The check fills the inputs, and compares what the operation leaves in the
// outputs with what an eager run leaves there:
//   1. Eager runs: the same twice from the same memory; with other bytes in the outputs; with other bytes in the run's
//      scratch; with other inputs; twice without a reset between. They are what replays are compared with.
//   2. A capture, that is not launched: nothing may change meanwhile.
//   3. An audit of the graph's pointers (graph_contents.h), here and before each replay.
//   4. Replays: with the same inputs; twice without a reset between; with other inputs; on another stream. Before each,
//      outputs and scratch are filled with bytes that no operation leaves there.
//   5. Eager runs, a capture and a replay on another stream with scratch of its own. Then memory of all usual sizes is
//      got from the driver and from the scratch, and filled, and the first graph replays once more.
// What is found is a finding of the report. A graph with a pointer to memory that is not its own is not launched, and
// what would follow from a finding is not tried. The memory of outputs and inputs has what the last run left.
#ifndef GCAP_KIT_CHECK_H_
#define GCAP_KIT_CHECK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gcap/api.h"
#include "gcap/run.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Memory that the operation reads or writes. No two buffers of a check share a byte.
// Thread, Capture and Lifetime as of gcap_check_t.
typedef struct gcap_check_buffer {
  const char* name;   // for sentences; may be NULL
  void* address;      // in one allocation of device, managed or pinned memory; with `on_host` any memory of the host
  size_t bytes;       // a multiple of an element's
  gcap_dtype_t type;  // of an element; GCAP_DTYPE_BOOL: a byte
  // Of an output: an element may differ from that of an eager run by absolute + relative * |eager value|. Both 0: not
  // in one bit. For work whose sums have no fixed order.
  double absolute, relative;
  // Of an output: the operation also reads what was there before, as an accumulator, a cache or a generator's state. It
  // is then filled before each run as an input is. Else what was there before must not matter.
  bool in_place;
  // Of an input: the operation reads it on the host while it issues, as a scalar or a size. A graph keeps such a value,
  // so an operation that reads one is not capturable, unless the value is the same in both fills.
  bool on_host;
  // Writes `bytes` bytes at `values`, which is memory of the host: an input, or an output that is in place. Called once
  // for each of the two fills, before all runs; `seed` is another one for each buffer and fill. NULL, the default:
  // drawn by the type: floats are multiples of 1/8 from -2 to 15/8, integers are 0 to 3, a bool is 0 or 1. Indices and
  // sizes need a function of the caller's. A status of the function ends the check.
  gcap_status_t (*fill)(void* user, uint64_t seed, void* values);
  void* fill_user;
} gcap_check_buffer_t;

// What was found.
typedef enum gcap_check_kind {
  GCAP_CHECK_FAILS = 0,       // an eager run fails
  GCAP_CHECK_NOT_REPEATABLE,  // two eager runs from the same memory differ: the host, or memory that is not listed,
                              // counts
  GCAP_CHECK_READS_OUTPUT,    // what an output had before counts, or stays there in part
  GCAP_CHECK_READS_SCRATCH,   // what scratch had before counts
  GCAP_CHECK_WRITES_INPUT,    // an input has other bytes after an eager run
  GCAP_CHECK_LEAKS_SCRATCH,   // each run keeps more scratch
  GCAP_CHECK_SEES_NO_INPUT,   // both fills give the same: a frozen input could not be seen
  GCAP_CHECK_NOT_CAPTURED,    // the capture fails
  GCAP_CHECK_ESCAPES,         // work runs while it is captured
  GCAP_CHECK_PAGEABLE,        // a captured copy has pageable memory, as of a variable
  GCAP_CHECK_STALE_POINTER,   // the graph has a pointer to memory that is gone, or somebody else's
  GCAP_CHECK_DIFFERS,         // a replay with the same inputs differs
  GCAP_CHECK_FROZEN,          // a replay with other inputs differs
  GCAP_CHECK_NOT_TWICE,       // a second replay in a row differs
  GCAP_CHECK_OTHER_STREAM,    // a run, capture or replay on another stream differs
  GCAP_CHECK_BORROWED,        // a replay differs once memory that was free was handed out
} gcap_check_kind_t;

// A check ends soon behind its first finding: more than these are not told, and a longer sentence ends in "...".
#define GCAP_CHECK_MAX_FINDINGS 4
#define GCAP_CHECK_SENTENCE_BYTES 2048

typedef struct gcap_check_finding {
  gcap_check_kind_t kind;
  const char* name;                          // of the kind: "frozen"; static
  char sentence[GCAP_CHECK_SENTENCE_BYTES];  // what was seen: buffer, element and both values, or a message of gcap's
  const char* remedy;                        // what to do instead; static
} gcap_check_finding_t;

// What a check found. Some 9 KB.
// Thread:   plain data, which the check writes before it returns.
// Capture:  legal: nothing here calls CUDA.
// Lifetime: the caller's. Nothing in it is to be freed.
typedef struct gcap_check_report {
  size_t struct_size;   // set by gcap_check_report_init
  bool is_done;         // the check came to its end. False: it failed, and has no verdict
  uint64_t seed;        // of the check
  size_t num_findings;  // 0, and is_done: the operation passed
  gcap_check_finding_t findings[GCAP_CHECK_MAX_FINDINGS];
  uint64_t eager_runs, replays;  // that were made
  // Replays that a guard of the operation (graph_guards.h) refused: it saw that the graph is for other decisions.
  uint64_t guarded_replays;
  size_t nodes, kernel_nodes;  // of the graph; 0: there is none
  // What stays held as long as the graph lives: its scratch and what else it retains, and an estimate of the executable
  // (gcap_graph_info_t).
  size_t held_bytes, exec_bytes;
  size_t kept_scratch_bytes;  // blocks of scratch that the operation kept for its later runs (gcap_scratch_keep)
} gcap_check_report_t;

static inline void gcap_check_report_init(gcap_check_report_t* report) {
  memset(report, 0, sizeof(*report));
  report->struct_size = sizeof(*report);
}

// An operation, and how it is checked.
// Thread:   plain data. One thread at a time writes the struct; the check writes nothing of it.
// Capture:  as of gcap_check_capturable.
// Lifetime: read before the check returns. `user` and the memory are the caller's.
typedef struct gcap_check {
  size_t struct_size;  // set by gcap_check_init
  const char* name;    // of the operation, for sentences. Default NULL: "operation"
  // Issues the operation, as in any run: to resources->cuda_stream, or resources->stream, with resources->scratch for
  // its temporary memory, which the check knows and fills. Called some 15 times, on the calling thread. It may fork by
  // events or gcap_capture_fork.
  gcap_work_t work;
  void* user;
  const gcap_check_buffer_t* inputs;  // NULL: none
  size_t num_inputs;
  const gcap_check_buffer_t* outputs;  // at least one
  size_t num_outputs;
  uint64_t seed;  // of all fills. Default 1
  // The findings are also written to this file, which is made or emptied, as events (docs/doctor_events.md), for
  // gcap-doctor report with --sarif, --junit or --json. Default NULL: no file.
  const char* events;
  const char* file;  // where the operation is, for that report. Default NULL: no place
  int line;
} gcap_check_t;

static inline void gcap_check_init(gcap_check_t* check) {
  memset(check, 0, sizeof(*check));
  check->struct_size = sizeof(*check);
  check->seed = 1;
}

// Checks the operation on the current device. NULL means that the check came to its end: `*out_report` has the verdict.
// A failure is one of the check, and says nothing of the operation; findings until then are in the report.
// Thread:   any. Other threads may use gcap meanwhile, but nobody else uses the memory of the check, and nobody captures
//           in the global mode: the check waits for the device.
// Capture:  a capturing thread is refused.
// If the work or a `fill` does not return, because of an exception or a cancelled thread, all that the check made is
// ended.
//   INVALID_ARGUMENT     no work; no outputs; a buffer without address or bytes, of bytes that are no multiple of an
//                        element's, of no type, with a tolerance that is negative or NaN, or not wholly in one
//                        allocation; buffers that share bytes; `in_place` of an input, or `on_host` of an output; no
//                        list although there is a count; a file of events that cannot be written. The message names the
//                        buffer, the value and what is allowed
//   FAILED_PRECONDITION  the calling thread is capturing
//   RESOURCE_EXHAUSTED   no memory for the check: device memory for six copies of the buffers at least, or host memory
//   UNIMPLEMENTED        the driver is older than CUDA 12.4
//   CUDA_ERROR           the runtime refused
//   DEVICE_LOST          a kernel of the operation faulted
//   UNAVAILABLE          the file of events is incomplete; or other threads go on capturing, which a wait would break
//   LEAKED               something that the check made could not be ended
//   others               what `fill` returned
GCAP_API gcap_status_t gcap_check_capturable(const gcap_check_t* check, gcap_check_report_t* out_report) GCAP_NODISCARD;

// Prints the report as text: the verdict, and for each finding its name, sentence and remedy.
static inline void gcap_check_print(const gcap_check_t* check, const gcap_check_report_t* report, FILE* out) {
  const char* verdict = !report->is_done ? "was not checked to the end" : "is capturable";
  fprintf(out, "%s %s (seed %llu): %llu eager runs, %llu replays, %zu nodes, %zu bytes stay held\n",
          check->name != NULL ? check->name : "operation", report->num_findings != 0 ? "is not capturable" : verdict,
          (unsigned long long)report->seed, (unsigned long long)report->eager_runs, (unsigned long long)report->replays,
          report->nodes, report->held_bytes + report->kept_scratch_bytes);
  for (size_t i = 0; i < report->num_findings; ++i) {
    const gcap_check_finding_t* finding = &report->findings[i];
    fprintf(out, "  %s: %s\n    %s\n", finding->name, finding->sentence, finding->remedy);
  }
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_CHECK_H_
