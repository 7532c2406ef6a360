// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The addend of a product, broadcast by copies into the output, where cuBLASLt then adds to it: no layout of the
// library repeats a row. What is there already is copied behind itself, so it doubles with each copy. No state.
#include "ops/cublaslt/matmul_plan.h"

// Repeats the first `filled` bytes until `total` bytes are full.
static gcap_status_t repeat(cudaStream_t stream, char* c, size_t filled, size_t total) {
  while (filled < total) {
    const size_t more = filled < total - filled ? filled : total - filled;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(c + filled, c, more, cudaMemcpyDeviceToDevice, stream)));
    filled += more;
  }
  return NULL;
}

// An element into the first column of each row, then the columns of all rows at once.
static gcap_status_t spread_column(cudaStream_t stream, const void* addend, char* c, size_t element, size_t row_bytes,
                                   size_t rows) {
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpy2DAsync(c, row_bytes, addend, element, element, rows, cudaMemcpyDeviceToDevice, stream)));
  for (size_t filled = element; filled < row_bytes;) {
    const size_t more = filled < row_bytes - filled ? filled : row_bytes - filled;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(
        cudaMemcpy2DAsync(c + filled, row_bytes, c, row_bytes, more, rows, cudaMemcpyDeviceToDevice, stream)));
    filled += more;
  }
  return NULL;
}

gcap_status_t gcap_matmul_spread_addend(const gcap_matmul_t* matmul, cudaStream_t stream, const void* addend, void* c) {
  const gcap_matmul_options_t* o = &matmul->options;
  const size_t element = matmul->c_element_bytes, row_bytes = (size_t)o->n * element;
  if (o->addend == GCAP_MATMUL_ADDEND_COLUMN) {
    return spread_column(stream, addend, c, element, row_bytes, (size_t)o->m);
  }
  const size_t first = o->addend == GCAP_MATMUL_ADDEND_ROW ? row_bytes : element;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(c, addend, first, cudaMemcpyDeviceToDevice, stream)));
  return repeat(stream, c, first, (size_t)o->m * row_bytes);
}
