// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps of an engine: runs by key, of a graph manager or a runtime, whose work follows decisions of the host. The key
// says on what the work depends. The work states decisions as guards or gets values, of both kinds, and writes bytes
// that tell all of this apart.
//
// The oracle is the step itself, issued eagerly: what a run that says that it replayed, captured or was eager leaves in
// memory is what its work writes for the decisions and values of now. A run that says that nothing was issued leaves
// memory as it was, and so do captures that launch nothing, and plans.
//
// Only these steps write to the places, one at a time: none is taken inside of another.
#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "test/fuzz/api_world.h"

enum {
  kImageBytes = 256,  // of a place, what runs write: four parts
  kTagBytes = 16,     // of the first part, for each decision
  kPartBytes = 64,
  kInput = 512,  // of a place, what runs read: its number, from 1 on
  kFixedPlace = 3,
  kBucket = 4,
  kMaxLength = 16,
  kRuns = 3,  // in one call
  kRepeats = 6,
};

// --- Decisions ------------------------------------------------------------------------------------------------------

// What the work of a key depends on besides the key.
typedef enum follows {
  LENGTH = 1,
  TABLE = 2,
  FLAGS = 4,
  ANSWER = 8,
  VALUES = 16,
  PLACES = 32,
  SIZES = 64,  // a size follows a value: no replay has another one
} follows_t;

static const struct {
  const char* bytes;
  size_t size;
  unsigned follows;
} kKeys[] = {{"0", 1, 0},
             {"1234", 4, LENGTH},
             {"12345678", 8, LENGTH | TABLE | FLAGS | ANSWER},
             {"1235", 4, LENGTH | VALUES | PLACES},
             {"a key of some more bytes than a struct of six ints", 50, VALUES | SIZES},
             {"1236", 4, ANSWER | FLAGS | PLACES},
             {"1237", 4, TABLE | VALUES}};

static const char kTables[3];

static void change_decision(void) {
  fuzz_decisions_t* now = &fuzz_world.decisions;
  switch (fuzz_draw(6)) {
    case 0:
    case 1: now->length = (int32_t)fuzz_draw(kMaxLength); break;
    case 2: now->table = &kTables[fuzz_draw(3)]; break;
    case 3: now->flags[fuzz_draw(sizeof(now->flags))] ^= 1; break;
    case 4: now->answer = (int64_t)fuzz_draw(3); break;
    default: {
      const unsigned how = fuzz_draw(4);
      now->is_silent = how == 3;
      now->drifts = how == 2;
    }
  }
}

static gcap_status_t answer(void* user, int64_t* out_answer) {
  fuzz_decisions_t* now = user;
  if (now->is_silent) return GCAP_STATUS(GCAP_UNAVAILABLE, "no answer today");
  if (now->drifts) now->length = (now->length + 1) % kMaxLength;
  *out_answer = now->answer;
  return NULL;
}

static gcap_status_t state(const char* name, gcap_graph_guard_kind_t kind, const void* address, size_t bytes) {
  gcap_graph_guard_t guard;
  gcap_graph_guard_init(&guard);
  guard.name = name;
  guard.kind = kind;
  guard.address = address;
  guard.bytes = bytes;
  guard.low = fuzz_world.decisions.length / kBucket * kBucket;
  guard.high = guard.low + kBucket - 1;
  guard.ask = answer;
  guard.user = &fuzz_world.decisions;
  return GCAP_GRAPH_GUARD(&guard);
}

static gcap_status_t state_all(unsigned follows) {
  const fuzz_decisions_t* now = &fuzz_world.decisions;
  if (follows & LENGTH) {
    GCAP_RETURN_IF_ERROR(state("length", GCAP_GRAPH_GUARD_INTEGER, &now->length, sizeof(now->length)));
  }
  if (follows & TABLE) GCAP_RETURN_IF_ERROR(state(NULL, GCAP_GRAPH_GUARD_POINTER, &now->table, 0));
  if (follows & FLAGS) {
    GCAP_RETURN_IF_ERROR(state("flags", GCAP_GRAPH_GUARD_BYTES, now->flags, sizeof(now->flags)));
  }
  if (follows & ANSWER) GCAP_RETURN_IF_ERROR(state("answer", GCAP_GRAPH_GUARD_ANSWER, NULL, 0));
  return NULL;
}

