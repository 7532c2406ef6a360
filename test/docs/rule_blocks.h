// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rule_blocks.h: what the functions of docs/rules/ are given when rule_blocks.c runs them, by the names that their
// parameters have there.
#ifndef GCAP_TEST_DOCS_RULE_BLOCKS_H_
#define GCAP_TEST_DOCS_RULE_BLOCKS_H_

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

struct given {
  cudaStream_t stream, side;
  cudaEvent_t event;
  float *memory, *more, *pinned, *managed;
  int* flag;
  float* scratch_out;
  float** scratch;
  const void* kernel;
  cudaGraph_t graph_out;
  cudaGraph_t* graph;
  cudaGraph_t captured;
  cudaGraphExec_t exec;
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t square;
  cublasLtMatmulPreference_t preference;
  cudnnHandle_t dnn;
  cudnnTensorDescriptor_t image;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
};

#endif  // GCAP_TEST_DOCS_RULE_BLOCKS_H_
