// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The breakdown: what the arena holds, for whom, and what it might give. It is part of the message when memory is out,
// so it needs no memory itself. Locking: the arena is locked.

#include "lib/scratch/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/scratch/lock.h"
#include "lib/scratch/nodes.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/streams.h"

typedef struct writer {
  const char* separator;
  char* text;
  size_t text_bytes;
  size_t length;  // of all, also of what there was no room for
} writer_t;

static void write_text(writer_t* writer, const char* text) {
  const bool has_room = writer->length < writer->text_bytes;
  char* end = has_room ? writer->text + writer->length : NULL;
  const int length = snprintf(end, has_room ? writer->text_bytes - writer->length : 0, "%s", text);
  if (length > 0) writer->length += (size_t)length;
}

__attribute__((format(printf, 2, 3))) static void write_part(writer_t* writer, const char* format, ...) {
  char part[GCAP_SCRATCH_LABEL_BYTES + 128];
  va_list args;
  va_start(args, format);
  vsnprintf(part, sizeof(part), format, args);
  va_end(args);
  if (writer->length > 0) write_text(writer, writer->separator);
  write_text(writer, part);
}

// --- Sums -----------------------------------------------------------------------------------------------------------

static size_t requested_bytes(const gcap_scratch_t* scratch) {
  size_t bytes = scratch->unknown_stream.requested_in_use_bytes;
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    bytes += state->requested_in_use_bytes;
  }
  return bytes;
}

// --- The parts ------------------------------------------------------------------------------------------------------

static void write_totals(writer_t* writer, const gcap_scratch_t* scratch) {
  write_part(writer, "%zu bytes are handed out, %zu of them asked for", (size_t)gcap_scratch_in_use_bytes(scratch),
             requested_bytes(scratch));
  const size_t limit = scratch->options.memory_limit_bytes;
  if (limit == 0) {
    write_part(writer, "%zu are held from upstream in %zu regions, without a limit", gcap_scratch_held_bytes(scratch),
               scratch->store.num_regions + scratch->num_regions_in_transit);
  } else {
    write_part(writer, "%zu are held from upstream in %zu regions, the limit is %zu", gcap_scratch_held_bytes(scratch),
               scratch->store.num_regions + scratch->num_regions_in_transit, limit);
  }
  write_part(writer, "%zu are free for all", gcap_scratch_pool_bytes(&scratch->store.untagged));
  const size_t unknown_bytes = gcap_scratch_pool_bytes(&scratch->unknown_stream.owner.pool);
  if (unknown_bytes > 0) write_part(writer, "%zu are free once the device was synchronised", unknown_bytes);
}

static void write_nodes(writer_t* writer, const gcap_scratch_t* scratch) {
  gcap_scratch_node_shares_t shares;
  gcap_scratch_count_nodes(scratch, /*state=*/NULL, &shares);
  for (size_t i = 0; i < shares.count; ++i) {
    const gcap_scratch_node_share_t* share = &shares.items[i];
    write_part(writer, "node '%s' has %zu live blocks (%zu bytes)", share->node, share->num_blocks, share->bytes);
  }
  if (shares.others.num_blocks == 0) return;
  write_part(writer, "other nodes have %zu live blocks (%zu bytes)", shares.others.num_blocks, shares.others.bytes);
}

static void write_graphs(writer_t* writer, const gcap_scratch_t* scratch) {
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    const char* label = r->label[0] != '\0' ? r->label : "a graph";
    const gcap_stream_t* stream = gcap_scratch_stream_of(gcap_scratch_reservation_state(r));  // NULL: it was destroyed
    write_part(writer, "%zu are kept by %s of stream %p", r->bytes, label,
               stream == NULL ? NULL : (void*)gcap_stream_handle(stream));
  }
}

static void write_streams(writer_t* writer, const gcap_scratch_t* scratch) {
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    const size_t bytes = gcap_scratch_pool_bytes(&state->owner.pool) + gcap_scratch_cache_bytes(&state->cache);
    if (bytes == 0) continue;
    write_part(writer, "%zu are cached by stream %p", bytes, (void*)gcap_stream_handle(gcap_scratch_stream_of(state)));
  }
}

static void write_live(writer_t* writer, const gcap_scratch_t* scratch) {
  size_t num_blocks = 0;
  const gcap_scratch_block_t* block = gcap_scratch_next_live(scratch, /*state=*/NULL, /*block=*/NULL);
  for (; block != NULL; block = gcap_scratch_next_live(scratch, /*state=*/NULL, block)) {
    if (++num_blocks > GCAP_SCRATCH_MAX_NAMED_BLOCKS) continue;
    write_text(writer, writer->separator);
    write_text(writer, gcap_scratch_describe_live(scratch, block).text);
  }
  if (num_blocks > GCAP_SCRATCH_MAX_NAMED_BLOCKS)
    write_part(writer, "and %zu more live blocks", num_blocks - GCAP_SCRATCH_MAX_NAMED_BLOCKS);
}

static void write_held(writer_t* writer, const gcap_scratch_t* scratch) {
  if (writer->text_bytes > 0) writer->text[0] = '\0';
  write_totals(writer, scratch);
  write_nodes(writer, scratch);
  write_graphs(writer, scratch);
  write_streams(writer, scratch);
}

int gcap_scratch_describe_held(const gcap_scratch_t* scratch, const char* separator, char* out_text,
                               size_t text_bytes) {
  writer_t writer = {.separator = separator, .text = out_text, .text_bytes = text_bytes};
  write_held(&writer, scratch);
  return (int)writer.length;
}

int gcap_scratch_describe(gcap_scratch_t* scratch, char* out_text, size_t text_bytes) {
  gcap_scratch_lock_arena(scratch);
  writer_t writer = {.separator = "\n", .text = out_text, .text_bytes = text_bytes};
  write_held(&writer, scratch);
  write_live(&writer, scratch);
  gcap_scratch_unlock_arena(scratch);
  return (int)writer.length;
}
