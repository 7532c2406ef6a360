// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// digits: classifies held-out handwritten digits through the provider in minimal_ep.c: eagerly, and by replaying a
// captured CUDA graph. Read it from the bottom: main loads, run_example builds, run_threads works, check judges.
//
// Exit codes: 0, all well; 1, something failed or a result was wrong; 2, wrong flags or data.

#include <cuda_runtime_api.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/minimal_ep/digits/cli.h"
#include "examples/minimal_ep/digits/digits.h"
#include "examples/minimal_ep/digits/fault.h"
#include "examples/minimal_ep/digits/report.h"
#include "examples/minimal_ep/digits/workload.h"
#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/kit/cpu_ep.h"

// fp32 sums of up to 512 terms in another order than the reference's; probabilities are at most 1.
#define REFERENCE_TOLERANCE 1e-4
#define MIN_ACCURACY 0.95

// --- --external-allocator: the application's own memory -------------------------------------------------------------

static void* application_alloc(size_t bytes) {
  void* memory = NULL;
  cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaSuccess) return memory;
  (void)cudaGetLastError();  // NULL tells gcap all it needs: there is no memory
  if (error != cudaErrorMemoryAllocation) {
    fprintf(stderr, "application_alloc: cudaMalloc of %zu bytes: %s\n", bytes, cudaGetErrorString(error));
  }
  return NULL;
}

static void application_free(void* memory) {
  cudaError_t error = cudaFree(memory);
  if (error != cudaSuccess) fprintf(stderr, "application_free: %s\n", cudaGetErrorString(error));
}

// --- Threads --------------------------------------------------------------------------------------------------------

typedef struct worker {
  pthread_t thread;
  const workload_t* workload;
  int graph_id;
  workload_result_t result;
  gcap_status_t status;
} worker_t;

static void* worker_main(void* argument) {
  worker_t* worker = argument;
  worker->status = workload_run(worker->workload, worker->graph_id, &worker->result);
  return NULL;
}

static gcap_status_t start_and_join(worker_t* workers, size_t count) {
  gcap_status_t status = NULL;
  size_t started = 0;
  for (; started < count && status == NULL; ++started) {
    int error = pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]);
    if (error != 0) {
      status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "thread %zu cannot start: %s", started, strerror(error));
      break;
    }
  }
  for (size_t i = 0; i < started; ++i) {
    pthread_join(workers[i].thread, NULL);
    status = gcap_status_join(status, workers[i].status);
  }
  return status;
}

static void add_results(report_t* report, const worker_t* workers, size_t count) {
  size_t correct = 0;
  for (size_t i = 0; i < count; ++i) {
    const workload_result_t* result = &workers[i].result;
    correct += result->correct;
    if (result->max_abs_diff_eager_replay > report->max_abs_diff_eager_replay) {
      report->max_abs_diff_eager_replay = result->max_abs_diff_eager_replay;
    }
    if (result->max_abs_diff_reference > report->max_abs_diff_reference) {
      report->max_abs_diff_reference = result->max_abs_diff_reference;
    }
    report->nodes = result->graph.nodes;
    report->holes = result->graph.holes;
    report->eager_warm_ups += result->eager_warm_ups;
    report->captures += result->graph.captures;
    report->replays += result->graph.replays;
  }
  report->accuracy = (double)correct / (double)(count * report->images);
}

// Does the work on `report->threads` threads and adds up what they found.
static gcap_status_t run_threads(const workload_t* workload, report_t* report) {
  size_t count = report->threads;
  size_t runs = workload->runs;
  worker_t* workers = calloc(count, sizeof(*workers));
  uint64_t* samples_ns = malloc(2 * count * runs * sizeof(*samples_ns));
  gcap_status_t status = NULL;
  if (workers == NULL || samples_ns == NULL) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu threads with %zu runs", count, runs);
  }
  for (size_t i = 0; i < count && status == NULL; ++i) {
    workers[i] = (worker_t){.workload = workload, .graph_id = (int)i};
    workers[i].result.eager_ns = samples_ns + i * runs;
    workers[i].result.replay_ns = samples_ns + (count + i) * runs;
  }
  if (status == NULL) status = start_and_join(workers, count);
  if (status == NULL) {
    add_results(report, workers, count);
    report->eager = stats_summarize(samples_ns, count * runs);
    if (report->has_replay) report->replay = stats_summarize(samples_ns + count * runs, count * runs);
  }
  free(workers);
  free(samples_ns);
  return status;
}

// --- Building up and taking down ------------------------------------------------------------------------------------

// With --holes, the CPU comes first and takes what it supports: that and the copies there and back are in holes.
static gcap_status_t create_session(const cli_options_t* cli, const gcap_model_t* model, gcap_ep_t* ep,
                                    gcap_ep_t** out_cpu, gcap_session_t** out_session) {
  gcap_session_options_t options;
  gcap_session_options_init(&options);
  options.allow_holes = cli->holes;
  if (cli->holes) GCAP_RETURN_IF_ERROR(gcap_cpu_ep_create(out_cpu));
  gcap_ep_t* const eps[] = {*out_cpu, ep};
  return cli->holes ? gcap_session_create(model, eps, 2, &options, out_session)
                    : gcap_session_create(model, &ep, 1, &options, out_session);
}

