// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the steps share: how an outcome is judged, and what a correct program knows before it writes.
#include "test/fuzz/api_world.h"
#include "lib/stream/inner.h"

fuzz_world_t fuzz_world;

void fuzz_check_line(const char* text) {
  FUZZ_CHECK(text[0] != '\0', "an empty text");
  for (const char* at = text; *at != '\0'; ++at) {
    FUZZ_CHECK((unsigned char)*at >= ' ' && *at != 0x7F, "a control character in '%s'", text);
  }
}

// Behind another failure, too: the first one has the code.
static bool tells_of_a_leak(gcap_status_t status) {
  return gcap_status_code(status) == GCAP_LEAKED ||
         strstr(gcap_status_message(status), "the memory of the run's values is kept") != NULL;
}

bool fuzz_ok(gcap_status_t status) {
  const gcap_code_t code = gcap_status_code(status);
  FUZZ_CHECK(code != GCAP_INTERNAL, "%s", gcap_status_message(status));
  fuzz_check_line(gcap_status_message(status));
  if (tells_of_a_leak(status)) fuzz_world.leaked = true;
  if (code != GCAP_OK) snprintf(fuzz_world.refusal, sizeof(fuzz_world.refusal), "%s", gcap_status_message(status));
  if (code != GCAP_OK && getenv("FUZZ_VERBOSE") != NULL) fprintf(stderr, "%s\n", gcap_status_message(status));
  gcap_status_free(status);
  return code == GCAP_OK;
}

bool fuzz_gone(gcap_status_t status) {
  const gcap_code_t code = gcap_status_code(status);
  return fuzz_ok(status) || code == GCAP_LEAKED;
}

bool fuzz_cuda(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

static unsigned long long capture_here(cudaStream_t stream) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (!fuzz_cuda(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL))) return ~0ull;
  if (status == cudaStreamCaptureStatusNone) return 0;
  return status == cudaStreamCaptureStatusActive ? id : ~0ull;
}

// cudaStreamPerThread is another stream on each device.
unsigned long long fuzz_capture_of(cudaStream_t stream) {
  if (stream != cudaStreamPerThread) return capture_here(stream);
  int before = 0;
  unsigned long long capture = 0;
  fuzz_cuda(cudaGetDevice(&before));
  for (int device = 0; device < FUZZ_DEVICES && capture == 0; ++device) {
    capture = fuzz_cuda(cudaSetDevice(device)) ? capture_here(stream) : ~0ull;
  }
  fuzz_cuda(cudaSetDevice(before));
  return capture;
}

bool fuzz_captures(void) {
  // A wrapper of the per-thread stream may be gone, and its capture on another device still be open.
  if (gcap_thread_is_capturing() || fuzz_capture_of(cudaStreamPerThread) != 0) return true;
  for (int i = 0; i < FUZZ_RAW_STREAMS; ++i) {
    if (fuzz_capture_of(fuzz_world.raw[i]) != 0) return true;
  }
  for (int i = 0; i < FUZZ_STREAMS; ++i) {
    const gcap_stream_t* stream = fuzz_world.streams[i].stream;
    if (stream != NULL && gcap_stream_can_capture(stream) && fuzz_capture_of(gcap_stream_handle(stream)) != 0) {
      return true;
    }
  }
  return false;
}

int fuzz_draw_stream(void) {
  const int stream = (int)fuzz_draw(FUZZ_STREAMS);
  return fuzz_world.streams[stream].stream != NULL ? stream : -1;
}

void fuzz_write(const fuzz_block_t* block) {
  if (block->ptr == NULL || block->stream < 0) return;
  const fuzz_stream_t* stream = &fuzz_world.streams[block->stream];
  const cudaStream_t handle = gcap_stream_handle(stream->stream);
  const unsigned long long capture = fuzz_capture_of(handle);
  // Work that goes beside a capture is missing in its graph.
  if (capture != block->capture || (capture == 0 && fuzz_captures())) return;
  int before = 0;
  fuzz_cuda(cudaGetDevice(&before));
  fuzz_cuda(cudaSetDevice(stream->device));
  if (fuzz_cuda(cudaMemsetAsync(block->ptr, 0, block->bytes, handle)) && block->bytes >= sizeof(float)) {
    const gcap_tensor_t x = {block->ptr, GCAP_DTYPE_F32, 1, {(int64_t)(block->bytes / sizeof(float))}};
    fuzz_ok(gcap_unary(stream->stream, GCAP_UNARY_RELU, &x, &x));
  }
  fuzz_cuda(cudaSetDevice(before));
}

bool fuzz_wait(cudaStream_t stream) {
  if (fuzz_capture_of(stream) != 0 || gcap_thread_is_capturing()) return false;
  if (fuzz_cuda(cudaStreamSynchronize(stream))) return true;
  gcap_sim_clear_faults();
  return fuzz_cuda(cudaStreamSynchronize(stream));
}

bool fuzz_wait_for_devices(void) {
  if (fuzz_captures()) return false;
  gcap_sim_clear_faults();
  int before = 0;
  fuzz_cuda(cudaGetDevice(&before));
  bool waited = true;
  for (int device = 0; device < FUZZ_DEVICES; ++device) {
    waited = fuzz_cuda(cudaSetDevice(device)) && fuzz_cuda(cudaDeviceSynchronize()) && waited;
  }
  return fuzz_cuda(cudaSetDevice(before)) && waited;
}

void fuzz_forget_stream(int stream) {
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    if (fuzz_world.blocks[i].stream == stream) fuzz_world.blocks[i].stream = -1;
    if (fuzz_world.blocks[i].run_stream == stream) fuzz_world.blocks[i].run_stream = -1;
  }
  for (int i = 0; i < FUZZ_SCRATCHES; ++i) fuzz_world.scratches[i].runs &= ~(1u << stream);
  for (int i = 0; i < FUZZ_GRAPHS; ++i) {
    if (fuzz_world.graphs[i].stream == stream) fuzz_world.graphs[i].stream = -1;
  }
  fuzz_world.streams[stream] = (fuzz_stream_t){.stream = NULL};
}

void fuzz_reenter_and_end_scope(void) {
  const gcap_capture_t* before = gcap_capture_current();
  fuzz_reenter();
  gcap_capture_t* scope = gcap_capture_current();
  if (scope == NULL || scope == before) return;
  gcap_capture_abort(scope);  // perhaps a manager's, which then ends its run
  if (scope == fuzz_world.scope) fuzz_world.scope = NULL;
}

void fuzz_release(void* user) {
  (void)user;
  --fuzz_world.released;
  fuzz_reenter_and_end_scope();
}

size_t fuzz_retained_bytes(void* user) {
  (void)user;
  return 64;
}