void fuzz_state_guard(void) {
  const fuzz_decisions_t* now = &fuzz_world.decisions;
  const int32_t of_the_work = 0;
  switch (fuzz_draw(8)) {
    case 0: fuzz_ok(state("length", GCAP_GRAPH_GUARD_INTEGER, &of_the_work, sizeof(of_the_work))); break;
    case 1: fuzz_ok(state("length", GCAP_GRAPH_GUARD_INTEGER, &now->length, 3)); break;
    case 2: fuzz_ok(state("flags", GCAP_GRAPH_GUARD_BYTES, now->flags, fuzz_draw(2) * 5000)); break;
    case 3: fuzz_ok(state(NULL, (gcap_graph_guard_kind_t)4, now->flags, 1)); break;
    case 4: fuzz_ok(state(NULL, GCAP_GRAPH_GUARD_POINTER, NULL, 0)); break;
    case 5: fuzz_ok(gcap_graph_guard_state(NULL, __FILE__, __LINE__)); break;
    default: fuzz_ok(state_all(1u << fuzz_draw(4)));
  }
}

// --- Work -----------------------------------------------------------------------------------------------------------

// A run with what it points to.
typedef struct step {
  unsigned which;  // of kKeys
  gcap_graph_key_t key;
  int in, out;  // places
  uint8_t position, low, high;
  uint64_t seed;
  gcap_graph_buffer_t items[2];
  gcap_graph_value_t values[2];
  gcap_graph_buffers_t buffers;
  gcap_run_result_t result;
  gcap_run_t run;
  bool is_alone;            // takes no other steps, and does not fail
  bool must_replay;         // so its work is not called
  fuzz_decisions_t issued;  // those of the last call of the work
} step_t;

static char* place(int number) { return fuzz_world.places + (size_t)number * FUZZ_PLACE_BYTES; }

static size_t position_bytes(unsigned follows, uint8_t position) {
  return follows & SIZES && position >= 128 ? kPartBytes / 2 : kPartBytes;
}

// What the first part says, for each decision.
static void write_tags(unsigned which, const fuzz_decisions_t* of, unsigned char tags[kPartBytes / kTagBytes]) {
  const unsigned follows = kKeys[which].follows;
  unsigned char flags = 0;
  for (size_t i = 0; i < sizeof(of->flags); ++i) flags = (unsigned char)(flags * 2 + of->flags[i]);
  tags[0] = (unsigned char)(1 + which);
  tags[1] = follows & LENGTH ? (unsigned char)(1 + of->length / kBucket) : 0;
  tags[2] = follows & TABLE ? (unsigned char)(of->table == NULL ? 9 : (const char*)of->table - kTables) : 0;
  tags[3] = (unsigned char)((follows & FLAGS ? flags : 0) + (follows & ANSWER ? 64 * of->answer : 0));
}

// Whether the work takes a branch more.
static bool branches(unsigned which, const fuzz_decisions_t* of) {
  return kKeys[which].follows & LENGTH && of->length / kBucket == 2;
}

// What the step leaves in its place.
static void write_image(const step_t* step, const fuzz_decisions_t* of, unsigned char* image) {
  const unsigned follows = kKeys[step->which].follows;
  unsigned char tags[kPartBytes / kTagBytes];
  write_tags(step->which, of, tags);
  for (int i = 0; i < kPartBytes; ++i) image[i] = tags[i / kTagBytes];
  if (follows & VALUES) {
    memset(image + kPartBytes, step->position, position_bytes(follows, step->position));
    memcpy(image + 2 * kPartBytes, &step->seed, sizeof(step->seed));
  }
  if (branches(step->which, of)) memset(image + 2 * kPartBytes + kPartBytes / 2, 7, kPartBytes / 2);
  if (follows & PLACES) memset(image + 3 * kPartBytes, 1 + step->in, kPartBytes);
}

