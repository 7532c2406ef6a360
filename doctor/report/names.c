// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How reports call things. Texts are as they came: each writer makes them harmless for its own format.
#include "doctor/report/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor/base/path.h"
#include "doctor/report/mangled.h"

// --- C++ -------------------------------------------------------------------------------------------------------------

// Where the arguments of a demangled function begin: the first parenthesis outside of <>, unless it is that of
// "(anonymous namespace)".
static size_t length_without_arguments(const char* name) {
  unsigned depth = 0;
  for (size_t i = 0; name[i] != '\0'; ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>' && depth != 0) --depth;
    if (name[i] != '(' || depth != 0) continue;
    if (strncmp(name + i, "(anonymous namespace)", 21) != 0) return i;
    i += 20;
  }
  return strlen(name);
}

// "void at::native::f<4, int>(int*)" as "at::native::f".
static const char* without_types(gcap_doctor_heap_t* heap, const char* name) {
  if (strpbrk(name, "(<") == NULL || strstr(name, "operator") != NULL) return name;
  size_t length = length_without_arguments(name), to = 0;
  char* text = gcap_doctor_heap_alloc(heap, length + 1);
  unsigned depth = 0;
  for (size_t i = 0; i < length; ++i) {
    if (strncmp(name + i, "(anonymous namespace)::", 23) == 0) {
      i += 22;
    } else if (name[i] == '<') {
      ++depth;
    } else if (name[i] == '>' && depth != 0) {
      --depth;
    } else if (depth == 0 && name[i] == ' ') {
      to = 0;  // that was the type of what it returns
    } else if (depth == 0) {
      text[to++] = name[i];
    }
  }
  text[to] = '\0';
  return to != 0 ? text : name;
}

const char* gcap_doctor_name_function(gcap_doctor_heap_t* heap, const char* symbol) {
  gcap_doctor_mangled_t names;
  if (gcap_doctor_mangled_read(symbol, &names)) return gcap_doctor_heap_copy(heap, names.name, strlen(names.name));
  return without_types(heap, symbol);
}

const char* gcap_doctor_name_kernel(gcap_doctor_heap_t* heap, const char* kernel) {
  gcap_doctor_mangled_t names;
  if (!gcap_doctor_mangled_read(kernel, &names)) return without_types(heap, kernel);
  if (names.outer[0] == '\0') return gcap_doctor_heap_copy(heap, names.name, strlen(names.name));
  if (names.inner[0] == '\0') return gcap_doctor_heap_print(heap, "%s<%s>", names.name, names.outer);
  return gcap_doctor_heap_print(heap, "%s<%s<%s>>", names.name, names.outer, names.inner);
}

// --- Frames ----------------------------------------------------------------------------------------------------------

const char* gcap_doctor_name_frame(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording, uint32_t frame) {
  if (frame >= recording->num_frames) return "";
  const gcap_doctor_event_frame_t* of = &recording->frames[frame];
  if (of->module == NULL) {
    const char* in = of->function[0] != '\0' ? " in " : "";
    return gcap_doctor_heap_print(heap, "%s:%" PRIu32 "%s%s", of->file, of->line, in, of->function);
  }
  const char* module = gcap_doctor_base_name(of->module);
  if (of->function[0] == '\0' && of->file != NULL) {
    return gcap_doctor_heap_print(heap, "%s:%" PRIu32 " (%s)", of->file, of->line, module);
  }
  if (of->function[0] == '\0') return gcap_doctor_heap_print(heap, "%s+0x%" PRIx64, module, of->offset);
  const char* function = gcap_doctor_name_function(heap, of->function);
  if (of->file == NULL) return gcap_doctor_heap_print(heap, "%s (%s)", function, module);
  return gcap_doctor_heap_print(heap, "%s at %s:%" PRIu32 " (%s)", function, of->file, of->line, module);
}

const char* gcap_doctor_name_label(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording, uint32_t range) {
  enum { kMaxRanges = 32 };
  const char* label = "";
  for (unsigned i = 0; range < recording->num_ranges && i < kMaxRanges; ++i) {
    const gcap_doctor_event_range_t* of = &recording->ranges[range];
    const char* text = of->text[0] != '\0' ? of->text : "(no text)";
    label = i == 0 ? text : gcap_doctor_heap_print(heap, "%s > %s", text, label);
    range = of->outer;
  }
  return label;
}

uint32_t gcap_doctor_name_place(const gcap_doctor_recording_t* recording, uint32_t call) {
  if (call >= recording->num_calls) return GCAP_DOCTOR_NONE;
  const uint32_t stack = recording->calls[call].stack;
  const uint32_t frame = gcap_doctor_recording_user_frame(recording, stack);
  return frame != GCAP_DOCTOR_NONE ? frame : gcap_doctor_recording_c_frame(recording, stack);
}

// --- Calls -----------------------------------------------------------------------------------------------------------

const char* gcap_doctor_name_call(const char* function) {
  const char* runtime = gcap_rule_runtime_name(function);
  return runtime != NULL ? runtime : function;
}

