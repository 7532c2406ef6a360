// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Is an operation capturable? One call answers. Here it is asked of one operation in three versions, y = factor * x.
// The first reads the factor on the host as it issues, so a graph keeps that of its capture. The second copies the
// factor to the device first, from a variable of its own. The third has the factor in device memory. The program
// prints:
//
//     factor as an argument is not capturable (seed 1)
//       frozen: a replay with other inputs differs from an eager run
//     factor copied from a variable is not capturable (seed 1)
//       pageable: the source of node 0 of 2, memcpy
//     factor in device memory is capturable (seed 1)
//
// With a folder as argument it writes the findings there as events, and `gcap-doctor report FILE --sarif OUT` or
// `--junit OUT` makes of each file what a CI system shows. It exits with 1 if a verdict is not the one above.
// docs/capturable.md says what is tried, and has the CI job.

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "examples/check_operation/scale.h"
#include "gcap/kit/check.h"
#include "gcap/log.h"
#include "gcap/scratch.h"
#include "gcap/status.h"

#define BYTES (SCALE_WIDTH * sizeof(float))

typedef struct scaling {
  float *x, *y;          // [SCALE_WIDTH]
  float host_factor;     // of the first two versions
  float* device_factor;  // of the third one
} scaling_t;

// --- The operation, in three versions ---------------------------------------------------------------------------------

static gcap_status_t scale(const scaling_t* s, const float* device_factor, cudaStream_t stream) {
  float factor = s->host_factor;
  void* args[] = {(void*)&s->x, (void*)&s->y, &factor, &device_factor};
  return GCAP_CUDA(cudaLaunchKernel((const void*)scale_kernel, (dim3){1, 1, 1}, (dim3){SCALE_WIDTH, 1, 1}, args,
                                    /*sharedMem=*/0, stream));
}

static gcap_status_t scale_by_argument(void* user, const gcap_run_resources_t* resources) {
  return scale(user, NULL, resources->cuda_stream);
}

static gcap_status_t scale_by_copy(void* user, const gcap_run_resources_t* resources) {
  const scaling_t* s = user;
  const float factor = s->host_factor;  // gone when this function returns, and a replay copies again
  void* on_device = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(resources->scratch, sizeof(factor), resources->stream, &on_device));
  gcap_status_t status =
      GCAP_CUDA(cudaMemcpyAsync(on_device, &factor, sizeof(factor), cudaMemcpyHostToDevice, resources->cuda_stream));
  if (status == NULL) status = scale(s, on_device, resources->cuda_stream);
  return gcap_status_join(status, gcap_scratch_free(resources->scratch, on_device));
}

static gcap_status_t scale_by_memory(void* user, const gcap_run_resources_t* resources) {
  const scaling_t* s = user;
  return scale(s, s->device_factor, resources->cuda_stream);
}

// --- The checks -------------------------------------------------------------------------------------------------------

static void print_error(void* user, gcap_log_level_t level, const char* message) {
  (void)user, (void)level;
  fprintf(stderr, "%s\n", message);
}

// The beginning of the sentence, which goes on with what differs or what the memory is.
static void print_finding(const gcap_check_finding_t* finding) {
  const char* end = strstr(finding->sentence, ": ");
  const char* is = strstr(finding->sentence, " is ");
  if (end == NULL || (is != NULL && is < end)) end = is;
  const int length = end != NULL ? (int)(end - finding->sentence) : (int)strlen(finding->sentence);
  printf("  %s: %.*s\n", finding->name, length, finding->sentence);
}

static gcap_status_t check_version(scaling_t* s, const char* name, gcap_work_t work, const char* folder,
                                   bool has_device_factor, bool* out_is_capturable) {
  const gcap_check_buffer_t inputs[] = {
      {.name = "x", .address = s->x, .bytes = BYTES, .type = GCAP_DTYPE_F32},
      {.name = "factor",
       .address = has_device_factor ? s->device_factor : &s->host_factor,
       .bytes = sizeof(float),
       .type = GCAP_DTYPE_F32,
       .on_host = !has_device_factor},
  };
  const gcap_check_buffer_t output = {.name = "y", .address = s->y, .bytes = BYTES, .type = GCAP_DTYPE_F32};
  gcap_check_t check;
  gcap_check_init(&check);
  check.name = name;
  check.work = work;
  check.user = s;
  check.inputs = inputs;
  check.num_inputs = 2;
  check.outputs = &output;
  check.num_outputs = 1;
  check.file = __FILE__;
  check.line = __LINE__;
  char events[512];
  snprintf(events, sizeof(events), "%s/%s.events", folder != NULL ? folder : "", name);
  if (folder != NULL) check.events = events;

  gcap_check_report_t report;  // gcap_check_print prints all of it
  gcap_check_report_init(&report);
  GCAP_RETURN_IF_ERROR(gcap_check_capturable(&check, &report));
  *out_is_capturable = report.num_findings == 0;
  printf("%s is %scapturable (seed %d)\n", name, *out_is_capturable ? "" : "not ", (int)report.seed);
  for (size_t i = 0; i < report.num_findings; ++i) print_finding(&report.findings[i]);
  return NULL;
}

static gcap_status_t check_versions(scaling_t* s, const char* folder, bool* out_as_said) {
  bool by_argument = false, by_copy = false, by_memory = false;
  GCAP_RETURN_IF_ERROR(
      check_version(s, "factor as an argument", scale_by_argument, folder, /*has_device_factor=*/false, &by_argument));
  GCAP_RETURN_IF_ERROR(
      check_version(s, "factor copied from a variable", scale_by_copy, folder, /*has_device_factor=*/false, &by_copy));
  GCAP_RETURN_IF_ERROR(
      check_version(s, "factor in device memory", scale_by_memory, folder, /*has_device_factor=*/true, &by_memory));
  *out_as_said = !by_argument && !by_copy && by_memory;
  return NULL;
}

int main(int argc, char** argv) {
  scaling_t s = {.host_factor = 0};
  bool as_said = false;
  gcap_log_set_sink(print_error, NULL, GCAP_LOG_ERROR);  // the reports have what the graph manager warns of
  gcap_status_t status = GCAP_CUDA(cudaMalloc((void**)&s.x, BYTES));
  if (status == NULL) status = GCAP_CUDA(cudaMalloc((void**)&s.y, BYTES));
  if (status == NULL) status = GCAP_CUDA(cudaMalloc((void**)&s.device_factor, sizeof(float)));
  if (status == NULL) status = check_versions(&s, argc > 1 ? argv[1] : NULL, &as_said);
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(s.x)));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(s.y)));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(s.device_factor)));
  if (status == NULL) return as_said ? 0 : 1;
  fprintf(stderr, "check_operation: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