static gcap_status_t fill(char* at, int value, size_t bytes, cudaStream_t stream) {
  return GCAP_CUDA(cudaMemsetAsync(at, value, bytes, stream));
}

static gcap_status_t issue(const step_t* step, const gcap_run_resources_t* resources) {
  const unsigned follows = kKeys[step->which].follows;
  const cudaStream_t stream = resources->cuda_stream;
  char* out = follows & PLACES ? resources->addresses[1] : place(kFixedPlace);
  unsigned char tags[kPartBytes / kTagBytes];
  write_tags(step->which, &step->issued, tags);
  for (int i = 0; i < kPartBytes / kTagBytes; ++i) {
    GCAP_RETURN_IF_ERROR(fill(out + i * kTagBytes, tags[i], kTagBytes, stream));
  }
  if (follows & VALUES) {
    const uint8_t position = *(const uint8_t*)resources->values[0];
    GCAP_RETURN_IF_ERROR(fill(out + kPartBytes, position, position_bytes(follows, position), stream));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(out + 2 * kPartBytes, resources->values[1], sizeof(step->seed),
                                                   cudaMemcpyDeviceToDevice, stream)));
  }
  if (branches(step->which, &step->issued)) {
    GCAP_RETURN_IF_ERROR(fill(out + 2 * kPartBytes + kPartBytes / 2, 7, kPartBytes / 2, stream));
  }
  if (!(follows & PLACES)) return NULL;
  return GCAP_CUDA(cudaMemcpyAsync(out + 3 * kPartBytes, (const char*)resources->addresses[0] + kInput, kPartBytes,
                                   cudaMemcpyDeviceToDevice, stream));
}

static gcap_status_t draw_outcome(void) {
  switch (fuzz_draw(16)) {
    case 0: return GCAP_STATUS(GCAP_UNAVAILABLE, "the step did not succeed");
    case 1: return GCAP_STATUS(GCAP_CANCELLED, "the step was cancelled");
    default: return NULL;
  }
}

// Other steps come first. Where they ended the run's capture, or left one open, the work issues nothing.
static gcap_status_t misbehave(const gcap_run_resources_t* resources) {
  const unsigned long long capture = fuzz_capture_of(resources->cuda_stream);
  const unsigned how = fuzz_draw(16);
  if (how == 0) fuzz_reenter_and_end_scope();
  if (how == 1) change_decision();
  if (how == 2) fuzz_state_guard();
  if (fuzz_capture_of(resources->cuda_stream) != capture || (capture == 0 && fuzz_captures())) {
    return GCAP_STATUS(GCAP_UNAVAILABLE, "the step was disturbed");
  }
  if (how == 3 && resources->scratch != NULL) return fuzz_use_scratch(resources, /*in_run=*/true);
  return NULL;
}

static gcap_status_t work(void* user, const gcap_run_resources_t* resources) {
  step_t* step = user;
  FUZZ_CHECK(!step->must_replay, "key '%s' has a graph for these decisions, and its work is called", step->key.name);
  if (!step->is_alone) GCAP_RETURN_IF_ERROR(misbehave(resources));
  step->issued = fuzz_world.decisions;
  GCAP_RETURN_IF_ERROR(state_all(kKeys[step->which].follows));
  GCAP_RETURN_IF_ERROR(issue(step, resources));
  return step->is_alone ? NULL : draw_outcome();
}

