// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A recording: arrays that grow, and the order of its calls.
//
// The idea: lines of threads interleave, and a call's line is written at its end, so calls come in another order than
// they began. The arrays are filled as the lines come; gcap_doctor_recording_finish sorts the calls and ties what
// refers to them by number. Locking: none.
#include "doctor/events/recording.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/base/path.h"
#include "doctor/events/grow.h"

gcap_doctor_recording_t* gcap_doctor_recording_create(const char* source) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_recording_t* recording = gcap_doctor_heap_alloc(&heap, sizeof(*recording));
  recording->heap = heap;
  recording->source = source;
  recording->program = "";
  return recording;
}

void gcap_doctor_recording_destroy(gcap_doctor_recording_t* recording) {
  if (recording == NULL) return;
  free(recording->threads);
  free(recording->frames);
  free(recording->stacks);
  free(recording->streams);
  free(recording->ranges);
  free(recording->logs);
  free(recording->calls);
  free(recording->nodes);
  free(recording->edges);
  free(recording->execs);
  free(recording->clones);
  free(recording->times);
  free(recording->differences);
  free(recording->stales);
  free(recording->shared);
  free(recording->groups);
  free(recording->notes);
  gcap_doctor_heap_t heap = recording->heap;  // the recording lies in it
  gcap_doctor_heap_deinit(&heap);
}

uint32_t gcap_doctor_recording_add_call(gcap_doctor_recording_t* recording) {
  GCAP_DOCTOR_GROW(recording, calls, num_calls, call_capacity);
  recording->calls[recording->num_calls] = (gcap_doctor_event_call_t){.function = "",
                                                                      .arguments = "",
                                                                      .count = 1,
                                                                      .bytes = GCAP_DOCTOR_NO_NUMBER,
                                                                      .stack = GCAP_DOCTOR_NONE,
                                                                      .stream = GCAP_DOCTOR_NONE,
                                                                      .range = GCAP_DOCTOR_NONE,
                                                                      .thread = GCAP_DOCTOR_NONE,
                                                                      .event = GCAP_DOCTOR_NONE,
                                                                      .graph = GCAP_DOCTOR_NONE,
                                                                      .exec = GCAP_DOCTOR_NONE,
                                                                      .raised_at = GCAP_DOCTOR_NONE};
  return (uint32_t)recording->num_calls++;
}

uint32_t gcap_doctor_recording_add_thread(gcap_doctor_recording_t* recording, uint32_t id) {
  GCAP_DOCTOR_GROW(recording, threads, num_threads, thread_capacity);
  recording->threads[recording->num_threads] = (gcap_doctor_event_thread_t){.id = id, .name = ""};
  return (uint32_t)recording->num_threads++;
}

uint32_t gcap_doctor_recording_add_stream(gcap_doctor_recording_t* recording, uint32_t id) {
  GCAP_DOCTOR_GROW(recording, streams, num_streams, stream_capacity);
  recording->streams[recording->num_streams] = (gcap_doctor_event_stream_t){.id = id, .what = ""};
  return (uint32_t)recording->num_streams++;
}

static int by_number(const void* left, const void* right) {
  const gcap_doctor_event_call_t *a = left, *b = right;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return a->line < b->line ? -1 : a->line > b->line;
}

