// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Provider options. Input: a line `key=value` for each option. They are parsed, read back, and checked; where they fit
// together, a runtime is made of them and runs an id until it is replayed.
#include <cuda_runtime_api.h>

#include "gcap/log.h"
#include "gcap/options.h"
#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "test/fuzz/input.h"

enum { kMaxOptions = 16, kMaxText = 300, kRuns = 5, kDeviceBytes = 64 << 20 };

__attribute__((constructor)) static void two_devices(void) { setenv("GCAP_SIM_DEVICES", "2", 1); }

static void quiet(void* user, gcap_log_level_t level, const char* message) {
  (void)user;
  (void)level;
  FUZZ_CHECK(message[0] != '\0', "an empty line in the log");
}

// An application's pool.
static void* external_alloc(size_t bytes) {
  void* memory = NULL;
  if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
  cudaGetLastError();
  return NULL;
}

static void external_free(void* memory) { FUZZ_CHECK(cudaFree(memory) == cudaSuccess, "not freed"); }

static void external_empty_cache(void) {}

// Addresses, handles and paths are replaced where they would not be the program's own.
static void make_safe(gcap_options_t* options, cudaStream_t stream) {
  if (options->external_alloc != NULL) options->external_alloc = external_alloc;
  if (options->external_free != NULL) options->external_free = external_free;
  if (options->external_empty_cache != NULL) options->external_empty_cache = external_empty_cache;
  if ((uintptr_t)options->user_stream > (uintptr_t)cudaStreamPerThread) options->user_stream = stream;
  if (options->trace_file[0] != '\0') strcpy(options->trace_file, "/dev/null");
}

static gcap_status_t work(void* user, const gcap_run_resources_t* resources) {
  const size_t* bytes = user;
  void* memory;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(resources->scratch, *bytes, resources->stream, &memory));
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(memory, 1, *bytes, gcap_stream_handle(resources->stream)));
  return gcap_status_join(status, gcap_scratch_free(resources->scratch, memory));
}

// A refusal says why.
static bool went_well(gcap_status_t status) {
  FUZZ_CHECK(gcap_status_code(status) != GCAP_INTERNAL, "%s", gcap_status_message(status));
  FUZZ_CHECK(gcap_status_message(status)[0] != '\0', "no message");
  const bool well = status == NULL;
  gcap_status_free(status);
  return well;
}

// What is read back is parsed to options of the same text.
static void read_back(const gcap_options_t* options) {
  enum { kMaxRows = 80 };
  static char text[GCAP_OPTIONS_MAX_TEXT_BYTES], lines[sizeof(text)], again_text[sizeof(text)];
  gcap_status_t status = gcap_options_get(options, NULL, text, sizeof(text));
  FUZZ_CHECK(status == NULL && text[0] != '\0', "%s", gcap_status_message(status));
  memcpy(lines, text, sizeof(lines));
  const char *keys[kMaxRows], *values[kMaxRows];
  size_t count = 0;
  for (char* at = lines; *at != '\0'; ++count) {
    FUZZ_CHECK(count < kMaxRows, "too many lines");
    keys[count] = at;
    at = strchr(at, '=');
    *at++ = '\0';
    values[count] = at;
    at = strchr(at, '\n');
    *at++ = '\0';
  }
  gcap_options_t again;
  gcap_options_init(&again);
  status = gcap_options_parse(&again, keys, values, count);
  FUZZ_CHECK(status == NULL, "%s", gcap_status_message(status));
  status = gcap_options_get(&again, NULL, again_text, sizeof(again_text));
  FUZZ_CHECK(status == NULL, "%s", gcap_status_message(status));
  FUZZ_CHECK(strcmp(text, again_text) == 0, "%s is read back as %s", text, again_text);
}

static void use(const gcap_options_t* options, size_t bytes) {
  gcap_runtime_t* runtime;
  if (!went_well(gcap_runtime_create(options, &runtime))) {
    FUZZ_CHECK(runtime == NULL, "a runtime beside a refusal");
    return;
  }
  for (int run = 0; run < kRuns; ++run) {
    // Not well if the memory is used up, which the options may limit.
    gcap_run_t how;
    gcap_run_init(&how);
    how.id = 3;
    how.work = work;
    how.user = &bytes;
    how.synchronize = run % 2 == 0;
    went_well(gcap_runtime_run(runtime, &how));
    went_well(gcap_scratch_validate(gcap_runtime_scratch(runtime)));
  }
  went_well(gcap_runtime_synchronize(runtime));
  gcap_status_t status = gcap_runtime_destroy(runtime);
  FUZZ_CHECK(status == NULL, "%s", gcap_status_message(status));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  gcap_log_set_sink(quiet, NULL, GCAP_LOG_DEBUG);
  gcap_sim_set_device_bytes(0, kDeviceBytes);
  gcap_sim_set_device_bytes(1, kDeviceBytes);
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_ABORT);
  fuzz_input_t input = {data, bytes};
  static char keys[kMaxOptions][kMaxText], values[kMaxOptions][kMaxText];
  const char *key_texts[kMaxOptions], *value_texts[kMaxOptions];
  size_t count = 0;
  for (; input.left > 0 && count < kMaxOptions; ++count) {
    char line[2 * kMaxText];
    fuzz_input_t pair = {(const uint8_t*)line, fuzz_text(&input, '\n', line, sizeof(line))};
    fuzz_text(&pair, '=', keys[count], kMaxText);
    fuzz_text(&pair, '\0', values[count], kMaxText);
    key_texts[count] = keys[count];
    value_texts[count] = values[count];
  }
  gcap_options_t options, before;
  memset(&options, 0, sizeof(options));
  gcap_options_init(&options);
  before = options;
  cudaStream_t stream;
  if (!went_well(gcap_options_parse(&options, key_texts, value_texts, count))) {
    FUZZ_CHECK(memcmp(&options, &before, sizeof(options)) == 0, "a refusal changed the options");
  } else if (read_back(&options),
             cudaSetDevice(options.device_id) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess) {
    make_safe(&options, stream);
    use(&options, 1 + 300 * bytes);
    FUZZ_CHECK(cudaStreamDestroy(stream) == cudaSuccess, "the stream is broken");
  }
  cudaGetLastError();
  FUZZ_CHECK(cudaSetDevice(0) == cudaSuccess, "device 0 is gone");
  FUZZ_CHECK(gcap_sim_check() == 0, "%s", gcap_sim_report(0));
  return 0;
}
