// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublasLt.h: our own declarations of the part of cuBLASLt 13.1 that the simulator models.
//
// Names, values and layouts equal NVIDIA's, so that code compiled against this header and against the toolkit's means
// the same. What is not declared here is not modelled: using it fails at compile time rather than at run time.
#ifndef GCAP_SIM_INCLUDE_CUBLASLT_H_
#define GCAP_SIM_INCLUDE_CUBLASLT_H_

#include <stddef.h>
#include <stdint.h>

#include "cublas_api.h"
#include "cuda_runtime_api.h"
#include "library_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)  // the simulator itself is compiled with -fvisibility=hidden

// Library handle: created once, used by any number of threads and streams.
// Capture: cublasLtCreate is legal; cublasLtDestroy answers success and invalidates the captures it may disturb.
typedef struct cublasLtContext* cublasLtHandle_t;

// Descriptors are of a fixed, public size; their contents are the library's.
typedef struct {
  uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;

typedef struct {
  uint64_t data[32];
} cublasLtMatmulDescOpaque_t;
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;

typedef struct {
  uint64_t data[8];
} cublasLtMatmulPreferenceOpaque_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;

// A configured algorithm: a plain value, which may be copied and kept.
typedef struct {
  uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef enum {
  CUBLASLT_POINTER_MODE_HOST = CUBLAS_POINTER_MODE_HOST,
  CUBLASLT_POINTER_MODE_DEVICE = CUBLAS_POINTER_MODE_DEVICE,
  CUBLASLT_POINTER_MODE_DEVICE_VECTOR = 2,
  CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO = 3,
  CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST = 4
} cublasLtPointerMode_t;

typedef enum {
  CUBLASLT_ORDER_COL = 0,  // ld is the distance between columns
  CUBLASLT_ORDER_ROW = 1,  // ld is the distance between rows
  CUBLASLT_ORDER_COL32 = 2,
  CUBLASLT_ORDER_COL4_4R2_8C = 3,
  CUBLASLT_ORDER_COL32_2R_4R4 = 4
} cublasLtOrder_t;

typedef enum { CUBLASLT_BATCH_MODE_STRIDED = 0, CUBLASLT_BATCH_MODE_POINTER_ARRAY = 1 } cublasLtBatchMode_t;

// The comment gives the attribute's type.
typedef enum {
  CUBLASLT_MATRIX_LAYOUT_TYPE = 0,                  // uint32_t, a cudaDataType
  CUBLASLT_MATRIX_LAYOUT_ORDER = 1,                 // int32_t, a cublasLtOrder_t
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,                  // uint64_t
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,                  // uint64_t
  CUBLASLT_MATRIX_LAYOUT_LD = 4,                    // int64_t, elements
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,           // int32_t
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,  // int64_t, elements
  CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7,          // int64_t, bytes
  CUBLASLT_MATRIX_LAYOUT_BATCH_MODE = 8             // uint32_t, a cublasLtBatchMode_t
} cublasLtMatrixLayoutAttribute_t;

// The comment gives the attribute's type; attributes without one are not modelled.
typedef enum {
  CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,  // int32_t, a cublasComputeType_t
  CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,    // int32_t, a cudaDataType
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,  // int32_t, a cublasLtPointerMode_t
  CUBLASLT_MATMUL_DESC_TRANSA = 3,        // int32_t, a cublasOperation_t
  CUBLASLT_MATMUL_DESC_TRANSB = 4,        // int32_t
  CUBLASLT_MATMUL_DESC_TRANSC = 5,        // int32_t, CUBLAS_OP_N only
  CUBLASLT_MATMUL_DESC_FILL_MODE = 6,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,                    // uint32_t, a cublasLtEpilogue_t
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,                // const void*, device memory
  CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,          // int64_t, elements
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,       // void*, device memory
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,            // int64_t, elements; bits for a ReLU
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13,  // int64_t, the same
  CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE = 14,
  CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15,  // int32_t, 0: all of them
  CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
  CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
  CUBLASLT_MATMUL_DESC_C_SCALE_POINTER = 19,
  CUBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,
  CUBLASLT_MATMUL_DESC_AMAX_D_POINTER = 21,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22,  // int32_t, a cudaDataType, -1: that of D
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER = 23,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER = 24,
  CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26  // int32_t, a cudaDataType, -1: that of D
} cublasLtMatmulDescAttributes_t;

typedef enum {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_RELU_AUX = 130,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
  CUBLASLT_EPILOGUE_DRELU = 136,
  CUBLASLT_EPILOGUE_DRELU_BGRAD = 152,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_AUX = 160,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU = 192,
  CUBLASLT_EPILOGUE_DGELU_BGRAD = 208,
  CUBLASLT_EPILOGUE_BGRADA = 256,
  CUBLASLT_EPILOGUE_BGRADB = 512
} cublasLtEpilogue_t;

typedef enum { CUBLASLT_SEARCH_BEST_FIT = 0, CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID = 1 } cublasLtMatmulSearch_t;

typedef enum {
  CUBLASLT_REDUCTION_SCHEME_NONE = 0,
  CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4,
  CUBLASLT_REDUCTION_SCHEME_MASK = 0x7
} cublasLtReductionScheme_t;

typedef enum {
  CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,            // uint32_t, a cublasLtMatmulSearch_t
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,    // uint64_t
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,  // uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,  // uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,  // uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,  // uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,  // uint32_t
  CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT = 9,        // float
  CUBLASLT_MATMUL_PREF_IMPL_MASK = 12              // uint64_t
} cublasLtMatmulPreferenceAttributes_t;

// What an algorithm can do. The comment gives the attribute's type.
typedef enum {
  CUBLASLT_ALGO_CAP_SPLITK_SUPPORT = 0,               // int32_t, 0: no
  CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK = 1,        // uint32_t, of cublasLtReductionScheme_t
  CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT = 2,        // uint32_t, 0: no
  CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT = 3,        // int32_t, 0: no
  CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT = 4,  // int32_t, 0: C must be D
  CUBLASLT_ALGO_CAP_UPLO_SUPPORT = 5,                 // int32_t, 0: no
  CUBLASLT_ALGO_CAP_TILE_IDS = 6,                     // uint32_t[], 0 for none
  CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX = 7,            // int32_t
  CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER = 10,         // int32_t, 0: by columns or by rows alone
  CUBLASLT_ALGO_CAP_POINTER_MODE_MASK = 11,           // uint32_t, bit i for the cublasLtPointerMode_t i
  CUBLASLT_ALGO_CAP_EPILOGUE_MASK = 12,               // uint32_t, of cublasLtEpilogue_t
  CUBLASLT_ALGO_CAP_STAGES_IDS = 13,                  // uint32_t[], 0 for none
  CUBLASLT_ALGO_CAP_LD_NEGATIVE = 14,                 // int32_t, 0: no
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES = 16,       // uint32_t
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES = 17,       // uint32_t
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES = 18,       // uint32_t
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES = 19        // uint32_t
} cublasLtMatmulAlgoCapAttributes_t;

// How an algorithm is configured. The comment gives the attribute's type.
typedef enum {
  CUBLASLT_ALGO_CONFIG_ID = 0,                // int32_t
  CUBLASLT_ALGO_CONFIG_TILE_ID = 1,           // uint32_t, 0: undefined
  CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,        // int32_t, 1: no split
  CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3,  // uint32_t, a cublasLtReductionScheme_t
  CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING = 4,     // uint32_t
  CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION = 5,     // uint32_t
  CUBLASLT_ALGO_CONFIG_STAGES_ID = 6,         // uint32_t, 0: undefined
  CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID = 7,    // uint16_t, 0: undefined
  CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID = 8   // uint16_t, 0: the library chooses
} cublasLtMatmulAlgoConfigAttributes_t;

typedef struct {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;  // bytes that `algo` needs
  cublasStatus_t state;  // the other members are valid when this is CUBLAS_STATUS_SUCCESS
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle);
const char* cublasLtGetStatusName(cublasStatus_t status);
const char* cublasLtGetStatusString(cublasStatus_t status);
size_t cublasLtGetVersion(void);
size_t cublasLtGetCudartVersion(void);

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
                                                const void* buf, size_t sizeInBytes);
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
                                                void* buf, size_t sizeInBytes, size_t* sizeWritten);

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc, cublasComputeType_t computeType,
                                        cudaDataType_t scaleType);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
                                              const void* buf, size_t sizeInBytes);
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
                                              void* buf, size_t sizeInBytes, size_t* sizeWritten);

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr, const void* buf,
                                                    size_t sizeInBytes);
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr, void* buf,
                                                    size_t sizeInBytes, size_t* sizeWritten);

// Fills up to `requestedAlgoCount` results, the best first. `preference` bounds their workspace.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                              cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                              cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                              cublasLtMatmulPreference_t preference, int requestedAlgoCount,
                                              cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
                                              int* returnAlgoCount);

// Whether `algo` can do this problem; fills the result with what it needs then.
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                       cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                       cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result);

// Of an algorithm that the heuristic or the check gave. A size of 0 asks for the bytes of the attribute.
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attr, void* buf, size_t sizeInBytes,
                                                 size_t* sizeWritten);
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr, void* buf,
                                                    size_t sizeInBytes, size_t* sizeWritten);

// D = epilogue(alpha * op(A) * op(B) + beta * C) on `stream`. `algo` NULL lets the library choose within the workspace.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t Adesc, const void* B, cublasLtMatrixLayout_t Bdesc,
                              const void* beta, const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SIM_INCLUDE_CUBLASLT_H_
