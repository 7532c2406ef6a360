// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with graph managers. The work of a run is more steps.
#include "gcap/graph_plan.h"
#include "test/fuzz/api_world.h"

static void on_evict(void* user, int id, const gcap_graph_info_t* info) {
  (void)user;
  FUZZ_CHECK(id != GCAP_GRAPH_ID_NONE && info->captures > 0, "id %d was evicted without a graph", id);
  fuzz_reenter();
}

static void create_manager(gcap_graph_manager_t** slot) {
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
  }
  if (fuzz_world.has_moves) options.audit = (gcap_graph_audit_level_t)fuzz_draw(3);
  if (fuzz_world.has_keys) {
    const unsigned more = fuzz_draw(8);
    options.max_variants = more % 4;
    if (more >= 4) options.min_num_runs_before_capture = 0;  // else few of the runs are replays
  }
  fuzz_ok(gcap_graph_manager_create(&options, slot));
}

static void destroy_manager(gcap_graph_manager_t** slot) {
  // A callback finds the manager where it was: its end refuses there.
  if (fuzz_gone(gcap_graph_manager_destroy(*slot))) *slot = NULL;
}

// --- Runs -----------------------------------------------------------------------------------------------------------

static gcap_status_t draw_outcome(void) {
  return fuzz_draw(6) == 0 ? GCAP_STATUS(GCAP_UNAVAILABLE, "the work did not succeed") : NULL;
}

static gcap_status_t work_in_hole(void* user, const gcap_run_resources_t* resources) {
  (void)user;
  if (fuzz_world.steps % 5 == 0) fuzz_ok(GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream)));
  return fuzz_world.steps % 7 == 0 ? GCAP_STATUS(GCAP_UNAVAILABLE, "the hole did not succeed") : NULL;
}

// Without a draw, so that older inputs still mean what they meant.
static void make_hole(const gcap_run_resources_t* resources) {
  gcap_graph_hole_t hole;
  gcap_graph_hole_init(&hole);
  hole.name = "fuzz";
  hole.work = work_in_hole;
  hole.break_where_refused = fuzz_world.steps % 2 == 0;
  fuzz_ok(gcap_graph_hole_issue(resources, &hole));
}

// Without a draw, too. Of a block that the run has written.
static void make_tap(const fuzz_block_t* block, cudaStream_t stream) {
  if (fuzz_world.steps % 5 != 2 || block->ptr == NULL || block->capture != fuzz_capture_of(stream)) return;
  fuzz_ok(gcap_graph_tap_issue(stream, "fuzz", block->ptr, block->bytes));
}

static gcap_status_t work(void* user, const gcap_run_resources_t* resources) {
  cudaStream_t stream = resources->cuda_stream;
  (void)user;
  if (fuzz_world.steps % 3 == 1) make_hole(resources);
  if (fuzz_draw(4) == 0) gcap_graph_note_allocation(64);
  if (fuzz_draw(8) == 0) gcap_graph_note_initialization();
  for (int i = 0; i < FUZZ_BLOCKS; ++i) {
    const int which = fuzz_world.blocks[i].stream;
    if (which < 0 || gcap_stream_handle(fuzz_world.streams[which].stream) != stream) continue;
    fuzz_write(&fuzz_world.blocks[i]);
    make_tap(&fuzz_world.blocks[i], stream);
  }
  if (fuzz_world.has_keys && fuzz_draw(4) == 0) fuzz_state_guard();
  fuzz_reenter();
  return draw_outcome();
}

static int draw_id(void) { return (int)fuzz_draw(6) - (fuzz_draw(8) == 0 ? 2 : 0); }

const gcap_graph_key_t* fuzz_key(unsigned which) {
  static const int bytes[] = {1, 2};
  static const gcap_graph_key_t keys[] = {{&bytes[0], sizeof(int), "a key"}, {&bytes[1], sizeof(int), NULL}};
  return &keys[which];
}

// Not the stream of the user's own captures: a graph of it would lack the memory that a reservation of the user keeps.
static bool draw_handle(cudaStream_t* out_handle, int* out_slot) {
  *out_slot = fuzz_draw_stream();
  if (*out_slot == FUZZ_USERS_STREAM) return false;
  *out_handle = *out_slot < 0 ? fuzz_world.raw[fuzz_draw(FUZZ_RAW_STREAMS)]
                              : gcap_stream_handle(fuzz_world.streams[*out_slot].stream);
  return true;
}

static gcap_status_t in_verification(void* user, cudaStream_t stream) {
  (void)user, (void)stream;
  return fuzz_world.steps % 11 == 0 ? GCAP_STATUS(GCAP_UNAVAILABLE, "the state was not kept") : NULL;
}

// Without a draw, too. Work of chance may do another thing each time, so what differs is no finding: scratch of the
// graph is copied, and no buffer is compared.
static const gcap_graph_verify_t* draw_verify(void) {
  static gcap_graph_verify_t verify;
  static gcap_graph_verify_report_t report;
  gcap_graph_verify_report_init(&report);
  gcap_graph_verify_init(&verify);
  verify.save = verify.restore = in_verification;
  verify.each = fuzz_world.steps % 3;
  verify.first = fuzz_world.steps % 2;
  verify.report = &report;
  return &verify;
}

