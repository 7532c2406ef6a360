// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Symbols for C frames, by a program of the system.
//
// The idea: the wanted frames are sorted by module and offset, and the symbolizer is started once for each module, with
// all its offsets, small modules first, until the time is over. Modules without anything beyond what the recorder saw
// are not asked about: large libraries come stripped. Nor is a file that is another build than the one that was
// recorded: its names would be false, and a note says so with both build ids. What was inlined becomes frames of its
// own: the answer of a frame is a row of new frames, and the stacks are written anew. Then c++filt makes C++ names
// readable. Locking: none.
#include "doctor/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/base/clock.h"
#include "doctor/base/path.h"
#include "doctor/symbols/module.h"
#include "doctor/symbols/tool.h"

enum {
  kSeconds = 2,             // of all the symbolizers together
  kMaxSeconds = 3600,       //
  kMaxAsked = 2000,         // offsets or names on one command line, which may be two megabytes
  kMaxNameBytes = 1 << 20,  // names on one command line
};

// A frame to ask about, and what came of it.
typedef struct asked {
  uint32_t frame;
  const char* module;
  const char* build;  // the module's when it was recorded: gcap_doctor_event_frame_t
  uint64_t offset;
  off_t bytes;              // of the module's file here; 0 if there is nothing to ask about it
  uint32_t first, num_new;  // new frames, innermost first
} asked_t;

typedef struct resolver {
  gcap_doctor_recording_t* recording;
  gcap_doctor_heap_t heap;
  asked_t* asked;
  size_t num_asked;
  uint64_t deadline_ns;
  const char* tool;  // NULL until one has answered
} resolver_t;

// --- Modules ---------------------------------------------------------------------------------------------------------

static bool starts_with(const char* text, const char* start) { return strncmp(text, start, strlen(start)) == 0; }

static int by_module(const void* left, const void* right) {
  const asked_t *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
  int order = strcmp(a->module, b->module);
  if (order != 0) return order;
  return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static const char* build_of(const asked_t* asked) { return asked->build != NULL ? asked->build : "?"; }

static int by_module_name(const void* left, const void* right) {
  const asked_t *a = left, *b = right;
  int order = strcmp(a->module, b->module);
  return order != 0 ? order : strcmp(build_of(a), build_of(b));
}

static int by_frame(const void* left, const void* right) {
  const asked_t *a = left, *b = right;
  return a->frame < b->frame ? -1 : a->frame > b->frame;
}

// --- The symbolizer --------------------------------------------------------------------------------------------------

static bool is_blank(const char* text) { return text[0] == '\0' || text[0] == '?'; }

// A row of frames is together in the recording's array.
static void add_frame(resolver_t* resolver, asked_t* of, const char* function, char* place) {
  gcap_doctor_recording_t* recording = resolver->recording;
  if (is_blank(function)) return;
  recording->frames = gcap_doctor_heap_grow(recording->frames, recording->num_frames, &recording->frame_capacity,
                                            sizeof(*recording->frames));
  gcap_doctor_event_frame_t* frame = &recording->frames[recording->num_frames];
  *frame = (gcap_doctor_event_frame_t){.module = of->module, .build = of->build, .offset = of->offset};
  frame->function = gcap_doctor_heap_copy(&recording->heap, function, strlen(function));
  // Where a build runs in a sandbox, the compiler saw the sources below this.
  static const char kSandbox[] = "/proc/self/cwd/";
  if (starts_with(place, kSandbox)) place += sizeof(kSandbox) - 1;
  char* note = strstr(place, " (discriminator");
  if (note != NULL) *note = '\0';
  char* colon = strrchr(place, ':');
  const unsigned long line = colon != NULL ? strtoul(colon + 1, NULL, 10) : 0;
  // Without a line the file is that of the symbol table, often a temporary one of the compiler's.
  if (line != 0 && !is_blank(place)) {
    frame->line = (uint32_t)line;
    frame->file = gcap_doctor_heap_copy(&recording->heap, place, (size_t)(colon - place));
  }
  if (of->num_new == 0) of->first = (uint32_t)recording->num_frames;
  ++of->num_new;
  ++recording->num_frames;
}

// The next line, cut off; NULL at the end.
static char* take_line(char** text) {
  if (**text == '\0') return NULL;
  char* line = *text;
  char* end = line + strcspn(line, "\n");
  *text = *end != '\0' ? end + 1 : end;
  *end = '\0';
  return line;
}

// For each offset its own line, then two lines a function. They come in the order of the question.
static void read_answer(resolver_t* resolver, asked_t* asked, size_t count, char* text) {
  size_t next = 0;
  asked_t* current = NULL;
  for (char* line; (line = take_line(&text)) != NULL;) {
    if (starts_with(line, "0x")) {
      current = next < count ? &asked[next++] : NULL;
      continue;
    }
    char* place = take_line(&text);
    if (place == NULL) return;
    if (current != NULL) add_frame(resolver, current, line, place);
  }
}

// The tools that have addr2line's options, in the order in which they are tried.
static const char* const kTools[] = {"addr2line", "llvm-addr2line", "llvm-symbolizer"};

static gcap_doctor_tool_result_t ask_tool(resolver_t* resolver, const char* tool, asked_t* asked, size_t count) {
  char** arguments = gcap_doctor_heap_alloc(&resolver->heap, (count + 8) * sizeof(*arguments));
  size_t n = 0;
  arguments[n++] = (char*)tool;
  // llvm-addr2line is llvm-symbolizer with another default.
  if (starts_with(gcap_doctor_base_name(tool), "llvm-symbolizer")) arguments[n++] = "--output-style=GNU";
  const char* const options[] = {"-a", "-f", "-i", "-C", "-e", asked[0].module};
  for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); ++i) arguments[n++] = (char*)options[i];
  arguments = memcpy(gcap_doctor_heap_alloc(&resolver->heap, (n + count + 1) * sizeof(*arguments)), arguments,
                     n * sizeof(*arguments));
  for (size_t i = 0; i < count; ++i) {
    // A call is before the address that it returns to, and may be the last instruction of its line.
    uint64_t offset = asked[i].offset != 0 ? asked[i].offset - 1 : 0;
    arguments[n++] = gcap_doctor_heap_print(&resolver->heap, "0x%llx", (unsigned long long)offset);
  }
  char* text;
  gcap_doctor_tool_result_t result = gcap_doctor_tool_ask(&resolver->heap, arguments, resolver->deadline_ns, &text);
  if (result == GCAP_DOCTOR_TOOL_ANSWERED) read_answer(resolver, asked, count, text);
  return result;
}

