// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches on memory that is gone, as an audit told them. The recorder saw which word of which node points where; what
// is added here is the capture that made the graph, the call that made the node, and the sentence. Locking: none.
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

static const char* sentence_of(gcap_doctor_analysis_t* analysis, const gcap_doctor_event_stale_t* stale,
                               uint32_t capture, uint32_t maker) {
  const char* graph = capture != GCAP_DOCTOR_NONE ? PRINT("the graph of capture %u", capture + 1) : "a graph";
  const char* who = stale->call != GCAP_DOCTOR_NONE
                        ? PRINT("%s, by %s,", gcap_doctor_diagnosis_call_name(analysis->diagnosis, stale->call),
                                gcap_doctor_diagnosis_thread_name(analysis->diagnosis,
                                                                  gcap_doctor_call_at(analysis, stale->call)->thread))
                        : "The program";
  const char* more = stale->pointers > 1 ? PRINT(", as do %" PRIu64 " more of its pointers", stale->pointers - 1) : "";
  const bool is_guess = strcmp(stale->use, "word") == 0;
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

void gcap_doctor_stale_find(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (size_t i = 0; i < recording->num_stales; ++i) {
    const gcap_doctor_event_stale_t* stale = &recording->stales[i];
    const uint32_t graph = graph_of(analysis, stale->exec);
    const uint32_t capture = graph != GCAP_DOCTOR_NONE ? analysis->capture_of_graph[graph] : GCAP_DOCTOR_NONE;
    const uint32_t maker = maker_of(analysis, graph, stale->node);
    gcap_doctor_finding_t* finding =
        gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_STALE, GCAP_DOCTOR_SEVERITY_ERROR, capture, stale->call);
    finding->is_certain = strcmp(stale->use, "word") != 0;
    finding->other = stale->made;
    finding->sentence = sentence_of(analysis, stale, capture, maker);
    add_place(analysis, finding, "allocated", stale->made);
    add_place(analysis, finding, "freed", stale->freed);
    add_place(analysis, finding, "taken", stale->taken);
    add_place(analysis, finding, "captured", maker);
  }
}
