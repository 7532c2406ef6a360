// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Functions on one element, by operator and type. Integers are computed without a sign, so that they wrap; the one
// quotient that does not fit, of the least number by -1, wraps too.

#include <math.h>

#include "kit/cpu_ep/op.h"

#define UNARY(name, suffix, type, expression)                  \
  static void name##_##suffix(const void* a_data, void* out) { \
    const type a = *(const type*)a_data;                       \
    *(type*)out = (type)(expression);                          \
  }

#define BINARY(name, suffix, type, result, divides_by_zero, expression)            \
  static bool name##_##suffix(const void* a_data, const void* b_data, void* out) { \
    const type a = *(const type*)a_data, b = *(const type*)b_data;                 \
    if (divides_by_zero) return false;                                             \
    *(result*)out = (result)(expression);                                          \
    return true;                                                                   \
  }

#define NUMBERS_OF(name) \
  { [GCAP_DTYPE_F32] = name##_f32, [GCAP_DTYPE_I64] = name##_i64, [GCAP_DTYPE_I32] = name##_i32 }

#define UNARY_OF_NUMBERS(name, of_floats, of_integers) \
  UNARY(name, f32, float, of_floats)                   \
  UNARY(name, i64, int64_t, of_integers(uint64_t))     \
  UNARY(name, i32, int32_t, of_integers(uint32_t))     \
  const gcap_cpu_unary_t gcap_cpu_##name[GCAP_CPU_NUM_DTYPES] = NUMBERS_OF(name);

#define NEGATED(unsigned_type) ((unsigned_type)0 - (unsigned_type)a)
#define MAGNITUDE(unsigned_type) (a < 0 ? (unsigned_type)0 - (unsigned_type)a : (unsigned_type)a)
#define POSITIVE(unsigned_type) (a > 0 ? (unsigned_type)a : (unsigned_type)0)

UNARY_OF_NUMBERS(neg, -a, NEGATED)
UNARY_OF_NUMBERS(abs, fabsf(a), MAGNITUDE)
UNARY_OF_NUMBERS(relu, a < 0 ? 0.0f : a, POSITIVE)

UNARY(not, bool, uint8_t, a == 0)
const gcap_cpu_unary_t gcap_cpu_not[GCAP_CPU_NUM_DTYPES] = {[GCAP_DTYPE_BOOL] = not_bool};

// --- Arithmetic -------------------------------------------------------------------------------------------------------

#define ARITHMETIC(name, of_floats, divides_by_zero, of_integers)             \
  BINARY(name, f32, float, float, false, of_floats)                           \
  BINARY(name, i64, int64_t, int64_t, divides_by_zero, of_integers(uint64_t)) \
  BINARY(name, i32, int32_t, int32_t, divides_by_zero, of_integers(uint32_t)) \
  const gcap_cpu_binary_t gcap_cpu_##name[GCAP_CPU_NUM_DTYPES] = NUMBERS_OF(name);

#define SUM(unsigned_type) ((unsigned_type)a + (unsigned_type)b)
#define DIFFERENCE(unsigned_type) ((unsigned_type)a - (unsigned_type)b)
#define PRODUCT(unsigned_type) ((unsigned_type)a * (unsigned_type)b)
#define QUOTIENT(unsigned_type) (b == -1 ? (unsigned_type)0 - (unsigned_type)a : (unsigned_type)(a / b))
// Of the divisor's sign, as Python's %.
#define FLOOR_REMAINDER(unsigned_type) (b == -1 ? 0 : a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b)
// Of the dividend's sign, as C's %.
#define REMAINDER(unsigned_type) (b == -1 ? 0 : a % b)
#define SMALLER(unsigned_type) (a < b ? a : b)
#define LARGER(unsigned_type) (a > b ? a : b)

ARITHMETIC(add, a + b, false, SUM)
ARITHMETIC(sub, a - b, false, DIFFERENCE)
ARITHMETIC(mul, a* b, false, PRODUCT)
ARITHMETIC(div, a / b, b == 0, QUOTIENT)
ARITHMETIC(fmod, fmodf(a, b), b == 0, REMAINDER)
ARITHMETIC(min, isnan(a) || a < b ? a : b, false, SMALLER)
ARITHMETIC(max, isnan(a) || a > b ? a : b, false, LARGER)

BINARY(floor_mod, i64, int64_t, int64_t, b == 0, FLOOR_REMAINDER(uint64_t))
BINARY(floor_mod, i32, int32_t, int32_t, b == 0, FLOOR_REMAINDER(uint32_t))
const gcap_cpu_binary_t gcap_cpu_floor_mod[GCAP_CPU_NUM_DTYPES] = {
    [GCAP_DTYPE_I64] = floor_mod_i64, [GCAP_DTYPE_I32] = floor_mod_i32};

// --- Comparisons and logic ----------------------------------------------------------------------------------------------

#define COMPARISON(name, expression)                     \
  BINARY(name, f32, float, uint8_t, false, expression)   \
  BINARY(name, i64, int64_t, uint8_t, false, expression) \
  BINARY(name, i32, int32_t, uint8_t, false, expression)

COMPARISON(less, a < b)
COMPARISON(greater, a > b)
COMPARISON(equal, a == b)
BINARY(equal, bool, uint8_t, uint8_t, false, (a != 0) == (b != 0))
BINARY(equal, byte, uint8_t, uint8_t, false, a == b)
BINARY(and, bool, uint8_t, uint8_t, false, a != 0 && b != 0)
BINARY(or, bool, uint8_t, uint8_t, false, a != 0 || b != 0)

const gcap_cpu_binary_t gcap_cpu_less[GCAP_CPU_NUM_DTYPES] = NUMBERS_OF(less);
const gcap_cpu_binary_t gcap_cpu_greater[GCAP_CPU_NUM_DTYPES] = NUMBERS_OF(greater);
const gcap_cpu_binary_t gcap_cpu_equal[GCAP_CPU_NUM_DTYPES] = {
    [GCAP_DTYPE_F32] = equal_f32,   [GCAP_DTYPE_I64] = equal_i64, [GCAP_DTYPE_I32] = equal_i32,
    [GCAP_DTYPE_BOOL] = equal_bool, [GCAP_DTYPE_I8] = equal_byte, [GCAP_DTYPE_U8] = equal_byte};
const gcap_cpu_binary_t gcap_cpu_and[GCAP_CPU_NUM_DTYPES] = {[GCAP_DTYPE_BOOL] = and_bool};
const gcap_cpu_binary_t gcap_cpu_or[GCAP_CPU_NUM_DTYPES] = {[GCAP_DTYPE_BOOL] = or_bool};