// One module's frames. False when there is no tool.
static bool ask(resolver_t* resolver, asked_t* asked, size_t count) {
  if (resolver->tool != NULL) return ask_tool(resolver, resolver->tool, asked, count) != GCAP_DOCTOR_TOOL_MISSING;
  for (size_t i = 0; i < sizeof(kTools) / sizeof(kTools[0]); ++i) {
    gcap_doctor_tool_result_t result = ask_tool(resolver, kTools[i], asked, count);
    if (result == GCAP_DOCTOR_TOOL_MISSING) continue;
    resolver->tool = kTools[i];
    return true;
  }
  return false;
}

static void ask_all(resolver_t* resolver) {
  size_t at = 0;
  while (at < resolver->num_asked && gcap_doctor_clock_now_ns() < resolver->deadline_ns) {
    asked_t* first = &resolver->asked[at];
    size_t count = 1;
    // A module of two builds has offsets that are asked about and others that are not.
    while (at + count < resolver->num_asked && count < kMaxAsked && first[count].bytes == first->bytes &&
           strcmp(first[count].module, first->module) == 0) {
      ++count;
    }
    if (first->bytes != 0 && !ask(resolver, first, count)) return;
    at += count;
  }
}

// --- Readable names --------------------------------------------------------------------------------------------------

