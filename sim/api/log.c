// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The call log: a line for each call that the filter selects.
//
// The idea: functions do not describe their arguments. Every call looks its handles up and makes its tasks in a few
// places, and those note what they see with the thread's record of the call: handles, sizes, names of kernels, what
// became of a capture. The end of the call turns the record into a line. While the log is off this costs a branch on
// gcap_sim_log_on. No address is ever noted, so that two runs of one seed give equal logs. Locking: the global mutex,
// also while the sink runs.
#include "sim/api/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/error.h"
#include "sim/api/function.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/graph/graph.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"

enum { kMaxHandles = 8 };  // of one call that are told

typedef struct gcap_sim_call_record {
  const gcap_sim_function_t* function;
  uint64_t number;
  bool open;
  bool changes_capture;
  size_t num_handles;
  const void* handles[kMaxHandles];
  const void* stream;  // the last one that the call named, or NULL
  char arguments[256];
  char outcome[1024];
} gcap_sim_call_record_t;

typedef struct pattern {
  char* text;
  size_t length;
  bool prefix;  // ended in `*`
  bool exclude;
} pattern_t;

bool gcap_sim_log_on;

static struct {
  bool ready;  // set, by a call or from the environment
  pattern_t* patterns;
  size_t num_patterns;
  size_t capacity;
  bool errors;
  bool captures;
  bool only_excludes;
  void (*sink)(void* user, const char* line);
  void* user;
} logging;

// --- The filter -----------------------------------------------------------------------------------------------------

static void clear_filter(void) {
  for (size_t i = 0; i < logging.num_patterns; ++i) free(logging.patterns[i].text);
  logging.num_patterns = 0;
  logging.errors = logging.captures = false;
  logging.only_excludes = true;
}

#define EXPECTED_WORD "expected a function's name, perhaps with a `*` at its end"

static _Noreturn void refuse_word(const char* word, size_t length, bool of_environment) {
  if (of_environment) gcap_sim_die_of_setting("GCAP_SIM_LOG has '%.*s', " EXPECTED_WORD, (int)length, word);
  gcap_sim_die("the log's filter has '%.*s', " EXPECTED_WORD, (int)length, word);
}

static void add_word(const char* word, size_t length, bool of_environment) {
  bool exclude = length > 0 && word[0] == '-';
  if (!exclude) logging.only_excludes = false;
  if (length == 6 && memcmp(word, "errors", 6) == 0) {
    logging.errors = true;
    return;
  }
  if (length == 8 && memcmp(word, "captures", 8) == 0) {
    logging.captures = true;
    return;
  }
  if (exclude) ++word, --length;
  bool prefix = length > 0 && word[length - 1] == '*';
  if (prefix) --length;
  if ((length == 0 && !prefix) || memchr(word, '*', length) != NULL || (length && !isalpha((unsigned char)word[0]))) {
    refuse_word(word, length, of_environment);
  }
  gcap_sim_reserve(&logging.patterns, &logging.capacity, logging.num_patterns + 1, sizeof(pattern_t));
  char* text = gcap_sim_calloc(length + 1, 1);
  memcpy(text, word, length);
  logging.patterns[logging.num_patterns++] =
      (pattern_t){.text = text, .length = length, .prefix = prefix, .exclude = exclude};
}

static void set_filter(const char* filter, bool of_environment) {
  clear_filter();
  if (filter != NULL && !*filter) filter = NULL;
  logging.ready = true;
  gcap_sim_log_on = filter != NULL;
  while (filter != NULL) {
    const char* comma = strchr(filter, ',');
    add_word(filter, comma != NULL ? (size_t)(comma - filter) : strlen(filter), of_environment);
    filter = comma != NULL ? comma + 1 : NULL;
  }
}

void gcap_sim_set_log(const char* filter, void (*sink)(void* user, const char* line), void* user) {
  gcap_sim_lock();
  set_filter(filter, false);
  logging.sink = sink;
  logging.user = user;
  gcap_sim_unlock();
}