const char* gcap_doctor_name_result(gcap_doctor_heap_t* heap, int result) {
  const char* name = gcap_rule_code_name(result);
  return name != NULL ? gcap_doctor_heap_print(heap, "%d %s", result, name)
                      : gcap_doctor_heap_print(heap, "%d", result);
}

const char* gcap_doctor_name_thread(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording,
                                    uint32_t thread) {
  if (thread >= recording->num_threads) return "an unknown thread";
  const gcap_doctor_event_thread_t* of = &recording->threads[thread];
  if (of->name[0] != '\0') return gcap_doctor_heap_print(heap, "'%s'", of->name);
  return gcap_doctor_heap_print(heap, "thread %" PRIu64, of->os != 0 ? of->os : of->id);
}

const char* gcap_doctor_name_stream(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording,
                                    uint32_t stream) {
  if (stream >= recording->num_streams) return "";
  const gcap_doctor_event_stream_t* of = &recording->streams[stream];
  if (of->what[0] == '\0') return gcap_doctor_heap_print(heap, "stream %" PRIu32, of->id);
  return gcap_doctor_heap_print(heap, "stream %" PRIu32 " (%s)", of->id, of->what);
}

const char* gcap_doctor_name_page(gcap_doctor_heap_t* heap, const gcap_rule_t* rule) {
  char* page = gcap_doctor_heap_print(heap, "docs/rules/%s.md", rule->id);
  for (char* c = page; *c != '\0'; ++c) *c = (char)tolower((unsigned char)*c);
  return page;
}

const char* gcap_doctor_name_remedy(const gcap_doctor_finding_t* finding) {
  if (finding->remedy != NULL) return finding->remedy;
  return finding->rule != NULL ? finding->rule->remedy : NULL;
}

const char* gcap_doctor_name_unrecorded(const gcap_doctor_recording_t* recording) {
  return recording->num_calls == 0 && recording->num_notes != 0 ? recording->notes[0] : NULL;
}

// --- Words -----------------------------------------------------------------------------------------------------------

const char* gcap_doctor_name_work(const gcap_doctor_recording_t* recording, const gcap_doctor_captured_t* capture) {
  return capture->begin < recording->num_calls ? recording->calls[capture->begin].label : NULL;
}

const char* gcap_doctor_name_mode(gcap_doctor_event_mode_t mode) {
  switch (mode) {
    case GCAP_DOCTOR_MODE_GLOBAL: return "global";
    case GCAP_DOCTOR_MODE_THREAD_LOCAL: return "thread_local";
    case GCAP_DOCTOR_MODE_RELAXED: return "relaxed";
    case GCAP_DOCTOR_MODE_UNKNOWN: break;
  }
  return "unknown";
}

const char* gcap_doctor_name_outcome(gcap_doctor_capture_outcome_t outcome) {
  switch (outcome) {
    case GCAP_DOCTOR_OUTCOME_GRAPH: return "graph";
    case GCAP_DOCTOR_OUTCOME_BROKEN: return "broken";
    case GCAP_DOCTOR_OUTCOME_OPEN: break;
  }
  return "open";
}

const char* gcap_doctor_name_severity(gcap_doctor_severity_t severity) {
  switch (severity) {
    case GCAP_DOCTOR_SEVERITY_ERROR: return "error";
    case GCAP_DOCTOR_SEVERITY_WARNING: return "warning";
    case GCAP_DOCTOR_SEVERITY_NOTE: break;
  }
  return "note";
}

const char* gcap_doctor_name_host(gcap_doctor_event_host_t host) {
  switch (host) {
    case GCAP_DOCTOR_HOST_PINNED: return "pinned";
    case GCAP_DOCTOR_HOST_STACK: return "stack";
    case GCAP_DOCTOR_HOST_PAGEABLE: return "pageable";
    case GCAP_DOCTOR_HOST_UNKNOWN: break;
  }
  return "unknown";
}

const char* gcap_doctor_name_ns(gcap_doctor_heap_t* heap, uint64_t ns) {
  static const char* const units[] = {"ns", "us", "ms", "s"};
  // In thousandths of the unit, so that no floating point rounds 999.96 us to "1000 us".
  uint64_t value = ns, fraction = 0;
  size_t unit = 0;
  while (value >= 1000 && unit < 3) {
    fraction = value % 1000;
    value /= 1000;
    ++unit;
  }
  if (unit == 0 || value >= 100) return gcap_doctor_heap_print(heap, "%" PRIu64 " %s", value, units[unit]);
  if (value >= 10)
    return gcap_doctor_heap_print(heap, "%" PRIu64 ".%" PRIu64 " %s", value, fraction / 100, units[unit]);
  return gcap_doctor_heap_print(heap, "%" PRIu64 ".%02" PRIu64 " %s", value, fraction / 10, units[unit]);
}

const char* gcap_doctor_name_count(gcap_doctor_heap_t* heap, uint64_t count, const char* noun) {
  return gcap_doctor_heap_print(heap, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}
