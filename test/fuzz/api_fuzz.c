// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Bytes as a sequence of calls of the public API, with callbacks that take further steps. The first byte says whether
// all calls may succeed, gcap's heap calls fail now and then, or CUDA calls do, and whether buffers move or runs have
// keys; the second is the simulator's seed; each step is a byte for its kind and some for its arguments.
//
// What must hold: the simulator reports no race, no read of bytes that nobody wrote, no use after free and no leak; the
// invariants of each scratch; no status is INTERNAL; no call leaves a CUDA error or another device behind; each object
// is ended at last, by the rule of gcap.h ("Ends."); and each callback that was to be called once was. What a sanitizer
// sees comes on top.
//
// An input is a program of one thread. test/stress has the threads.
#include "test/fuzz/api_world.h"

__attribute__((constructor)) static void two_devices(void) { setenv("GCAP_SIM_DEVICES", "2", 1); }

static void sink(void* user, gcap_log_level_t level, const char* message) {
  (void)user;
  (void)level;
  fuzz_check_line(message);
  ++fuzz_world.in_sink;
  fuzz_reenter_and_end_scope();
  --fuzz_world.in_sink;
}

// --- Faults ---------------------------------------------------------------------------------------------------------

// A failing call may be the one that ends something. No device is lost: it would not come back, and its streams would
// stay captured.
static void fault_step(void) {
  if (fuzz_world.mode == FUZZ_HEAP) {
    const unsigned skip = fuzz_draw(32);
    fuzz_heap_fail(skip, 1 + fuzz_draw(4));
  }
  if (fuzz_world.mode != FUZZ_FAULTS) return;
  const unsigned how = fuzz_draw(16);
  const gcap_sim_fault_t fault = {.nth = 1 + fuzz_draw(64),
                                  .code = how % 2 ? cudaErrorMemoryAllocation : cudaErrorUnknown};
  fuzz_world.leaked = true;
  gcap_sim_clear_faults();
  gcap_sim_inject(&fault);
}

// --- Steps ----------------------------------------------------------------------------------------------------------

static void (*const kSteps[])(void) = {
    fuzz_stream_step,  fuzz_stream_step,        fuzz_timeline_step, fuzz_pool_step,      fuzz_capture_step,
    fuzz_capture_step, fuzz_users_capture_step, fuzz_graph_step,    fuzz_allocator_step, fuzz_scratch_step,
    fuzz_block_step,   fuzz_block_step,         fuzz_block_step,    fuzz_block_step,     fuzz_reservation_step,
    fuzz_manager_step, fuzz_manager_step,       fuzz_runtime_step,  fuzz_session_step,   fuzz_session_step,
    fault_step,
};

static void check_thread(void) {
  if (fuzz_world.mode == FUZZ_FAULTS) return;  // a lost device stays an error
  const cudaError_t error = cudaPeekAtLastError();
  FUZZ_CHECK(error == cudaSuccess, "a step left the error %d behind", (int)error);
}

void fuzz_steps(unsigned count) {
  for (unsigned i = 0; i < count && fuzz_world.input.left > 0 && fuzz_world.steps < FUZZ_MAX_STEPS; ++i) {
    ++fuzz_world.steps;
    if (fuzz_world.has_moves && fuzz_draw(2)) {
      fuzz_moving_step();
    } else if (fuzz_world.has_keys && fuzz_draw(2)) {
      fuzz_keyed_step();
    } else {
      kSteps[fuzz_draw(sizeof(kSteps) / sizeof(kSteps[0]))]();
    }
    check_thread();
  }
}

void fuzz_reenter(void) {
  if (fuzz_world.depth >= FUZZ_MAX_DEPTH) return;
  ++fuzz_world.depth;
  fuzz_steps(fuzz_draw(4));
  --fuzz_world.depth;
}

// --- Begin and end --------------------------------------------------------------------------------------------------