// Asks c++filt for names of frames[0 .. count), which are mangled, each on a line of its own.
static void demangle(resolver_t* resolver, const uint32_t* frames, size_t count) {
  gcap_doctor_recording_t* recording = resolver->recording;
  char** arguments = gcap_doctor_heap_alloc(&resolver->heap, (count + 2) * sizeof(*arguments));
  for (size_t i = 0; i < count; ++i) arguments[i + 1] = (char*)recording->frames[frames[i]].function;
  char* text = NULL;
  arguments[0] = "c++filt";
  gcap_doctor_tool_result_t result = gcap_doctor_tool_ask(&resolver->heap, arguments, resolver->deadline_ns, &text);
  arguments[0] = "llvm-cxxfilt";
  if (result == GCAP_DOCTOR_TOOL_MISSING) {
    result = gcap_doctor_tool_ask(&resolver->heap, arguments, resolver->deadline_ns, &text);
  }
  if (result != GCAP_DOCTOR_TOOL_ANSWERED) return;
  for (size_t i = 0; i < count; ++i) {
    const char* line = take_line(&text);
    if (line == NULL) return;
    if (line[0] == '\0') continue;
    recording->frames[frames[i]].function = gcap_doctor_heap_copy(&recording->heap, line, strlen(line));
  }
}

static void demangle_all(resolver_t* resolver, const bool* wanted) {
  const gcap_doctor_recording_t* recording = resolver->recording;
  uint32_t* frames = gcap_doctor_heap_alloc(&resolver->heap, kMaxAsked * sizeof(*frames));
  size_t count = 0, bytes = 0;
  for (uint32_t i = 0; i < recording->num_frames; ++i) {
    const gcap_doctor_event_frame_t* frame = &recording->frames[i];
    if (!wanted[i] || frame->module == NULL || !starts_with(frame->function, "_Z")) continue;
    frames[count++] = i;
    bytes += strlen(frame->function) + 1;
    if (count < kMaxAsked && bytes < kMaxNameBytes) continue;
    demangle(resolver, frames, count);
    count = bytes = 0;
  }
  if (count != 0) demangle(resolver, frames, count);
}

// --- Frames and stacks -----------------------------------------------------------------------------------------------

static void add_note(resolver_t* resolver, const char* text) {
  gcap_doctor_recording_t* recording = resolver->recording;
  recording->notes = gcap_doctor_heap_grow(recording->notes, recording->num_notes, &recording->note_capacity,
                                           sizeof(*recording->notes));
  recording->notes[recording->num_notes++] = gcap_doctor_heap_copy(&recording->heap, text, strlen(text));
}

// Modules whose names are those of this machine's files, whatever their build.
typedef struct untold {
  const char* first;
  size_t count;
} untold_t;

static void note_untold(resolver_t* resolver, const untold_t* untold, const char* why) {
  if (untold->count == 0) return;
  const char* more = "";
  if (untold->count > 1) more = gcap_doctor_heap_print(&resolver->heap, ", and %zu more", untold->count - 1);
  add_note(resolver, gcap_doctor_heap_print(&resolver->heap,
                                            "%s: names of C frames are those of this machine's files, which may be "
                                            "other builds than the program's (%s%s)",
                                            why, untold->first, more));
}

// The size of the module's file, if it is the build that was recorded.
static off_t look_at(resolver_t* resolver, const asked_t* asked, untold_t* no_ids, untold_t* no_id) {
  gcap_doctor_module_file_t file;
  gcap_doctor_module_look(asked->module, &file);
  untold_t* untold = asked->build == NULL ? no_ids : asked->build[0] == '\0' && file.build[0] == '\0' ? no_id : NULL;
  if (file.bytes == 0) return 0;
  if (untold != NULL && untold->count++ == 0) untold->first = asked->module;
  if (untold != NULL || strcmp(asked->build, file.build) == 0) return file.bytes;
  add_note(resolver,
           gcap_doctor_heap_print(&resolver->heap,
                                  "%s is another build on this machine, and names no frame: build id %s, recorded %s",
                                  asked->module, file.build[0] != '\0' ? file.build : "none",
                                  asked->build[0] != '\0' ? asked->build : "none"));
  return 0;
}

static void look_at_modules(resolver_t* resolver) {
  untold_t no_ids = {0}, no_id = {0};
  if (resolver->num_asked == 0) return;
  // Each module is looked at once.
  qsort(resolver->asked, resolver->num_asked, sizeof(*resolver->asked), by_module_name);
  for (size_t i = 0; i < resolver->num_asked; ++i) {
    asked_t* asked = &resolver->asked[i];
    const bool is_same = i > 0 && by_module_name(asked - 1, asked) == 0;
    asked->bytes = is_same ? asked[-1].bytes : look_at(resolver, asked, &no_ids, &no_id);
  }
  note_untold(resolver, &no_ids, "the file of events tells no build ids");
  note_untold(resolver, &no_id, "modules have no build id");
  qsort(resolver->asked, resolver->num_asked, sizeof(*resolver->asked), by_module);
}

