// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program that links gcap's operators: a kernel of gcap's own, and a product by cuBLASLt of what the kernel made.
#include <stdio.h>

#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/matmul.h"

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

int main(void) {
  const float input[2] = {-1.0f, 2.0f};
  float *x, *product, output = 0.0f;
  gcap_stream_t* stream;
  gcap_matmul_t* matmul;
  TRY(gcap_stream_create(/*device_id=*/0, &stream));
  TRY(GCAP_CUDA(cudaMalloc((void**)&x, sizeof(input))));
  TRY(GCAP_CUDA(cudaMalloc((void**)&product, sizeof(output))));
  TRY(GCAP_CUDA(cudaMemcpy(x, input, sizeof(input), cudaMemcpyHostToDevice)));

  // max(x, 0), times itself.
  const gcap_tensor_t tensor = {.data = x, .dtype = GCAP_DTYPE_F32, .rank = 1, .shape = {2}};
  TRY(gcap_unary(stream, GCAP_UNARY_RELU, &tensor, &tensor));
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.m = options.n = 1;
  options.k = 2;
  TRY(gcap_stream_cublaslt_handle(stream, &options.handle));
  TRY(gcap_matmul_create(&options, &matmul));
  TRY(gcap_matmul_run(matmul, stream, x, x, /*bias=*/NULL, /*addend=*/NULL, product, /*workspace=*/NULL));
  TRY(gcap_stream_synchronize(stream));
  TRY(GCAP_CUDA(cudaMemcpy(&output, product, sizeof(output), cudaMemcpyDeviceToHost)));

  gcap_matmul_destroy(matmul);
  TRY(gcap_stream_destroy(stream));
  TRY(GCAP_CUDA(cudaFree(product)));
  TRY(GCAP_CUDA(cudaFree(x)));
  if (output == 4.0f) return 0;
  fprintf(stderr, "the product is %g, expected 4\n", output);
  return 1;
}
