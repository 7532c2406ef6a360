// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// twin.h: what the kernels' CPU twins share: their registration, walks over index maps, and the bytes that an operand
// covers. Kernels stride over what the grid does not cover, so every grid computes all, and the twins do not look at
// it.
#ifndef GCAP_OPS_KERNELS_TWIN_H_
#define GCAP_OPS_KERNELS_TWIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "gcap_sim.h"
#include "ops/kernels/index_map.h"

// Defines the function whose address is the kernel's handle. Kernels are launched, never called. With
// GCAP_TWINS_BY_NAME the function is that of an object that nvcc compiled.
#ifdef GCAP_TWINS_BY_NAME
#define GCAP_TWIN_HANDLE(kernel, params_type)
#else
#define GCAP_TWIN_HANDLE(kernel, params_type) \
  void kernel(params_type params) {           \
    (void)params;                             \
    abort();                                  \
  }
#endif

// Registers the twin of a kernel of one parameter struct. `name` lives as long as the program.
void gcap_twin_register(const void* kernel, const char* name, const size_t* params_bytes,
                        void (*run)(const gcap_sim_launch_t*, void* const*),
                        size_t (*accesses)(const gcap_sim_launch_t*, void* const*, gcap_sim_access_t*, size_t));

// The rows of a map: runs along its last axis, with each operand's offset.
typedef struct gcap_twin_rows {
  const gcap_index_map_t* map;
  int64_t row_size;
  int64_t first;  // the index of the row's first element, counted over the whole shape
  int64_t offsets[GCAP_MAP_MAX_OPERANDS];
  int64_t index[GCAP_MAP_MAX_RANK];
} gcap_twin_rows_t;

gcap_twin_rows_t gcap_twin_rows(const gcap_index_map_t* map);  // the first row; there is one
bool gcap_twin_next_row(gcap_twin_rows_t* rows);               // false behind the last one

// A list of accesses that may be longer than the array that it is written to.
typedef struct gcap_twin_accesses {
  gcap_sim_access_t* items;
  size_t capacity;
  size_t count;
} gcap_twin_accesses_t;

void gcap_twin_access(gcap_twin_accesses_t* list, const void* address, size_t bytes, bool is_write);

// Exactly the bytes of operand `k` of the map: as few ranges as there are.
void gcap_twin_access_map(gcap_twin_accesses_t* list, const gcap_index_map_t* map, int k, const void* address,
                          size_t element_bytes, bool is_write);

// The twin gcap_kernel_KERNEL_SUFFIX of one parameter struct, which run_KERNEL_SUFFIX computes; list_KERNEL(params,
// element_bytes, items, capacity) lists its accesses. Registered by GCAP_TWIN_REGISTER, which takes the struct's size
// from KERNEL_bytes.
#define GCAP_TWIN(kernel, suffix, element_bytes)                                                 \
  GCAP_TWIN_HANDLE(gcap_kernel_##kernel##_##suffix, gcap_##kernel##_params_t)                    \
  static size_t accesses_##kernel##_##suffix(const gcap_sim_launch_t* launch, void* const* args, \
                                             gcap_sim_access_t* out_items, size_t capacity) {    \
    (void)launch;                                                                                \
    return list_##kernel(args[0], element_bytes, out_items, capacity);                           \
  }
#define GCAP_TWIN_REGISTER(kernel, suffix)                                                             \
  gcap_twin_register((const void*)gcap_kernel_##kernel##_##suffix, "gcap_kernel_" #kernel "_" #suffix, \
                     &kernel##_bytes, run_##kernel##_##suffix, accesses_##kernel##_##suffix);

// The twin of a kernel of elements of type T, whose output `i` of `count` (of the params `p`) is gcap_KERNEL_T(p, i).
#define GCAP_OUTPUT_TWIN(kernel, T, count)                                                      \
  GCAP_TWIN(kernel, T, sizeof(gcap_##T##_t))                                                    \
  static void run_##kernel##_##T(const gcap_sim_launch_t* launch, void* const* args) {          \
    (void)launch;                                                                               \
    const gcap_##kernel##_params_t* p = args[0];                                                \
    for (int64_t i = 0; i < (count); ++i) ((gcap_##T##_t*)p->y)[i] = gcap_##kernel##_##T(p, i); \
  }

#endif  // GCAP_OPS_KERNELS_TWIN_H_
