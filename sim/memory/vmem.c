// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Address space: the ranges that device allocations, pools and pinned memory are made of.
//
// The idea: each device, and pinned memory, has one reservation of addresses without memory behind it, and ranges are
// taken from its unused end. An address is not used twice until that is unavoidable, so that code which holds on to
// freed memory meets bytes that belong to nobody, not those of another allocation. Memory comes in steps with the end,
// hence a small range costs no system call. Large ranges lose their memory when they are given back; small ones keep
// theirs and are used again, oldest first, once enough of them rest. A large range is filled by mapping one file of
// equal bytes, privately: no page of it costs memory or time before it is written.
// Invariant: a range is in at most one list, by its size. Locking: the global mutex.
#include "sim/memory/vmem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/device/properties.h"

#define SPACE_BYTES ((size_t)256 << 30)  // many devices: long runs do not come round to used addresses
#define STEP_BYTES ((size_t)256 << 20)   // memory is made accessible in steps of this
#define MIN_SPACE_BYTES ((size_t)1 << 30)
#define SMALL_BYTES ((size_t)64 << 10)  // up to here a range is used again; above, giving back costs a system call
#define NUM_BINS (SMALL_BYTES / GCAP_SIM_ALIGNMENT)
#define REST_BYTES ((size_t)32 << 20)  // small ranges that rest before the oldest is used again
#define FILL_BYTES ((size_t)4 << 20)   // of the file of equal bytes

typedef struct range {
  struct range* next;
  char* base;
  size_t bytes;
} range_t;

typedef struct list {
  range_t* first;
  range_t* last;
} list_t;

typedef struct space {
  char* base;
  size_t bytes;
  size_t used;        // everything before was taken at least once
  size_t accessible;  // everything before has memory
  size_t resting;     // bytes in the bins
  list_t bins[NUM_BINS];
  list_t large;
} space_t;

static space_t spaces[GCAP_SIM_NUM_SPACES];

static size_t whole_units(size_t bytes) {
  return (bytes + GCAP_SIM_ALIGNMENT - 1) / GCAP_SIM_ALIGNMENT * GCAP_SIM_ALIGNMENT;
}

// A process may have been given a limit on addresses: then a smaller space must do.
static void reserve(space_t* space) {
  for (size_t bytes = SPACE_BYTES; bytes >= MIN_SPACE_BYTES; bytes /= 2) {
    void* base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
    madvise(base, bytes, MADV_NOHUGEPAGE);  // a test touches a little here and there: small pages are cheaper
    space->base = base;
    space->bytes = bytes;
    return;
  }
  gcap_sim_die("the process has no %zu bytes of addresses left for simulated memory", MIN_SPACE_BYTES);
}

static void append(list_t* list, range_t* range) {
  range->next = NULL;
  *(list->last != NULL ? &list->last->next : &list->first) = range;
  list->last = range;
}

static void* remove_first(list_t* list) {
  range_t* range = list->first;
  void* base = range->base;
  list->first = range->next;
  if (list->first == NULL) list->last = NULL;
  free(range);
  return base;
}

