// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs of drawn work by a graph manager, each compared with the same work on the device alone. The memory is kept
// before a run; after the run it is given back what it held, the work is issued on the same addresses, and what both
// left must be equal.
//
// Locking: none. Where a step is taken by another thread, nobody else takes one.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "test/support/moves/drawn_moves.h"

enum { IDS = 3, MAX_STEPS = 64 };

// One id, its work, and where its graph is.
typedef struct known {
  int id;
  drawn_work_t work;
  bool is_bound;     // it has a graph, which is at `bound`
  bool had_several;  // graphs, since the last run that named its buffers
  drawn_layout_t bound;
} known_t;

typedef struct player {
  drawn_world_t world;
  drawn_source_t* source;
  drawn_counts_t* counts;
  gcap_graph_manager_t* manager;
  known_t ids[IDS];
  char* text;
  size_t capacity;
  bool is_good;
} player_t;

// --- What was not right ---------------------------------------------------------------------------------------------

__attribute__((format(printf, 2, 3))) static bool fail(player_t* player, const char* format, ...) {
  char said[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(said, sizeof(said), format, arguments);
  va_end(arguments);
  if (player->is_good) snprintf(player->text, player->capacity, "%s", said);
  player->is_good = false;
  return false;
}

static bool fail_of(player_t* player, const known_t* known, const char* what, const char* how) {
  static const char* const kinds[] = {"kernel",   "copy",          "2-D copy",       "3-D copy",      "fill",
                                      "2-D fill", "host function", "stored pointer", "hidden pointer"};
  char steps[256] = "";
  size_t at = 0;
  for (size_t i = 0; i < known->work.num_steps && at < sizeof(steps); ++i) {
    const drawn_step_t* step = &known->work.steps[i];
    at += (size_t)snprintf(steps + at, sizeof(steps) - at, "%s%s %u/%u/%u", i == 0 ? "" : ", ", kinds[step->kind],
                           step->op, step->x_form, step->y_form);
  }
  return fail(player, "%s: %s; the work is %s", what, how, steps);
}

// Consumes the status: it must be a success.
static bool expect_ok(player_t* player, const known_t* known, const char* what, gcap_status_t status) {
  if (status == NULL) return true;
  fail_of(player, known, what, gcap_status_message(status));
  gcap_status_free(status);
  return false;
}

// Consumes the status: a refusal says what the caller is to do.
static bool is_refused(player_t* player, const known_t* known, const char* what, gcap_status_t status) {
  if (status == NULL) return false;
  const gcap_code_t code = gcap_status_code(status);
  const bool is_by_name = code == GCAP_FAILED_PRECONDITION || code == GCAP_INVALID_ARGUMENT || code == GCAP_NOT_FOUND;
  if (!is_by_name) fail_of(player, known, what, gcap_status_message(status));
  gcap_status_free(status);
  return true;
}

static bool world_is_good(player_t* player) {
  return player->world.failure == NULL || fail(player, "%s failed", player->world.failure);
}

// --- One run --------------------------------------------------------------------------------------------------------

static gcap_status_t issue(void* work, const gcap_run_resources_t* resources) {
  return drawn_work_issue(work, resources->cuda_stream, (char* const*)resources->addresses);
}

static gcap_status_t check(player_t* player, const known_t* known) {
  if (!drawn_world_open(&player->world, true)) return NULL;
  gcap_status_t status = gcap_graph_manager_check_moves(player->manager, known->id);
  (void)drawn_world_open(&player->world, false);
  return status;
}

// One for each way that the buffers of its runs lay to one another.
static bool has_several_graphs(const player_t* player, const known_t* known) {
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(player->manager, known->id, &info);
  return info.graphs > 1;
}

// A pointer that no argument holds cannot be seen: then a check of moves must tell. Of several graphs none is checked.
static bool is_told(player_t* player, known_t* known) {
  if (!known->work.is_hidden) return false;
  const bool is_checked = !has_several_graphs(player, known);
  gcap_status_t told = check(player, known);
  const bool is_found = told != NULL && gcap_status_code(told) == GCAP_FAILED_PRECONDITION;
  gcap_status_free(told);
  player->counts->hidden += is_found && is_checked;
  if (!is_found) return false;
  known->is_bound = false;
  return expect_ok(player, known, "a release", gcap_graph_manager_release(player->manager, known->id));
}

// Whether the memory is as the work leaves it that is issued at these addresses.
static bool expect_right(player_t* player, known_t* known, const char* what, const drawn_layout_t* layout) {
  char how[256] = "the memory cannot be read";
  drawn_world_t* world = &player->world;
  if (!drawn_world_rewind(world)) return world_is_good(player);
  known->work.caller = *layout;
  gcap_status_t issued = drawn_work_issue(&known->work, world->stream, layout->address);
  if (!expect_ok(player, known, "the work alone", issued)) return false;
  if (drawn_world_is_as_kept(world, how, sizeof(how))) return true;
  return is_told(player, known) || fail_of(player, known, what, how);
}

static void count(player_t* player, known_t* known, const gcap_run_result_t* result, const drawn_layout_t* layout) {
  const bool is_replay = result->outcome == GCAP_RUN_REPLAYED;
  const bool is_elsewhere = memcmp(&known->bound, layout, sizeof(*layout)) != 0;
  ++player->counts->runs;
  player->counts->replays += is_replay;
  player->counts->moved += is_replay && is_elsewhere;
  player->counts->eager += result->outcome == GCAP_RUN_EAGER;
  if (!is_replay && result->outcome != GCAP_RUN_CAPTURED) return;
  known->is_bound = true;
  known->bound = *layout;
  known->had_several = has_several_graphs(player, known);
}

static bool run_at(player_t* player, known_t* known, const drawn_layout_t* layout, size_t index) {
  drawn_work_t* work = &known->work;
  gcap_graph_buffer_t items[DRAWN_MAX_BUFFERS];
  for (size_t i = 0; i < work->num_buffers; ++i) {
    items[i] = (gcap_graph_buffer_t){NULL, layout->address[i], work->buffers[i].bytes, work->buffers[i].alignment};
  }
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = items;
  buffers.count = work->num_buffers;
  buffers.stand_ins = work->stand_ins;
  buffers.may_be_unused = work->may_be_unused;
  buffers.host_functions_may_stay = work->host_functions_may_stay;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = known->id;
  run.stream = player->world.stream;
  run.work = issue;
  run.user = work;
  run.buffers = &buffers;
  run.synchronize = true;
  run.result = &result;
  work->caller = *layout;
  work->layout = index;
  if (!drawn_world_save(&player->world)) return world_is_good(player);
  if (!expect_ok(player, known, "a run", gcap_graph_manager_run(player->manager, &run))) return false;
  count(player, known, &result, layout);
  static const char* const outcomes[] = {"a run that was not done", "a replay", "a capture", "an eager run"};
  return expect_right(player, known, outcomes[result.outcome], layout);
}

// --- Binds and replays ----------------------------------------------------------------------------------------------

static void bind_to(player_t* player, known_t* known, size_t buffer, char* address) {
  gcap_status_t status = gcap_graph_manager_bind(player->manager, known->id, buffer, address);
  if (is_refused(player, known, "a bind", status)) {
    ++player->counts->refused_binds;
  } else {
    known->bound.address[buffer] = address;
  }
}

// Where the graph is. A graph that was evicted is not launched, and one of several is not either.
static bool replay(player_t* player, known_t* known) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = known->id;
  run.synchronize = true;
  bool is_replayed = false;
  if (!drawn_world_save(&player->world)) return world_is_good(player);
  const drawn_layout_t layout = known->bound;
  known->work.layout = DRAWN_LAYOUTS;
  gcap_status_t status = gcap_graph_manager_replay(player->manager, &run, &is_replayed);
  const bool may_refuse = has_several_graphs(player, known) || known->had_several;
  if (status != NULL && may_refuse) return is_refused(player, known, "a replay", status);
  if (!expect_ok(player, known, "a replay", status)) return false;
  player->counts->replays += is_replayed;
  if (!is_replayed) known->is_bound = false;
  return !is_replayed || expect_right(player, known, "a replay after binds", &layout);
}

