// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a cublasLtMatmulAlgo_t holds, and what can be asked of it. The simulated library has one algorithm: it has no
// tiles, stages or custom options to choose from, and says so with the value that each of them has for "undefined".
// Stateless.
#include <string.h>

#include "sim/cublaslt/internal.h"

// A zeroed algorithm has no magic.
typedef struct algorithm {
  uint64_t magic;
  int64_t slices;
  cudaDataType in;   // of A and B
  cudaDataType out;  // of C and D
} algorithm_t;

_Static_assert(sizeof(algorithm_t) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm must fit the public struct");

static const uint64_t kAlgorithmMagic = 0x6c742d616c676f31u;

cublasLtMatmulAlgo_t gcap_sim_lt_make_algorithm(const gcap_sim_lt_problem_t* problem, int64_t slices) {
  const algorithm_t algorithm = {kAlgorithmMagic, slices, problem->a.type, problem->d.type};
  cublasLtMatmulAlgo_t opaque = {{0}};
  memcpy(&opaque, &algorithm, sizeof(algorithm));
  return opaque;
}

// All zero when it is none of this library's.
static algorithm_t read_algorithm(const cublasLtMatmulAlgo_t* opaque) {
  algorithm_t algorithm;
  memcpy(&algorithm, opaque, sizeof(algorithm));
  return algorithm.magic == kAlgorithmMagic ? algorithm : (algorithm_t){0};
}

int64_t gcap_sim_lt_slices_of(const cublasLtMatmulAlgo_t* opaque) { return read_algorithm(opaque).slices; }

// A value of 2 or 4 bytes, or a list that has one entry of 4.
typedef struct answer {
  uint32_t value;
  size_t bytes;
  int is_list;
} answer_t;

static answer_t scalar(uint32_t value) { return (answer_t){value, sizeof(uint32_t), 0}; }

static answer_t list_of(uint32_t value) { return (answer_t){value, sizeof(uint32_t), 1}; }

static answer_t alignment(cudaDataType type) { return scalar((uint32_t)gcap_sim_element_bytes(type)); }

static answer_t capability(const char* function, const algorithm_t* algorithm, int id) {
  switch (id) {
    case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
    case CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT:
    case CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT: return scalar(1);
    case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT:
    case CUBLASLT_ALGO_CAP_UPLO_SUPPORT:
    case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
    case CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER:
    case CUBLASLT_ALGO_CAP_LD_NEGATIVE: return scalar(0);
    case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK: return scalar(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    case CUBLASLT_ALGO_CAP_TILE_IDS:
    case CUBLASLT_ALGO_CAP_STAGES_IDS: return list_of(0);
    case CUBLASLT_ALGO_CAP_POINTER_MODE_MASK:
      return scalar(1u << CUBLASLT_POINTER_MODE_HOST | 1u << CUBLASLT_POINTER_MODE_DEVICE);
    case CUBLASLT_ALGO_CAP_EPILOGUE_MASK:
      return scalar(CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_AUX_BIAS | CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES: return alignment(algorithm->in);
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES: return alignment(algorithm->out);
    default: gcap_sim_stop(function, "capability %d is not modelled", id);
  }
}

static answer_t configuration(const char* function, const algorithm_t* algorithm, int id) {
  switch (id) {
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM: return scalar((uint32_t)algorithm->slices);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      return scalar(algorithm->slices > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE);
    case CUBLASLT_ALGO_CONFIG_ID:
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
    case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING:
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
    case CUBLASLT_ALGO_CONFIG_STAGES_ID: return scalar(0);
    case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
    case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID: return (answer_t){0, sizeof(uint16_t), 0};
    default: gcap_sim_stop(function, "configuration %d is not modelled", id);
  }
}

// A size of 0 asks how many bytes there are. A list may be given more room than it needs.
static cublasStatus_t put(const answer_t* answer, void* buf, size_t bytes, size_t* written) {
  const int fits = answer->is_list ? bytes >= answer->bytes : bytes == answer->bytes;
  if (bytes == 0 ? written == NULL : buf == NULL || !fits) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (bytes != 0 && answer->bytes == sizeof(uint16_t)) {
    const uint16_t value = (uint16_t)answer->value;
    memcpy(buf, &value, sizeof(value));
  } else if (bytes != 0) {
    memcpy(buf, &answer->value, sizeof(answer->value));
  }
  if (written != NULL) {
    *written = answer->bytes;
  }
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const char* function, const cublasLtMatmulAlgo_t* algo,
                          answer_t (*find)(const char*, const algorithm_t*, int), int id, void* buf, size_t bytes,
                          size_t* written) {
  const cublasStatus_t status = gcap_sim_lt_enter(function);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (algo == NULL || gcap_sim_lt_slices_of(algo) == 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const algorithm_t algorithm = read_algorithm(algo);
  const answer_t answer = find(function, &algorithm, id);
  return put(&answer, buf, bytes, written);
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attr, void* buf, size_t sizeInBytes,
                                                 size_t* sizeWritten) {
  return get(__func__, algo, capability, (int)attr, buf, sizeInBytes, sizeWritten);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr, void* buf,
                                                    size_t sizeInBytes, size_t* sizeWritten) {
  return get(__func__, algo, configuration, (int)attr, buf, sizeInBytes, sizeWritten);
}
