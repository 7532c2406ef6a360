// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pieces of memory by address. A program may have a million of them and make them in any order, so each layer is a
// treap: a search tree by the beginnings of the pieces, and a heap by numbers drawn for them, whose depth is some
// dozen. Living pieces of a layer never overlap. A piece that is freed leaves its tree; it stays in the array as long
// as an executable refers to it, so that a reference stays that of the memory that it was taken of, whatever lies at
// the address later. Locking: the caller's.
#include "doctor/record/memory.h"

#include <stdlib.h>

#include "doctor/base/grow.h"

static gcap_doctor_memory_piece_t* at(gcap_doctor_memory_t* memory, uint32_t piece) {
  ++memory->steps;
  return gcap_doctor_memory_at(memory, piece);
}

// --- The tree --------------------------------------------------------------------------------------------------------

// What begins before `begin`, and the rest.
static void split(gcap_doctor_memory_t* memory, uint32_t tree, uint64_t begin, uint32_t* out_before,
                  uint32_t* out_rest) {
  if (tree == 0) {
    *out_before = *out_rest = 0;
    return;
  }
  gcap_doctor_memory_piece_t* top = at(memory, tree);
  if (top->begin < begin) {
    split(memory, top->right, begin, &top->right, out_rest);
    *out_before = tree;
  } else {
    split(memory, top->left, begin, out_before, &top->left);
    *out_rest = tree;
  }
}

// All of `before` begins before all of `rest`.
static uint32_t join(gcap_doctor_memory_t* memory, uint32_t before, uint32_t rest) {
  if (before == 0 || rest == 0) return before != 0 ? before : rest;
  gcap_doctor_memory_piece_t *a = at(memory, before), *b = at(memory, rest);
  if (a->priority > b->priority) {
    a->right = join(memory, a->right, rest);
    return before;
  }
  b->left = join(memory, before, b->left);
  return rest;
}

static void take_out(gcap_doctor_memory_t* memory, uint32_t* root, uint32_t piece) {
  uint32_t before, rest;
  const uint64_t begin = gcap_doctor_memory_at(memory, piece)->begin;
  split(memory, *root, begin, &before, &rest);
  uint32_t itself;
  split(memory, rest, begin + 1, &itself, &rest);
  *root = join(memory, before, rest);
}

static void put_in(gcap_doctor_memory_t* memory, uint32_t* root, uint32_t piece) {
  uint32_t before, rest;
  split(memory, *root, gcap_doctor_memory_at(memory, piece)->begin, &before, &rest);
  *root = join(memory, join(memory, before, piece), rest);
}

uint32_t gcap_doctor_memory_find(gcap_doctor_memory_t* memory, gcap_doctor_memory_layer_t layer, uint64_t address) {
  uint32_t best = 0;
  for (uint32_t i = memory->roots[layer]; i != 0;) {
    const gcap_doctor_memory_piece_t* piece = at(memory, i);
    if (piece->begin <= address) best = i;
    i = piece->begin <= address ? piece->right : piece->left;
  }
  return best != 0 && address < gcap_doctor_memory_at(memory, best)->end ? best : 0;
}

uint32_t gcap_doctor_memory_next(gcap_doctor_memory_t* memory, gcap_doctor_memory_layer_t layer, uint64_t begin,
                                 uint64_t end) {
  uint32_t best = 0;
  for (uint32_t i = memory->roots[layer]; i != 0;) {
    const gcap_doctor_memory_piece_t* piece = at(memory, i);
    if (piece->begin >= begin) best = i;
    i = piece->begin >= begin ? piece->left : piece->right;
  }
  return best != 0 && gcap_doctor_memory_at(memory, best)->begin < end ? best : 0;
}

// --- Pieces ----------------------------------------------------------------------------------------------------------

// A number that looks drawn, the same in each run.
static uint32_t draw(uint64_t serial) {
  uint64_t x = serial * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
  return (uint32_t)(x >> 32);
}

static uint32_t take_place(gcap_doctor_memory_t* memory) {
  const uint32_t place = memory->first_free;
  if (place != 0) {
    memory->first_free = gcap_doctor_memory_at(memory, place)->left;
    return place;
  }
  if (!gcap_doctor_grow(&memory->pieces, &memory->capacity, memory->count + 1, sizeof(*memory->pieces))) return 0;
  return (uint32_t)++memory->count;
}

static void give_place(gcap_doctor_memory_t* memory, uint32_t piece) {
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(memory, piece);
  free(of->freed);
  *of = (gcap_doctor_memory_piece_t){.left = memory->first_free};
  memory->first_free = piece;
}

void gcap_doctor_memory_free(gcap_doctor_memory_t* memory, uint32_t piece, const gcap_doctor_memory_place_t* place) {
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(memory, piece);
  const gcap_doctor_memory_layer_t layer = gcap_doctor_memory_layer_of(of->what);
  take_out(memory, &memory->roots[layer], piece);
  if (layer == GCAP_DOCTOR_MEMORY_OF_DRIVER) {
    uint32_t block;
    while ((block = gcap_doctor_memory_next(memory, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, of->begin, of->end)) != 0) {
      gcap_doctor_memory_free(memory, block, place);
    }
  }
  of->is_freed = true;
  if (of->references == 0) {
    give_place(memory, piece);
    return;
  }
  ++memory->epoch;
  if (place != NULL) of->freed = malloc(sizeof(*of->freed));
  if (of->freed != NULL) *of->freed = *place;
}

uint32_t gcap_doctor_memory_add(gcap_doctor_memory_t* memory, uint64_t begin, uint64_t bytes,
                                gcap_doctor_memory_what_t what, const gcap_doctor_memory_place_t* made) {
  const gcap_doctor_memory_layer_t layer = gcap_doctor_memory_layer_of((uint8_t)what);
  if (bytes == 0 || begin + bytes < begin) return 0;
  uint32_t over;
  while ((over = gcap_doctor_memory_find(memory, layer, begin)) != 0 ||
         (over = gcap_doctor_memory_next(memory, layer, begin, begin + bytes)) != 0) {
    gcap_doctor_memory_free(memory, over, NULL);
  }
  const uint32_t piece = take_place(memory);
  if (piece == 0) return 0;
  const uint64_t serial = ++memory->last_serial;
  *gcap_doctor_memory_at(memory, piece) = (gcap_doctor_memory_piece_t){.begin = begin,
                                                                       .end = begin + bytes,
                                                                       .serial = serial,
                                                                       .made = *made,
                                                                       .priority = draw(serial),
                                                                       .what = (uint8_t)what};
  put_in(memory, &memory->roots[layer], piece);
  return piece;
}

void gcap_doctor_memory_retain(gcap_doctor_memory_t* memory, uint32_t piece) {
  ++gcap_doctor_memory_at(memory, piece)->references;
}

void gcap_doctor_memory_release(gcap_doctor_memory_t* memory, uint32_t piece) {
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(memory, piece);
  if (--of->references == 0 && of->is_freed) give_place(memory, piece);
}
