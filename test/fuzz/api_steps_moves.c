// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with buffers that move: runs on them, binds, replays, checks of moves and audits. Whether the outputs are right
// is what the target moves asks; here such steps come between all others, and fail.
#include "gcap/graph_buffers.h"
#include "test/fuzz/api_world.h"

// Mostly a place; else an address that is none for a buffer, or one that makes two buffers overlap.
static void* draw_place(void) {
  const unsigned how = fuzz_draw(16);
  char* place = fuzz_world.places + (size_t)fuzz_draw(FUZZ_PLACES) * FUZZ_PLACE_BYTES;
  if (how == 15) return NULL;
  return place + (how == 14 ? FUZZ_PLACE_BYTES / 4 : how == 13 ? 1 : 0);
}

static const gcap_graph_buffers_t* draw_buffers(void) {
  static const bool unused[2] = {false, true};
  static gcap_graph_buffer_t items[2];
  static gcap_graph_buffers_t buffers;
  for (int i = 0; i < 2; ++i) {
    void* place = draw_place();
    items[i] = (gcap_graph_buffer_t){i == 0 ? "in" : NULL, place, FUZZ_PLACE_BYTES / 2, fuzz_draw(4) == 0 ? 4 : 0};
  }
  gcap_graph_buffers_init(&buffers);
  buffers.items = items;
  buffers.count = fuzz_draw(16) == 0 ? 1 : 2;
  buffers.stand_ins = (gcap_graph_stand_ins_t)fuzz_draw(2);
  buffers.may_be_unused = fuzz_draw(4) == 0 ? unused : NULL;
  buffers.host_functions_may_stay = fuzz_draw(4) == 0;
  return &buffers;
}

static bool overlap(const char* a, const char* b, size_t bytes) { return a < b + bytes && b < a + bytes; }

// Some of it leaves an address behind, or is other work each time. Other steps come first: nothing would order them
// after what stands on the stream already.
static gcap_status_t work(void* user, const gcap_run_resources_t* resources) {
  char* const* at = (char* const*)resources->addresses;
  cudaStream_t stream = resources->cuda_stream;
  const size_t bytes = FUZZ_PLACE_BYTES / 4;
  (void)user;
  const unsigned how = fuzz_draw(8);
  if (how == 2) fuzz_reenter();
  const char* from = how == 1 ? fuzz_world.places : at[0];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(at[resources->num_addresses - 1], (int)how, bytes / 2, stream)));
  if (resources->num_addresses < 2 || overlap(from, at[1], bytes)) return NULL;
  if (how == 3) return GCAP_CUDA(cudaMemcpy2DAsync(at[1], 64, from, 32, 16, 2, cudaMemcpyDeviceToDevice, stream));
  return GCAP_CUDA(cudaMemcpyAsync(at[1], from, bytes, cudaMemcpyDeviceToDevice, stream));
}

static gcap_run_t draw_run(void) {
  static gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = FUZZ_MOVING_ID + (int)fuzz_draw(2);
  run.stream = fuzz_world.raw[fuzz_draw(2)];
  run.work = work;
  run.buffers = draw_buffers();
  run.synchronize = true;
  run.result = &result;
  return run;
}

static void replay(gcap_graph_manager_t* manager) {
  gcap_run_t run = draw_run();
  bool replayed;
  if (fuzz_draw(2)) run.buffers = NULL;
  if (fuzz_draw(2)) run.stream = GCAP_RUN_OWN_STREAM;
  fuzz_ok(gcap_graph_manager_replay(manager, &run, fuzz_draw(2) ? NULL : &replayed));
}

static void audit(gcap_graph_manager_t* manager, int id) {
  size_t findings;
  fuzz_ok(gcap_graph_manager_audit(manager, id, NULL, NULL, fuzz_draw(2) ? NULL : &findings));
}

static void call(gcap_graph_manager_t* manager) {
  const int id = FUZZ_MOVING_ID + (int)fuzz_draw(2);
  const gcap_run_t run = draw_run();
  switch (fuzz_draw(12)) {
    case 0: fuzz_ok(gcap_graph_manager_bind(manager, id, fuzz_draw(3), draw_place())); break;
    case 1: fuzz_ok(gcap_graph_manager_check_moves(manager, id)); break;
    case 2: audit(manager, id); break;
    case 3: fuzz_ok(gcap_graph_manager_recapture(manager, id)); break;
    case 4: fuzz_ok(gcap_graph_manager_release(manager, id)); break;
    case 5: gcap_status_free(gcap_graph_manager_explain(manager, id, (gcap_graph_question_t)fuzz_draw(5))); break;
    case 6:
    case 7: replay(manager); break;
    default: fuzz_ok(gcap_graph_manager_run(manager, &run));
  }
}

// The places are one for all streams, so each call is waited for, whether or not it succeeded.
void fuzz_moving_step(void) {
  gcap_graph_manager_t* manager = fuzz_world.managers[fuzz_draw(FUZZ_MANAGERS)];
  if (manager == NULL) {
    fuzz_manager_step();
    return;
  }
  call(manager);
  if (!fuzz_captures()) fuzz_wait_for_devices();
}
