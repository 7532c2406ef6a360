// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reservations: the blocks of one captured graph. A block joins when it is handed out to the diverted stream, or freed
// by it, while the reservation is open, and stays until the release. A free block of it lies in its own pool, where
// the same stream's allocations look while it is open, and none once it is closed.
//
// A block that the stream got before the capture and frees inside it joins too: kernels captured before the free may
// use it, and a replay does so again (rule 4 of docs/architecture.md: such memory is the graph's). Where it is an
// earlier reservation's, the open one takes a share of that, and gives it up when it ends.
//
// Several graphs may share one: each capture opens it again and uses its free blocks first. What one graph wrote there
// the next one overwrites, which is right because a graph reads of its scratch only what it wrote itself, and because
// stream order keeps their replays apart.
//
// A capture scope of gcap needs no caller to open one: the first allocation or free of a stream that the scope captures
// opens a reservation of that stream, which the scope closes at its end and the graph retains. A forked stream's blocks
// are in order with its own captured work alone, so each stream of a scope has a reservation of its own.
//
// A rehearsal's reservation is not given back when its graph is: the stream keeps it for the capture that follows,
// which gets its blocks at the same addresses (script.c). It is given back when another reservation of the stream is
// opened, or a run ends without a capture, or the stream ends, or before an allocation fails. So a stream with an open
// reservation has no rehearsed one, and no graph keeps a share of one.
//
// Inside, blocks carry the reservation's tag alone, whichever kernel used them: captured work of one stream is in order
// with itself, also in every replay. Locking: the arena is locked: captures are rare, and their allocations take the
// slow path.

#include "lib/scratch/reservation.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/capture_hooks.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/timeline.h"

// Of one graph's name.
#define MAX_NAME_BYTES 31

void gcap_scratch_reservation_adopt(gcap_scratch_reservation_t* reservation, gcap_scratch_block_t* block) {
  if (gcap_scratch_block_reservation(block) == reservation || reservation->scratch->test_hooks.ignore_reservations)
    return;
  gcap_scratch_block_set_owner(block, &reservation->owner);
  block->used_before = 0;
  reservation->bytes += block->bytes;
  const gcap_scratch_t* scratch = reservation->scratch;
  if (!scratch->options.bypass) return;
  gcap_scratch_find_region(&scratch->store, gcap_scratch_block_base(block))->held = false;  // until the graph's end
}

// --- During a capture -----------------------------------------------------------------------------------------------

static void close_locked(gcap_scratch_reservation_t* reservation, bool committed) {
  gcap_scratch_stream_state_t* state = gcap_scratch_reservation_state(reservation);
  if (state->open != reservation) return;
  state->open = NULL;
  if (state->promise == GCAP_SCRATCH_REDEEMING) state->promise = GCAP_SCRATCH_NO_PROMISE;
  gcap_scratch_script_close(&reservation->script, committed);
}

// Whose capture the calling thread's scope is; 0: there is none, or it is nobody's.
static uint64_t work_of_scope(bool* out_is_rehearsal) {
  *out_is_rehearsal = false;
  return gcap_thread_captures() ? gcap_thread_capture_hooks->work(out_is_rehearsal) : 0;
}

// Diverts the stream's allocations to the reservation, for one graph more.
static gcap_status_t open_locked(gcap_scratch_reservation_t* reservation) {
  gcap_scratch_stream_state_t* state = gcap_scratch_reservation_state(reservation);
  if (gcap_scratch_stream_of(state) == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the stream of a scratch reservation of %zu bytes was destroyed",
                       reservation->bytes);
  }
  if (state->open != NULL) {
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "stream %p has an open scratch reservation of %zu bytes",
                       (void*)gcap_stream_handle(gcap_scratch_stream_of(state)), state->open->bytes);
  }
  if (state->rehearsed != reservation) gcap_scratch_drop_rehearsed(state);
  bool is_rehearsal = false;
  const uint64_t work = work_of_scope(&is_rehearsal);
  gcap_scratch_script_open(&reservation->script, work, is_rehearsal);
  reservation->run = state->use.run;
  state->open = reservation;
  ++reservation->num_graphs;
  return NULL;
}

