// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// decoded_body.h: what gcap_kernel_decoded does, for nvcc and for its CPU twin. A test compares one launch of the
// kernel with another, so kernel and twin may be one text.
#ifndef GCAP_TEST_SUPPORT_KERNELS_DECODED_BODY_H_
#define GCAP_TEST_SUPPORT_KERNELS_DECODED_BODY_H_

#include "test/support/kernels/decoded_kernels.h"

#ifdef __CUDACC__
#define GCAP_DECODED static __device__
#else
#define GCAP_DECODED static
#endif

GCAP_DECODED uint64_t decoded_word(const gcap_test_args_t* args, unsigned at, unsigned bytes) {
  uint64_t word = 0;
  for (unsigned i = 0; i < bytes; ++i) word |= (uint64_t)args->bytes[(at + i) % GCAP_TEST_ARG_BYTES] << (8 * i);
  return word;
}

GCAP_DECODED int decoded_may_touch(const gcap_test_trace_t* trace, uint64_t address, uint64_t bytes,
                                   unsigned alignment) {
  for (int i = 0; i < GCAP_TEST_TRACE_RANGES; ++i) {
    if (address % alignment == 0 && address >= trace->begin[i] && address <= trace->end[i] &&
        bytes <= trace->end[i] - address) {
      return 1;
    }
  }
  return 0;
}

GCAP_DECODED uint64_t decoded_address(const gcap_test_args_t* args, gcap_test_operand_t operand, uint64_t bytes,
                                      const gcap_test_trace_t* trace) {
  const uint64_t word = decoded_word(args, operand.at, 8);
  switch (operand.form) {
    case GCAP_TEST_END: return word - bytes;
    case GCAP_TEST_OFFSET: return decoded_word(args, operand.with, 8) + (uint64_t)(int64_t)(int32_t)(uint32_t)word;
    case GCAP_TEST_DIFFERENCE: return decoded_word(args, operand.with, 8) + word;
    case GCAP_TEST_HALVES: return (word & 0xffffffffu) | decoded_word(args, operand.with, 4) << 32;
    case GCAP_TEST_MASKED: return (word & ~(uint64_t)0xff) | decoded_word(args, operand.with, 1);
    case GCAP_TEST_TABLE: return decoded_may_touch(trace, word, 8, 8) ? *(const uint64_t*)(uintptr_t)word : 0;
    default: return word;
  }
}

GCAP_DECODED void decoded_reverse_within(float* y, uint32_t count, float addend) {
  for (uint32_t i = 0; i < count / 2; ++i) {
    const float other = y[count - 1 - i] + addend;
    y[count - 1 - i] = y[i] + addend;
    y[i] = other;
  }
  if (count % 2 != 0) y[count / 2] += addend;
}

GCAP_DECODED void decoded_run(const gcap_test_args_t* args, gcap_test_recipe_t recipe, gcap_test_trace_t* trace) {
  const uint32_t count = (uint32_t)decoded_word(args, recipe.count_at, 4);
  const uint64_t bytes = (uint64_t)count * sizeof(float);
  const uint64_t x = decoded_address(args, recipe.x, bytes, trace), y = decoded_address(args, recipe.y, bytes, trace);
  const uint32_t head = (uint32_t)decoded_word(args, recipe.head_at, 1);
  gcap_test_trace_slot_t* slot = &trace->slots[recipe.slot % GCAP_TEST_TRACE_SLOTS];
  slot->args = *args;
  ++slot->launches;
  if (recipe.op == GCAP_TEST_STORE) {
    if (decoded_may_touch(trace, y, 8, 8)) {
      *(uint64_t*)(uintptr_t)y = x;
    } else {
      ++slot->misses;
    }
    return;
  }
  // From the multiple of 16 bytes at or below the first element that is not read one by one.
  const uint64_t rest = (x + (uint64_t)head * sizeof(float)) & ~(uint64_t)15;
  const int is_aligned = recipe.op == GCAP_TEST_ADD_ALIGNED;
  if (count > GCAP_TEST_MAX_COUNT || !decoded_may_touch(trace, x, bytes, 4) || !decoded_may_touch(trace, y, bytes, 4) ||
      (is_aligned && (head > 3 || head > count || !decoded_may_touch(trace, rest, bytes - head * sizeof(float), 4)))) {
    ++slot->misses;
    return;
  }
  const float* from = (const float*)(uintptr_t)x;
  float* to = (float*)(uintptr_t)y;
  if (recipe.op == GCAP_TEST_REVERSE_WITHIN) decoded_reverse_within(to, count, recipe.addend);
  for (uint32_t i = 0; recipe.op != GCAP_TEST_REVERSE_WITHIN && i < count; ++i) {
    const float* read = from + (recipe.op == GCAP_TEST_REVERSE ? count - 1 - i : i);
    if (is_aligned && i >= head) read = (const float*)(uintptr_t)rest + (i - head);
    to[i] = *read + recipe.addend;
  }
}

#endif  // GCAP_TEST_SUPPORT_KERNELS_DECODED_BODY_H_