// A bind is of one graph, and several need a run's buffers at each replay.
static bool may_bind(const player_t* player, const known_t* known) {
  return known->is_bound && !known->work.is_hidden && gcap_graph_manager_is_captured(player->manager, known->id) &&
         !has_several_graphs(player, known);
}

static bool bind_and_replay(player_t* player, known_t* known, const drawn_layout_t* layout) {
  for (size_t i = 0; player->is_good && i < known->work.num_buffers; ++i) {
    if (may_bind(player, known)) bind_to(player, known, i, layout->address[i]);
  }
  return player->is_good && (!may_bind(player, known) || replay(player, known));
}

// The buffers hold what they held, whatever the answer, but for those that are in pinned memory and so stay in place.
static bool check_moves(player_t* player, known_t* known) {
  if (!may_bind(player, known)) return true;
  if (!drawn_world_save(&player->world)) return world_is_good(player);
  is_refused(player, known, "a check of moves", check(player, known));
  char before[1024], after[1024];
  for (size_t i = 0; player->is_good && i < known->work.num_buffers; ++i) {
    const size_t bytes = known->work.buffers[i].bytes;
    if (known->work.buffers[i].is_pinned) continue;
    for (int k = 0; k < DRAWN_SECTIONS; ++k) {
      const drawn_section_t* section = &player->world.sections[k];
      const size_t at = (size_t)(known->bound.address[i] - section->address);
      if (at < section->bytes) memcpy(before, section->before + at, bytes);
    }
    if (cudaMemcpy(after, known->bound.address[i], bytes, cudaMemcpyDefault) != cudaSuccess) {
      return fail(player, "a buffer cannot be read");
    }
    if (memcmp(before, after, bytes) != 0) fail_of(player, known, "a check of moves", "a buffer has other bytes");
  }
  return player->is_good;
}

// --- Begin and end --------------------------------------------------------------------------------------------------

