// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Shapes on the CPU. A model that flattens each row of its batch computes the new shape with nodes of its own, which
// run on the CPU: Shape, Gather, Concat. May a graph be captured of it? The EP's policy decides when the session is
// created. GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES: yes, for what shapes give is known before the run, and a replay needs none
// of these nodes. GCAP_GRAPH_ALL_NODES_ON_EP: no, and the refusal names the first node that is in the way; or the model
// runs eagerly, if the host says so. It prints:
//
//     under GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES:
//       Shape on cpu, Gather on cpu, Concat on cpu, Reshape on lesson, Add on lesson
//       run 1 is eager:    y = | 10 21 32 43 | 14 25 36 47
//       run 2 is captured: y = | 11 22 33 44 | 15 26 37 48
//       run 3 is a replay: y = | 12 23 34 45 | 16 27 38 49
//     under GCAP_GRAPH_ALL_NODES_ON_EP:
//       the model is refused:
//         EP 'lesson' cannot capture the model: node 'shape_of_x' (Shape) on EP 'cpu' is not on it, and its
//         policy is GCAP_GRAPH_ALL_NODES_ON_EP. To run the model: give the EP the policy
//         GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES, which allows this model; or set allow_holes, or give the EP the
//         policy GCAP_GRAPH_ALLOW_HOLES, under which nodes that cannot be captured are in holes; or change the
//         order of the EPs or what they support, make EP 'lesson' without graphs, or set
//         run_eagerly_if_not_capturable
//     under GCAP_GRAPH_ALL_NODES_ON_EP, with run_eagerly_if_not_capturable:
//       a warning:
//         a session runs eagerly: EP 'lesson' cannot capture the model: node 'shape_of_x' (Shape) on EP 'cpu'
//         is not on it, and its policy is GCAP_GRAPH_ALL_NODES_ON_EP
//       Shape on cpu, Gather on cpu, Concat on cpu, Reshape on lesson, Add on lesson
//       run 1 is eager:    y = | 10 21 32 43 | 14 25 36 47
//       run 2 is eager:    y = | 11 22 33 44 | 15 26 37 48
//       run 3 is eager:    y = | 12 23 34 45 | 16 27 38 49

#include <stdio.h>
#include <string.h>

#include "examples/lesson_ep/lesson_ep.h"
#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/session.h"
#include "gcap/log.h"

#define BATCH 2
#define ROW 4
#define NUM_RUNS 3
#define WIDTH 100

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

// --- The model: y = Reshape(x, [batch of x, -1]) + bias -------------------------------------------------------------

enum { X, SIZES, FIRST, SIZE, REST, SHAPE, ROWS, BIAS, Y, NUM_VALUES };
static const int64_t first[] = {0}, rest[] = {-1};
static const float bias[ROW] = {10, 20, 30, 40};
static const char* const symbols[] = {"batch"};
static const gcap_value_t values[NUM_VALUES] = {
    [X] = {.name = "x", .rank = 3, .shape = {GCAP_DIM_SYMBOL(0), 2, 2}},
    [SIZES] = {.name = "sizes", .dtype = GCAP_DTYPE_I64, .rank = 1, .shape = {3}},
    [FIRST] = {.name = "first", .dtype = GCAP_DTYPE_I64, .rank = 1, .shape = {1}, .host_data = first},
    [SIZE] = {.name = "size", .dtype = GCAP_DTYPE_I64, .rank = 1, .shape = {1}},
    [REST] = {.name = "rest", .dtype = GCAP_DTYPE_I64, .rank = 1, .shape = {1}, .host_data = rest},
    [SHAPE] = {.name = "shape", .dtype = GCAP_DTYPE_I64, .rank = 1, .shape = {2}},
    [ROWS] = {.name = "rows", .rank = 2, .shape = {GCAP_DIM_INFERRED, GCAP_DIM_INFERRED}},
    [BIAS] = {.name = "bias", .rank = 1, .shape = {ROW}, .host_data = bias},
    [Y] = {.name = "y", .rank = 2, .shape = {GCAP_DIM_INFERRED, GCAP_DIM_INFERRED}},
};
static const gcap_attribute_t axis = {.name = "axis", .kind = GCAP_ATTRIBUTE_INT, .i = 0};
static const gcap_attributes_t along_axis_0 = {&axis, 1};
static const gcap_node_t nodes[] = {
    {"Shape", "shape_of_x", (const int[]){X}, 1, (const int[]){SIZES}, 1, NULL},
    {"Gather", "batch_of_x", (const int[]){SIZES, FIRST}, 2, (const int[]){SIZE}, 1, NULL},
    {"Concat", "new_shape", (const int[]){SIZE, REST}, 2, (const int[]){SHAPE}, 1, &along_axis_0},
    {"Reshape", "flatten", (const int[]){X, SHAPE}, 2, (const int[]){ROWS}, 1, NULL},
    {"Add", "add", (const int[]){ROWS, BIAS}, 2, (const int[]){Y}, 1, NULL},
};
static const gcap_model_t model = {values, NUM_VALUES, nodes, 5, (const int[]){X}, 1, (const int[]){Y}, 1, symbols, 1};

