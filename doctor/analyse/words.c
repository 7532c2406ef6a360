// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The sentences: subject, verb, object, with the names that a reader knows: the runtime's function before the driver's,
// the thread by its name, a stream by its number, and the rule. What is not certain says "probably". Locking: none.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/analyse/analysis.h"

// --- Names -----------------------------------------------------------------------------------------------------------

const char* gcap_doctor_diagnosis_call_name(gcap_doctor_diagnosis_t* diagnosis, uint32_t call) {
  if (call >= diagnosis->recording->num_calls) return "a call that was not recorded";
  const char* function = diagnosis->recording->calls[call].function;
  const char* runtime = gcap_rule_runtime_name(function);
  if (runtime == NULL || strcmp(runtime, function) == 0) return function;
  return gcap_doctor_heap_print(&diagnosis->heap, "%s (%s)", runtime, function);
}

const char* gcap_doctor_diagnosis_thread_name(gcap_doctor_diagnosis_t* diagnosis, uint32_t thread) {
  const gcap_doctor_recording_t* recording = diagnosis->recording;
  if (thread >= recording->num_threads) return "a thread that was not recorded";
  const gcap_doctor_event_thread_t* of = &recording->threads[thread];
  const uint64_t number = of->os != 0 ? of->os : of->id;
  if (of->name[0] == '\0') return gcap_doctor_heap_print(&diagnosis->heap, "thread %" PRIu64, number);
  for (uint32_t i = 0; i < recording->num_threads; ++i) {
    if (i == thread || strcmp(recording->threads[i].name, of->name) != 0) continue;
    return gcap_doctor_heap_print(&diagnosis->heap, "thread '%s' (%" PRIu64 ")", of->name, number);
  }
  return gcap_doctor_heap_print(&diagnosis->heap, "thread '%s'", of->name);
}

// "on stream 2 (the capturing stream)", with a space before it; "" for a call without a stream.
static const char* where(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  gcap_doctor_heap_t* heap = &analysis->diagnosis->heap;
  const uint32_t index = gcap_doctor_call_at(analysis, call)->stream;
  if (index == GCAP_DOCTOR_NONE) {
    return gcap_doctor_call_has_no_stream(gcap_doctor_call_at(analysis, call)->function) ? " on the default stream"
                                                                                         : "";
  }
  const gcap_doctor_event_stream_t* stream = &analysis->recording->streams[index];
  if (strcmp(stream->what, "legacy") == 0) return " on the legacy default stream";
  const char* name = strcmp(stream->what, "per_thread") == 0
                         ? " on the per-thread default stream"
                         : gcap_doctor_heap_print(heap, " on stream %u", stream->id);
  if (capture == GCAP_DOCTOR_NONE) return name;
  if (index == analysis->diagnosis->captures[capture].stream) {
    return gcap_doctor_heap_print(heap, "%s (the capturing stream)", name);
  }
  const uint32_t in = analysis->stream_capture[call];
  if (in == capture) return gcap_doctor_heap_print(heap, "%s (which joined the capture)", name);
  if (in != GCAP_DOCTOR_NONE) return gcap_doctor_heap_print(heap, "%s (of capture %u)", name, in + 1);
  return name;
}

static const char* call_name(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  return gcap_doctor_diagnosis_call_name(analysis->diagnosis, call);
}

static const char* thread_of(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  return gcap_doctor_diagnosis_thread_name(analysis->diagnosis, gcap_doctor_call_at(analysis, call)->thread);
}

// "cudaMalloc (cuMemAlloc) inside of cudnnCreate", with what made the driver call it.
static const char* full_name(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  gcap_doctor_heap_t* heap = &analysis->diagnosis->heap;
  const char* name = call_name(analysis, call);
  const char* library = gcap_doctor_library_function(analysis->recording, call);
  const uint32_t outer = analysis->outer[call];
  if (outer != call) name = gcap_doctor_heap_print(heap, "%s inside of %s", name, call_name(analysis, outer));
  if (library == NULL || library == gcap_doctor_call_at(analysis, call)->function) return name;
  return gcap_doctor_heap_print(heap, "%s inside of %s", name, library);
}

