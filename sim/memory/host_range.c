// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Is there memory at a pageable address? A GPU's runtime crashes when there is none; the simulator says which call.
//
// The idea: pageable memory is the caller's own, so only the kernel knows: mincore answers for pages, and fails where
// none is mapped. Whether the pages may be written to is tried on the first and the last byte, through a call that
// fails where a store would kill the program. These calls cost more than a small copy does, so what they said of a page
// is trusted for a while; code that unmaps memory and copies from there at once may escape. Locking: the global mutex.
#include "sim/memory/host_range.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cuda_runtime_api.h"
#include "sim/base/die.h"
#include "sim/base/thread.h"
#include "sim/memory/copy.h"
#include "sim/memory/reserve.h"
#include "sim/memory/vmem.h"

// Pages asked for at a time: 4 MiB of memory.
enum { kPages = 1024 };

static bool is_mapped(uintptr_t begin, uintptr_t end) {
  unsigned char pages[kPages];
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (begin -= begin % page; begin < end;) {
    uintptr_t stop = end - begin > kPages * page ? begin + kPages * page : end;
    if (mincore((void*)begin, stop - begin, pages) != 0) return false;
    begin = stop;
  }
  return true;
}

bool gcap_sim_is_host_memory(const void* address, size_t bytes) {
  uintptr_t end;
  if (__builtin_add_overflow((uintptr_t)address, bytes, &end)) return false;
  if (gcap_sim_vmem_is_bare(address, bytes) || gcap_sim_is_reserved(address)) return false;
  return is_mapped((uintptr_t)address, end);
}

// Stores what the byte holds already; the copy is about to overwrite it anyway.
static bool is_writable(char* address) {
  char byte;
  struct iovec here = {.iov_base = &byte, .iov_len = 1};
  struct iovec there = {.iov_base = address, .iov_len = 1};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1) return errno != EFAULT;  // not allowed to try: be it so
  return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

// Bytes from the first to the last that `depth` slices of `height` rows touch; false when no address space holds them.
static bool span(const gcap_sim_copy_t* copy, size_t pitch, size_t slice, size_t* bytes) {
  size_t slices;
  size_t rows;
  size_t depth = copy->depth ? copy->depth : 1;
  if (__builtin_mul_overflow(depth - 1, slice, &slices)) return false;
  if (__builtin_mul_overflow(copy->height - 1, pitch, &rows)) return false;
  return !__builtin_add_overflow(slices, rows, bytes) && !__builtin_add_overflow(*bytes, copy->width, bytes);
}

// What is known of pages, each in the slot of its number.
enum { kSlots = 1024 };
enum { kTrustedChecks = 1000 };  // so many checks later a page is looked at again

typedef struct known_page {
  uintptr_t number;
  uint64_t until;  // the check up to which this holds; 0 in an empty slot
  bool writable;
} known_page_t;

static known_page_t known[kSlots];
static uint64_t checks;

static bool is_known(uintptr_t first, uintptr_t last, bool writes) {
  if (last - first >= kSlots / 4) return false;  // large copies cost more than the calls
  for (uintptr_t number = first; number <= last; ++number) {
    const known_page_t* page = &known[number % kSlots];
    if (page->number != number || page->until < checks || (writes && !page->writable)) return false;
  }
  return true;
}

static void learn(uintptr_t first, uintptr_t last, bool writes) {
  if (last - first >= kSlots / 4) return;
  for (uintptr_t number = first; number <= last; ++number) {
    known[number % kSlots] = (known_page_t){.number = number, .until = checks + kTrustedChecks, .writable = writes};
  }
}

static void check_side(const gcap_sim_copy_t* copy, const void* address, size_t pitch, size_t slice, bool writes) {
  uintptr_t begin = (uintptr_t)address;
  uintptr_t end;
  size_t bytes = 0;
  bool fits = span(copy, pitch, slice, &bytes) && !__builtin_add_overflow(begin, bytes, &end);
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  ++checks;
  if (fits && is_known(begin / page, (end - 1) / page, writes)) return;
  if (!fits || !is_mapped(begin, end) || gcap_sim_vmem_is_bare(address, bytes) || gcap_sim_is_reserved(address)) {
    gcap_sim_die("%s: %zu bytes at %p for a copy are no memory of this process", gcap_sim_thread()->call, bytes,
                 address);
  }
  if (writes && !(is_writable((char*)begin) && is_writable((char*)(end - 1)))) {
    gcap_sim_die("%s: %zu bytes at %p for a copy must not be written to", gcap_sim_thread()->call, bytes, address);
  }
  learn(begin / page, (end - 1) / page, writes);
}

void gcap_sim_check_source(const gcap_sim_copy_t* copy) {
  if (copy->src_type != cudaMemoryTypeUnregistered) return;
  check_side(copy, copy->src, copy->src_pitch, copy->src_slice, false);
}

void gcap_sim_check_destination(const gcap_sim_copy_t* copy) {
  if (copy->dst_type != cudaMemoryTypeUnregistered) return;
  check_side(copy, copy->dst, copy->dst_pitch, copy->dst_slice, true);
}
