// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with graph managers. The work of a run is more steps.
#include "test/fuzz/api_world.h"

static fuzz_manager_t* manager_of(const void* user) { return (fuzz_manager_t*)(uintptr_t)user; }

static void on_evict(void* user, int id, const gcap_graph_info_t* info) {
  fuzz_manager_t* slot = manager_of(user);
  FUZZ_CHECK(id >= 0 && info->captures > 0, "id %d was evicted without a graph", id);
  const bool locked = slot->locked;
  slot->locked = false;
  fuzz_reenter();
  slot->locked = locked;
}

static void create_manager(fuzz_manager_t* slot) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  const unsigned how = fuzz_draw(256);
  options.min_num_runs_before_capture = how % 3;
  options.backoff_runs = how / 3 % 2;
  options.policy = how & 8 ? GCAP_GRAPH_POLICY_STABLE : GCAP_GRAPH_POLICY_MIN_RUNS;
  options.upload = how & 16;
  options.keep_source = how & 32;
  options.rerun_failed_capture = !(how & 64);
  if (how & 128) {
    options.max_graphs = 1 + how % 2;
    options.on_evict = on_evict;
    options.user = slot;
  }
  fuzz_ok(gcap_graph_manager_create(&options, &slot->manager));
}

static void destroy_manager(fuzz_manager_t* slot) {
  if (slot->calls > 0 || (FUZZ_KNOWN_ENDS_LIE && fuzz_captures())) return;
  ++slot->calls;
  slot->locked = true;
  const bool gone = fuzz_gone(gcap_graph_manager_destroy(slot->manager));
  *slot = (fuzz_manager_t){.manager = gone ? NULL : slot->manager};
}

// --- Runs -----------------------------------------------------------------------------------------------------------

static gcap_status_t draw_outcome(void) {
  return fuzz_draw(6) == 0 ? GCAP_STATUS(GCAP_UNAVAILABLE, "the work did not succeed") : NULL;
}

static gcap_status_t work(void* user, cudaStream_t stream) {
  fuzz_manager_t* slot = manager_of(user);
  const bool locked = slot->locked;
  slot->locked = false;
  if (fuzz_draw(4) == 0) gcap_graph_note_allocation(64);
  if (fuzz_draw(8) == 0) gcap_graph_note_initialization();
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    const int which = fuzz_world.blocks[i].stream;
    if (which >= 0 && gcap_stream_handle(fuzz_world.streams[which].stream) == stream) fuzz_write(&fuzz_world.blocks[i]);
  }
  fuzz_reenter();
  slot->locked = locked;
  return draw_outcome();
}

static int draw_id(void) { return (int)fuzz_draw(6) - (fuzz_draw(8) == 0 ? 2 : 0); }

// Not the stream of the user's own captures: a graph of it would lack the memory that a reservation of the user keeps.
static bool draw_handle(cudaStream_t* out_handle, int* out_slot) {
  *out_slot = fuzz_draw_stream();
  if (*out_slot == FUZZ_USERS_STREAM) return false;
  *out_handle = *out_slot < 0 ? fuzz_world.raw[fuzz_draw(FUZZ_RAW_STREAMS)]
                              : gcap_stream_handle(fuzz_world.streams[*out_slot].stream);
  return true;
}

static void run(fuzz_manager_t* slot) {
  cudaStream_t stream;
  int which;
  if (!draw_handle(&stream, &which)) return;
  if (which >= 0) ++fuzz_world.streams[which].users;
  fuzz_ok(gcap_graph_manager_run(slot->manager, draw_id(), stream, work, slot, fuzz_draw(2)));
  if (which >= 0) --fuzz_world.streams[which].users;
}

// On a stream of the user, which is there until the end.
static void begin_run(fuzz_manager_t* slot) {
  cudaStream_t stream = fuzz_world.raw[fuzz_draw(FUZZ_RAW_STREAMS)];
  gcap_graph_run_kind_t kind;
  fuzz_ok(gcap_graph_manager_begin_run(slot->manager, draw_id(), stream, &kind));
  fuzz_world.scope = gcap_capture_current() == fuzz_world.scope ? fuzz_world.scope : NULL;
}