// A run of a drawn id, which may wait, have bindings, and ask what became of it. One id is pinned, one captured only.
static gcap_run_t draw_run(cudaStream_t stream) {
  static const int64_t shape[] = {2, 3};
  static const gcap_graph_binding_t good[] = {{"x", &fuzz_world, 2, shape}, {NULL, &fuzz_world, 0, NULL}};
  static const gcap_graph_binding_t bad[] = {{"x", &fuzz_world, 2, shape}, {NULL, &fuzz_world, -1, shape}};
  static gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = draw_id();
  if (fuzz_world.has_keys && fuzz_draw(2)) {
    run.id = GCAP_GRAPH_ID_NONE;
    run.key = fuzz_key(fuzz_draw(2));
  }
  run.stream = stream;
  run.work = work;
  run.synchronize = fuzz_draw(2);
  if (fuzz_draw(4) == 0) {
    run.bindings = fuzz_draw(8) == 0 ? bad : good;
    run.num_bindings = fuzz_draw(3);
  }
  if (fuzz_draw(2)) run.result = &result;
  // Without a draw, so that older inputs still mean what they meant.
  run.pinned = run.id == 4;
  run.capture_only = run.id == 5 && fuzz_world.steps % 2 == 0;
  if (run.id == 3) run.verify = draw_verify();
  return run;
}

static void run(gcap_graph_manager_t* manager) {
  cudaStream_t stream;
  int which;
  if (!draw_handle(&stream, &which)) return;
  if (which >= 0) ++fuzz_world.streams[which].users;
  const gcap_run_t drawn = draw_run(stream);
  fuzz_ok(gcap_graph_manager_run(manager, &drawn));
  if (which >= 0) --fuzz_world.streams[which].users;
}

// On a stream of the user, which is there until the end.
static void begin_run(gcap_graph_manager_t* manager) {
  const gcap_run_t drawn = draw_run(fuzz_world.raw[fuzz_draw(FUZZ_RAW_STREAMS)]);
  gcap_graph_run_kind_t kind;
  fuzz_ok(gcap_graph_manager_begin_run(manager, &drawn, &kind, NULL));
  fuzz_world.scope = gcap_capture_current() == fuzz_world.scope ? fuzz_world.scope : NULL;
}

static void end_run(gcap_graph_manager_t* manager) {
  const gcap_run_t drawn = draw_run(GCAP_RUN_OWN_STREAM);
  fuzz_ok(gcap_graph_manager_end_run(manager, fuzz_draw(8) == 0 ? NULL : &drawn, draw_outcome()));
}

static void replay(gcap_graph_manager_t* manager) {
  cudaStream_t stream = GCAP_RUN_OWN_STREAM;
  int which = -1;
  if (fuzz_draw(2) && !draw_handle(&stream, &which)) return;
  const gcap_run_t drawn = draw_run(stream);
  // That of a key: its graph writes what a step by key, which may be in its work, writes too.
  if (drawn.key == NULL && drawn.id < GCAP_GRAPH_ID_NONE && fuzz_world.has_keys) return;
  bool replayed;
  fuzz_ok(gcap_graph_manager_replay(manager, &drawn, fuzz_draw(8) == 0 ? NULL : &replayed));
}

// While one graph of an id is captured, another one may replay.
void fuzz_check_graph(gcap_graph_manager_t* manager, int id) {
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(manager, id, &info);
  const bool is_captured = gcap_graph_manager_is_captured(manager, id);
  FUZZ_CHECK(is_captured == (info.state == GCAP_GRAPH_CAPTURED) ||
                 (is_captured && info.state == GCAP_GRAPH_CAPTURING && info.graphs > 0),
             "id %d is %s, and has %zu graphs", id, gcap_graph_state_name(info.state), info.graphs);
}

static void ask(gcap_graph_manager_t* manager) {
  const int id = draw_id();
  fuzz_check_graph(manager, id);
  gcap_status_free(gcap_graph_manager_explain(manager, id, (gcap_graph_question_t)fuzz_draw(5)));
}

static void call(gcap_graph_manager_t* manager) {
  switch (fuzz_draw(13)) {
    case 0:
    case 1:
    case 2:
    case 3: run(manager); break;
    case 4:
      if (fuzz_world.in_sink == 0) begin_run(manager);
      break;
    case 5:
    case 6: end_run(manager); break;
    case 7:
    case 8: replay(manager); break;
    case 9: fuzz_ok(gcap_graph_manager_recapture(manager, draw_id())); break;
    case 10: fuzz_ok(gcap_graph_manager_release(manager, draw_id())); break;
    case 11: fuzz_ok(gcap_graph_manager_release_all(manager)); break;
    default: ask(manager);
  }
}

void fuzz_manager_step(void) {
  gcap_graph_manager_t** slot = &fuzz_world.managers[fuzz_draw(FUZZ_MANAGERS)];
  if (*slot == NULL) {
    create_manager(slot);
  } else if (*slot == fuzz_world.running) {
    ask(*slot);
  } else if (fuzz_draw(16) == 0) {
    destroy_manager(slot);
  } else {
    call(*slot);
  }
}

void fuzz_end_manager_runs(void) {
  for (int i = 0; i < FUZZ_MANAGERS; ++i) {
    if (fuzz_world.managers[i] != NULL) fuzz_ok(gcap_graph_manager_end_run(fuzz_world.managers[i], NULL, NULL));
  }
}

void fuzz_end_managers(void) {
  for (int i = 0; i < FUZZ_MANAGERS; ++i) {
    if (fuzz_world.managers[i] != NULL) destroy_manager(&fuzz_world.managers[i]);
    FUZZ_CHECK(fuzz_world.managers[i] == NULL, "manager %d stays: %s", i, fuzz_world.refusal);
  }
}