// "900 cudaErrorStreamCaptureUnsupported".
static const char* answer(const gcap_doctor_analysis_t* analysis, int code) {
  const char* name = gcap_rule_code_name(code);
  if (name == NULL) return gcap_doctor_heap_print(&analysis->diagnosis->heap, "%d", code);
  return gcap_doctor_heap_print(&analysis->diagnosis->heap, "%d %s", code, name);
}

// Of a query by the capturing thread itself the table's words, which are about another thread, would not be true.
static bool is_own_query(const gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return finding->kind == GCAP_DOCTOR_FINDING_CULPRIT && finding->rule != NULL &&
         strcmp(finding->rule->id, "R14") == 0 &&
         gcap_doctor_call_at(analysis, finding->call)->thread == analysis->diagnosis->captures[finding->capture].thread;
}

// ": rule R11, a call that a capturing stream cannot be given"; "" without a rule.
static const char* rule_words(const gcap_doctor_analysis_t* analysis, const gcap_rule_t* rule) {
  if (rule == NULL) return "";
  return gcap_doctor_heap_print(&analysis->diagnosis->heap, ": rule %s, %s", rule->id, rule->situation);
}

static const char* mode_name(gcap_doctor_event_mode_t mode) {
  switch (mode) {
    case GCAP_DOCTOR_MODE_THREAD_LOCAL: return "thread-local";
    case GCAP_DOCTOR_MODE_RELAXED: return "relaxed";
    default: return "global";
  }
}

// " and 1 other": one call may break several captures.
static const char* others(const gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  if (finding->count != 1 || finding->num_captures < 2) return "";
  return gcap_doctor_heap_print(&analysis->diagnosis->heap, " and %" PRIu64 " other%s", finding->num_captures - 1,
                                finding->num_captures == 2 ? "" : "s");
}

static const char* times(const gcap_doctor_analysis_t* analysis, uint64_t count) {
  if (count == 1) return "";
  return gcap_doctor_heap_print(&analysis->diagnosis->heap, ", %" PRIu64 " times", count);
}

// --- Sentences -------------------------------------------------------------------------------------------------------

#define PRINT(...) gcap_doctor_heap_print(&analysis->diagnosis->heap, __VA_ARGS__)

static unsigned number(const gcap_doctor_finding_t* finding) { return finding->capture + 1; }

static const char* refused_begin(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, finding->call);
  const bool is_begin = gcap_doctor_kind_at(analysis, finding->call) == GCAP_DOCTOR_CALL_BEGIN;
  const bool may_lack_begin = analysis->recording->reached_limit && !gcap_doctor_is_before_gap(analysis, finding->call);
  const char* end = may_lack_begin ? "ended a capture whose begin is left out" : "found no capture to end";
  return PRINT("%s%s, by %s, %s, and answered %s%s%s.", call_name(analysis, finding->call),
               where(analysis, finding->call, finding->capture), thread_of(analysis, finding->call),
               is_begin ? "began no capture" : end, answer(analysis, call->result), times(analysis, finding->count),
               rule_words(analysis, finding->rule));
}

static const char* between(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[finding->capture];
  return PRINT(
      "A call that the recording does not have broke capture %u, after %s%s, which still answered well, and "
      "before %s%s, which answered %s%s.",
      number(finding), call_name(analysis, finding->other), where(analysis, finding->other, finding->capture),
      call_name(analysis, finding->call), where(analysis, finding->call, finding->capture),
      answer(analysis, gcap_doctor_call_at(analysis, finding->call)->result),
      capture->mode == GCAP_DOCTOR_MODE_RELAXED || capture->mode == GCAP_DOCTOR_MODE_THREAD_LOCAL
          ? ""
          : "; it may have been another thread's, since the mode is global");
}

// Of another thread's call both threads are named.
static const char* whose(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[finding->capture];
  if (gcap_doctor_call_at(analysis, finding->call)->thread == capture->thread) return "";
  return PRINT(" of %s, which is in %s mode", gcap_doctor_diagnosis_thread_name(analysis->diagnosis, capture->thread),
               mode_name(capture->mode));
}