static void draw_values(step_t* step) {
  const bool is_beyond = fuzz_draw(32) == 0;  // refused, or eager
  step->position = (uint8_t)fuzz_draw(256);
  step->low = is_beyond ? (uint8_t)fuzz_draw(256) : 0;
  step->high = 255;
  step->seed = fuzz_draw(256) * 0x0101010101010101u;
  step->values[0] = (gcap_graph_value_t){.name = "position",
                                         .data = &step->position,
                                         .bytes = sizeof(step->position),
                                         .type = GCAP_GRAPH_VALUE_UNSIGNED,
                                         .low = &step->low,
                                         .high = &step->high};
  step->values[1] = (gcap_graph_value_t){.data = &step->seed, .bytes = sizeof(step->seed), .in_memory = true};
  step->buffers.values = step->values;
  step->buffers.num_values = 2;
}

// The places may be one and the same.
static void draw_places(step_t* step) {
  step->in = (int)fuzz_draw(FUZZ_PLACES);
  step->out = (int)fuzz_draw(FUZZ_PLACES);
  step->items[0] = (gcap_graph_buffer_t){"in", place(step->in), FUZZ_PLACE_BYTES, 0};
  step->items[1] = (gcap_graph_buffer_t){"out", place(step->out), FUZZ_PLACE_BYTES, 0};
  step->buffers.items = step->items;
  step->buffers.count = 2;
}

static void draw_buffers(step_t* step) {
  if (kKeys[step->which].follows & VALUES) draw_values(step);
  if (kKeys[step->which].follows & PLACES) draw_places(step);
}

static void draw_step(step_t* step) {
  static const char* const names[] = {"prefill", "decode", NULL};
  *step = (step_t){.which = fuzz_draw(sizeof(kKeys) / sizeof(kKeys[0])), .out = kFixedPlace};
  const unsigned follows = kKeys[step->which].follows;
  step->key = (gcap_graph_key_t){kKeys[step->which].bytes, kKeys[step->which].size, names[fuzz_draw(3)]};
  gcap_graph_buffers_init(&step->buffers);
  step->buffers.stand_ins = (gcap_graph_stand_ins_t)fuzz_draw(2);
  draw_buffers(step);
  gcap_run_result_init(&step->result);
  gcap_run_init(&step->run);
  step->run.key = &step->key;
  step->run.work = work;
  step->run.user = step;
  step->run.result = &step->result;
  if (follows & (VALUES | PLACES)) step->run.buffers = &step->buffers;
  const unsigned how = fuzz_draw(32);
  step->run.synchronize = how & 1;
  step->run.pinned = (how & 6) == 6;
  step->run.capture_only = (how & 24) == 24;
}

// --- The oracle -----------------------------------------------------------------------------------------------------

static void read_places(unsigned char seen[FUZZ_PLACES][kImageBytes]) {
  for (int i = 0; i < FUZZ_PLACES; ++i) {
    FUZZ_CHECK(cudaMemcpy(seen[i], place(i), kImageBytes, cudaMemcpyDeviceToHost) == cudaSuccess, "a place is gone");
  }
}

// Takes what the places have as known. While something captures, that waits for a later step.
static bool settle(void) {
  fuzz_world.is_unsettled = !fuzz_wait_for_devices();
  if (!fuzz_world.is_unsettled) read_places(fuzz_world.images);
  return !fuzz_world.is_unsettled;
}

// The places are as known, but for what this step writes; NULL: nothing does.
static void expect(const step_t* step, const fuzz_decisions_t* of) {
  fuzz_world.is_unsettled = !fuzz_wait_for_devices();
  if (fuzz_world.is_unsettled) return;
  if (step != NULL) write_image(step, of, fuzz_world.images[step->out]);
  unsigned char seen[FUZZ_PLACES][kImageBytes];
  read_places(seen);
  for (int i = 0; i < FUZZ_PLACES; ++i) {
    for (int at = 0; at < kImageBytes; ++at) {
      FUZZ_CHECK(seen[i][at] == fuzz_world.images[i][at], "key %d: byte %d of place %d is %d, eagerly %d",
                 step != NULL ? (int)step->which : -1, at, i, seen[i][at], fuzz_world.images[i][at]);
    }
  }
}

