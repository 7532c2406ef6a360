// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// abi_table.h: names with the numbers that a header gives them, made twice: from the simulator's headers and from
// NVIDIA's.
#ifndef GCAP_TEST_CUDA_ABI_ABI_TABLE_H_
#define GCAP_TEST_CUDA_ABI_ABI_TABLE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_abi_entry {
  const char* name;
  long long value;  // of a constant; size of a type; offset of a field
  long long bytes;  // size of a field, else 0
} gcap_abi_entry_t;

extern const gcap_abi_entry_t gcap_abi_sim[];
extern const size_t gcap_abi_sim_count;
extern const gcap_abi_entry_t gcap_abi_real[];
extern const size_t gcap_abi_real_count;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_CUDA_ABI_ABI_TABLE_H_