void gcap_sim_log_prepare(void) {
  if (!logging.ready) set_filter(getenv("GCAP_SIM_LOG"), true);
}

static bool matches(const pattern_t* pattern, const char* name) {
  if (pattern->prefix) return strncmp(pattern->text, name, pattern->length) == 0;
  return strcmp(pattern->text, name) == 0;
}

static bool is_selected(const gcap_sim_call_record_t* record, cudaError_t code) {
  bool selected = logging.only_excludes;
  if (logging.errors && code != cudaSuccess && code != cudaErrorNotReady) selected = true;
  if (logging.captures && record->changes_capture) selected = true;
  for (size_t i = 0; i < logging.num_patterns; ++i) {
    const pattern_t* pattern = &logging.patterns[i];
    if (!matches(pattern, record->function->name)) continue;
    if (pattern->exclude) return false;
    selected = true;
  }
  return selected;
}

// --- Notes ----------------------------------------------------------------------------------------------------------

// The record of the call under way; NULL while there is none.
static gcap_sim_call_record_t* current(void) {
  gcap_sim_call_record_t* record = gcap_sim_thread()->record;
  return record != NULL && record->open ? record : NULL;
}

static void append(char* text, size_t bytes, const char* format, va_list args) {
  size_t used = strlen(text);
  vsnprintf(text + used, bytes - used, format, args);
}

static void append_comma(char* text, size_t bytes) {
  size_t used = strlen(text);
  snprintf(text + used, bytes - used, ", ");
}

void gcap_sim_log_argument(const char* format, ...) {
  gcap_sim_call_record_t* record = current();
  if (record == NULL) return;
  if (record->arguments[0]) append_comma(record->arguments, sizeof(record->arguments));
  va_list args;
  va_start(args, format);
  append(record->arguments, sizeof(record->arguments), format, args);
  va_end(args);
}

void gcap_sim_log_capture(const char* format, ...) {
  gcap_sim_call_record_t* record = current();
  if (record == NULL) return;
  record->changes_capture = true;
  append_comma(record->outcome, sizeof(record->outcome));
  va_list args;
  va_start(args, format);
  append(record->outcome, sizeof(record->outcome), format, args);
  va_end(args);
}

// True the first time a call shows the handle; past the last one that is told, `…` stands for all others.
static bool is_news(gcap_sim_call_record_t* record, const void* handle) {
  if (record->num_handles > kMaxHandles) return false;
  for (size_t i = 0; i < record->num_handles; ++i) {
    if (record->handles[i] == handle) return false;
  }
  if (record->num_handles == kMaxHandles) {
    gcap_sim_log_argument("…");
  } else {
    record->handles[record->num_handles] = handle;
  }
  ++record->num_handles;
  return record->num_handles <= kMaxHandles;
}

void gcap_sim_log_handle(gcap_sim_kind_t kind, const void* handle) {
  gcap_sim_call_record_t* record = current();
  if (record == NULL) return;
  if (kind == GCAP_SIM_STREAM) record->stream = handle;
  if (!is_news(record, handle)) return;
  char label[GCAP_SIM_LABEL_BYTES];
  gcap_sim_log_argument("%s", gcap_sim_handle_label(label, kind, handle));
}

// What kind of node it is, and whose. One that holds a graph gets it later, and is an empty one yet.
static void add_node(gcap_sim_call_record_t* record, const gcap_sim_node_t* node) {
  static const char* const names[] = {
      [cudaGraphNodeTypeKernel] = "kernel",        [cudaGraphNodeTypeMemcpy] = "memcpy",
      [cudaGraphNodeTypeMemset] = "memset",        [cudaGraphNodeTypeHost] = "host",
      [cudaGraphNodeTypeGraph] = "child",          [cudaGraphNodeTypeEmpty] = "empty",
      [cudaGraphNodeTypeWaitEvent] = "wait_event", [cudaGraphNodeTypeEventRecord] = "record_event",
      [cudaGraphNodeTypeMemAlloc] = "alloc",       [cudaGraphNodeTypeMemFree] = "free"};
  const size_t type = (size_t)gcap_sim_node_type(node);
  const char* name = type < sizeof(names) / sizeof(*names) && names[type] != NULL ? names[type] : "node";
  char label[GCAP_SIM_LABEL_BYTES];
  size_t used = strlen(record->outcome);
  snprintf(record->outcome + used, sizeof(record->outcome) - used, " (%s of %s)", name,
           gcap_sim_handle_label(label, GCAP_SIM_GRAPH, node->graph->handle));
}

