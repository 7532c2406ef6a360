// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Libraries of the toolkit, opened by name. A library stays open until the process ends, since it may have kernels on
// the device. Where the build's toolkit has NVIDIA's headers, the declarations are compared with them first.

#include "test/graph/toolkit_libraries.h"

#include <dlfcn.h>

#include <initializer_list>
#include <type_traits>

#if __has_include(<cufft.h>)
#include <cufft.h>
#define GCAP_TEST_HAS_CUFFT_H
#endif
#if __has_include(<curand.h>)
#include <curand.h>
#define GCAP_TEST_HAS_CURAND_H
#endif
#if __has_include(<cusparse.h>)
#include <cusparse.h>
#define GCAP_TEST_HAS_CUSPARSE_H
#endif

namespace gcap {
namespace testing {
namespace {

// --- Comparison -----------------------------------------------------------------------------------------------------

template <typename T>
constexpr bool kIsWhole = std::is_integral<T>::value || std::is_enum<T>::value;

// Whether a call passes both alike: numbers and enumerations of one size, and pointers to anything.
template <typename A, typename B>
constexpr bool kIsPassedAlike = std::is_same<A, B>::value || (kIsWhole<A> && kIsWhole<B> && sizeof(A) == sizeof(B)) ||
                                (std::is_pointer<A>::value && std::is_pointer<B>::value);

template <typename A, typename B>
constexpr bool kIsCalledAlike = false;
template <typename R, typename... A, typename S, typename... B>
constexpr bool kIsCalledAlike<R (*)(A...), S (*)(B...)> =
    kIsPassedAlike<R, S> && (... && kIsPassedAlike<A, B>);  // another number of arguments does not compile

#define GCAP_TEST_COMPARE_CUFFT(name, ...) \
  static_assert(kIsCalledAlike<decltype(&::name), Cufft::name##_t>, "as in cufft.h");
#define GCAP_TEST_COMPARE_CURAND(name, ...) \
  static_assert(kIsCalledAlike<decltype(&::name), Curand::name##_t>, "as in curand.h");
#define GCAP_TEST_COMPARE_CUSPARSE(name, ...) \
  static_assert(kIsCalledAlike<decltype(&::name), Cusparse::name##_t>, "as in cusparse.h");

#ifdef GCAP_TEST_HAS_CUFFT_H
GCAP_TEST_CUFFT_FUNCTIONS(GCAP_TEST_COMPARE_CUFFT)
static_assert(kFftR2C == int{CUFFT_R2C} && kFftC2R == int{CUFFT_C2R} && kFftC2C == int{CUFFT_C2C}, "as in cufft.h");
static_assert(kFftForward == CUFFT_FORWARD && kFftInverse == CUFFT_INVERSE, "as in cufft.h");
#endif

#ifdef GCAP_TEST_HAS_CURAND_H
GCAP_TEST_CURAND_FUNCTIONS(GCAP_TEST_COMPARE_CURAND)
static_assert(kRandomXorwow == int{CURAND_RNG_PSEUDO_XORWOW} && kRandomMrg32k3a == int{CURAND_RNG_PSEUDO_MRG32K3A} &&
                  kRandomMtgp32 == int{CURAND_RNG_PSEUDO_MTGP32} && kRandomMt19937 == int{CURAND_RNG_PSEUDO_MT19937} &&
                  kRandomPhilox == int{CURAND_RNG_PSEUDO_PHILOX4_32_10} &&
                  kRandomSobol32 == int{CURAND_RNG_QUASI_SOBOL32},
              "as in curand.h");
#endif

#ifdef GCAP_TEST_HAS_CUSPARSE_H
GCAP_TEST_CUSPARSE_FUNCTIONS(GCAP_TEST_COMPARE_CUSPARSE)
static_assert(kSparseAsIs == int{CUSPARSE_OPERATION_NON_TRANSPOSE} &&
                  kSparseFromZero == int{CUSPARSE_INDEX_BASE_ZERO} && kSparseIndex32 == int{CUSPARSE_INDEX_32I} &&
                  kSparseColumns == int{CUSPARSE_ORDER_COL} && kSparseOnHost == int{CUSPARSE_POINTER_MODE_HOST} &&
                  kSparseOnDevice == int{CUSPARSE_POINTER_MODE_DEVICE},
              "as in cusparse.h");
static_assert(kSparseVectorAny == int{CUSPARSE_SPMV_ALG_DEFAULT} && kSparseVectorCsr1 == int{CUSPARSE_SPMV_CSR_ALG1} &&
                  kSparseVectorCsr2 == int{CUSPARSE_SPMV_CSR_ALG2} &&
                  kSparseVectorCoo1 == int{CUSPARSE_SPMV_COO_ALG1} && kSparseVectorCoo2 == int{CUSPARSE_SPMV_COO_ALG2},
              "as in cusparse.h");
static_assert(kSparseMatrixAny == int{CUSPARSE_SPMM_ALG_DEFAULT} && kSparseMatrixCsr1 == int{CUSPARSE_SPMM_CSR_ALG1} &&
                  kSparseMatrixCsr2 == int{CUSPARSE_SPMM_CSR_ALG2} &&
                  kSparseMatrixCsr3 == int{CUSPARSE_SPMM_CSR_ALG3} &&
                  kSparseMatrixCoo1 == int{CUSPARSE_SPMM_COO_ALG1} &&
                  kSparseMatrixCoo2 == int{CUSPARSE_SPMM_COO_ALG2} &&
                  kSparseMatrixCoo3 == int{CUSPARSE_SPMM_COO_ALG3} && kSparseMatrixCoo4 == int{CUSPARSE_SPMM_COO_ALG4},
              "as in cusparse.h");
#endif

// --- Libraries ------------------------------------------------------------------------------------------------------

// A library, or why there is none.
struct Library {
  void* handle = nullptr;
  std::string reason;
};

// The first of the names that can be opened: versions differ in their names, and not in what is called of them.
Library Open(std::initializer_list<const char*> names) {
  Library library;
  for (const char* name : names) {
    library.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library.handle != nullptr) break;
    library.reason += std::string(library.reason.empty() ? "" : "; ") + name + " cannot be opened: " + dlerror();
  }
  if (library.handle != nullptr) library.reason.clear();
  return library;
}

template <typename Function>
void Find(Library* library, const char* name, Function* out_function) {
  if (library->handle == nullptr) return;
  *out_function = reinterpret_cast<Function>(dlsym(library->handle, name));
  if (*out_function == nullptr) library->reason = std::string("the library has no ") + name;
}

template <typename Functions>
const Functions* Answer(const Library& library, const Functions& functions, std::string* out_reason) {
  *out_reason = library.reason;
  return library.reason.empty() ? &functions : nullptr;
}

}  // namespace

#define GCAP_TEST_FIND(name, ...) Find(&library, #name, &functions.name);

const Cufft* OpenCufft(std::string* out_reason) {
  static Library library = Open({"libcufft.so.12", "libcufft.so.11"});
  static Cufft functions;
  GCAP_TEST_CUFFT_FUNCTIONS(GCAP_TEST_FIND)
  return Answer(library, functions, out_reason);
}

const Curand* OpenCurand(std::string* out_reason) {
  static Library library = Open({"libcurand.so.10"});
  static Curand functions;
  GCAP_TEST_CURAND_FUNCTIONS(GCAP_TEST_FIND)
  return Answer(library, functions, out_reason);
}

const Cusparse* OpenCusparse(std::string* out_reason) {
  static Library library = Open({"libcusparse.so.12"});
  static Cusparse functions;
  GCAP_TEST_CUSPARSE_FUNCTIONS(GCAP_TEST_FIND)
  return Answer(library, functions, out_reason);
}

}  // namespace testing
}  // namespace gcap
