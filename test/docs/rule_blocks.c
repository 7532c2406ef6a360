// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rule_blocks.c: runs the C blocks of docs/rules/ on the simulator, each in a process of its own. A mistake must make
// some call answer its rule's code; of those that no code betrays, the simulator's checks report some. A repair must
// make no call fail, nor give the checks anything to report. blocks.inc, which rule_blocks_test.sh makes of the pages,
// has a row for each block:
//   BLOCK(r11, mistake, 900)
// With RULE_BLOCKS_LOGS=FOLDER the simulator's log of each block goes to a file there: r11_mistake.log.
#include "test/docs/rule_blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gcap_sim.h"

enum { FLOATS = 1024, BYTES = FLOATS * sizeof(float) };

#define BLOCK(rule, which, code) void run_##rule##_##which(const struct given* given);
#include "blocks.inc"
#undef BLOCK

typedef struct block {
  const char* name;
  int which;
  int code;
  void (*run)(const struct given* given);
} block_t;

enum { mistake, repair };

static const block_t blocks[] = {
#define BLOCK(rule, which, code) {#rule " " #which, which, code, run_##rule##_##which},
#include "blocks.inc"
#undef BLOCK
};

// Mistakes without a code, and what the first report says of them.
static const struct {
  const char* name;
  const char* says;
} reported[] = {
    {"r8 mistake", "escaped work"},
    {"r27 mistake", "a graph uses memory that was freed after its capture"},
    {"r39 mistake", "a graph uses memory that was freed after its capture"},
    {"r40 mistake", "race on"},
    {"r41 mistake", "free of memory that may still be in use"},
};

// --- What the pages' functions call ----------------------------------------------------------------------------------

static void double_all(const gcap_sim_launch_t* launch, void* const* args) {
  float* data = *(float**)args[0];
  (void)launch;
  for (int i = 0; i < FLOATS; ++i) data[i] *= 2;
}

static size_t accesses_of_double(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                                 size_t capacity) {
  const gcap_sim_access_t accesses[] = {{*(float**)args[0], BYTES, 0}, {*(float**)args[0], BYTES, 1}};
  (void)launch;
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = accesses[i];
  return 2;
}

static const char kernel_handle;

static void register_kernel(void) {
  static const size_t arg_bytes[] = {sizeof(float*)};
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){.function = &kernel_handle,
                                                .name = "double_all",
                                                .arg_bytes = arg_bytes,
                                                .num_args = 1,
                                                .run = double_all,
                                                .accesses = accesses_of_double});
}

// Results are the pages' own affair: a launch in a broken capture fails, and the log has it.
void work(cudaStream_t stream, float* memory);
void work(cudaStream_t stream, float* memory) {
  void* args[] = {&memory};
  cudaLaunchKernel(&kernel_handle, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream);
}

// An engine that takes memory at its first run, as one of TensorRT's does for new shapes.
int enqueue(void* context, cudaStream_t stream);
int enqueue(void* context, cudaStream_t stream) {
  static float* memory;
  (void)context;
  if (memory == NULL && cudaMalloc((void**)&memory, BYTES) != cudaSuccess) return 0;
  return cudaMemsetAsync(memory, 0, BYTES, stream) == cudaSuccess;
}

// --- One block -------------------------------------------------------------------------------------------------------

static void check(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "FAILED: %s\n", what);
  exit(2);
}

static void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
  check(error == cudaSuccess, what);
}

#define CUDA(call) check_cuda(call, #call)

static void make_memory(struct given* given) {
  CUDA(cudaMalloc((void**)&given->memory, BYTES));
  CUDA(cudaMalloc((void**)&given->more, BYTES));
  CUDA(cudaMallocHost((void**)&given->pinned, BYTES));
  CUDA(cudaMallocHost((void**)&given->flag, sizeof(int)));
  CUDA(cudaMallocManaged((void**)&given->managed, BYTES, cudaMemAttachGlobal));
  CUDA(cudaMemset(given->memory, 0, BYTES));
  CUDA(cudaMemset(given->more, 0, BYTES));
  memset(given->pinned, 0, BYTES);
  memset(given->managed, 0, BYTES);
  *given->flag = 0;
}

