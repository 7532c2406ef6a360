// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One of the two tables: GCAP_ABI_TABLE names it, and the include path decides whose headers it is made of.
//
// Locking: none, constants only.
#include "abi_table.h"

#include <stdint.h>

#include "cublasLt.h"
#include "cublas_v2.h"
#include "cuda_runtime_api.h"
#include "cudnn.h"
#include "library_types.h"

#define JOIN(a, b) a##b
#define COUNT_OF(table) JOIN(table, _count)

// Some constants are handles, so they go through a pointer's width.
#define C(name) {#name, (long long)(intptr_t)(name), 0},
#define S(type) {#type, (long long)sizeof(type), 0},
#define F(type, field) {#type "." #field, (long long)offsetof(type, field), (long long)sizeof(((type*)0)->field)},

const gcap_abi_entry_t GCAP_ABI_TABLE[] = {
#include "cublas_list.inc"
#include "cublaslt_list.inc"
#include "cudnn_list.inc"
#include "runtime_list.inc"
};

const size_t COUNT_OF(GCAP_ABI_TABLE) = sizeof(GCAP_ABI_TABLE) / sizeof(GCAP_ABI_TABLE[0]);
