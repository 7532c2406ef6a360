// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ledger.h: what an allocator without a cache has handed out, so that a foreign or freed address is told apart before
// the driver or a callback sees it, and the counters are right. Shared by the allocators of this folder and the
// external one.
#ifndef GCAP_LIB_ALLOCATOR_LEDGER_H_
#define GCAP_LIB_ALLOCATOR_LEDGER_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/allocator.h"
#include "lib/internal/life.h"

typedef struct gcap_ledger_entry {
  void* ptr;  // NULL: an empty cell
  size_t bytes;
  bool reserved;  // asked for by gcap_allocator_reserve
  // Of the allocators that have use for them; else all zero.
  uint64_t number;      // tells the block from others at the same address
  cudaStream_t stream;  // where it is freed
  gcap_life_t* life;    // of that stream's wrapper, retained
} gcap_ledger_entry_t;

// Thread: thread-safe. Its mutex is never held across a call of anybody else's code.
typedef struct gcap_ledger {
  pthread_mutex_t mutex;
  gcap_ledger_entry_t* cells;  // open addressing, at most half full
  size_t capacity, count;
  gcap_allocator_stats_t stats;
} gcap_ledger_t;

void gcap_ledger_init(gcap_ledger_t* ledger);
// Logs what is still handed out: nobody gives it back any more.
void gcap_ledger_deinit(gcap_ledger_t* ledger, const char* allocator_name);

// Enters and counts a new allocation; the entry's life is the ledger's then.
//   ALREADY_EXISTS      `ptr` is handed out already; the older entry stays
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_ledger_enter(gcap_ledger_t* ledger, const gcap_ledger_entry_t* entry) GCAP_NODISCARD;

// The same for memory from the driver or a callback, which a capture must find done: tells the thread's run so.
gcap_status_t gcap_ledger_add(gcap_ledger_t* ledger, void* ptr, size_t bytes, bool reserved) GCAP_NODISCARD;

// Takes an entry out, so that of two threads which free the same address only one goes on. Its life is
// the caller's then.
//   INVALID_ARGUMENT  `ptr` is not handed out
gcap_status_t gcap_ledger_take(gcap_ledger_t* ledger, void* ptr, gcap_ledger_entry_t* out_entry) GCAP_NODISCARD;

// Puts back an entry whose memory could not be given back, so that its owner can try again. Its life is the ledger's
// again, also on failure.
gcap_status_t gcap_ledger_put_back(gcap_ledger_t* ledger, const gcap_ledger_entry_t* entry) GCAP_NODISCARD;

// Logs and frees a failure that came after the memory was given back: as the status of a free it would tell the caller
// that the block is still his. NULL is fine.
void gcap_ledger_log_after_free(gcap_status_t status);

void gcap_ledger_get_stats(gcap_ledger_t* ledger, gcap_allocator_stats_t* out_stats);

// FAILED_PRECONDITION while the calling thread captures, naming the refused `operation`. The memory stays the caller's,
// and the capture is none the worse.
gcap_status_t gcap_allocator_check_not_capturing(const char* operation) GCAP_NODISCARD;

// The same for memory that is asked for: names our function, the bytes, and `source`, where they would come from. Sets
// the latch: what was to be done with the memory is missing from the graph, also where nobody looks at this status.
gcap_status_t gcap_allocator_refuse_in_capture(bool reserved, size_t bytes, const char* source) GCAP_NODISCARD;

#endif  // GCAP_LIB_ALLOCATOR_LEDGER_H_
