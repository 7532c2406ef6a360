// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// heap.h: memory that is freed all at once: what is read of a file, and what is found in it, lives and dies together.
#ifndef GCAP_DOCTOR_BASE_HEAP_H_
#define GCAP_DOCTOR_BASE_HEAP_H_

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Thread: one at a time. Lifetime: until gcap_doctor_heap_deinit, with all that was allocated.
typedef struct gcap_doctor_heap {
  struct gcap_doctor_heap_block* newest;
} gcap_doctor_heap_t;

void gcap_doctor_heap_init(gcap_doctor_heap_t* heap);
void gcap_doctor_heap_deinit(gcap_doctor_heap_t* heap);

// `bytes` of zeroed memory, aligned for every type. A process without memory ends with a message and exit code 3.
void* gcap_doctor_heap_alloc(gcap_doctor_heap_t* heap, size_t bytes);
// A copy of `length` bytes and a '\0'.
char* gcap_doctor_heap_copy(gcap_doctor_heap_t* heap, const char* text, size_t length);
// printf into memory of the heap.
char* gcap_doctor_heap_print(gcap_doctor_heap_t* heap, const char* format, ...) __attribute__((format(printf, 2, 3)));

// An array that grows: `items` is moved, by realloc and outside of any heap, to hold one more of `item_bytes`; `count`
// and `capacity` are the caller's. Freed by free().
void* gcap_doctor_heap_grow(void* items, size_t count, size_t* capacity, size_t item_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_BASE_HEAP_H_
