// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scripts. The search for a free block depends on what was freed before, so two captures of the same work would get
// their blocks at different addresses, and a graph whose scratch lies elsewhere than its rehearsal's looks as if it
// could not be moved. So a rehearsal writes down where each of its blocks lay, and what is captured after it, which may
// be another rehearsal, gets its blocks there, one by one. A capture that asks for something else than the rehearsal
// did follows no further.
//
// A script is a wish: a place that is not free any more is passed over. Locking: the arena is locked.

#include "lib/scratch/script.h"

#include <stdlib.h>

#include "lib/internal/grow.h"

void gcap_scratch_script_open(gcap_scratch_script_t* script, uint64_t work, bool is_rehearsal) {
  script->is_open = work != 0 && (is_rehearsal || work == script->work);
  if (!script->is_open) return;
  if (work != script->work) script->count = 0;
  script->work = work;
  script->next = 0;
  script->is_rehearsal = is_rehearsal;
  script->is_complete = false;
}

void gcap_scratch_script_close(gcap_scratch_script_t* script, bool committed) {
  if (!script->is_open) return;
  script->is_open = false;
  script->is_complete = script->is_rehearsal && committed;
  // One that was not allocated from is opened again, as those that graphs share are.
  if (!script->is_rehearsal && script->next > 0) gcap_scratch_script_deinit(script);
}

const gcap_scratch_place_t* gcap_scratch_script_find(const gcap_scratch_script_t* script, size_t asked_bytes) {
  if (!script->is_open || script->next >= script->count) return NULL;
  const gcap_scratch_place_t* place = &script->places[script->next];
  return place->asked_bytes == asked_bytes ? place : NULL;
}

void gcap_scratch_script_note(gcap_scratch_script_t* script, const gcap_scratch_place_t* place) {
  if (!script->is_open) return;
  const size_t index = script->next++;
  const gcap_scratch_place_t* known = index < script->count ? &script->places[index] : NULL;
  if (known != NULL && known->asked_bytes == place->asked_bytes && known->base == place->base) return;
  script->count = index < script->count ? index : script->count;
  if (!script->is_rehearsal || script->count != index) return;
  if (!gcap_grow(&script->places, &script->room, index + 1, sizeof(*place))) return;
  script->places[script->count++] = *place;
}

void gcap_scratch_script_deinit(gcap_scratch_script_t* script) {
  free(script->places);
  *script = (gcap_scratch_script_t){0};
}