static const char* culprit(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, finding->call);
  if (finding->capture == GCAP_DOCTOR_NONE || gcap_doctor_kind_at(analysis, finding->call) == GCAP_DOCTOR_CALL_BEGIN) {
    return refused_begin(analysis, finding);
  }
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[finding->capture];
  if (capture->culprit == GCAP_DOCTOR_NONE) return between(analysis, finding);
  const char* open = capture->outcome == GCAP_DOCTOR_OUTCOME_OPEN ? ", which the program then left open" : "";
  const char* answered =
      call->result != 0 ? PRINT(" (it answered %s)", answer(analysis, call->result)) : " (it answered success)";
  return PRINT("%s%s%s, by %s, broke capture %u%s%s%s%s%s%s.", finding->is_certain ? "" : "Probably ",
               full_name(analysis, finding->call), where(analysis, finding->call, finding->capture),
               thread_of(analysis, finding->call), number(finding), others(analysis, finding), whose(analysis, finding),
               open, times(analysis, finding->count), finding->rule == NULL || !finding->is_certain ? answered : "",
               is_own_query(analysis, finding) ? ": rule R14, a query of an event recorded before the capture"
                                               : rule_words(analysis, finding->rule));
}

// Of a C++ name the last identifier before the arguments of its template and its own: "_ZN2at4copyIfEEvPf" is "copy".
const char* gcap_doctor_words_kernel(gcap_doctor_analysis_t* analysis, const char* kernel) {
  if (strncmp(kernel, "_Z", 2) != 0) return kernel;
  const char* at = kernel + (kernel[2] == 'N' ? 3 : 2);
  const char* name = NULL;
  size_t length = 0;
  while (*at >= '1' && *at <= '9') {
    char* end = NULL;
    length = (size_t)strtoul(at, &end, 10);
    if (length > strlen(end)) return kernel;
    name = end;
    at = end + length;
  }
  return name != NULL ? gcap_doctor_heap_copy(&analysis->diagnosis->heap, name, length) : kernel;
}

static const char* kernel_of(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const char* kernel = gcap_doctor_call_at(analysis, call)->kernel;
  return kernel != NULL ? PRINT(" of kernel %s", gcap_doctor_words_kernel(analysis, kernel)) : "";
}

static const char* unjoined(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  if (!finding->is_certain) {
    return PRINT("Capture %u has a fork that never came back to its stream, and the recording does not show which%s.",
                 number(finding), rule_words(analysis, finding->rule));
  }
  const gcap_doctor_event_call_t* fork = gcap_doctor_call_at(analysis, finding->call);
  const bool has_last = finding->other != GCAP_DOCTOR_NONE && finding->other != finding->call;
  const char* last = has_last ? PRINT(" Its last work is %s%s.", full_name(analysis, finding->other),
                                      kernel_of(analysis, finding->other))
                              : "";
  const bool is_known =
      gcap_doctor_kind_at(analysis, finding->call) == GCAP_DOCTOR_CALL_WAIT;  // else it is the first call on it
  return PRINT("Stream %u joined capture %u %s %s, by %s, and its work never came back to the capturing stream%s.%s",
               analysis->recording->streams[fork->stream].id, number(finding), is_known ? "by" : "before",
               call_name(analysis, finding->call), thread_of(analysis, finding->call),
               rule_words(analysis, finding->rule), last);
}

static const char* escaped(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[finding->capture];
  return PRINT("%s%s%s, by %s, ran beside capture %u%s: the work ran at once, and %s lacks it (rule %s).",
               full_name(analysis, finding->call), kernel_of(analysis, finding->call),
               where(analysis, finding->call, finding->capture), thread_of(analysis, finding->call), number(finding),
               times(analysis, finding->count), capture->num_nodes == 0 ? "the graph, which is empty," : "the graph",
               finding->rule->id);
}