// Nobody knows whether a graph of the key is for the decisions of now.
static bool is_silent_guard(const step_t* step) {
  return kKeys[step->which].follows & ANSWER && fuzz_world.decisions.is_silent;
}

// A run whose call succeeded, or did not.
static void check_run(const step_t* step, bool ok) {
  const gcap_run_result_t* result = &step->result;
  const bool is_done = result->outcome != GCAP_RUN_NOT_DONE;
  FUZZ_CHECK(!ok || is_done, "a run of which nothing became succeeded");
  FUZZ_CHECK(!is_silent_guard(step) || result->outcome != GCAP_RUN_REPLAYED, "a replay for want of an answer");
  FUZZ_CHECK(!step->run.capture_only || !ok || result->outcome == GCAP_RUN_RECORDED, "it was more than captured");
  FUZZ_CHECK(!ok || (result->why_eager != GCAP_EAGER_NOT) == (result->outcome == GCAP_RUN_EAGER), "eager: %s",
             gcap_why_eager_name(result->why_eager));
  if (!ok && result->was_issued) {
    settle();
  } else if (!ok || result->outcome == GCAP_RUN_RECORDED) {
    expect(NULL, NULL);
  } else {
    expect(step, result->outcome == GCAP_RUN_REPLAYED ? &fuzz_world.decisions : &step->issued);
  }
}

// --- Calls ----------------------------------------------------------------------------------------------------------

// A manager, or a runtime.
typedef struct engine {
  gcap_graph_manager_t* manager;  // also of the runtime; NULL: it could not be made
  gcap_runtime_t* runtime;
} engine_t;

static bool run(const engine_t* engine, step_t* step) {
  return fuzz_ok(engine->runtime != NULL ? gcap_runtime_run(engine->runtime, &step->run)
                                         : gcap_graph_manager_run(engine->manager, &step->run));
}

// What is run once more for the same decisions is a replay.
static void run_again(const engine_t* engine, step_t* step) {
  const gcap_run_outcome_t before = step->result.outcome;
  const fuzz_decisions_t* now = &fuzz_world.decisions;
  if (fuzz_world.mode != FUZZ_PLAIN || fuzz_world.is_unsettled || now->is_silent || now->drifts) return;
  if (before != GCAP_RUN_CAPTURED && before != GCAP_RUN_REPLAYED) return;
  step->must_replay = true;
  check_run(step, run(engine, step));
  step->must_replay = false;
}

static void run_step(const engine_t* engine, step_t* step) {
  bool ok = run(engine, step);
  check_run(step, ok);
  for (int i = 0; i < kRepeats && ok && !fuzz_world.is_unsettled && fuzz_draw(4) != 0; ++i) {
    if (fuzz_draw(4) == 0) {
      run_again(engine, step);
      continue;
    }
    if (fuzz_draw(2)) change_decision();
    draw_buffers(step);
    ok = run(engine, step);
    check_run(step, ok);
  }
}

// The id of the step's key; GCAP_GRAPH_ID_NONE: it has none.
static int find(const engine_t* engine, const step_t* step) {
  int id = GCAP_GRAPH_ID_NONE;
  if (engine->manager == NULL || !fuzz_ok(gcap_graph_manager_find(engine->manager, &step->key, &id))) {
    return GCAP_GRAPH_ID_NONE;
  }
  FUZZ_CHECK(id < GCAP_GRAPH_ID_NONE, "a key has the id %d", id);
  return id;
}