// A reservation that is not on the list yet.
static gcap_status_t make(gcap_scratch_t* scratch, gcap_scratch_reservation_t** out_reservation) {
  *out_reservation = calloc(1, sizeof(**out_reservation));
  if (*out_reservation == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a scratch reservation");
  (*out_reservation)->scratch = scratch;
  return NULL;
}

// Opens such a reservation and lists it.
static gcap_status_t begin_new(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                               gcap_scratch_reservation_t** out_reservation) {
  gcap_scratch_reservation_t* reservation = NULL;
  GCAP_RETURN_IF_ERROR(make(scratch, &reservation));
  reservation->owner.stream = &state->owner;
  gcap_status_t status = open_locked(reservation);
  if (status != NULL) {
    free(reservation);
    return status;
  }
  ++state->num_reservations;
  reservation->number = ++scratch->num_reservations_made;
  reservation->next = scratch->reservations;
  scratch->reservations = reservation;
  *out_reservation = reservation;
  return NULL;
}

// Opens the reservation of a graph: that of the rehearsal of the same work, or a new one.
static gcap_status_t begin(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                           gcap_scratch_reservation_t** out_reservation) {
  *out_reservation = NULL;
  gcap_scratch_reservation_t* rehearsed = state->open == NULL ? state->rehearsed : NULL;
  bool is_rehearsal = false;
  if (rehearsed == NULL) return begin_new(scratch, state, out_reservation);
  if (rehearsed->script.work != work_of_scope(&is_rehearsal)) return begin_new(scratch, state, out_reservation);
  GCAP_RETURN_IF_ERROR(open_locked(rehearsed));
  state->rehearsed = NULL;
  rehearsed->left_at = 0;
  *out_reservation = rehearsed;
  return NULL;
}

gcap_status_t gcap_scratch_reservation_open(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                            gcap_scratch_reservation_t** out_reservation) {
  GCAP_RETURN_IF_NULL(out_reservation);
  *out_reservation = NULL;
  GCAP_RETURN_IF_NULL(scratch);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_stream_state_t* state = NULL;
  gcap_status_t status = gcap_scratch_get_stream(scratch, stream, &state);
  if (status == NULL) status = begin(scratch, state, out_reservation);
  gcap_scratch_unlock_arena(scratch);
  return status;
}

gcap_status_t gcap_scratch_reservation_reopen(gcap_scratch_reservation_t* reservation) {
  GCAP_RETURN_IF_NULL(reservation);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_lock_arena(reservation->scratch);
  gcap_status_t status = open_locked(reservation);
  gcap_scratch_unlock_arena(reservation->scratch);
  return status;
}

void gcap_scratch_reservation_close_with(gcap_scratch_reservation_t* reservation, bool committed) {
  gcap_scratch_lock_arena(reservation->scratch);
  close_locked(reservation, committed);
  gcap_scratch_unlock_arena(reservation->scratch);
}

void gcap_scratch_reservation_close(gcap_scratch_reservation_t* reservation) {
  gcap_scratch_reservation_close_with(reservation, /*committed=*/false);
}

size_t gcap_scratch_reservation_bytes(const gcap_scratch_reservation_t* reservation) {
  gcap_scratch_lock_arena(reservation->scratch);
  size_t bytes = reservation->bytes;
  gcap_scratch_unlock_arena(reservation->scratch);
  return bytes;
}

// --- Shares of others -----------------------------------------------------------------------------------------------

typedef struct gcap_scratch_kept {
  gcap_scratch_reservation_t* reservation;
  struct gcap_scratch_kept* next;
} gcap_scratch_kept_t;

// Adds a reservation behind the last one that this walk is to visit, unless it was added before.
static void visit(gcap_scratch_reservation_t* reservation, uint64_t walk, gcap_scratch_reservation_t** last) {
  if (reservation->last_walk == walk) return;
  reservation->last_walk = walk;
  reservation->next_to_visit = NULL;
  (*last)->next_to_visit = reservation;
  *last = reservation;
}

// Whether a reservation keeps the other one, itself or by others that it keeps. Each is looked at once.
static bool keeps(gcap_scratch_reservation_t* reservation, const gcap_scratch_reservation_t* other) {
  const uint64_t walk = ++reservation->scratch->num_walks;
  gcap_scratch_reservation_t* last = reservation;
  visit(reservation, walk, &last);
  for (gcap_scratch_reservation_t* at = reservation; at != NULL; at = at->next_to_visit) {
    for (const gcap_scratch_kept_t* kept = at->kept; kept != NULL; kept = kept->next) {
      if (kept->reservation == other) return true;
      visit(kept->reservation, walk, &last);
    }
  }
  return false;
}

// A new reservation is kept by none, so nothing is walked over but in the captures of graphs that share a reservation.
gcap_status_t gcap_scratch_reservation_keep(gcap_scratch_reservation_t* open, gcap_scratch_reservation_t* other) {
  if (other == open || other->last_keeper == open->number) return NULL;
  if (open->num_keepers > 0 && keeps(other, open)) {  // each would wait for the other's end
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "scratch of %s, which keeps that of %s, cannot be freed in a capture into the latter; free it "
                       "outside of a capture",
                       other->label[0] != '\0' ? other->label : "a graph",
                       open->label[0] != '\0' ? open->label : "another graph");
  }
  gcap_scratch_kept_t* kept = malloc(sizeof(*kept));
  if (kept == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to keep another graph's scratch");
  *kept = (gcap_scratch_kept_t){.reservation = other, .next = open->kept};
  open->kept = kept;
  other->last_keeper = open->number;
  ++other->num_keepers;
  return NULL;
}

// --- Names ----------------------------------------------------------------------------------------------------------

// Whether a list of names, set apart by ", ", has this one.
static bool lists(const char* names, const char* name, size_t length) {
  const char* at = names;
  while (at != NULL) {
    const char* end = strstr(at, ", ");
    size_t listed_length = end != NULL ? (size_t)(end - at) : strlen(at);
    if (listed_length == length && memcmp(at, name, length) == 0) return true;
    at = end != NULL ? end + 2 : NULL;
  }
  return false;
}

// Adds a name; three dots stand for those that find no room.
static void add_name(char* names, const char* name, size_t length) {
  static const char more[] = ", ...";
  size_t used = strlen(names);
  size_t separator_bytes = used > 0 ? 2 : 0;
  if (used + separator_bytes + length + sizeof(more) > GCAP_SCRATCH_LABEL_BYTES) {
    if (!lists(names, "...", 3)) memcpy(names + used, more, sizeof(more));
    return;
  }
  memcpy(names + used, ", ", separator_bytes);
  memcpy(names + used + separator_bytes, name, length);
  names[used + separator_bytes + length] = '\0';
}

void gcap_scratch_reservation_set_label(gcap_scratch_reservation_t* reservation, const char* label) {
  size_t length = 0;
  while (length < MAX_NAME_BYTES && label[length] != '\0') ++length;
  gcap_scratch_lock_arena(reservation->scratch);
  if (length > 0 && !lists(reservation->label, label, length)) add_name(reservation->label, label, length);
  gcap_scratch_unlock_arena(reservation->scratch);
}

// --- Memory ---------------------------------------------------------------------------------------------------------

// Whether the block is the reservation's, or one's that it has a share of.
static bool has_block(const gcap_scratch_reservation_t* reservation, const gcap_scratch_block_t* block) {
  const gcap_scratch_reservation_t* owner = gcap_scratch_block_reservation(block);
  if (owner == reservation) return true;
  const gcap_scratch_kept_t* kept = owner != NULL ? reservation->kept : NULL;
  while (kept != NULL && kept->reservation != owner) kept = kept->next;
  return kept != NULL;
}

void gcap_scratch_reservation_list(gcap_scratch_reservation_t* reservation,
                                   void (*visit_block)(void* context, void* address, size_t bytes), void* context) {
  gcap_scratch_t* scratch = reservation->scratch;
  gcap_scratch_lock_arena(scratch);
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    for (const gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (has_block(reservation, block)) visit_block(context, gcap_scratch_block_base(block), block->bytes);
    }
  }
  gcap_scratch_unlock_arena(scratch);
}

