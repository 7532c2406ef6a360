// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rig.h: what the cases of calls and arguments share: short forms of Observer::Probe, whose step is the call as it is
// written, and handles and memory of every kind to call with.
#ifndef GCAP_TEST_CONFORMANCE_RIG_H_
#define GCAP_TEST_CONFORMANCE_RIG_H_

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "test/conformance/frame.h"
#include "test/conformance/observe.h"
#include "test/support/kernels/plain_kernels.h"

// Probes a call under its own text, or AS a step. AND: with a state, formatted after the call. Statement expressions,
// not lambdas: there are more than a thousand, and lambdas took most of the time that the tests take to compile.
#define PROBE(expression) PROBE_AS(#expression, expression)
#define PROBE_AS(step, expression)                   \
  ({                                                 \
    const auto& step_ = (step);                      \
    cudaError_t code_ = cudaErrorUnknown;            \
    if (o.Enter(step_)) {                            \
      code_ = (expression);                          \
      o.Leave(step_, code_, cudaGetLastError(), ""); \
    }                                                \
    code_;                                           \
  })
#define PROBE_AND(expression, ...) PROBE_AS_AND(#expression, expression, __VA_ARGS__)
#define PROBE_AS_AND(step, expression, ...)                             \
  ({                                                                    \
    const auto& step_ = (step);                                         \
    cudaError_t code_ = cudaErrorUnknown;                               \
    if (o.Enter(step_)) {                                               \
      code_ = (expression);                                             \
      const cudaError_t last_ = cudaGetLastError();                     \
      o.Leave(step_, code_, last_, ::conformance::Format(__VA_ARGS__)); \
    }                                                                   \
    code_;                                                              \
  })

namespace conformance {

// Two kernels of other parameters: (const float*, float*, int64_t), and one int64_t more.
const void* const kRelu = reinterpret_cast<const void*>(gcap_kernel_relu_f32);
const void* const kSoftmax = reinterpret_cast<const void*>(gcap_kernel_softmax_warp_f32);

// What a call left in a pointer that was NULL, or Untouched(), before.
template <typename T>
T* Untouched() {
  return reinterpret_cast<T*>(0x77);
}
inline const char* PointerState(const void* pointer) {
  if (pointer == nullptr) return "NULL";
  return pointer == Untouched<void>() ? "untouched" : "set";
}

// The last error, read twice.
inline void NoteLast(Observer& o, const std::string& step) {
  const int first = cudaGetLastError();
  o.Note(step, Format("%d %d", first, static_cast<int>(cudaGetLastError())));
}

// Ends the capture as ObserveEnd does and gives the graph.
inline cudaGraph_t EndCapture(Observer& o, const std::string& step, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  ObserveEnd(o, step, stream, &graph);
  return graph;
}

// The first word of device memory, in hexadecimal.
inline std::string Word(const void* device) {
  unsigned int word = 0;
  if (cudaMemcpy(&word, device, sizeof(word), cudaMemcpyDeviceToHost) != cudaSuccess) return "unreadable";
  return Format("%x", word);
}

// Streams, events and memory of each kind.
struct Rig {
  static constexpr size_t kBytes = 8192;

  explicit Rig(Observer& observer) : o(observer) {
    REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    REQUIRE_CUDA(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
    REQUIRE_CUDA(cudaStreamCreate(&blocking));
    REQUIRE_CUDA(cudaEventCreate(&e));
    REQUIRE_CUDA(cudaEventCreateWithFlags(&e2, cudaEventDisableTiming));
    REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&d), kBytes));
    REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&d2), kBytes));
    REQUIRE_CUDA(cudaMallocHost(reinterpret_cast<void**>(&h), kBytes));
    REQUIRE_CUDA(cudaMemset(d, 0, kBytes));
    REQUIRE_CUDA(cudaMemset(d2, 0, kBytes));
    std::memset(h, 0, kBytes);
    pageable = static_cast<char*>(std::aligned_alloc(4096, kBytes));
    std::memset(pageable, 0, kBytes);
    REQUIRE_CUDA(cudaDeviceSynchronize());
    x = reinterpret_cast<float*>(d);
    y = reinterpret_cast<float*>(d2);
  }
  // What the case has destroyed itself answers an error, which is of no interest.
  ~Rig() {
    (void)cudaStreamDestroy(s);
    (void)cudaStreamDestroy(s2);
    (void)cudaStreamDestroy(blocking);
    (void)cudaEventDestroy(e);
    (void)cudaEventDestroy(e2);
    (void)cudaFree(d);
    (void)cudaFree(d2);
    (void)cudaFreeHost(h);
    std::free(pageable);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  cudaMemsetParams Fill(int value, size_t bytes = 64) const {
    cudaMemsetParams p = {};
    p.dst = d;
    p.value = static_cast<unsigned int>(value);
    p.elementSize = 1;
    p.width = bytes;
    p.height = 1;
    return p;
  }
  cudaKernelNodeParams Kernel(const void* function = kRelu) {
    cudaKernelNodeParams p = {};
    p.func = const_cast<void*>(function);
    p.gridDim = dim3(1);
    p.blockDim = dim3(32);
    p.kernelParams = args;
    return p;
  }
  cudaMemcpy3DParms Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) const {
    cudaMemcpy3DParms p = {};
    p.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
    p.dstPtr = {to, bytes, bytes, 1};
    p.extent = {bytes, 1, 1};
    p.kind = kind;
    return p;
  }

  // The first word of d.
  int Value() const {
    int value = -1;
    REQUIRE_CUDA(cudaMemcpy(&value, d, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
  }

  Observer& o;
  cudaStream_t s = nullptr;         // non-blocking
  cudaStream_t s2 = nullptr;        // non-blocking
  cudaStream_t blocking = nullptr;  // blocking
  cudaEvent_t e = nullptr;          // with timing
  cudaEvent_t e2 = nullptr;         // without
  char* d = nullptr;                // device memory
  char* d2 = nullptr;
  char* h = nullptr;         // pinned
  char* pageable = nullptr;  // and page-aligned
  float* x = nullptr;        // d
  float* y = nullptr;        // d2
  int64_t count = 64;
  void* args[3] = {&x, &y, &count};  // of kRelu
};

// The same for two devices; device 0 is current afterwards. For cases in a process of their own.
struct Two {
  explicit Two(Observer& observer) : o(observer) {
    for (int i = 0; i < 2; ++i) {
      REQUIRE_CUDA(cudaSetDevice(i));
      REQUIRE_CUDA(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
      REQUIRE_CUDA(cudaStreamCreate(&blocking[i]));
      REQUIRE_CUDA(cudaEventCreate(&e[i]));
      REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&d[i]), Rig::kBytes));
      REQUIRE_CUDA(cudaMemset(d[i], i, Rig::kBytes));
      REQUIRE_CUDA(cudaDeviceSynchronize());
    }
    REQUIRE_CUDA(cudaMallocHost(reinterpret_cast<void**>(&h), Rig::kBytes));
    REQUIRE_CUDA(cudaSetDevice(0));
  }

  Observer& o;
  cudaStream_t s[2] = {};
  cudaStream_t blocking[2] = {};
  cudaEvent_t e[2] = {};
  char* d[2] = {};
  char* h = nullptr;
};

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_RIG_H_