// The call of that number; GCAP_DOCTOR_NONE.
static uint32_t find_call(const gcap_doctor_recording_t* recording, uint64_t number) {
  size_t low = 0, high = recording->num_calls;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (recording->calls[middle].number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < recording->num_calls && recording->calls[low].number == number ? (uint32_t)low : GCAP_DOCTOR_NONE;
}

static void tie_logs(gcap_doctor_recording_t* recording) {
  enum { kMaxLogs = 8 };  // of a call
  uint8_t* counts = gcap_doctor_heap_alloc(&recording->heap, recording->num_calls + 1);
  for (size_t i = 0; i < recording->num_logs; ++i) {
    gcap_doctor_event_log_t* log = &recording->logs[i];
    log->call = find_call(recording, log->call);
    if (log->call == GCAP_DOCTOR_NONE || counts[log->call]++ >= kMaxLogs) continue;
    const char** all = &recording->calls[log->call].log;
    *all = *all == NULL ? log->text : gcap_doctor_heap_print(&recording->heap, "%s\n%s", *all, log->text);
  }
}

void gcap_doctor_recording_finish(gcap_doctor_recording_t* recording) {
  if (recording->num_calls != 0) qsort(recording->calls, recording->num_calls, sizeof(*recording->calls), by_number);
  // Until here `call` is a number, which fits: readers refuse larger ones.
  for (size_t i = 0; i < recording->num_nodes; ++i) {
    gcap_doctor_event_node_t* node = &recording->nodes[i];
    if (node->call != GCAP_DOCTOR_NONE) node->call = find_call(recording, node->call);
    if (node->call != GCAP_DOCTOR_NONE) ++recording->calls[node->call].num_nodes;
  }
  for (size_t i = 0; i < recording->num_calls; ++i) {
    gcap_doctor_event_call_t* call = &recording->calls[i];
    if (call->raised_at != GCAP_DOCTOR_NONE) call->raised_at = find_call(recording, call->raised_at);
  }
  for (size_t i = 0; i < recording->num_execs; ++i) {
    gcap_doctor_event_exec_t* exec = &recording->execs[i];
    if (exec->call != GCAP_DOCTOR_NONE) exec->call = find_call(recording, exec->call);
  }
  for (size_t i = 0; i < recording->num_differences; ++i) {
    gcap_doctor_event_difference_t* difference = &recording->differences[i];
    if (difference->call != GCAP_DOCTOR_NONE) difference->call = find_call(recording, difference->call);
  }
  for (size_t i = 0; i < recording->num_shared; ++i) {
    uint32_t* call = &recording->shared[i].call;
    if (*call != GCAP_DOCTOR_NONE) *call = find_call(recording, *call);
  }
  for (size_t i = 0; i < recording->num_groups; ++i) {
    uint32_t* call = &recording->groups[i].call;
    if (*call != GCAP_DOCTOR_NONE) *call = find_call(recording, *call);
  }
  for (size_t i = 0; i < recording->num_stales; ++i) {
    gcap_doctor_event_stale_t* stale = &recording->stales[i];
    uint32_t* calls[] = {&stale->call, &stale->made, &stale->freed, &stale->taken, &stale->captured};
    for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); ++k) {
      if (*calls[k] != GCAP_DOCTOR_NONE) *calls[k] = find_call(recording, *calls[k]);
    }
  }
  tie_logs(recording);
  gcap_doctor_recording_find_program(recording);
}

uint64_t gcap_doctor_recording_count_calls(const gcap_doctor_recording_t* recording) {
  uint64_t count = 0;
  for (size_t i = 0; i < recording->num_calls; ++i) count += recording->calls[i].count;
  return count;
}

// --- Frames that a user looks at -------------------------------------------------------------------------------------

static bool is_cudas_own(const char* module) {
  static const char* const names[] = {
      "libcuda.so", "libcupti.so", "libcudart.so",  "libgcap_doctor.so", "libnvidia-", "libcublas",
      "libcudnn",   "libcusolver", "libcusparse",   "libcufft",          "libc.so",    "libpthread.so",
      "ld-linux",   "libgcap_sim", "libfake_cupti", "libasan.so",        "libtsan.so", "libubsan.so"};
  const char* base = gcap_doctor_base_name(module);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (strncmp(base, names[i], strlen(names[i])) == 0) return true;
  }
  return false;
}

// A program that links the runtime statically has its functions in a module of its own.
static bool is_cudas_function(const char* function) {
  return strncmp(function, "libcudart_static_", strlen("libcudart_static_")) == 0 ||
         (strncmp(function, "cuda", 4) == 0 && function[4] >= 'A' && function[4] <= 'Z');
}

uint32_t gcap_doctor_recording_c_frame(const gcap_doctor_recording_t* recording, uint32_t stack) {
  if (stack >= recording->num_stacks) return GCAP_DOCTOR_NONE;
  const gcap_doctor_event_stack_t* of = &recording->stacks[stack];
  for (uint32_t i = 0; i < of->num_c; ++i) {
    const gcap_doctor_event_frame_t* frame = &recording->frames[of->c[i]];
    if (!is_cudas_own(frame->module) && !is_cudas_function(frame->function)) return of->c[i];
  }
  return of->num_c != 0 ? of->c[of->num_c - 1] : GCAP_DOCTOR_NONE;
}

uint32_t gcap_doctor_recording_python_frame(const gcap_doctor_recording_t* recording, uint32_t stack) {
  if (stack >= recording->num_stacks || recording->stacks[stack].num_python == 0) return GCAP_DOCTOR_NONE;
  return recording->stacks[stack].python[0];
}