// --- The end --------------------------------------------------------------------------------------------------------

// Live blocks become ordinary ones of the arena, whose owner frees them some day.
static void leave_live(gcap_scratch_reservation_t* reservation) {
  const gcap_scratch_t* scratch = reservation->scratch;
  for (size_t i = 0; i < scratch->store.num_regions && reservation->num_live > 0; ++i) {
    for (gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_reservation(block) != reservation || gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE)
        continue;
      gcap_scratch_block_set_owner(block, reservation->owner.stream);
      --reservation->num_live;
    }
  }
}

// Takes it off the list and gives everything back.
static void end_locked(gcap_scratch_reservation_t* reservation) {
  gcap_scratch_t* scratch = reservation->scratch;
  gcap_scratch_stream_state_t* state = gcap_scratch_reservation_state(reservation);
  const uint64_t left_at = reservation->left_at;
  const uint64_t next_point = gcap_scratch_next_point(state);
  gcap_scratch_block_t* block;
  while ((block = gcap_scratch_pool_first(&reservation->owner.pool)) != NULL) {
    gcap_scratch_pool_remove(&reservation->owner.pool, block);
    gcap_scratch_block_set_owner(block, &state->owner);
    // What a rehearsal left live may have been used, and freed, since.
    if (block->used_before < left_at || left_at == 0) block->used_before = left_at != 0 ? left_at : next_point;
    gcap_scratch_put(&scratch->store, block);
  }
  leave_live(reservation);
  --state->num_reservations;
  gcap_scratch_reservation_t** link = &scratch->reservations;
  while (*link != reservation) link = &(*link)->next;
  *link = reservation->next;
  gcap_scratch_script_deinit(&reservation->script);
}

