// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reserved addresses: ranges of the driver with no memory behind them.
//
// The idea: a range is mapped without access, so that nobody else is given its addresses and whoever touches one is
// stopped. Nothing else knows of it: to copies, fills and kernels it is no memory. To map memory into a range is not
// modelled. Locking: the global mutex.
#include "sim/memory/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/log.h"
#include "sim/base/heap.h"
#include "sim/base/span.h"
#include "sim/device/driver.h"

// Measured: sizes come in these units, and so do the addresses of a caller who asks for less.
#define UNIT ((size_t)2 << 20)
static const char kKind[] = "reserved address range";

typedef struct reserved {
  gcap_sim_span_t span;
} reserved_t;

static gcap_sim_span_t* ranges;

bool gcap_sim_is_reserved(const void* address) { return gcap_sim_span_find(ranges, address) != NULL; }

// At a multiple of the alignment: what a longer range has before and behind it goes back. NULL when there is none.
static char* take(size_t bytes, size_t alignment) {
  size_t more;
  if (__builtin_add_overflow(bytes, alignment, &more)) return NULL;
  char* first = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (first == MAP_FAILED) return NULL;
  const size_t before = (size_t)(-(uintptr_t)first & (alignment - 1));
  if (before > 0) munmap(first, before);
  munmap(first + before + bytes, alignment - before);
  return first + before;
}

static cudaError_t reserve(uintptr_t* out, size_t bytes, size_t alignment, unsigned long long flags) {
  gcap_sim_note_argument("%zu bytes", bytes);
  const bool is_power = (alignment & (alignment - 1)) == 0;
  if (out == NULL || flags != 0 || bytes == 0 || bytes % UNIT != 0 || !is_power) return cudaErrorInvalidValue;
  char* base = take(bytes, alignment > UNIT ? alignment : UNIT);
  if (base == NULL) return cudaErrorMemoryAllocation;
  reserved_t* range = gcap_sim_calloc(1, sizeof(*range));
  range->span = (gcap_sim_span_t){.begin = (uintptr_t)base, .bytes = bytes, .owner = range};
  gcap_sim_span_insert(&ranges, &range->span);
  gcap_sim_object_made(kKind, base);
  *out = (uintptr_t)base;
  return cudaSuccess;
}

// Where the caller would like the range to be is a hint, and not taken.
int gcap_sim_driver_reserve(uintptr_t* out, size_t bytes, size_t alignment, uintptr_t hint, unsigned long long flags) {
  (void)hint;
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuMemAddressReserve);
  if (code == cudaSuccess) code = reserve(out, bytes, alignment, flags);
  return gcap_sim_leave_driver(code);
}

// Measured: a range goes back as it was taken, whole.
static cudaError_t give_back(uintptr_t address, size_t bytes) {
  reserved_t* range = gcap_sim_span_find(ranges, (const void*)address);
  if (range == NULL || range->span.begin != address || range->span.bytes != bytes) return cudaErrorInvalidValue;
  gcap_sim_span_remove(&ranges, &range->span);
  gcap_sim_object_gone(kKind, (const void*)address);
  munmap((void*)address, bytes);
  free(range);
  return cudaSuccess;
}

int gcap_sim_driver_unreserve(uintptr_t address, size_t bytes) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuMemAddressFree);
  if (code == cudaSuccess) code = give_back(address, bytes);
  return gcap_sim_leave_driver(code);
}
