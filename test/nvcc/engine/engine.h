// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// engine.h: a small inference engine that knows neither gcap nor a simulator: it captures a step on two streams, and
// replays the graph. It can be told to make a mistake that engines make.
#ifndef GCAP_TEST_NVCC_ENGINE_ENGINE_H_
#define GCAP_TEST_NVCC_ENGINE_ENGINE_H_

#include <cuda_runtime_api.h>

namespace engine {

enum class Mistake {
  kNone,
  kMallocInCapture,      // an allocation while the step is captured
  kSyncInCapture,        // a synchronisation of the stream
  kDeviceSyncInCapture,  // and of the device
  kLegacyStream,         // a kernel on the legacy stream beside the capture of a blocking stream
  kLegacyStreamUnseen,   // the same beside a non-blocking one, which no call refuses
  kCopyBeside,           // a copy on a stream that is not captured
  kForkNotJoined,        // the second stream never comes back
  kQueryByOtherThread,   // another thread asks for an event while a global capture runs
  kStagingFreed,         // the pinned memory that the graph copies from is freed
  kBufferFreed,          // device memory that the graph uses is freed, and its address given to another
  kJoinTooLate,          // the second stream comes back behind the kernel that needs it
  kInputNotWaitedFor,    // the upload is on another stream, and nothing waits for it
  kTemporaryNeverFreed,  // the graph allocates, and nobody frees before the second launch
  kGraphKept,            // graph and executable are never destroyed
  kFreedTwice,           // a buffer is freed twice
};

class Engine {
 public:
  explicit Engine(Mistake mistake);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Captures the step once, and replays it that many times. False when a call has failed.
  bool Run(int replays);

 private:
  static constexpr int kCount = 64;
  static constexpr size_t kBytes = kCount * sizeof(float);

  bool Allocate();
  bool Upload();
  bool Capture();
  void Step();
  void Branch();
  void MistakeInCapture();
  void MistakeAfterCapture();
  void Free();
  bool Did(cudaError_t code);

  const Mistake mistake_;
  bool good_ = true;
  cudaStream_t copies_ = nullptr, main_ = nullptr, side_ = nullptr;
  cudaEvent_t uploaded_ = nullptr, forked_ = nullptr, joined_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  int *staging_ = nullptr, *tokens_ = nullptr, *token_ = nullptr;
  const float** rows_ = nullptr;
  float *weights_ = nullptr, *x_ = nullptr, *y_ = nullptr, *q_ = nullptr, *k_ = nullptr, *v_ = nullptr,
        *cache_ = nullptr;
};

}  // namespace engine

#endif  // GCAP_TEST_NVCC_ENGINE_ENGINE_H_
