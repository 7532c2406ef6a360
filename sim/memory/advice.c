// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a program has said of the pages of managed memory.
//
// The idea: neighbouring pages of which the same was said are one stretch, so advice costs by the calls and not by the
// bytes. The stretches of an allocation lie in the order of their pages and cover all pages that there are, in and
// around the allocation. CUDA documents that a range is rounded to whole pages of the CPU. Locking: the global mutex.
#include "sim/memory/advice.h"

#include <stdlib.h>

#include "sim/base/heap.h"

// Of x86-64 and most of Arm.
#define PAGE_BYTES ((uintptr_t)4096)

typedef struct stretch {
  uintptr_t end;  // the number of the first page behind it
  gcap_sim_page_advice_t page;
} stretch_t;

struct gcap_sim_advice {
  size_t count;
  stretch_t stretches[];
};

static uintptr_t first_page(const void* address) { return (uintptr_t)address / PAGE_BYTES; }
static uintptr_t end_page(const void* address, size_t bytes) {
  return ((uintptr_t)address + bytes - 1) / PAGE_BYTES + 1;
}

static bool are_alike(const gcap_sim_page_advice_t* a, const gcap_sim_page_advice_t* b) {
  return a->is_read_mostly == b->is_read_mostly && a->is_accessed_by_host == b->is_accessed_by_host &&
         a->accessed_by == b->accessed_by && a->preferred.type == b->preferred.type &&
         a->preferred.id == b->preferred.id && a->prefetched.type == b->prefetched.type &&
         a->prefetched.id == b->prefetched.id;
}

static void append(gcap_sim_advice_t* to, uintptr_t end, const gcap_sim_page_advice_t* page) {
  stretch_t* last = to->count > 0 ? &to->stretches[to->count - 1] : NULL;
  if (last != NULL && are_alike(&last->page, page)) {
    last->end = end;
  } else {
    to->stretches[to->count++] = (stretch_t){.end = end, .page = *page};
  }
}

void gcap_sim_advice_change(gcap_sim_advice_t** advice, const void* address, size_t bytes,
                            void (*change)(gcap_sim_page_advice_t* page, const void* user), const void* user) {
  const stretch_t nothing = {.end = UINTPTR_MAX};
  const size_t count = *advice != NULL ? (*advice)->count : 1;
  const stretch_t* stretches = *advice != NULL ? (*advice)->stretches : &nothing;
  const uintptr_t first = first_page(address), end = end_page(address, bytes);
  // Two stretches more at most: one is split by the range's first page, and one by its last.
  gcap_sim_advice_t* changed = gcap_sim_calloc(1, sizeof(*changed) + (count + 2) * sizeof(stretch_t));
  uintptr_t begin = 0;
  for (size_t i = 0; i < count; begin = stretches[i++].end) {
    const stretch_t* old = &stretches[i];
    const uintptr_t inner_begin = begin > first ? begin : first, inner_end = old->end < end ? old->end : end;
    if (inner_begin >= inner_end) {
      append(changed, old->end, &old->page);
      continue;
    }
    if (begin < inner_begin) append(changed, inner_begin, &old->page);
    gcap_sim_page_advice_t page = old->page;
    change(&page, user);
    append(changed, inner_end, &page);
    if (inner_end < old->end) append(changed, old->end, &old->page);
  }
  free(*advice);
  *advice = changed;
}

void gcap_sim_advice_each(const gcap_sim_advice_t* advice, const void* address, size_t bytes,
                          void (*visit)(const gcap_sim_page_advice_t* page, void* user), void* user) {
  const gcap_sim_page_advice_t nothing = {0};
  if (advice == NULL) {
    visit(&nothing, user);
    return;
  }
  const uintptr_t first = first_page(address), end = end_page(address, bytes);
  uintptr_t begin = 0;
  for (size_t i = 0; i < advice->count; begin = advice->stretches[i++].end) {
    if (begin < end && advice->stretches[i].end > first) visit(&advice->stretches[i].page, user);
  }
}