static void free_attachments(gcap_scratch_reservation_t* reservation) {
  while (reservation->zone_copies != NULL) {
    gcap_scratch_attachment_t* attachment = reservation->zone_copies;
    reservation->zone_copies = attachment->next;
    free(attachment);
  }
}

// Leaves a rehearsal's reservation to the capture that is to follow. The rehearsal's own graph is gone.
static bool leave_to_capture(gcap_scratch_reservation_t* reservation) {
  gcap_scratch_stream_state_t* state = gcap_scratch_reservation_state(reservation);
  if (!reservation->script.is_rehearsal || reservation->script.count == 0) return false;
  if (gcap_scratch_stream_of(state) == NULL || state->rehearsed != NULL || state->open != NULL) return false;
  free_attachments(reservation);
  reservation->left_at = gcap_scratch_next_point(state);
  state->rehearsed = reservation;
  return true;
}

// Without any graph and keeper left the reservation ends: it joins those that have.
static void end_if_given_up(gcap_scratch_reservation_t* reservation, gcap_scratch_reservation_t*** end_of_list) {
  if (reservation->num_graphs > 0) return;
  close_locked(reservation, /*committed=*/false);
  if (reservation->num_keepers > 0 || leave_to_capture(reservation)) return;
  end_locked(reservation);
  reservation->next = NULL;
  **end_of_list = reservation;
  *end_of_list = &reservation->next;
}

// Gives up what a reservation that has ended kept.
static void give_up_kept(gcap_scratch_reservation_t* reservation, gcap_scratch_reservation_t*** end_of_list) {
  while (reservation->kept != NULL) {
    gcap_scratch_kept_t* kept = reservation->kept;
    reservation->kept = kept->next;
    --kept->reservation->num_keepers;
    end_if_given_up(kept->reservation, end_of_list);
    free(kept);
  }
}

// Ends one that nobody has, and what it alone kept. The list of them is for free_ended.
static gcap_scratch_reservation_t* end_given_up(gcap_scratch_reservation_t* reservation) {
  gcap_scratch_reservation_t* ended = NULL;
  gcap_scratch_reservation_t** end_of_list = &ended;
  end_if_given_up(reservation, &end_of_list);
  for (gcap_scratch_reservation_t* at = ended; at != NULL; at = at->next) give_up_kept(at, &end_of_list);
  return ended;
}

// Gives up one graph; the list of what ended with it is for free_ended. The list grows while it is gone through: those
// that a reservation alone kept end after it, however long the chain is.
static gcap_scratch_reservation_t* release_locked(gcap_scratch_reservation_t* reservation) {
  --reservation->num_graphs;
  return end_given_up(reservation);
}

static void free_ended(gcap_scratch_reservation_t* ended) {
  while (ended != NULL) {
    gcap_scratch_reservation_t* next = ended->next;
    free_attachments(ended);
    free(ended);
    ended = next;
  }
}

void gcap_scratch_drop_rehearsed(gcap_scratch_stream_state_t* state) {
  gcap_scratch_reservation_t* rehearsed = state->rehearsed;
  if (rehearsed == NULL) return;
  gcap_scratch_script_deinit(&rehearsed->script);
  state->rehearsed = NULL;
  free_ended(end_given_up(rehearsed));
}

void gcap_scratch_reservation_release(gcap_scratch_reservation_t* reservation) {
  if (reservation == NULL) return;
  gcap_scratch_t* scratch = reservation->scratch;
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_reservation_t* ended = release_locked(reservation);
  gcap_scratch_unlock_arena(scratch);
  free_ended(ended);
}

// --- For the scope of the calling thread ----------------------------------------------------------------------------

static void close_with_scope(void* user, bool committed) {
  gcap_scratch_reservation_close_with(user, committed);  // either way the retained entry gives it up, later or now
}

static void release_with_graph(void* user) { gcap_scratch_reservation_release(user); }
static size_t bytes_of_graph(void* user) { return gcap_scratch_reservation_bytes(user); }
static void list_of_graph(void* user, void (*visit_block)(void* context, void* address, size_t bytes), void* context) {
  gcap_scratch_reservation_list(user, visit_block, context);
}

gcap_status_t gcap_scratch_reservation_open_for_scope(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  const gcap_capture_hooks_t* scope = gcap_thread_capture_hooks;
  gcap_scratch_reservation_t* reservation = NULL;
  GCAP_RETURN_IF_ERROR(begin(scratch, state, &reservation));
  gcap_status_t status = scope->retain(release_with_graph, bytes_of_graph, list_of_graph, reservation);
  if (status != NULL) {
    free_ended(release_locked(reservation));
    return status;
  }
  status = scope->on_close(close_with_scope, reservation);
  if (status != NULL) close_locked(reservation, /*committed=*/false);  // the scope, which has failed, gives it up
  return status;
}