static void replay(const engine_t* engine, step_t* step) {
  const int id = find(engine, step);
  if (id != GCAP_GRAPH_ID_NONE && fuzz_draw(2)) {
    step->run.key = NULL;
    step->run.id = id;
  }
  step->run.capture_only = fuzz_draw(16) == 0;
  bool replayed = false;
  const bool ok = fuzz_ok(engine->runtime != NULL ? gcap_runtime_replay(engine->runtime, &step->run, &replayed)
                                                  : gcap_graph_manager_replay(engine->manager, &step->run, &replayed));
  FUZZ_CHECK(!ok || replayed == (step->result.outcome == GCAP_RUN_REPLAYED), "replayed is %d", replayed);
  FUZZ_CHECK(!is_silent_guard(step) || !replayed, "a replay for want of an answer");
  if (!ok && step->result.was_issued) {
    settle();
  } else {
    expect(ok && replayed ? step : NULL, &fuzz_world.decisions);
  }
}

// Begin, work and end as calls of the caller's own, on a manager.
static void run_in_parts(const engine_t* engine, step_t* step) {
  if (engine->runtime != NULL) return;
  step->is_alone = true;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  bool ok = true;
  do {
    void* addresses[4] = {NULL};
    gcap_run_resources_t resources;
    gcap_run_resources_init(&resources);
    ok = fuzz_ok(gcap_graph_manager_begin_run(engine->manager, &step->run, &kind, addresses));
    if (!ok) break;
    resources.cuda_stream = step->run.stream;
    resources.addresses = addresses;
    resources.num_addresses = step->buffers.count;
    resources.values = (const void* const*)addresses + step->buffers.count;
    resources.num_values = step->buffers.num_values;
    ok = fuzz_ok(gcap_graph_manager_end_run(engine->manager, &step->run, work(step, &resources)));
  } while (ok && kind == GCAP_GRAPH_RUN_REHEARSAL);
  check_run(step, ok);
}

static void on_run(void* user, size_t index, size_t total, const gcap_run_result_t* result) {
  (void)user;
  FUZZ_CHECK(index < total, "run %zu of %zu", index, total);
  FUZZ_CHECK(result->outcome != GCAP_RUN_REPLAYED || result->was_issued, "a replay that was not issued");
  if (fuzz_draw(4) == 0) fuzz_reenter_and_end_scope();
}

// Several runs in one call: a warm-up, or a plan.
static void run_several(const engine_t* engine, bool is_plan, cudaStream_t stream) {
  step_t steps[kRuns];
  gcap_run_t runs[kRuns];
  const size_t count = 1 + fuzz_draw(kRuns);
  for (size_t i = 0; i < count; ++i) {
    draw_step(&steps[i]);
    steps[i].run.stream = stream;
    runs[i] = steps[i].run;
  }
  if (is_plan) {
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    const bool ok = fuzz_ok(engine->runtime != NULL ? gcap_runtime_plan(engine->runtime, runs, count, &plan)
                                                    : gcap_graph_manager_plan(engine->manager, runs, count, &plan));
    FUZZ_CHECK(plan.graphs == (ok ? count : 0), "%zu graphs of %zu runs", plan.graphs, count);
    expect(NULL, NULL);
    return;
  }
  const bool ok =
      fuzz_ok(engine->runtime != NULL ? gcap_runtime_warm_up(engine->runtime, runs, count, on_run, NULL)
                                      : gcap_graph_manager_warm_up(engine->manager, runs, count, on_run, NULL));
  settle();
  for (size_t i = 0; ok && engine->manager != NULL && i < count; ++i) {
    gcap_graph_info_t info;
    const int id = find(engine, &steps[i]);
    if (id != GCAP_GRAPH_ID_NONE) gcap_graph_manager_get_info(engine->manager, id, &info);
    FUZZ_CHECK(id == GCAP_GRAPH_ID_NONE ? fuzz_world.mode != FUZZ_PLAIN : info.graphs > 0, "a warm-up left no graph");
  }
}

