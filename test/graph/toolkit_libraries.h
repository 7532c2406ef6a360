// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// toolkit_libraries.h: what the tests call of cuFFT, cuRAND and cuSPARSE. A test opens the libraries when it runs,
// since they come with a whole toolkit and not with each build of gcap: where one is missing, the test says which and
// skips.
//
// The functions are declared here as the libraries' binaries have them: an enumeration is an int, a handle is a
// pointer. Where a toolkit has the headers, toolkit_libraries.cc compares each declaration and each number with them.
#ifndef GCAP_TEST_GRAPH_TOOLKIT_LIBRARIES_H_
#define GCAP_TEST_GRAPH_TOOLKIT_LIBRARIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gcap {
namespace testing {

// The libraries answer 0 for success.

enum FftType { kFftR2C = 0x2a, kFftC2R = 0x2c, kFftC2C = 0x29 };
enum FftDirection { kFftForward = -1, kFftInverse = 1 };

#define GCAP_TEST_CUFFT_FUNCTIONS(X)                                                                             \
  X(cufftCreate, int (*)(int* out_plan))                                                                         \
  X(cufftDestroy, int (*)(int plan))                                                                             \
  X(cufftSetStream, int (*)(int plan, cudaStream_t stream))                                                      \
  X(cufftSetAutoAllocation, int (*)(int plan, int allocates))                                                    \
  X(cufftSetWorkArea, int (*)(int plan, void* workspace))                                                        \
  X(cufftMakePlanMany,                                                                                           \
    int (*)(int plan, int rank, int* sizes, int* in_embedded, int in_stride, int in_distance, int* out_embedded, \
            int out_stride, int out_distance, int type, int batch, size_t* out_bytes))                           \
  X(cufftExecC2C, int (*)(int plan, void* x, void* y, int direction))                                            \
  X(cufftExecR2C, int (*)(int plan, void* x, void* y))                                                           \
  X(cufftExecC2R, int (*)(int plan, void* x, void* y))

enum RandomKind {
  kRandomXorwow = 101,
  kRandomMrg32k3a = 121,
  kRandomMtgp32 = 141,
  kRandomMt19937 = 142,
  kRandomPhilox = 161,
  kRandomSobol32 = 201,
};

#define GCAP_TEST_CURAND_FUNCTIONS(X)                                              \
  X(curandCreateGenerator, int (*)(void** out_generator, int kind))                \
  X(curandDestroyGenerator, int (*)(void* generator))                              \
  X(curandSetStream, int (*)(void* generator, cudaStream_t stream))                \
  X(curandSetGeneratorOffset, int (*)(void* generator, unsigned long long offset)) \
  X(curandGenerate, int (*)(void* generator, unsigned int* out, size_t count))     \
  X(curandGenerateUniform, int (*)(void* generator, float* out, size_t count))     \
  X(curandGenerateNormal, int (*)(void* generator, float* out, size_t count, float mean, float deviation))

enum SparseNumber {
  kSparseAsIs = 0,        // CUSPARSE_OPERATION_NON_TRANSPOSE
  kSparseFromZero = 0,    // CUSPARSE_INDEX_BASE_ZERO
  kSparseIndex32 = 2,     // CUSPARSE_INDEX_32I
  kSparseColumns = 1,     // CUSPARSE_ORDER_COL
  kSparseOnHost = 0,      // CUSPARSE_POINTER_MODE_HOST
  kSparseOnDevice = 1,    // CUSPARSE_POINTER_MODE_DEVICE
  kSparseVectorAny = 0,   // CUSPARSE_SPMV_ALG_DEFAULT
  kSparseVectorCsr1 = 2,  // CUSPARSE_SPMV_CSR_ALG1
  kSparseVectorCsr2 = 3,
  kSparseVectorCoo1 = 1,
  kSparseVectorCoo2 = 4,
  kSparseMatrixAny = 0,  // CUSPARSE_SPMM_ALG_DEFAULT
  kSparseMatrixCsr1 = 4,
  kSparseMatrixCsr2 = 6,
  kSparseMatrixCsr3 = 12,
  kSparseMatrixCoo1 = 1,
  kSparseMatrixCoo2 = 2,
  kSparseMatrixCoo3 = 3,
  kSparseMatrixCoo4 = 5,
};

#define GCAP_TEST_CUSPARSE_FUNCTIONS(X)                                                                            \
  X(cusparseCreate, int (*)(void** out_handle))                                                                    \
  X(cusparseDestroy, int (*)(void* handle))                                                                        \
  X(cusparseSetStream, int (*)(void* handle, cudaStream_t stream))                                                 \
  X(cusparseSetPointerMode, int (*)(void* handle, int mode))                                                       \
  X(cusparseCreateCsr, int (*)(void** out_matrix, int64_t rows, int64_t columns, int64_t count, void* offsets,     \
                               void* indices, void* values, int offset_type, int index_type, int base, int type))  \
  X(cusparseCreateCoo, int (*)(void** out_matrix, int64_t rows, int64_t columns, int64_t count, void* row_indices, \
                               void* indices, void* values, int index_type, int base, int type))                   \
  X(cusparseDestroySpMat, int (*)(const void* matrix))                                                             \
  X(cusparseCreateDnVec, int (*)(void** out_vector, int64_t size, void* values, int type))                         \
  X(cusparseDestroyDnVec, int (*)(const void* vector))                                                             \
  X(cusparseCreateDnMat,                                                                                           \
    int (*)(void** out_matrix, int64_t rows, int64_t columns, int64_t leading, void* values, int type, int order)) \
  X(cusparseDestroyDnMat, int (*)(const void* matrix))                                                             \
  X(cusparseSpMV_bufferSize, int (*)(void* handle, int op, const void* alpha, const void* a, const void* x,        \
                                     const void* beta, void* y, int type, int algorithm, size_t* out_bytes))       \
  X(cusparseSpMV, int (*)(void* handle, int op, const void* alpha, const void* a, const void* x, const void* beta, \
                          void* y, int type, int algorithm, void* workspace))                                      \
  X(cusparseSpMM_bufferSize,                                                                                       \
    int (*)(void* handle, int op_a, int op_b, const void* alpha, const void* a, const void* b, const void* beta,   \
            void* c, int type, int algorithm, size_t* out_bytes))                                                  \
  X(cusparseSpMM, int (*)(void* handle, int op_a, int op_b, const void* alpha, const void* a, const void* b,       \
                          const void* beta, void* c, int type, int algorithm, void* workspace))

// A library's functions by their names.
#define GCAP_TEST_FUNCTION_MEMBER(name, ...) \
  using name##_t = __VA_ARGS__;              \
  name##_t name = nullptr;
struct Cufft {
  GCAP_TEST_CUFFT_FUNCTIONS(GCAP_TEST_FUNCTION_MEMBER)
};
struct Curand {
  GCAP_TEST_CURAND_FUNCTIONS(GCAP_TEST_FUNCTION_MEMBER)
};
struct Cusparse {
  GCAP_TEST_CUSPARSE_FUNCTIONS(GCAP_TEST_FUNCTION_MEMBER)
};
#undef GCAP_TEST_FUNCTION_MEMBER

// Each opens the library once, for the whole process. NULL: it cannot be opened, or lacks a function; `*out_reason`
// says which.
const Cufft* OpenCufft(std::string* out_reason);
const Curand* OpenCurand(std::string* out_reason);
const Cusparse* OpenCusparse(std::string* out_reason);

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_TOOLKIT_LIBRARIES_H_
