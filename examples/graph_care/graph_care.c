// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What an engine does with its graphs besides replaying them. Three batch sizes of one model have a graph each. The
// engine plans the graphs before they exist, learns why a run was eager, adds up what is kept and releases what nobody
// uses. Then it makes a mistake: it loads its weights again, into other memory than the graphs read. An audit finds the
// mistake before a replay computes with memory of somebody else. It prints:
//
//     batch 1: eager (WARMING)
//     batch 2: eager (WARMING)
//     batch 3: eager (WARMING)
//     planned: 3 graphs with 12 nodes, within the budget
//     batch 1: eager (WARMING), eager (WARMING), captured, replayed
//     batch 2: eager (WARMING), captured
//     batch 3: eager (WARMING), captured, replayed
//     kept: 3 ids, 3 graphs with 12 nodes, 5 launches
//     batch 2 is hardly used: 2 ids, 2 graphs with 8 nodes are left
//     batch 1 after the weights moved, findings: 1
//       node 1 of 4, memcpy: the source was FOREIGN memory, which is gone
//     batch 1 is released: eager (WARMING), eager (WARMING), captured
//     batch 1 on the new weights, findings: 0
//     the graph of a library whose buffer was freed, findings: 1
//       node 0 of 1, memset: the destination was FOREIGN memory, which is gone
//     the model is unloaded: 0 ids, 0 graphs with 0 nodes are left
//
// With a folder as its argument the program also draws the graph of batch 1 there, as batch_1.dot for Graphviz.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"

enum { MAX_BATCH = 3, WEIGHT_BYTES = 4096, BUDGET_MIB = 64 };

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  void* weights;  // made by the first run
  unsigned char* output;
} engine_t;

// --- The work -------------------------------------------------------------------------------------------------------

// gcap sees the allocations of its own modules. Under the policy STABLE an engine reports its own: what is made once,
// and what each run allocates.
static gcap_status_t infer(void* user, const gcap_run_resources_t* resources) {
  engine_t* engine = user;
  cudaStream_t stream = resources->cuda_stream;
  if (engine->weights == NULL) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&engine->weights, WEIGHT_BYTES)));
    gcap_graph_note_initialization();
  }
  void* activations = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocAsync(&activations, WEIGHT_BYTES, stream)));
  gcap_graph_note_allocation(WEIGHT_BYTES);
  gcap_status_t status =
      GCAP_CUDA(cudaMemcpyAsync(activations, engine->weights, WEIGHT_BYTES, cudaMemcpyDeviceToDevice, stream));
  if (status == NULL) {
    status = GCAP_CUDA(cudaMemcpyAsync(engine->output, activations, WEIGHT_BYTES, cudaMemcpyDeviceToDevice, stream));
  }
  return gcap_status_join(status, GCAP_CUDA(cudaFreeAsync(activations, stream)));
}

static gcap_run_t run_of(engine_t* engine, int batch) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = batch;
  run.stream = engine->stream;
  run.work = infer;
  run.user = engine;
  return run;
}

static gcap_status_t show_run(engine_t* engine, int batch) {
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run = run_of(engine, batch);
  run.result = &result;
  run.synchronize = true;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(engine->graphs, &run));
  if (result.outcome == GCAP_RUN_EAGER) {
    printf("eager (%s)", gcap_why_eager_name(result.why_eager));
  } else {
    printf("%s", result.outcome == GCAP_RUN_CAPTURED ? "captured" : "replayed");
  }
  return NULL;
}

static gcap_status_t show_some_runs(engine_t* engine, int batch, int count) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) printf(", ");
    GCAP_RETURN_IF_ERROR(show_run(engine, batch));
  }
  printf("\n");
  return NULL;
}

// --- The care -------------------------------------------------------------------------------------------------------

// A rehearsal captures the work and counts its nodes and bytes; nothing is executed. So the engine knows whether all of
// its graphs fit before it spends the memory.
static gcap_status_t show_plan(engine_t* engine) {
  gcap_run_t runs[MAX_BATCH];
  for (int i = 0; i < MAX_BATCH; ++i) runs[i] = run_of(engine, i + 1);
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_plan(engine->graphs, runs, MAX_BATCH, &plan));
  printf("planned: %zu graphs with %zu nodes, %s the budget\n", plan.graphs, plan.nodes,
         plan.bytes >> 20 <= BUDGET_MIB ? "within" : "above");
  return NULL;
}

static gcap_graph_info_t totals(engine_t* engine) {
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(engine->graphs, GCAP_GRAPH_ID_NONE, &info);
  return info;
}

static void show_rest(engine_t* engine) {
  const gcap_graph_info_t info = totals(engine);
  printf("%zu ids, %zu graphs with %zu nodes are left\n", info.ids, info.graphs, info.nodes);
}

// Releases the graphs that were launched at their capture alone.
static gcap_status_t release_unused(engine_t* engine) {
  int ids[MAX_BATCH];
  const size_t count = gcap_graph_manager_list_ids(engine->graphs, ids, MAX_BATCH);
  for (size_t i = 0; i < count && i < MAX_BATCH; ++i) {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(engine->graphs, ids[i], &info);
    if (info.replays > 1) continue;
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_release(engine->graphs, ids[i]));
    printf("batch %d is hardly used: ", ids[i]);
    show_rest(engine);
  }
  return NULL;
}