static void use_id(const engine_t* engine, const step_t* step) {
  const int id = find(engine, step);
  gcap_graph_manager_t* manager = engine->manager;
  if (id == GCAP_GRAPH_ID_NONE) return;
  switch (fuzz_draw(6)) {
    case 0: fuzz_ok(gcap_graph_manager_recapture(manager, id)); break;
    case 1: fuzz_ok(gcap_graph_manager_release(manager, id)); break;
    case 2: fuzz_ok(gcap_graph_manager_check_moves(manager, id)); break;
    case 3: fuzz_check_graph(manager, id); break;
    default: gcap_status_free(gcap_graph_manager_explain(manager, id, (gcap_graph_question_t)fuzz_draw(7)));
  }
  expect(NULL, NULL);
}

// Keys that are none, and a key beside an id.
static void run_badly(const engine_t* engine, step_t* step) {
  static const char bytes[GCAP_GRAPH_KEY_MAX_BYTES + 1];
  switch (fuzz_draw(4)) {
    case 0: step->key.size = 0; break;
    case 1: step->key = (gcap_graph_key_t){bytes, sizeof(bytes), NULL}; break;
    case 2: step->key.bytes = NULL; break;
    default: step->run.id = (int)fuzz_draw(4);
  }
  FUZZ_CHECK(!run(engine, step) && step->result.outcome == GCAP_RUN_NOT_DONE, "a key that is none was run");
  expect(NULL, NULL);
}

static void call(const engine_t* engine, cudaStream_t stream) {
  step_t step;
  draw_step(&step);
  step.run.stream = stream;
  switch (fuzz_draw(16)) {
    case 0: run_badly(engine, &step); break;
    case 1: run_in_parts(engine, &step); break;
    case 2: run_several(engine, /*is_plan=*/false, stream); break;
    case 3: run_several(engine, /*is_plan=*/true, stream); break;
    case 4: use_id(engine, &step); break;
    case 5:
    case 6: replay(engine, &step); break;
    default: run_step(engine, &step);
  }
}

// --- Steps ----------------------------------------------------------------------------------------------------------

static void call_manager(void) {
  gcap_graph_manager_t* manager = fuzz_world.managers[fuzz_draw(FUZZ_MANAGERS)];
  if (manager == NULL) {
    fuzz_manager_step();
    return;
  }
  const engine_t engine = {.manager = manager};
  fuzz_world.running = manager;
  call(&engine, fuzz_world.raw[fuzz_draw(2)]);
  fuzz_world.running = NULL;
}

// The places are memory of device 0.
static void call_runtime(void) {
  fuzz_runtime_t* slot = &fuzz_world.runtimes[fuzz_draw(FUZZ_RUNTIMES)];
  if (slot->runtime == NULL) {
    fuzz_runtime_step();
    return;
  }
  if (slot->calls > 0 || slot->session != NULL || slot->has_stale_graphs || slot->device != 0) return;
  ++slot->calls;
  engine_t engine = {.runtime = slot->runtime};
  fuzz_ok(gcap_runtime_graphs(slot->runtime, &engine.manager));
  call(&engine, GCAP_RUN_OWN_STREAM);
  --slot->calls;
}

void fuzz_begin_keyed(void) {
  for (int i = 0; i < FUZZ_PLACES; ++i) {
    FUZZ_CHECK(cudaMemset(place(i) + kInput, 1 + i, kPartBytes) == cudaSuccess, "a place is gone");
  }
  FUZZ_CHECK(settle(), "a stream captures at first");
}

void fuzz_keyed_step(void) {
  if (fuzz_world.in_keyed || fuzz_captures() || (fuzz_world.is_unsettled && !settle())) {
    fuzz_manager_step();
    return;
  }
  const unsigned what = fuzz_draw(8);
  fuzz_world.in_keyed = true;
  if (what == 0) {
    fuzz_state_guard();
  } else if (what <= 2) {
    change_decision();
  } else if (what <= 4) {
    call_runtime();
  } else {
    call_manager();
  }
  fuzz_world.in_keyed = false;
}