static void note_frames(resolver_t* resolver, const bool* is_wanted) {
  const gcap_doctor_recording_t* recording = resolver->recording;
  resolver->asked = gcap_doctor_heap_alloc(&resolver->heap, recording->num_frames * sizeof(*resolver->asked) + 1);
  for (uint32_t i = 0; i < recording->num_frames; ++i) {
    const gcap_doctor_event_frame_t* frame = &recording->frames[i];
    if (!is_wanted[i] || frame->module == NULL || frame->file != NULL) continue;
    resolver->asked[resolver->num_asked++] =
        (asked_t){.frame = i, .module = frame->module, .build = frame->build, .offset = frame->offset};
  }
  look_at_modules(resolver);
}

static const asked_t* find_asked(const resolver_t* resolver, uint32_t frame) {
  if (resolver->num_asked == 0) return NULL;
  const asked_t key = {.frame = frame};
  return bsearch(&key, resolver->asked, resolver->num_asked, sizeof(key), by_frame);
}

// The stack with new frames in the place of those that have them.
static void rewrite(resolver_t* resolver, gcap_doctor_event_stack_t* stack) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < stack->num_c; ++i) {
    const asked_t* asked = find_asked(resolver, stack->c[i]);
    count += asked != NULL && asked->num_new != 0 ? asked->num_new : 1;
  }
  uint32_t* c = gcap_doctor_heap_alloc(&resolver->recording->heap, (count + 1) * sizeof(*c));
  uint32_t at = 0;
  for (uint32_t i = 0; i < stack->num_c; ++i) {
    const asked_t* asked = find_asked(resolver, stack->c[i]);
    uint32_t num_new = asked != NULL ? asked->num_new : 0;
    for (uint32_t j = 0; j < num_new; ++j) c[at++] = asked->first + j;
    if (num_new == 0) c[at++] = stack->c[i];
  }
  stack->c = c;
  stack->num_c = count;
}

// The frames of wanted stacks. Freed by the resolver's heap.
static bool* frames_of(resolver_t* resolver, const bool* wanted) {
  const gcap_doctor_recording_t* recording = resolver->recording;
  bool* frames = gcap_doctor_heap_alloc(&resolver->heap, recording->num_frames + 1);
  for (size_t i = 0; i < recording->num_stacks; ++i) {
    for (uint32_t j = 0; wanted[i] && j < recording->stacks[i].num_c; ++j) frames[recording->stacks[i].c[j]] = true;
  }
  return frames;
}

static uint64_t seconds(void) {
  const char* text = getenv("GCAP_DOCTOR_SYMBOLIZER_SECONDS");
  char* end = NULL;
  unsigned long value = text != NULL && text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : kSeconds;
  if (end != NULL && *end != '\0') value = kSeconds;
  return value < kMaxSeconds ? value : kMaxSeconds;
}

uint64_t gcap_doctor_symbols_deadline(void) { return gcap_doctor_clock_now_ns() + seconds() * 1000000000; }

void gcap_doctor_symbols_resolve(gcap_doctor_recording_t* recording, const bool* wanted, uint64_t deadline_ns) {
  const char* tool = getenv("GCAP_DOCTOR_SYMBOLIZER");
  if ((tool != NULL && strcmp(tool, "none") == 0) || gcap_doctor_clock_now_ns() >= deadline_ns) return;
  resolver_t resolver = {.recording = recording, .tool = tool != NULL && tool[0] != '\0' ? tool : NULL};
  gcap_doctor_heap_init(&resolver.heap);
  resolver.deadline_ns = deadline_ns;
  note_frames(&resolver, frames_of(&resolver, wanted));
  ask_all(&resolver);
  if (resolver.num_asked != 0) qsort(resolver.asked, resolver.num_asked, sizeof(*resolver.asked), by_frame);
  for (size_t i = 0; i < recording->num_stacks; ++i) {
    if (wanted[i]) rewrite(&resolver, &recording->stacks[i]);
  }
  demangle_all(&resolver, frames_of(&resolver, wanted));
  gcap_doctor_heap_deinit(&resolver.heap);
}