static gcap_status_t run_on_ep(const cli_options_t* cli, const digits_t* digits, const float* reference, gcap_ep_t* ep,
                               report_t* report) {
  digits_model_t* model = digits_model_create(digits, (int64_t)cli->batch);
  if (model == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a model");
  gcap_session_t* session = NULL;
  gcap_ep_t* cpu = NULL;
  gcap_status_t status = create_session(cli, digits_model_get(model), ep, &cpu, &session);
  if (status == NULL) {
    const workload_t workload = {
        .session = session,
        .ep = ep,
        .digits = digits,
        .reference = reference,
        .batch = cli->batch,
        .runs = cli->runs,
        .use_graph = !cli->no_graph,
        .synchronize = !cli->async,
    };
    status = run_threads(&workload, report);
    gcap_allocator_stats_t scratch;
    gcap_scratch_get_stats(gcap_runtime_scratch(gcap_ep_runtime(ep)), &scratch);
    report->scratch_reserved_bytes = scratch.total_allocated_bytes;
    report->scratch_peak_bytes = scratch.max_in_use_bytes;
  }
  digits_model_destroy(model);
  status = gcap_status_join(status, gcap_session_destroy(session));
  return gcap_status_join(status, gcap_ep_destroy(cpu));
}

static gcap_status_t run_example(const cli_options_t* cli, const digits_t* digits, const float* reference,
                                 report_t* report) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.device_id = (int)cli->device;
  options.enable_cuda_graph = !cli->no_graph;
  options.kernels.use_tf32 = false;                          // the results are compared with plain C
  options.kernels.fuse_conv_bias = true;                     // one kernel for a layer
  options.kernels.conv_search = GCAP_CONV_SEARCH_HEURISTIC;  // a search times: not every run of it ends alike
  options.kernels.conv_use_max_workspace = false;
  if (cli->trace_file != NULL) {
    const char* const key = "arena.trace_file";
    GCAP_RETURN_IF_ERROR(gcap_options_parse(&options, &key, &cli->trace_file, 1));
  }
  cudaStream_t user_stream = NULL;
  if (cli->user_stream) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&user_stream, cudaStreamNonBlocking)));
    options.has_user_stream = true;
    options.user_stream = user_stream;
  }
  if (cli->external_allocator) {
    options.external_alloc = application_alloc;
    options.external_free = application_free;
  }
  gcap_ep_t* ep = NULL;
  gcap_status_t status = minimal_ep_create(&options, &ep);
  if (status == NULL) status = run_on_ep(cli, digits, reference, ep, report);
  status = gcap_status_join(status, gcap_ep_destroy(ep));
  if (user_stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(user_stream)));
  return status;
}

// --- Judging --------------------------------------------------------------------------------------------------------