static void end_run(fuzz_manager_t* slot) {
  fuzz_ok(gcap_graph_manager_end_run(slot->manager, draw_outcome(), fuzz_draw(2)));
}

static void sign(fuzz_manager_t* slot, bool check) {
  static const int64_t shape[] = {2, 3};
  const gcap_graph_binding_t bindings[] = {{"x", &fuzz_world, 2, shape}, {NULL, slot, (int)fuzz_draw(4) - 1, shape}};
  const size_t count = fuzz_draw(3);
  fuzz_ok(check ? gcap_graph_manager_check_signature(slot->manager, draw_id(), bindings, count)
                : gcap_graph_manager_sign(slot->manager, bindings, count));
}

static void replay(fuzz_manager_t* slot) {
  gcap_graph_replay_options_t options;
  gcap_graph_replay_options_init(&options);
  const unsigned how = fuzz_draw(8);
  int which = -1;
  options.synchronize = how & 1;
  options.on_stream = how & 2;
  options.check_bindings = how == 4;
  if (options.on_stream && !draw_handle(&options.stream, &which)) return;
  bool replayed;
  fuzz_ok(gcap_graph_manager_replay(slot->manager, draw_id(), how == 7 ? NULL : &options, how == 6 ? NULL : &replayed));
}

static void ask(fuzz_manager_t* slot) {
  gcap_graph_info_t info;
  const int id = draw_id();
  gcap_graph_manager_get_info(slot->manager, id, &info);
  FUZZ_CHECK((info.state == GCAP_GRAPH_CAPTURED) == gcap_graph_manager_is_captured(slot->manager, id), "id %d is %s",
             id, gcap_graph_state_name(info.state));
  gcap_status_free(gcap_graph_manager_explain(slot->manager, id, (gcap_graph_question_t)fuzz_draw(2)));
}

static void call(fuzz_manager_t* slot) {
  switch (fuzz_draw(14)) {
    case 0:
    case 1:
    case 2:
    case 3: run(slot); break;
    case 4: begin_run(slot); break;
    case 5:
    case 6: end_run(slot); break;
    case 7: sign(slot, fuzz_draw(2)); break;
    case 8:
    case 9: replay(slot); break;
    case 10: fuzz_ok(gcap_graph_manager_recapture(slot->manager, draw_id())); break;
    case 11: fuzz_ok(gcap_graph_manager_release(slot->manager, draw_id())); break;
    case 12:
      fuzz_ok(fuzz_draw(2) ? gcap_graph_manager_release_all(slot->manager)
                           : gcap_graph_manager_upload(slot->manager, draw_id()));
      break;
    default: ask(slot);
  }
}

void fuzz_manager_step(void) {
  fuzz_manager_t* slot = &fuzz_world.managers[fuzz_draw(FUZZ_MANAGERS)];
  if (slot->manager == NULL) {
    create_manager(slot);
    return;
  }
  if (slot->locked) return;
  if (fuzz_draw(16) == 0) {
    destroy_manager(slot);
    return;
  }
  ++slot->calls;
  slot->locked = true;
  call(slot);
  slot->locked = false;
  --slot->calls;
}

void fuzz_end_manager_runs(void) {
  for (int i = 0; i < FUZZ_MANAGERS; ++i) {
    fuzz_manager_t* slot = &fuzz_world.managers[i];
    if (slot->manager == NULL) continue;
    slot->locked = true;
    fuzz_ok(gcap_graph_manager_end_run(slot->manager, NULL, false));
    slot->locked = false;
  }
}

void fuzz_end_managers(void) {
  for (int i = 0; i < FUZZ_MANAGERS; ++i) {
    if (fuzz_world.managers[i].manager == NULL) continue;
    destroy_manager(&fuzz_world.managers[i]);
    FUZZ_CHECK(fuzz_world.managers[i].manager == NULL, "manager %d stays", i);
  }
}