static const char* lost(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const uint32_t end = analysis->diagnosis->captures[finding->capture].end;
  if (end != GCAP_DOCTOR_NONE && finding->call > end) {
    return PRINT("%s%s, by %s, failed with %s%s: it waits for an event of capture %u, which is over%s.",
                 call_name(analysis, finding->call), where(analysis, finding->call, finding->capture),
                 thread_of(analysis, finding->call),
                 answer(analysis, gcap_doctor_call_at(analysis, finding->call)->result),
                 times(analysis, finding->count), number(finding), rule_words(analysis, finding->rule));
  }
  return PRINT("%s%s, by %s, failed in capture %u with %s%s, and the capture ended well without it%s.",
               full_name(analysis, finding->call), where(analysis, finding->call, finding->capture),
               thread_of(analysis, finding->call), number(finding),
               answer(analysis, gcap_doctor_call_at(analysis, finding->call)->result), times(analysis, finding->count),
               rule_words(analysis, finding->rule));
}

static const char* raised(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, finding->call);
  const bool is_open = analysis->diagnosis->captures[finding->capture].outcome == GCAP_DOCTOR_OUTCOME_OPEN;
  const int first_line = (int)strcspn(of->arguments, "\n");
  return PRINT(
      "%s%s left capture %u, by %s%s%s%.*s. %s%s.", finding->is_certain ? "" : "Probably ", of->raised, number(finding),
      thread_of(analysis, finding->call), times(analysis, finding->count), first_line != 0 ? ": " : "", first_line,
      of->arguments,
      is_open ? "Nobody ended the capture" : "The capture was ended, its graph lacks the rest and was never launched",
      finding->rule != NULL ? PRINT("; probably rule %s, %s", finding->rule->id, finding->rule->situation) : "");
}

static const char* refused(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return PRINT(
      "In capture %u the program asked whether the stream captures (%s, by %s), submitted nothing more and %s%s. "
      "Frameworks do so when they refuse an operation%s.",
      number(finding), call_name(analysis, finding->call), thread_of(analysis, finding->call),
      analysis->diagnosis->captures[finding->capture].outcome == GCAP_DOCTOR_OUTCOME_OPEN
          ? "never ended the capture"
          : "ended the capture, whose graph was never launched",
      times(analysis, finding->count),
      finding->rule != NULL ? PRINT(", here probably a copy: rule %s, %s", finding->rule->id, finding->rule->situation)
                            : "");
}

static const char* pageable(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, finding->call);
  const bool is_stack = call->host == GCAP_DOCTOR_HOST_STACK;
  const char* bytes = call->bytes != GCAP_DOCTOR_NO_NUMBER ? PRINT(" of %" PRIu64 " bytes", call->bytes) : "";
  return PRINT(
      "%s%s%s, by %s, put a copy into capture %u%s whose host side is %s: each launch of the graph uses that "
      "address again%s.",
      full_name(analysis, finding->call), bytes, where(analysis, finding->call, finding->capture),
      thread_of(analysis, finding->call), number(finding), times(analysis, finding->count),
      is_stack ? "on the thread's stack" : "pageable memory", rule_words(analysis, finding->rule));
}

static const char* allocation(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const char* of = finding->capture != GCAP_DOCTOR_NONE ? PRINT("The graph of capture %u", number(finding)) : "A graph";
  const char* by =
      finding->call != GCAP_DOCTOR_NONE ? PRINT(", the first by %s", full_name(analysis, finding->call)) : "";
  return PRINT("%s has %" PRIu64 " allocation node%s that it does not free%s%s.", of, finding->count,
               finding->count == 1 ? "" : "s", by, rule_words(analysis, finding->rule));
}

static const char* empty(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return PRINT("Capture %u%s, by %s, ended well in a graph without a node%s%s.", number(finding),
               where(analysis, finding->call, finding->capture), thread_of(analysis, finding->call),
               times(analysis, finding->count), rule_words(analysis, finding->rule));
}

static const char* left_open(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return PRINT("Capture %u%s, by %s, was never ended%s%s%s.", number(finding),
               where(analysis, finding->call, finding->capture), thread_of(analysis, finding->call),
               analysis->recording->ended ? "" : ", or the program died in it", times(analysis, finding->count),
               rule_words(analysis, finding->rule));
}

static const char* recaptured(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return PRINT("The program captured %" PRIu64 " graphs at one place, by %s, and launched none of them more than once.",
               finding->count, thread_of(analysis, finding->call));
}

