// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// decoded_kernels.h: one kernel whose arguments are bytes, which a recipe says how to read: as pointers, packed ones,
// halves of a pointer, offsets, differences, addresses without their low bits, or where a pointer lies.
//
// The kernel leaves its arguments in a trace, so a test compares what two launches were given, and not only what they
// did. It touches nothing outside of the memory that the trace names, so wrong arguments are counted and harm nobody.
#ifndef GCAP_TEST_SUPPORT_KERNELS_DECODED_KERNELS_H_
#define GCAP_TEST_SUPPORT_KERNELS_DECODED_KERNELS_H_

#include "test/support/kernels/plain_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GCAP_TEST_ARG_BYTES = 80, GCAP_TEST_TRACE_SLOTS = 17, GCAP_TEST_TRACE_RANGES = 4, GCAP_TEST_MAX_COUNT = 256 };

// How a pointer stands in the arguments.
typedef enum gcap_test_form {
  GCAP_TEST_POINTER = 0,  // the 8 bytes at `at`
  GCAP_TEST_END,          // the 8 bytes at `at` are the end of the floats
  GCAP_TEST_OFFSET,       // 32 bits with a sign at `at`, from the pointer at `with`
  GCAP_TEST_DIFFERENCE,   // 64 bits at `at`, from the pointer at `with`
  GCAP_TEST_HALVES,       // the low 32 bits at `at`, the high ones at `with`
  GCAP_TEST_MASKED,       // the 8 bytes at `at`, and the byte at `with` in the place of their low 8 bits
  GCAP_TEST_TABLE,        // it lies where the 8 bytes at `at` point
  GCAP_TEST_NUM_FORMS
} gcap_test_form_t;

typedef struct gcap_test_operand {
  uint8_t form, at, with;
} gcap_test_operand_t;

// What the kernel does with the floats x and y, of which there are the 32 bits at `count_at`.
typedef enum gcap_test_op {
  GCAP_TEST_ADD = 0,         // y[i] = x[i] + addend
  GCAP_TEST_REVERSE,         // y[i] = x[count - 1 - i] + addend
  GCAP_TEST_REVERSE_WITHIN,  // reverses y, and adds
  // y[i] = x[i] + addend, where the first elements are read one by one, as many as the byte at `head_at` says, and the
  // others from the multiple of 16 bytes that should come then.
  GCAP_TEST_ADD_ALIGNED,
  GCAP_TEST_STORE,  // the 8 bytes at y = the address x
} gcap_test_op_t;

typedef struct gcap_test_recipe {
  gcap_test_operand_t x, y;
  uint8_t op, count_at, head_at, addend;
  uint8_t slot;  // of the trace
} gcap_test_recipe_t;

// By value, at no alignment.
typedef struct gcap_test_args {
  uint8_t bytes[GCAP_TEST_ARG_BYTES];
} gcap_test_args_t;

typedef struct gcap_test_trace_slot {
  gcap_test_args_t args;
  uint32_t launches, misses;  // a miss: the launch would have touched other memory, and did nothing
} gcap_test_trace_slot_t;

// In device memory.
typedef struct gcap_test_trace {
  uint64_t begin[GCAP_TEST_TRACE_RANGES], end[GCAP_TEST_TRACE_RANGES];  // what may be touched
  gcap_test_trace_slot_t slots[GCAP_TEST_TRACE_SLOTS];
} gcap_test_trace_t;

// One thread.
GCAP_KERNEL void gcap_kernel_decoded(gcap_test_args_t args, gcap_test_recipe_t recipe, gcap_test_trace_t* trace);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_SUPPORT_KERNELS_DECODED_KERNELS_H_
