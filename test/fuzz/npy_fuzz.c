// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The .npy reader of the main job. Input: the element type, the expected rank, its lengths (0: any), then the file.
#include <math.h>

#include "examples/minimal_ep/digits/npy.h"
#include "test/fuzz/memory_file.h"

static void check_array(const npy_array_t* array, size_t rank, const int64_t* expected) {
  size_t count = 1;
  FUZZ_CHECK(array->rank == rank, "%zu dimensions, expected %zu", array->rank, rank);
  for (size_t i = 0; i < rank; ++i) {
    FUZZ_CHECK(expected[i] == NPY_ANY || array->shape[i] == (size_t)expected[i], "length %zu", array->shape[i]);
    count *= array->shape[i];
  }
  FUZZ_CHECK(array->count == count, "%zu elements, expected %zu", array->count, count);
  for (size_t i = 0; i < count && array->dtype == NPY_FLOAT32; ++i) {
    FUZZ_CHECK(isfinite(((const float*)array->data)[i]), "element %zu", i);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz_input_t input = {data, bytes};
  const npy_dtype_t dtype = fuzz_below(&input, 2) == 0 ? NPY_FLOAT32 : NPY_INT32;
  const size_t rank = fuzz_below(&input, NPY_MAX_RANK + 2);
  int64_t expected[NPY_MAX_RANK + 2];
  for (size_t i = 0; i < rank; ++i) {
    const uint8_t length = fuzz_byte(&input);
    expected[i] = length == 0 ? NPY_ANY : length;
  }
  const fuzz_memory_file_t file = fuzz_memory_file(input.at, input.left);
  npy_array_t array;
  char error[200] = "";
  const size_t error_bytes = bytes % 7 == 0 ? bytes % sizeof(error) : sizeof(error);
  if (npy_load(file.path, dtype, expected, rank, &array, error, error_bytes) == 0) {
    check_array(&array, rank, expected);
  } else {
    FUZZ_CHECK(error_bytes < 2 || error[0] != '\0', "no message");
    const npy_array_t zeros = {.data = NULL};
    FUZZ_CHECK(array.data == NULL && array.count == 0 && array.rank == zeros.rank, "not all zeros");
  }
  npy_free(&array);
  close(file.descriptor);
  return 0;
}
