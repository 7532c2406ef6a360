// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// grow.h: room in a list that grows.
#ifndef GCAP_LIB_INTERNAL_GROW_H_
#define GCAP_LIB_INTERNAL_GROW_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Makes room for `need` items of `item_bytes` bytes each. `items` is the address of the pointer to the list, which is
// NULL at first and freed by free(); `*room` is how many items have room. The room at least doubles, so adding one item
// at a time is cheap. New items are not initialized.
// Returns false without host memory, and where no size_t holds the bytes. The list then stays as it was.
// Thread: one at a time.
bool gcap_grow(void* items, size_t* room, size_t need, size_t item_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_GROW_H_
