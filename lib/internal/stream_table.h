// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_table.h: from a raw cudaStream_t to what gcap knows of it: its wrapper, and whether the stream still lives.
//
// The table holds addresses, it owns nothing: whoever finds a wrapper relies on its owner not to end it meanwhile.
#ifndef GCAP_LIB_INTERNAL_STREAM_TABLE_H_
#define GCAP_LIB_INTERNAL_STREAM_TABLE_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "gcap/status.h"
#include "lib/internal/life.h"

#ifdef __cplusplus
extern "C" {
#endif

// Waits for the stream of a wrapper, and lets the wrapper learn of it.
typedef gcap_status_t (*gcap_stream_wait_t)(void* wrapper);

// One wrapper's place in the table, embedded in the wrapper. The fields are the table's own, under its mutex.
typedef struct gcap_stream_entry {
  cudaStream_t handle;
  unsigned long long id;
  void* wrapper;
  gcap_stream_wait_t wait;
  gcap_life_t* life;
  struct gcap_stream_entry* older;  // the next wrapper of the same stream
  bool listed;
} gcap_stream_entry_t;

// The handles that stand for another stream on each device or thread. They are never listed, so never found.
static inline bool gcap_stream_is_alias(cudaStream_t handle) {
  return handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
}

// Lists `wrapper` as the newest of `handle`. `id` is what cudaStreamGetId answers, never given to two streams of a
// process; 0 where it cannot be asked (a capturing stream, rule R24 of the capture rules). `wait` is how the wrapper is
// waited for; this module cannot call the one that has wrappers.
//
// A handle value that was freed and reused: an older wrapper stays behind the new one only when the ids say that they
// are of one stream. Otherwise it is unlisted for good; and where both ids are known, its stream is gone, so that its
// life is over. Its own remove does nothing more then.
//   RESOURCE_EXHAUSTED  no memory; nothing was listed
gcap_status_t gcap_stream_table_add(gcap_stream_entry_t* entry, cudaStream_t handle, unsigned long long id,
                                    void* wrapper, gcap_stream_wait_t wait) GCAP_NODISCARD;

// Unlists the wrapper and ends its life. Called before the stream is destroyed, or a new stream could be taken for it.
// An entry that is all zero is fine.
void gcap_stream_table_remove(gcap_stream_entry_t* entry);

// The newest wrapper of `handle`, or NULL. Takes a lock only when writers get in its way many times in a row.
void* gcap_stream_table_find(cudaStream_t handle);

// The wrapper of `handle` when that has just one, with the function that waits for it; else NULL. Takes the lock.
void* gcap_stream_table_find_only(cudaStream_t handle, gcap_stream_wait_t* out_wait);

// The life of the newest wrapper, retained for the caller, or NULL. Over once the wrapper was destroyed, or its stream
// is known to be gone. Takes the lock.
gcap_life_t* gcap_stream_table_life(cudaStream_t handle);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_INTERNAL_STREAM_TABLE_H_