static void make_users_streams(void) {
  static const struct {
    int device;
    unsigned flags;
  } kinds[FUZZ_RAW_STREAMS] = {{0, cudaStreamNonBlocking}, {0, cudaStreamDefault}, {1, cudaStreamNonBlocking}};
  for (int i = 0; i < FUZZ_RAW_STREAMS; ++i) {
    const bool made = cudaSetDevice(kinds[i].device) == cudaSuccess &&
                      cudaStreamCreateWithFlags(&fuzz_world.raw[i], kinds[i].flags) == cudaSuccess;
    FUZZ_CHECK(made, "the user has no stream");
  }
  FUZZ_CHECK(cudaSetDevice(0) == cudaSuccess, "device 0 is gone");
}

// Once: no input frees them.
static char* make_places(void) {
  static char* places;
  const size_t bytes = FUZZ_PLACES * FUZZ_PLACE_BYTES;
  const bool made = places != NULL || (cudaMalloc((void**)&places, bytes) == cudaSuccess);
  FUZZ_CHECK(made && cudaMemset(places, 0, bytes) == cudaSuccess, "the user has no memory");
  FUZZ_CHECK(cudaDeviceSynchronize() == cudaSuccess, "device 0 is broken");
  return places;
}

static void begin(const uint8_t* data, size_t bytes) {
  fuzz_world = (fuzz_world_t){.input = {data, bytes}};
  for (int i = 0; i < FUZZ_BLOCKS; ++i) fuzz_world.blocks[i] = (fuzz_block_t){.stream = -1, .run_stream = -1};
  const unsigned first = fuzz_draw(256);
  fuzz_world.mode = (fuzz_mode_t)(first % 3);
  fuzz_world.has_moves = first >= 128 && first < 176;  // what no input had before there were such steps
  fuzz_world.has_keys = first >= 180 && first < 212;   // likewise
  gcap_sim_set_seed(fuzz_draw(256));
  gcap_log_set_sink(sink, NULL, GCAP_LOG_DEBUG);
  // A step may break a capture, and issue work beside one.
  gcap_sim_set_action(GCAP_SIM_CHECK_CAPTURE, GCAP_SIM_ACTION_OFF);
  gcap_sim_set_action(GCAP_SIM_CHECK_ESCAPED_WORK, GCAP_SIM_ACTION_OFF);
  for (int i = 0; i < FUZZ_DEVICES; ++i) gcap_sim_set_device_bytes(i, 64 << 20);
  fuzz_world.places = make_places();
  fuzz_world.live_before = gcap_sim_live(NULL);
  make_users_streams();
  if (fuzz_world.has_keys) fuzz_begin_keyed();
}

// Nothing fails any more, so each end succeeds.
static void end(void) {
  fuzz_heap_fail(0, 0);
  gcap_sim_clear_faults();
  fuzz_world.input.left = 0;
  fuzz_cuda(cudaSetDevice(0));
  fuzz_end_runtime_runs();
  fuzz_end_manager_runs();
  fuzz_end_captures();
  FUZZ_CHECK(fuzz_wait_for_devices(), "a device is broken");
  fuzz_end_runtimes();
  fuzz_end_managers();
  fuzz_end_graphs();
  fuzz_end_scratches();
  fuzz_end_allocators();
  fuzz_end_streams();
  FUZZ_CHECK(fuzz_world.released == 0 || fuzz_world.leaked, "%d callbacks were not called", fuzz_world.released);
  int device = -1;
  FUZZ_CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0, "the current device is %d", device);
  const bool leaks = !fuzz_world.leaked && gcap_sim_live(NULL) != fuzz_world.live_before;
  // Tells them, with those that an earlier input kept for good reason.
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, leaks ? GCAP_SIM_ACTION_RECORD : GCAP_SIM_ACTION_OFF);
  FUZZ_CHECK(gcap_sim_check() == 0 && !leaks, "%s", gcap_sim_report(0));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  begin(data, bytes);
  fuzz_steps(FUZZ_MAX_STEPS);
  end();
  return 0;
}