// From the unused end; NULL when the space is used up or the machine gives no memory.
static void* take_unused(space_t* space, size_t bytes) {
  if (bytes > space->bytes - space->used) return NULL;
  size_t end = space->used + bytes;
  if (end > space->accessible) {
    size_t accessible = (end + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    if (accessible > space->bytes) accessible = space->bytes;
    char* from = space->base + space->accessible;
    if (mprotect(from, accessible - space->accessible, PROT_READ | PROT_WRITE) != 0) return NULL;
    space->accessible = accessible;
  }
  void* base = space->base + space->used;
  space->used = end;
  return base;
}

static int by_address(const void* a, const void* b) {
  const range_t* left = *(range_t* const*)a;
  const range_t* right = *(range_t* const*)b;
  return left->base < right->base ? -1 : 1;
}

// Joins neighbours among the large ranges.
static void merge_large(space_t* space) {
  size_t count = 0;
  for (range_t* range = space->large.first; range != NULL; range = range->next) ++count;
  range_t** ranges = gcap_sim_calloc(count, sizeof(range_t*));
  count = 0;
  for (range_t* range = space->large.first; range != NULL; range = range->next) ranges[count++] = range;
  qsort(ranges, count, sizeof(range_t*), by_address);
  space->large = (list_t){NULL, NULL};
  for (size_t i = 0; i < count; ++i) {
    range_t* last = space->large.last;
    if (last != NULL && last->base + last->bytes == ranges[i]->base) {
      last->bytes += ranges[i]->bytes;
      free(ranges[i]);
    } else {
      append(&space->large, ranges[i]);
    }
  }
  free(ranges);
}

// Takes out the range that was given back first, of those that are large enough; NULL when there is none.
static range_t* remove_large(list_t* list, size_t bytes) {
  range_t* before = NULL;
  range_t* range = list->first;
  while (range != NULL && range->bytes < bytes) {
    before = range;
    range = range->next;
  }
  if (range == NULL) return NULL;
  *(before != NULL ? &before->next : &list->first) = range->next;
  if (list->last == range) list->last = before;
  return range;
}

// The space is used up: cuts the range from what was given back. What is left of it goes behind the others.
static void* take_used(space_t* space, size_t bytes) {
  range_t* range = remove_large(&space->large, bytes);
  if (range == NULL) {
    merge_large(space);
    range = remove_large(&space->large, bytes);
  }
  if (range == NULL) return NULL;
  void* base = range->base;
  range->base += bytes;
  range->bytes -= bytes;
  if (range->bytes) {
    append(&space->large, range);
  } else {
    free(range);
  }
  return base;
}

void* gcap_sim_vmem_take(int index, size_t bytes) {
  space_t* space = &spaces[index];
  if (space->base == NULL) reserve(space);
  if (bytes > space->bytes) return NULL;
  bytes = whole_units(bytes);
  list_t* bin = bytes <= SMALL_BYTES ? &space->bins[bytes / GCAP_SIM_ALIGNMENT - 1] : NULL;
  if (bin != NULL && bin->first != NULL && space->resting > REST_BYTES) {
    space->resting -= bytes;
    return remove_first(bin);
  }
  void* base = take_unused(space, bytes);
  if (base == NULL) base = take_used(space, bytes);
  if (base != NULL || bin == NULL || bin->first == NULL) return base;
  space->resting -= bytes;
  return remove_first(bin);
}

// --- Equal bytes ----------------------------------------------------------------------------------------------------

// A file of FILL_BYTES that all have the value; -1 where there can be none.
static int file_of(unsigned char value) {
  static int files[256];  // 0: not made yet
  if (files[value] != 0) return files[value];
  struct rlimit allowed;  // a longer file would end the program by a signal
  const bool may = getrlimit(RLIMIT_FSIZE, &allowed) == 0 && allowed.rlim_cur >= FILL_BYTES;
  const int file = may ? memfd_create("gcap_sim", MFD_CLOEXEC) : -1;
  void* bytes = MAP_FAILED;
  if (file >= 0 && ftruncate(file, (off_t)FILL_BYTES) == 0) {
    bytes = mmap(NULL, FILL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  files[value] = bytes != MAP_FAILED ? file : -1;
  if (bytes == MAP_FAILED) {
    if (file >= 0) close(file);
    return -1;
  }
  memset(bytes, value, FILL_BYTES);
  munmap(bytes, FILL_BYTES);
  return file;
}

// Maps the file over whole pages, over as many as it can. Returns where it stopped.
static char* map_filled(char* begin, const char* end, int file) {
  while (file >= 0 && begin < end) {
    const size_t left = (size_t)(end - begin), bytes = left < FILL_BYTES ? left : FILL_BYTES;
    if (mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED)
      break;
    begin += bytes;
  }
  return begin;
}

void gcap_sim_vmem_fill(void* base, size_t bytes, unsigned char value) {
  char* begin = base;
  char* end = begin + bytes;
  if (bytes > FILL_BYTES / 4) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char* first = (char*)(((uintptr_t)begin + page - 1) / page * page);
    char* last = (char*)((uintptr_t)end / page * page);
    memset(begin, value, (size_t)(first - begin));
    begin = map_filled(first, last, file_of(value));
  }
  memset(begin, value, (size_t)(end - begin));
}

// --- Giving back ----------------------------------------------------------------------------------------------------

// Takes the memory of whole pages, filled ones too.
static void empty(void* begin, size_t bytes) {
  void* pages =
      mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  madvise(begin, bytes, pages != MAP_FAILED ? MADV_NOHUGEPAGE : MADV_DONTNEED);
}

void gcap_sim_vmem_give_back(int index, void* base, size_t bytes) {
  space_t* space = &spaces[index];
  range_t* range = gcap_sim_calloc(1, sizeof(*range));
  range->base = base;
  range->bytes = whole_units(bytes);
  if (range->bytes <= SMALL_BYTES) {
    append(&space->bins[range->bytes / GCAP_SIM_ALIGNMENT - 1], range);
    space->resting += range->bytes;
    return;
  }
  // Only whole pages go: a neighbour may have the rest of the first and the last one.
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = ((uintptr_t)base + page - 1) / page * page;
  uintptr_t end = ((uintptr_t)base + range->bytes) / page * page;
  empty((void*)begin, end - begin);
  append(&space->large, range);
}

bool gcap_sim_vmem_is_bare(const void* address, size_t bytes) {
  uintptr_t begin = (uintptr_t)address;
  for (int i = 0; i < GCAP_SIM_NUM_SPACES; ++i) {
    uintptr_t bare = (uintptr_t)spaces[i].base + spaces[i].accessible;
    uintptr_t end = (uintptr_t)spaces[i].base + spaces[i].bytes;
    if (spaces[i].base != NULL && begin < end && begin + bytes > bare) return true;
  }
  return false;
}