static bool begin(player_t* player, uint32_t min_runs, size_t max_graphs) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = min_runs;
  options.max_graphs = max_graphs;
  player->is_good = true;
  if (!drawn_world_create(&player->world)) return world_is_good(player) && fail(player, "no host memory");
  gcap_status_t status = gcap_graph_manager_create(&options, &player->manager);
  if (status != NULL) fail(player, "%s", gcap_status_message(status));
  gcap_status_free(status);
  return player->is_good;
}

static bool end(player_t* player) {
  gcap_status_t status = gcap_graph_manager_destroy(player->manager);
  if (status != NULL) fail(player, "%s", gcap_status_message(status));
  gcap_status_free(status);
  drawn_world_destroy(&player->world);
  return player->is_good;
}

// Each buffer as in one of the layouts.
static drawn_layout_t mix(player_t* player, const drawn_work_t* work) {
  drawn_layout_t layout = {0};
  for (size_t i = 0; i < work->num_buffers; ++i) {
    layout.address[i] = work->layouts[drawn_below(player->source, DRAWN_LAYOUTS)].address[i];
  }
  return layout;
}

// --- One work -------------------------------------------------------------------------------------------------------

// The graph is replayed at other layouts in turn, as they are drawn. A layout at which a run is eager is left out.
static void replay_elsewhere(player_t* player, known_t* known, unsigned more) {
  size_t indices[DRAWN_LAYOUTS], count = 0, last = 0;
  while (count < DRAWN_LAYOUTS) indices[count] = count, ++count;
  for (unsigned i = 0; player->is_good && i < more && count > 1; ++i) {
    const unsigned eager = player->counts->eager;
    last = (last + 1 + drawn_below(player->source, (unsigned)count - 1)) % count;
    run_at(player, known, &known->work.layouts[indices[last]], indices[last]);
    if (player->counts->eager == eager) continue;
    indices[last] = indices[--count];
    last = 0;
  }
}

bool drawn_moves_try(drawn_source_t* source, unsigned more, drawn_counts_t* counts, char* text, size_t capacity) {
  player_t player = {.source = source, .counts = counts, .text = text, .capacity = capacity};
  known_t* known = &player.ids[0];
  if (begin(&player, /*min_runs=*/0, /*max_graphs=*/0)) drawn_work_draw(source, &player.world, &known->work);
  static const size_t layouts[] = {0, 1, 2, 0};
  const unsigned moved = counts->moved;
  for (size_t i = 0; player.is_good && i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
    run_at(&player, known, &known->work.layouts[layouts[i]], layouts[i]);
  }
  if (player.is_good && drawn_one_of(source, 4)) {
    const drawn_layout_t layout = mix(&player, &known->work);
    bind_and_replay(&player, known, &layout);
    if (player.is_good) run_at(&player, known, &known->work.layouts[3], 3);
  }
  if (counts->moved > moved && !known->work.is_hidden) replay_elsewhere(&player, known, more);
  return end(&player);
}

// --- Many -----------------------------------------------------------------------------------------------------------

static void take_step(player_t* player) {
  known_t* known = &player->ids[drawn_below(player->source, IDS)];
  const size_t index = drawn_below(player->source, DRAWN_LAYOUTS);
  const drawn_layout_t layout = mix(player, &known->work);
  switch (drawn_below(player->source, 12)) {
    case 0: bind_and_replay(player, known, &layout); break;
    case 1:
      if (may_bind(player, known)) replay(player, known);
      break;
    case 2: check_moves(player, known); break;
    case 3:
      known->is_bound = false;
      is_refused(player, known, "a release", gcap_graph_manager_release(player->manager, known->id));
      break;
    case 4:
      is_refused(player, known, "a recapture", gcap_graph_manager_recapture(player->manager, known->id));
      known->is_bound = false;
      break;
    case 5:
      if (!known->work.keeps_tables) run_at(player, known, &layout, DRAWN_LAYOUTS + 1);
      break;
    default: run_at(player, known, &known->work.layouts[index], index);
  }
}

static void* take_step_in_thread(void* player) {
  take_step(player);
  return NULL;
}

static void take_step_elsewhere(player_t* player) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, take_step_in_thread, player) != 0) return;
  (void)pthread_join(thread, NULL);
}

bool drawn_moves_play(drawn_source_t* source, drawn_counts_t* counts, char* text, size_t capacity) {
  player_t player = {.source = source, .counts = counts, .text = text, .capacity = capacity};
  const uint32_t min_runs = drawn_below(source, 3);
  if (begin(&player, min_runs, drawn_below(source, IDS + 1))) {
    for (int i = 0; i < IDS; ++i) {
      player.ids[i].id = i;
      drawn_work_draw(source, &player.world, &player.ids[i].work);
      player.ids[i].work.id = (size_t)i;
    }
  }
  for (int i = 0; player.is_good && i < MAX_STEPS && (source->at == NULL || source->left > 0); ++i) {
    if (drawn_one_of(source, 8)) {
      take_step_elsewhere(&player);
    } else {
      take_step(&player);
    }
  }
  return end(&player);
}