// --- The host -------------------------------------------------------------------------------------------------------

// The message, in lines of up to WIDTH characters.
static void show_message(const char* message) {
  size_t column = 0;
  while (*message != '\0') {
    const size_t length = strcspn(message, " ");
    const bool fits = column > 0 && column + 1 + length <= WIDTH;
    printf("%s%.*s", fits ? " " : column == 0 ? "    " : "\n    ", (int)length, message);
    column = (fits ? column + 1 : 0) + length;
    message += length + strspn(message + length, " ");
  }
  printf("\n");
}

static void show_warning(void* user, gcap_log_level_t level, const char* message) {
  (void)user;
  (void)level;
  printf("  a warning:\n");
  show_message(message);
}

static gcap_status_t show_runs(gcap_ep_t* ep, gcap_session_t* session, float* x_memory, float* y_memory) {
  const gcap_tensor_t x = {.data = x_memory, .rank = 3, .shape = {BATCH, 2, 2}};
  const gcap_tensor_t y = {.data = y_memory, .rank = 2, .shape = {BATCH, ROW}};
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(gcap_ep_runtime(ep), &resources));
  cudaStream_t stream = gcap_stream_handle(resources.stream);
  for (int run = 0; run < NUM_RUNS; ++run) {
    float in[BATCH * ROW], out[BATCH * ROW];
    for (int i = 0; i < BATCH * ROW; ++i) in[i] = (float)(run + i);
    const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(x.data, in, sizeof(in), cudaMemcpyHostToDevice, stream)));
    GCAP_RETURN_IF_ERROR(gcap_session_run(session, /*options=*/NULL, &x, &y));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(out, y.data, sizeof(out), cudaMemcpyDeviceToHost, stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(stream)));
    const bool captured = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    printf("  run %d is %s y =", run + 1, replays ? "a replay:" : captured ? "captured:" : "eager:   ");
    for (int i = 0; i < BATCH * ROW; ++i) printf("%s%g", i % ROW == 0 ? " | " : " ", out[i]);
    printf("\n");
  }
  return NULL;
}

// The session on the EP and on the CPU's, if there can be one, with its runs.
static gcap_status_t show_session(gcap_ep_t* ep, gcap_ep_t* cpu, bool eagerly, float* x, float* y) {
  gcap_session_options_t options;
  gcap_session_options_init(&options);
  options.run_eagerly_if_not_capturable = eagerly;
  gcap_session_t* session = NULL;
  gcap_status_t status = gcap_session_create(&model, (gcap_ep_t* const[]){ep, cpu}, 2, &options, &session);
  if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) {
    printf("  the model is refused:\n");
    show_message(gcap_status_message(status));
    gcap_status_free(status);
    return NULL;
  }
  GCAP_RETURN_IF_ERROR(status);
  for (int n = 0; n < 5; ++n) {
    printf("%s%s on %s", n == 0 ? "  " : ", ", nodes[n].op_type, gcap_session_node_ep_name(session, n));
  }
  printf("\n");
  status = show_runs(ep, session, x, y);
  return gcap_status_join(status, gcap_session_destroy(session));
}

static gcap_status_t show(gcap_graph_node_policy_t policy, bool eagerly, float* x, float* y) {
  const char* keys[] = {"enable_cuda_graph", "min_num_runs_before_cuda_graph_capture"};
  const char* texts[] = {"1", "1"};
  gcap_ep_t *ep = NULL, *cpu = NULL;
  gcap_status_t status = lesson_ep_create(keys, texts, 2, policy, &ep);
  if (status == NULL) status = gcap_cpu_ep_create(&cpu);
  if (status == NULL) status = show_session(ep, cpu, eagerly, x, y);
  status = gcap_status_join(status, gcap_ep_destroy(cpu));
  return gcap_status_join(status, gcap_ep_destroy(ep));
}

int main(void) {
  gcap_log_set_sink(show_warning, /*user=*/NULL, GCAP_LOG_WARNING);
  float *x, *y;
  TRY(GCAP_CUDA(cudaMalloc((void**)&x, BATCH * ROW * sizeof(float))));
  TRY(GCAP_CUDA(cudaMalloc((void**)&y, BATCH * ROW * sizeof(float))));
  printf("under GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES:\n");
  TRY(show(GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES, /*eagerly=*/false, x, y));
  printf("under GCAP_GRAPH_ALL_NODES_ON_EP:\n");
  TRY(show(GCAP_GRAPH_ALL_NODES_ON_EP, /*eagerly=*/false, x, y));
  printf("under GCAP_GRAPH_ALL_NODES_ON_EP, with run_eagerly_if_not_capturable:\n");
  TRY(show(GCAP_GRAPH_ALL_NODES_ON_EP, /*eagerly=*/true, x, y));
  TRY(GCAP_CUDA(cudaFree(y)));
  TRY(GCAP_CUDA(cudaFree(x)));
  return 0;
}