static void make_libraries(struct given* given) {
  check(cublasCreate_v2(&given->blas) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
  check(cublasLtCreate(&given->lt) == CUBLAS_STATUS_SUCCESS, "cublasLtCreate");
  cublasLtMatmulDescCreate(&given->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatrixLayoutCreate(&given->square, CUDA_R_32F, 8, 8, 8);
  cublasLtMatmulPreferenceCreate(&given->preference);
  check(cudnnCreate(&given->dnn) == CUDNN_STATUS_SUCCESS, "cudnnCreate");
  cudnnCreateTensorDescriptor(&given->image);
  cudnnSetTensor4dDescriptor(given->image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 8, 8);
  cudnnCreateFilterDescriptor(&given->filter);
  cudnnSetFilter4dDescriptor(given->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 1, 1);
  cudnnCreateConvolutionDescriptor(&given->convolution);
  cudnnSetConvolution2dDescriptor(given->convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
}

static void make_given(struct given* given) {
  memset(given, 0, sizeof(*given));
  given->graph = &given->graph_out;
  given->scratch = &given->scratch_out;
  given->kernel = &kernel_handle;
  CUDA(cudaStreamCreateWithFlags(&given->stream, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&given->side, cudaStreamNonBlocking));
  CUDA(cudaEventCreateWithFlags(&given->event, cudaEventDisableTiming));
  make_memory(given);
  make_libraries(given);
  CUDA(cudaStreamBeginCapture(given->stream, cudaStreamCaptureModeThreadLocal));
  work(given->stream, given->memory);
  CUDA(cudaStreamEndCapture(given->stream, &given->captured));
  CUDA(cudaGraphInstantiate(&given->exec, given->captured, 0));
  CUDA(cudaDeviceSynchronize());
}

// What a block did: how many calls failed, and whether one of them with the rule's code.
typedef struct failures {
  int code;
  int count;
  int found;
  FILE* log;  // NULL for none
} failures_t;

static void note(void* user, const char* line) {
  failures_t* failures = user;
  const char* arrow = strstr(line, "-> ");
  const int code = arrow == NULL ? -1 : atoi(arrow + 3);
  if (failures->log != NULL) fprintf(failures->log, "gcap sim: %s\n", line);
  if (code == cudaSuccess) return;
  printf("  %s\n", line);
  if (code == cudaErrorNotReady) return;  // an answer, no failure
  failures->count += 1;
  failures->found |= code == failures->code;
}

static FILE* open_log(const block_t* block) {
  const char* folder = getenv("RULE_BLOCKS_LOGS");
  char path[512];
  if (folder == NULL) return NULL;
  snprintf(path, sizeof(path), "%s/%s.log", folder, block->name);
  for (char* c = path; *c != '\0'; ++c) *c = *c == ' ' ? '_' : *c;
  FILE* log = fopen(path, "w");
  check(log != NULL, path);
  setvbuf(log, NULL, _IOLBF, BUFSIZ);  // a mistake may end the process
  return log;
}

static int check_mistake(const block_t* block, const failures_t* failures) {
  const char* report;
  if (block->code != cudaSuccess) {
    if (failures->found) return 0;
    printf("FAILED: %s: no call answered %d\n", block->name, block->code);
    return 1;
  }
  cudaDeviceSynchronize();  // refused where a capture was left open
  gcap_sim_check();
  report = gcap_sim_report(0);
  for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); ++i) {
    if (strcmp(reported[i].name, block->name) != 0 || (report != NULL && strstr(report, reported[i].says))) continue;
    printf("FAILED: %s: the simulator reports '%s', not '%s'\n", block->name, report ? report : "", reported[i].says);
    return 1;
  }
  return 0;
}

static int run_block(const block_t* block) {
  struct given given;
  failures_t failures = {.code = block->code};
  size_t num_reports;
  register_kernel();
  gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  failures.log = open_log(block);
  if (failures.log != NULL) gcap_sim_set_log("*", note, &failures);
  make_given(&given);
  if (failures.log == NULL) gcap_sim_set_log("errors", note, &failures);
  block->run(&given);
  gcap_sim_set_log(NULL, NULL, NULL);
  if (failures.log != NULL) fputs("gcap sim: the program ends\n", failures.log);  // as the simulator's own log has it
  if (block->which == mistake) return check_mistake(block, &failures);
  CUDA(cudaDeviceSynchronize());
  num_reports = gcap_sim_check();
  if (num_reports != 0) printf("FAILED: %s: the simulator reports: %s\n", block->name, gcap_sim_report(0));
  if (failures.count != 0) printf("FAILED: %s: %d calls failed\n", block->name, failures.count);
  return num_reports != 0 || failures.count != 0;
}

// A process each: a broken capture is left open, a mistake may crash.
static int run_in_child(const block_t* block) {
  int status = 0;
  printf("%s\n", block->name);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int failed = run_block(block);
    fflush(stdout);
    _exit(failed);
  }
  check(child > 0 && waitpid(child, &status, 0) == child, "fork");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  printf("FAILED: %s\n", block->name);
  return 1;
}

int main(int argc, char** argv) {
  int failed = 0;
  for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); ++i) {
    if (argc < 2 || strncmp(blocks[i].name, argv[1], strlen(argv[1])) == 0) failed |= run_in_child(&blocks[i]);
  }
  return failed;
}
