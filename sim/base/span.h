// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// span.h: byte ranges that do not overlap, found by an address inside.
//
// A span is embedded in what it belongs to, so the tree allocates nothing. Every operation takes O(log n) expected.
#ifndef GCAP_SIM_BASE_SPAN_H_
#define GCAP_SIM_BASE_SPAN_H_

#include <stddef.h>
#include <stdint.h>

typedef struct gcap_sim_span {
  struct gcap_sim_span* left;
  struct gcap_sim_span* right;
  uintptr_t begin;
  size_t bytes;
  void* owner;
} gcap_sim_span_t;

// Adds a span of at least one byte, which must not overlap any in the tree.
void gcap_sim_span_insert(gcap_sim_span_t** root, gcap_sim_span_t* span);
void gcap_sim_span_remove(gcap_sim_span_t** root, const gcap_sim_span_t* span);
// The owner of the span that holds the address; NULL when there is none.
void* gcap_sim_span_find(const gcap_sim_span_t* root, const void* address);
// The owner of a span that shares bytes with the range; NULL when there is none.
void* gcap_sim_span_overlap(const gcap_sim_span_t* root, const void* address, size_t bytes);
// Calls visit for each owner, by ascending address. It must not change the tree.
void gcap_sim_span_each(const gcap_sim_span_t* root, void (*visit)(void* owner, void* user), void* user);

#endif  // GCAP_SIM_BASE_SPAN_H_