static const char* update(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, finding->call);
  const bool was_instead = finding->severity != GCAP_DOCTOR_SEVERITY_ERROR;
  const char* why = finding->rule != NULL ? PRINT(": %srule %s, %s", finding->is_certain ? "" : "probably ",
                                                  finding->rule->id, finding->rule->situation)
                                          : "";
  return PRINT("%s, by %s, was refused with %s%s%s%s.", call_name(analysis, finding->call),
               thread_of(analysis, finding->call), answer(analysis, call->result), times(analysis, finding->count),
               was_instead ? ", and the program instantiated anew" : "", why);
}

static const char* launch(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  const char* of = finding->capture != GCAP_DOCTOR_NONE ? PRINT(" of the graph of capture %u", number(finding)) : "";
  if (finding->call == GCAP_DOCTOR_NONE) {
    return PRINT("%" PRIu64 " launch%s%s failed.", finding->count, finding->count == 1 ? "" : "es", of);
  }
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, finding->call);
  const bool finds_none =
      gcap_doctor_kind_at(analysis, finding->call) == GCAP_DOCTOR_CALL_GRAPH_LAUNCH && call->exec == GCAP_DOCTOR_NONE;
  return PRINT("%s%s%s, by %s, failed with %s%s%s%s.", call_name(analysis, finding->call), of,
               where(analysis, finding->call, GCAP_DOCTOR_NONE), thread_of(analysis, finding->call),
               answer(analysis, call->result), times(analysis, finding->count),
               finds_none ? ", and was given no executable that the recording knows" : "",
               rule_words(analysis, finding->rule));
}

static const char* idle(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  if (finding->count > 1) {
    return PRINT("%" PRIu64
                 " graphs that were captured at one place were never launched, the first is that of "
                 "capture %u.",
                 finding->count, number(finding));
  }
  return PRINT("The graph of capture %u was never launched.", number(finding));
}

static const char* mode_kept(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return PRINT("%s put %s into relaxed mode, and nothing put it back%s.", call_name(analysis, finding->call),
               thread_of(analysis, finding->call), rule_words(analysis, finding->rule));
}

// The first difference at the finding's call; there is one.
static const gcap_doctor_event_difference_t* difference_of(const gcap_doctor_analysis_t* analysis,
                                                           const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_difference_t* difference = analysis->recording->differences;
  while (difference->call != finding->call) ++difference;
  return difference;
}

static const char* differs(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  return difference_of(analysis, finding)->text;
}

// Written as it was found.
static const char* written(gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  (void)analysis;
  return finding->sentence;
}

static const char* (*const writers[])(gcap_doctor_analysis_t*, const gcap_doctor_finding_t*) = {
    [GCAP_DOCTOR_FINDING_CULPRIT] = culprit,       [GCAP_DOCTOR_FINDING_UNJOINED] = unjoined,
    [GCAP_DOCTOR_FINDING_ESCAPED] = escaped,       [GCAP_DOCTOR_FINDING_LOST_CALL] = lost,
    [GCAP_DOCTOR_FINDING_EXCEPTION] = raised,      [GCAP_DOCTOR_FINDING_REFUSED] = refused,
    [GCAP_DOCTOR_FINDING_PAGEABLE] = pageable,     [GCAP_DOCTOR_FINDING_ALLOCATION_NODE] = allocation,
    [GCAP_DOCTOR_FINDING_EMPTY_GRAPH] = empty,     [GCAP_DOCTOR_FINDING_LEFT_OPEN] = left_open,
    [GCAP_DOCTOR_FINDING_RECAPTURED] = recaptured, [GCAP_DOCTOR_FINDING_UPDATE_REFUSED] = update,
    [GCAP_DOCTOR_FINDING_LAUNCH_FAILED] = launch,  [GCAP_DOCTOR_FINDING_NEVER_LAUNCHED] = idle,
    [GCAP_DOCTOR_FINDING_MODE_KEPT] = mode_kept,   [GCAP_DOCTOR_FINDING_DIFFERS] = differs,
    [GCAP_DOCTOR_FINDING_STALE] = written,         [GCAP_DOCTOR_FINDING_SHARED] = written,
    [GCAP_DOCTOR_FINDING_GROWTH] = written,
};

// --- Remedies --------------------------------------------------------------------------------------------------------

