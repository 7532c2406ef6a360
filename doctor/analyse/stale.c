// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What an audit told: launches on memory that is gone, launches of one executable at once, and executables that stay.
// The recorder saw which word of which node points where; what is added here is the capture that made the graph, the
// call that made the node, and the sentence. Locking: none.
#include <inttypes.h>
#include <string.h>

#include "doctor/analyse/analysis.h"

#define PRINT(...) gcap_doctor_heap_print(&analysis->diagnosis->heap, __VA_ARGS__)

// Where the executable's graph stands among the recording's; GCAP_DOCTOR_NONE.
static uint32_t graph_of(const gcap_doctor_analysis_t* analysis, uint32_t exec) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->execs, exec);
  if (place == GCAP_DOCTOR_NONE) return GCAP_DOCTOR_NONE;
  return gcap_doctor_ids_find(&analysis->graphs, analysis->recording->execs[analysis->exec_at[place]].graph);
}

static uint32_t exec_of(const gcap_doctor_analysis_t* analysis, const gcap_doctor_event_stale_t* stale) {
  if (stale->exec != GCAP_DOCTOR_NONE || stale->call == GCAP_DOCTOR_NONE) return stale->exec;
  return gcap_doctor_call_at(analysis, stale->call)->exec;
}

// The call that made the node; GCAP_DOCTOR_NONE.
static uint32_t maker_of(const gcap_doctor_analysis_t* analysis, uint32_t graph, uint64_t node) {
  if (graph == GCAP_DOCTOR_NONE) return GCAP_DOCTOR_NONE;
  for (size_t i = analysis->first_node[graph]; i < analysis->first_node[graph + 1]; ++i) {
    const gcap_doctor_event_node_t* of = &analysis->recording->nodes[analysis->nodes_by_graph[i]];
    if (of->id == node) return of->call;
  }
  return GCAP_DOCTOR_NONE;
}

// "argument 2 of kernel fill", "a word of argument 0 of kernel fill", "the source of a copy".
static const char* use_of(gcap_doctor_analysis_t* analysis, const gcap_doctor_event_stale_t* stale, uint32_t maker) {
  const char* kernel = stale->kernel;
  if (kernel == NULL && maker != GCAP_DOCTOR_NONE) kernel = gcap_doctor_call_at(analysis, maker)->kernel;
  if (strcmp(stale->use, "copy_from") == 0) return "the source of a copy";
  if (strcmp(stale->use, "copy_to") == 0) return "the destination of a copy";
  if (strcmp(stale->use, "memset") == 0) return "the destination of a memset";
  if (strcmp(stale->use, "other") == 0) return "a node";
  const char* of = kernel != NULL ? PRINT(" of kernel %s", gcap_doctor_words_kernel(analysis, kernel)) : " of a kernel";
  if (stale->argument == GCAP_DOCTOR_NONE) return PRINT("an argument%s", of);
  return PRINT("%sargument %u%s", strcmp(stale->use, "word") == 0 ? "a word of " : "", (unsigned)stale->argument, of);
}

static const char* kind_of_memory(const char* what) {
  static const char* const words[][2] = {
      {"device", " of device memory"},
      {"managed", " of managed memory"},
      {"pool", " of a pool's memory"},
      {"host", " of pinned memory"},
      {"registered", " of registered host memory"},
      {"mapped", " of mapped memory"},
      {"pytorch", " of PyTorch's allocator"},
      {"cupy", " of CuPy's pool"},
  };
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (strcmp(what, words[i][0]) == 0) return words[i][1];
  }
  return "";
}

static const char* name_of_graph(gcap_doctor_analysis_t* analysis, uint32_t capture) {
  return capture != GCAP_DOCTOR_NONE ? PRINT("the graph of capture %u", capture + 1) : "a graph";
}

static const char* sentence_of(gcap_doctor_analysis_t* analysis, const gcap_doctor_event_stale_t* stale,
                               uint32_t capture, uint32_t maker) {
  const char* graph = name_of_graph(analysis, capture);
  const char* who = stale->call != GCAP_DOCTOR_NONE
                        ? PRINT("%s, by %s,", gcap_doctor_diagnosis_call_name(analysis->diagnosis, stale->call),
                                gcap_doctor_diagnosis_thread_name(analysis->diagnosis,
                                                                  gcap_doctor_call_at(analysis, stale->call)->thread))
                        : "The program";
  const char* more = stale->pointers > 1 ? PRINT(", as do %" PRIu64 " more of its pointers", stale->pointers - 1) : "";
  const bool is_guess = strcmp(stale->use, "word") == 0;
  if (strcmp(stale->what, "stack") == 0) {
    return PRINT("%s launched %s whose copy uses memory of a stack: %s is a variable of a function that has returned.",
                 who, graph, use_of(analysis, stale, maker));
  }
  if (strcmp(stale->what, "pageable") == 0) {
    return PRINT("%s launched %s on memory of the host that is gone: %s is not mapped any more.", who, graph,
                 use_of(analysis, stale, maker));
  }
  return PRINT("%s launched %s on memory that was freed%s: %s %s into %" PRIu64 " bytes%s%s.", who, graph,
               stale->taken != GCAP_DOCTOR_NONE ? " and handed out again" : "", use_of(analysis, stale, maker),
               is_guess ? "probably points" : "points", stale->bytes, kind_of_memory(stale->what), more);
}