void gcap_sim_log_made(gcap_sim_kind_t kind, const void* handle) {
  gcap_sim_call_record_t* record = current();
  if (record == NULL || !is_news(record, handle)) return;
  char label[GCAP_SIM_LABEL_BYTES];
  size_t used = strlen(record->outcome);
  snprintf(record->outcome + used, sizeof(record->outcome) - used, ", makes %s",
           gcap_sim_handle_label(label, kind, handle));
  if (kind == GCAP_SIM_NODE) add_node(record, gcap_sim_handle_peek(kind, handle));
}

// --- Lines ----------------------------------------------------------------------------------------------------------

void gcap_sim_log_begin(gcap_sim_thread_t* thread, const gcap_sim_function_t* function, uint64_t number) {
  if (thread->record == NULL) thread->record = gcap_sim_calloc(1, sizeof(*thread->record));
  gcap_sim_call_record_t* record = thread->record;
  record->function = function;
  record->number = number;
  record->open = true;
  record->changes_capture = false;
  record->num_handles = 0;
  record->stream = NULL;
  record->arguments[0] = record->outcome[0] = '\0';
}

static const char* thread_label(const gcap_sim_thread_t* thread, char label[32]) {
  if (thread->turn) {
    snprintf(label, 32, "turn %zu", thread->turn - 1);  // the same in every run, as numbers of threads are not
  } else if (thread->runs_host_functions) {
    snprintf(label, 32, "host functions");
  } else {
    snprintf(label, 32, "thread %llu", (unsigned long long)thread->id);
  }
  return label;
}

static const char* capture_label(const gcap_sim_call_record_t* record, char label[64]) {
  const gcap_sim_stream_t* stream =
      record->stream != NULL ? gcap_sim_handle_peek(GCAP_SIM_STREAM, record->stream) : NULL;
  label[0] = '\0';
  if (stream != NULL && stream->member != NULL) {
    const gcap_sim_capture_t* capture = stream->member->capture;
    snprintf(label, 64, " [capture %llu %s]", capture->id, capture->invalid ? "invalidated" : "active");
  }
  return label;
}

void gcap_sim_log_end(gcap_sim_thread_t* thread, cudaError_t code) {
  gcap_sim_call_record_t* record = thread->record;
  if (record == NULL || !record->open) return;
  record->open = false;
  if (!is_selected(record, code)) return;
  char line[2048];
  char who[32];
  char capture[64];
  snprintf(line, sizeof(line), "#%llu %s %s(%s) -> %d %s%s%s", (unsigned long long)record->number,
           thread_label(thread, who), record->function->name, record->arguments, (int)code, gcap_sim_error_name(code),
           record->outcome, capture_label(record, capture));
  if (logging.sink != NULL) {
    logging.sink(logging.user, line);
  } else {
    fprintf(stderr, "gcap sim: %s\n", line);
  }
}

// So that a reader knows that nothing is missing: a program that crashes does not come here.
__attribute__((destructor)) static void tell_end(void) {
  bool is_whole = false;
  for (size_t i = 0; i < logging.num_patterns; ++i) {
    is_whole = is_whole || (logging.patterns[i].prefix && logging.patterns[i].length == 0);
  }
  if (is_whole && logging.sink == NULL) fprintf(stderr, "gcap sim: the program ends\n");
}

void gcap_sim_log_thread_ends(gcap_sim_thread_t* thread) { free(thread->record); }