// Where the finding says more than its rule does, or has none.
static const char* own_remedy(const gcap_doctor_finding_t* finding) {
  switch (finding->kind) {
    case GCAP_DOCTOR_FINDING_CULPRIT:
      return finding->rule == NULL
                 ? "look at what the call was given and what it answered, or keep it out of the capture"
                 : NULL;
    case GCAP_DOCTOR_FINDING_ESCAPED: return "give it to a stream of the capture, or do it outside of the capture";
    case GCAP_DOCTOR_FINDING_RECAPTURED:
      return "capture once and launch that graph again: copy new inputs into the buffers of the capture, and keep a "
             "graph for each shape";
    case GCAP_DOCTOR_FINDING_LAUNCH_FAILED:
      return finding->rule == NULL ? "look at what happened to the capture, the instantiation and the executable before"
                                   : NULL;
    case GCAP_DOCTOR_FINDING_UPDATE_REFUSED:
      return finding->rule == NULL ? "instantiate anew, and clear the last error" : NULL;
    case GCAP_DOCTOR_FINDING_EXCEPTION:
      return finding->rule == NULL ? "do what raised the exception before the capture begins, or leave it out" : NULL;
    case GCAP_DOCTOR_FINDING_REFUSED:
      return finding->rule == NULL
                 ? "read the exception that the framework threw, and do this before the capture begins"
                 : NULL;
    case GCAP_DOCTOR_FINDING_STALE:
      return "keep the memory for as long as the graph is launched, or capture anew, or update the executable, after "
             "the memory is replaced";
    case GCAP_DOCTOR_FINDING_SHARED:
      return "take a lock around the launches of the executable, or instantiate one for each thread";
    case GCAP_DOCTOR_FINDING_GROWTH:
      return "destroy an executable that is not launched any more, or update one in place of making another";
    case GCAP_DOCTOR_FINDING_NEVER_LAUNCHED: return "launch it, or leave the capture out";
    default: return NULL;
  }
}

static const char* remedy_of_fault(const char* fault) {
  static const struct {
    const char *fault, *remedy;
  } remedies[] = {
      {"stale_pointer", "name the memory as a buffer of the run, retain it with the graph, or give it another key"},
      {"frozen_value", "name the value as one of the run, or put what decides it into the key"},
      {"dropped_call", "issue the call in captures too, put the decision into the key, or make it a hole"},
      {"missing_join", "record an event behind the one call, and let the stream of the other wait for it"},
      {"outside_of_capture", "give the call to the run's stream, or to one that was forked from it"},
      {"hole", "let the function take its buffers from the resources that it is given"},
      {"host_decision", "put the decision into the key, or state it as a guard"},
      {"uninitialized", "write the memory in the run before it is read, or name it as state"},
  };
  for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); ++i) {
    if (strcmp(remedies[i].fault, fault) == 0) return remedies[i].remedy;
  }
  return "run the work with its memory named (gcap_graph_verify_t.buffers), so that an earlier step may show";
}

void gcap_doctor_words_write(gcap_doctor_analysis_t* analysis, gcap_doctor_finding_t* finding) {
  const bool is_between = finding->kind == GCAP_DOCTOR_FINDING_CULPRIT && finding->capture != GCAP_DOCTOR_NONE &&
                          analysis->diagnosis->captures[finding->capture].culprit == GCAP_DOCTOR_NONE;
  finding->sentence = writers[finding->kind](analysis, finding);
  finding->remedy = own_remedy(finding);
  if (finding->kind == GCAP_DOCTOR_FINDING_DIFFERS) {
    const gcap_doctor_event_difference_t* difference = difference_of(analysis, finding);
    finding->remedy = difference->remedy != NULL ? difference->remedy : remedy_of_fault(difference->fault);
  }
  if (is_own_query(analysis, finding)) finding->remedy = gcap_rule_by_id("R26")->remedy;
  if (finding->remedy == NULL && finding->rule != NULL) finding->remedy = finding->rule->remedy;
  if (is_between && finding->rule != NULL && strcmp(finding->rule->id, "R5") == 0) {
    finding->remedy = "look at what the program calls between these two, libraries' handles and other threads included";
  }
  if (finding->remedy == NULL) finding->remedy = "";
}
