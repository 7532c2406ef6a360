// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A treap of byte ranges.
//
// The idea: a search tree by address that is a heap by priority, and the priority is a hash of the address, so the
// shape depends on the set of spans alone and is balanced as that of a random tree. Invariants: spans do not overlap;
// no child has a higher priority than its parent. Locking: the caller's.
#include "sim/base/span.h"

// The finaliser of SplitMix64: neighbouring addresses get unrelated priorities.
static uint64_t priority(const gcap_sim_span_t* span) {
  uint64_t z = (uint64_t)span->begin;
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

void gcap_sim_span_insert(gcap_sim_span_t** root, gcap_sim_span_t* span) {
  uint64_t mine = priority(span);
  gcap_sim_span_t** link = root;
  while (*link != NULL && priority(*link) >= mine) {
    link = span->begin < (*link)->begin ? &(*link)->left : &(*link)->right;
  }
  // Split what is below: spans before this one go left, those after it right.
  gcap_sim_span_t* rest = *link;
  gcap_sim_span_t** before = &span->left;
  gcap_sim_span_t** after = &span->right;
  while (rest != NULL) {
    if (rest->begin < span->begin) {
      *before = rest;
      before = &rest->right;
      rest = rest->right;
    } else {
      *after = rest;
      after = &rest->left;
      rest = rest->left;
    }
  }
  *before = NULL;
  *after = NULL;
  *link = span;
}

void gcap_sim_span_remove(gcap_sim_span_t** root, const gcap_sim_span_t* span) {
  gcap_sim_span_t** link = root;
  while (*link != span) link = span->begin < (*link)->begin ? &(*link)->left : &(*link)->right;
  gcap_sim_span_t* left = span->left;
  gcap_sim_span_t* right = span->right;
  while (left != NULL && right != NULL) {
    if (priority(left) >= priority(right)) {
      *link = left;
      link = &left->right;
      left = left->right;
    } else {
      *link = right;
      link = &right->left;
      right = right->left;
    }
  }
  *link = left != NULL ? left : right;
}

void* gcap_sim_span_find(const gcap_sim_span_t* root, const void* address) {
  return gcap_sim_span_overlap(root, address, 1);
}

void* gcap_sim_span_overlap(const gcap_sim_span_t* root, const void* address, size_t bytes) {
  uintptr_t begin = (uintptr_t)address;
  while (root != NULL) {
    if (begin >= root->begin ? begin - root->begin < root->bytes : root->begin - begin < bytes) return root->owner;
    root = begin < root->begin ? root->left : root->right;
  }
  return NULL;
}

void gcap_sim_span_each(const gcap_sim_span_t* root, void (*visit)(void* owner, void* user), void* user) {
  if (root == NULL) return;
  gcap_sim_span_each(root->left, visit, user);
  visit(root->owner, user);
  gcap_sim_span_each(root->right, visit, user);
}
