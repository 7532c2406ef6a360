// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The record: a ring of the last calls, and what it knows of an address. It is searched from the youngest call to the
// oldest, by whoever has a failure to explain. Locking: the arena is locked.

#include "lib/scratch/record.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/internal/clock.h"

enum { kMaxRemembered = 1 << 20 };  // more than anybody reads; 64 MiB

gcap_status_t gcap_scratch_record_init(gcap_scratch_record_t* record, size_t num_remembered) {
  if (num_remembered == 0) return NULL;
  if (num_remembered > kMaxRemembered) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "recorded_operations is %zu, allowed are 0 to %d", num_remembered,
                       (int)kMaxRemembered);
  }
  record->calls = calloc(num_remembered, sizeof(*record->calls));
  if (record->calls == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to remember %zu calls of scratch", num_remembered);
  }
  record->num_remembered = num_remembered;
  return NULL;
}

void gcap_scratch_record_deinit(gcap_scratch_record_t* record) { free(record->calls); }

void gcap_scratch_record_add(gcap_scratch_record_t* record, const gcap_scratch_live_t* live, uint64_t number) {
  if (record->num_remembered == 0) return;
  record->calls[record->num_recorded++ % record->num_remembered] = (gcap_scratch_call_t){
      .number = number,
      .block = live->number,
      .ptr = live->ptr,
      .bytes = live->bytes,
      .has_stream = live->stream != NULL,
      .stream = live->stream == NULL ? NULL : gcap_stream_handle(live->stream),
      .thread = (unsigned long)pthread_self(),
      .time_ns = gcap_now_ns(),
  };
}

// The youngest remembered allocation of a block that has the byte, or NULL. `*out_free` is its free, or NULL.
static const gcap_scratch_call_t* find_calls(const gcap_scratch_record_t* record, const void* ptr,
                                             const gcap_scratch_call_t** out_free) {
  const uintptr_t address = (uintptr_t)ptr;
  *out_free = NULL;
  for (size_t back = 1; back <= record->num_remembered && back <= record->num_recorded; ++back) {
    const gcap_scratch_call_t* call = &record->calls[(record->num_recorded - back) % record->num_remembered];
    if (address < (uintptr_t)call->ptr || address - (uintptr_t)call->ptr >= call->bytes) continue;
    if (call->number == call->block) return call;
    if (*out_free == NULL) *out_free = call;  // of the allocation that is found next, or was forgotten
  }
  return NULL;
}

static int describe_call(const gcap_scratch_call_t* call, char* text, size_t text_bytes) {
  return snprintf(text, text_bytes, " (call %" PRIu64 ", thread 0x%lx, %.3f ms ago)", call->number, call->thread,
                  (double)(gcap_now_ns() - call->time_ns) / 1e6);
}

gcap_scratch_history_t gcap_scratch_history_of(const gcap_scratch_record_t* record, const void* ptr) {
  gcap_scratch_history_t history = {""};
  if (record == NULL || record->num_remembered == 0) return history;
  const gcap_scratch_call_t* freed = NULL;
  const gcap_scratch_call_t* given = find_calls(record, ptr, &freed);
  char when_given[96] = "", when_freed[96] = "", where[64] = "it", stream[48] = "no stream";
  if (given != NULL) describe_call(given, when_given, sizeof(when_given));
  if (freed != NULL) describe_call(freed, when_freed, sizeof(when_freed));
  if (given == NULL && freed == NULL) {
    snprintf(history.text, sizeof(history.text), "; none of the last %zu calls was about it", record->num_remembered);
    return history;
  }
  const gcap_scratch_call_t* of = given != NULL ? given : freed;
  if (of->ptr != (const char*)ptr) {
    snprintf(where, sizeof(where), "it is byte %zu of block %p, which", (size_t)((const char*)ptr - of->ptr),
             (void*)of->ptr);
  }
  if (of->has_stream) snprintf(stream, sizeof(stream), "stream %p", (void*)of->stream);
  snprintf(history.text, sizeof(history.text), "; %s was allocated as %zu bytes for %s%s%s%s", where, of->bytes, stream,
           when_given, freed != NULL ? " and freed" : "", when_freed);
  return history;
}

gcap_status_t gcap_scratch_with_history(const gcap_scratch_record_t* record, const void* ptr, gcap_status_t status) {
  if (status == NULL) return NULL;
  const gcap_scratch_history_t history = gcap_scratch_history_of(record, ptr);
  if (history.text[0] == '\0') return status;
  gcap_status_info_t info;
  gcap_status_get_info(status, &info);
  gcap_status_t longer = gcap_status_make(gcap_status_code(status), info.file, info.line, "%s%s",
                                          gcap_status_message(status), history.text);
  gcap_status_free(status);
  return longer;
}
