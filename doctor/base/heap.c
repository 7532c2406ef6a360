// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks in a list, filled from their beginning. Large wishes get a block of their own. Locking: none.
#include "doctor/base/heap.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/base/grow.h"

enum { kBlockBytes = 1 << 16, kAlign = 16 };

typedef struct gcap_doctor_heap_block {
  struct gcap_doctor_heap_block* older;
  size_t used, capacity;
  _Alignas(kAlign) char bytes[];
} block_t;

static _Noreturn void die_of_memory(size_t bytes) {
  fprintf(stderr, "gcap-doctor: no memory for %zu bytes\n", bytes);
  exit(3);
}

void gcap_doctor_heap_init(gcap_doctor_heap_t* heap) { heap->newest = NULL; }

void gcap_doctor_heap_deinit(gcap_doctor_heap_t* heap) {
  while (heap->newest != NULL) {
    block_t* older = heap->newest->older;
    free(heap->newest);
    heap->newest = older;
  }
}

void* gcap_doctor_heap_alloc(gcap_doctor_heap_t* heap, size_t bytes) {
  if (bytes > SIZE_MAX / 2) die_of_memory(bytes);
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  block_t* block = heap->newest;
  if (block == NULL || block->capacity - block->used < bytes) {
    size_t capacity = bytes > kBlockBytes ? bytes : kBlockBytes;
    block = calloc(1, sizeof(*block) + capacity);
    if (block == NULL) die_of_memory(bytes);
    block->capacity = capacity;
    block->older = heap->newest;
    heap->newest = block;
  }
  void* memory = block->bytes + block->used;
  block->used += bytes;
  return memory;
}

char* gcap_doctor_heap_copy(gcap_doctor_heap_t* heap, const char* text, size_t length) {
  char* copy = gcap_doctor_heap_alloc(heap, length + 1);
  memcpy(copy, text, length);
  return copy;
}

char* gcap_doctor_heap_print(gcap_doctor_heap_t* heap, const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char* text = gcap_doctor_heap_alloc(heap, (size_t)(length > 0 ? length : 0) + 1);
  if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

void* gcap_doctor_heap_grow(void* items, size_t count, size_t* capacity, size_t item_bytes) {
  if (!gcap_doctor_grow(&items, capacity, count + 1, item_bytes)) die_of_memory((count + 1) * item_bytes);
  return items;
}