static void add_place(gcap_doctor_analysis_t* analysis, gcap_doctor_finding_t* finding, const char* what,
                      uint32_t call) {
  enum { kMaxPlaces = 4 };
  if (call == GCAP_DOCTOR_NONE) return;
  if (finding->places == NULL) {
    finding->places = gcap_doctor_heap_alloc(&analysis->diagnosis->heap, kMaxPlaces * sizeof(*finding->places));
  }
  gcap_doctor_finding_place_t* places = (gcap_doctor_finding_place_t*)finding->places;
  places[finding->num_places++] = (gcap_doctor_finding_place_t){what, call};
}

static uint32_t capture_of(const gcap_doctor_analysis_t* analysis, uint32_t exec) {
  const uint32_t graph = graph_of(analysis, exec);
  return graph != GCAP_DOCTOR_NONE ? analysis->capture_of_graph[graph] : GCAP_DOCTOR_NONE;
}

static void find_shared(gcap_doctor_analysis_t* analysis) {
  for (size_t i = 0; i < analysis->recording->num_shared; ++i) {
    const gcap_doctor_event_shared_t* shared = &analysis->recording->shared[i];
    const uint32_t capture = capture_of(analysis, shared->exec);
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_SHARED,
                                                             GCAP_DOCTOR_SEVERITY_ERROR, capture, shared->call);
    const uint32_t thread =
        shared->call != GCAP_DOCTOR_NONE ? gcap_doctor_call_at(analysis, shared->call)->thread : GCAP_DOCTOR_NONE;
    finding->sentence = PRINT(
        "An executable of %s was launched by %s and by %s at the same time: an executable is one thread's at a time.",
        name_of_graph(analysis, capture), gcap_doctor_diagnosis_thread_name(analysis->diagnosis, thread),
        gcap_doctor_diagnosis_thread_name(analysis->diagnosis, shared->thread));
  }
}

// ", with 40000 nodes, 64 bytes in their allocation nodes and pointers into 4096 bytes of memory"; "" where nothing is
// known.
static const char* extent_of(gcap_doctor_analysis_t* analysis, const gcap_doctor_event_group_t* group) {
  const char* parts[3];
  size_t count = 0;
  if (group->nodes != 0) parts[count++] = PRINT("%" PRIu64 " nodes", group->nodes);
  if (group->bytes != 0) parts[count++] = PRINT("%" PRIu64 " bytes in their allocation nodes", group->bytes);
  if (group->memory != 0) parts[count++] = PRINT("pointers into %" PRIu64 " bytes of memory", group->memory);
  const char* extent = "";
  for (size_t i = 0; i < count; ++i) {
    const char* before = i == 0 ? ", with " : i + 1 == count ? " and " : ", ";
    extent = PRINT("%s%s%s", extent, before, parts[i]);
  }
  return extent;
}

// A program may keep an executable for each shape and launch each, so only many that are hardly launched are told.
static void find_growth(gcap_doctor_analysis_t* analysis) {
  enum { kMany = 64 };
  for (size_t i = 0; i < analysis->recording->num_groups; ++i) {
    const gcap_doctor_event_group_t* group = &analysis->recording->groups[i];
    if (group->live < kMany || group->idle > group->live || group->idle < group->live - group->live / 4) continue;
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
        analysis, GCAP_DOCTOR_FINDING_GROWTH, GCAP_DOCTOR_SEVERITY_WARNING, GCAP_DOCTOR_NONE, group->call);
    finding->sentence = PRINT("The program made %" PRIu64 " executables at one place, and %" PRIu64
                              " of them were never destroyed%s; %" PRIu64 " of these were launched once or never.",
                              group->made, group->live, extent_of(analysis, group), group->idle);
  }
}

static void find_stale(gcap_doctor_analysis_t* analysis) {
  // Bytes of an argument. A larger one is mostly a table with room, whose rest has what lay there before: perhaps
  // addresses that no kernel uses.
  enum { kMostlyFilled = 1024 };
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (size_t i = 0; i < recording->num_stales; ++i) {
    const gcap_doctor_event_stale_t* stale = &recording->stales[i];
    const uint32_t graph = graph_of(analysis, exec_of(analysis, stale));
    const uint32_t capture = graph != GCAP_DOCTOR_NONE ? analysis->capture_of_graph[graph] : GCAP_DOCTOR_NONE;
    const uint32_t maker =
        stale->captured != GCAP_DOCTOR_NONE ? stale->captured : maker_of(analysis, graph, stale->node);
    const bool is_guess = strcmp(stale->use, "word") == 0;
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
        analysis, GCAP_DOCTOR_FINDING_STALE,
        is_guess && stale->size > kMostlyFilled ? GCAP_DOCTOR_SEVERITY_WARNING : GCAP_DOCTOR_SEVERITY_ERROR, capture,
        stale->call);
    finding->is_certain = !is_guess;
    finding->other = stale->made;
    finding->sentence = sentence_of(analysis, stale, capture, maker);
    add_place(analysis, finding, "allocated", stale->made);
    add_place(analysis, finding, "freed", stale->freed);
    add_place(analysis, finding, "taken", stale->taken);
    add_place(analysis, finding, "captured", maker);
  }
}

void gcap_doctor_stale_find(gcap_doctor_analysis_t* analysis) {
  find_stale(analysis);
  find_shared(analysis);
  find_growth(analysis);
}