static void print_finding(void* user, const gcap_graph_pointer_t* pointer) {
  (void)user;
  if (!pointer->is_finding) return;
  printf("  %s: %s was %s memory, which is gone\n", pointer->node_text, pointer->place,
         gcap_graph_owner_name(pointer->owner));
}

static gcap_status_t count_findings(engine_t* engine, int batch, size_t* out_findings) {
  return gcap_graph_manager_audit(engine->graphs, batch, NULL, NULL, out_findings);
}

// The graphs have the address of the old weights, so they go. Their next runs warm up and capture the work anew.
static gcap_status_t show_moved_weights(engine_t* engine) {
  void* moved = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&moved, WEIGHT_BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaFree(engine->weights)));
  engine->weights = moved;
  size_t findings = 0;
  GCAP_RETURN_IF_ERROR(count_findings(engine, 1, &findings));
  printf("batch 1 after the weights moved, findings: %zu\n", findings);
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_audit(engine->graphs, 1, print_finding, NULL, NULL));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_release(engine->graphs, 1));
  printf("batch 1 is released: ");
  GCAP_RETURN_IF_ERROR(show_some_runs(engine, 1, 3));
  GCAP_RETURN_IF_ERROR(count_findings(engine, 1, &findings));
  printf("batch 1 on the new weights, findings: %zu\n", findings);
  return NULL;
}

// A graph that gcap did not capture is audited by notes, made while all that the graph works on is alive.
static gcap_status_t show_foreign_graph(engine_t* engine) {
  void* buffer = NULL;
  cudaGraph_t graph = NULL;
  gcap_graph_notes_t* notes = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&buffer, WEIGHT_BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamBeginCapture(engine->stream, cudaStreamCaptureModeThreadLocal)));
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(buffer, 0, WEIGHT_BYTES, engine->stream));
  status = gcap_status_join(status, GCAP_CUDA(cudaStreamEndCapture(engine->stream, &graph)));
  if (status == NULL) status = gcap_graph_notes_create(graph, /*find_block=*/NULL, NULL, &notes);
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(buffer)));
  size_t findings = 0;
  if (status == NULL) status = gcap_graph_audit(notes, NULL, NULL, &findings);
  printf("the graph of a library whose buffer was freed, findings: %zu\n", findings);
  if (status == NULL) status = gcap_graph_audit(notes, print_finding, NULL, NULL);
  gcap_graph_notes_destroy(notes);
  if (graph != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(graph)));
  return status;
}

static gcap_status_t draw(engine_t* engine, const char* folder) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/batch_1.dot", folder);
  return gcap_graph_manager_dump(engine->graphs, 1, path, cudaGraphDebugDotFlagsVerbose);
}

// --- The engine -----------------------------------------------------------------------------------------------------

static gcap_status_t show_runs(engine_t* engine) {
  for (int batch = 1; batch <= MAX_BATCH; ++batch) {
    printf("batch %d: ", batch);
    GCAP_RETURN_IF_ERROR(show_some_runs(engine, batch, 1));
  }
  GCAP_RETURN_IF_ERROR(show_plan(engine));
  const int num_runs[MAX_BATCH] = {4, 2, 3};
  for (int batch = 1; batch <= MAX_BATCH; ++batch) {
    printf("batch %d: ", batch);
    GCAP_RETURN_IF_ERROR(show_some_runs(engine, batch, num_runs[batch - 1]));
  }
  const gcap_graph_info_t info = totals(engine);
  printf("kept: %zu ids, %zu graphs with %zu nodes, %d launches\n", info.ids, info.graphs, info.nodes,
         (int)info.replays);
  return NULL;
}

int main(int argc, char** argv) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.policy = GCAP_GRAPH_POLICY_STABLE;
  options.audit = GCAP_GRAPH_AUDIT_ON_DEMAND;
  options.keep_source = argc > 1;  // to draw it
  engine_t engine = {0};
  TRY(GCAP_CUDA(cudaStreamCreateWithFlags(&engine.stream, cudaStreamNonBlocking)));
  TRY(GCAP_CUDA(cudaMalloc((void**)&engine.output, WEIGHT_BYTES)));
  TRY(gcap_graph_manager_create(&options, &engine.graphs));

  TRY(show_runs(&engine));
  if (argc > 1) TRY(draw(&engine, argv[1]));
  TRY(release_unused(&engine));
  TRY(show_moved_weights(&engine));
  TRY(show_foreign_graph(&engine));
  TRY(gcap_graph_manager_release_all(engine.graphs));
  printf("the model is unloaded: ");
  show_rest(&engine);

  TRY(gcap_graph_manager_destroy(engine.graphs));
  TRY(GCAP_CUDA(cudaFree(engine.output)));
  TRY(GCAP_CUDA(cudaFree(engine.weights)));
  TRY(GCAP_CUDA(cudaStreamDestroy(engine.stream)));
  return 0;
}