// Says what is wrong with the results; 0 when nothing is.
static int check(const report_t* report) {
  int failures = 0;
  if (report->accuracy < MIN_ACCURACY) {
    fprintf(stderr, "digits: accuracy is %.4f, expected at least %.2f.\n", report->accuracy, MIN_ACCURACY);
    ++failures;
  }
  if (report->has_replay && report->max_abs_diff_eager_replay != 0) {
    fprintf(stderr, "digits: replayed outputs differ from eager ones by %.3g, expected equal.\n",
            report->max_abs_diff_eager_replay);
    ++failures;
  }
  if (report->has_replay && (report->captures < report->threads || report->replays < report->threads)) {
    fprintf(stderr, "digits: %" PRIu64 " captures and %" PRIu64 " replays, expected one of each a thread.\n",
            report->captures, report->replays);
    ++failures;
  }
  if (!(report->max_abs_diff_reference <= REFERENCE_TOLERANCE)) {
    fprintf(stderr, "digits: outputs differ from the plain C reference by %.3g, expected at most %.0e.\n",
            report->max_abs_diff_reference, REFERENCE_TOLERANCE);
    ++failures;
  }
  return failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int print(const report_t* report, bool json) {
  if (json) {
    report_print_json(report, stdout);
  } else {
    report_print_table(report, stdout);
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_SUCCESS;
  fprintf(stderr, "digits: the report cannot be written to standard output: %s.\n", strerror(errno));
  return EXIT_FAILURE;
}

// Fills in what the run itself finds out. `report->cuda_calls` counts what --inject-fault counts.
static int run_and_print(const cli_options_t* cli, const digits_t* digits, const float* reference, report_t* report) {
  uint64_t calls_before = fault_num_calls();
  fault_arm(cli->inject_fault);
  gcap_status_t status = run_example(cli, digits, reference, report);
  fault_arm(0);
  report->cuda_calls = fault_num_calls() - calls_before;
  if (status != NULL) {
    fprintf(stderr, "digits: %s: %s\n", gcap_code_name(gcap_status_code(status)), gcap_status_message(status));
    gcap_status_free(status);
    return EXIT_FAILURE;
  }
  return print(report, cli->json);
}

static int run_and_report(const cli_options_t* cli, const digits_t* digits) {
  struct cudaDeviceProp device;
  cudaError_t error = cudaGetDeviceProperties(&device, (int)cli->device);
  if (error == cudaSuccess) error = cudaSetDevice((int)cli->device);  // --user-stream and --external-allocator use it
  if (error != cudaSuccess) {
    fprintf(stderr, "digits: there is no usable device %d: %s.\n", (int)cli->device, cudaGetErrorString(error));
    return EXIT_FAILURE;
  }
  float* reference = malloc(digits->count * REFERENCE_CLASSES * sizeof(*reference));
  if (reference == NULL) {
    fprintf(stderr, "digits: no host memory for %zu reference results.\n", digits->count);
    return EXIT_FAILURE;
  }
  reference_weights_t weights = digits_reference_weights(digits);
  reference_forward(&weights, digits->images.data, digits->count, reference);
  report_t report = {
      .device = device.name,
      .images = digits->count,
      .batch = cli->batch,
      .threads = cli->threads,
      .has_replay = !cli->no_graph,
      .has_cuda_calls = fault_is_available(),
  };
  int exit_code = run_and_print(cli, digits, reference, &report);
  free(reference);
  return exit_code == EXIT_SUCCESS ? check(&report) : exit_code;
}

// The data that ships with the program: below the working directory (`bazel run`, the repository's root), else beside
// the program or among its runfiles. The last candidate stands when none is there, for the message.
static const char* default_data_dir(const char* program, char* buffer, size_t buffer_bytes) {
  static const char from_root[] = "examples/minimal_ep/digits/data";
  static const char* const from_program[] = {
      "digits.runfiles/gcap/examples/minimal_ep/digits/data",
      "digits.runfiles/_main/examples/minimal_ep/digits/data",
      "data",
  };
  if (access(from_root, R_OK) == 0) return from_root;
  const char* slash = strrchr(program, '/');
  int length = slash == NULL ? 0 : (int)(slash - program + 1);
  for (size_t i = 0; i < sizeof(from_program) / sizeof(from_program[0]); ++i) {
    snprintf(buffer, buffer_bytes, "%.*s%s", length, program, from_program[i]);
    if (access(buffer, R_OK) == 0) break;
  }
  return buffer;
}

// `bazel run` starts programs elsewhere and tells where the user stands.
static const char* given_path(const char* given, char* buffer, size_t buffer_bytes) {
  const char* user_dir = getenv("BUILD_WORKING_DIRECTORY");
  if (given[0] == '/' || user_dir == NULL) return given;
  snprintf(buffer, buffer_bytes, "%s/%s", user_dir, given);
  return buffer;
}

// What the table of flags in cli.c cannot tell: flags that exclude each other, or that need the simulator.
static int check_flags(const cli_options_t* cli) {
  if (cli->user_stream && cli->threads > 1) {
    fprintf(stderr, "digits: --threads is %zu with --user-stream, allowed is 1: one thread issues on one stream.\n",
            (size_t)cli->threads);
    return CLI_USAGE_ERROR;
  }
  if (cli->inject_fault != 0 && !fault_is_available()) {
    fprintf(stderr,
            "digits: --inject-fault is %llu, allowed is 0: on a GPU no call fails at will; the simulator's "
            "do (a build without --config=cuda).\n",
            (unsigned long long)cli->inject_fault);
    return CLI_USAGE_ERROR;
  }
  return 0;
}

// The simulator reads the seed at the first CUDA call; a GPU ignores it. 0 is the default: then a seed in the
// environment counts.
static void set_seed(uint64_t seed) {
  if (seed == 0) return;
  char text[32];
  snprintf(text, sizeof(text), "%" PRIu64, seed);
  setenv("GCAP_SIM_SEED", text, /*overwrite=*/1);
}

int main(int argc, char** argv) {
  cli_options_t cli;
  if (cli_parse(argc, argv, stderr, &cli) != 0) return CLI_USAGE_ERROR;
  if (cli.help) {
    cli_print_help(stdout);
    return EXIT_SUCCESS;
  }
  if (check_flags(&cli) != 0) return CLI_USAGE_ERROR;
  set_seed(cli.seed);

  char buffer[4096];
  const char* data_dir = cli.data_dir != NULL ? given_path(cli.data_dir, buffer, sizeof(buffer))
                                              : default_data_dir(argv[0], buffer, sizeof(buffer));
  char trace_buffer[4096];
  if (cli.trace_file != NULL) cli.trace_file = given_path(cli.trace_file, trace_buffer, sizeof(trace_buffer));
  digits_t digits;
  char error[1024];
  if (digits_load(data_dir, &digits, error, sizeof(error)) != 0) {
    fprintf(stderr,
            "digits: %s; expected are the files of examples/minimal_ep/digits/data (--data names their folder).\n",
            error);
    return CLI_USAGE_ERROR;
  }
  int exit_code = run_and_report(&cli, &digits);
  digits_free(&digits);
  return exit_code;
}
