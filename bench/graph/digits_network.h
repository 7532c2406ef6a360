// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// digits_network.h: the digits network of examples/minimal_ep, tensors for a run of it, and a run captured by itself.
#ifndef GCAP_BENCH_GRAPH_DIGITS_NETWORK_H_
#define GCAP_BENCH_GRAPH_DIGITS_NETWORK_H_

#include <cuda_runtime_api.h>

#include <cstdlib>

#include "bench/graph/paired.h"
#include "examples/minimal_ep/digits/digits.h"
#include "gcap/capture.h"
#include "gcap/runtime.h"
#include "gcap/scratch.h"

namespace gcap {
namespace bench {

// The network without its trained weights, whose values nobody reads here.
class DigitsNetwork {
 public:
  // Without a batch each run brings its own.
  explicit DigitsNetwork(int64_t batch = GCAP_DIM_SYMBOL(0)) {
    static const size_t kFloats[DIGITS_NUM_WEIGHTS] = {
        REFERENCE_CONV1_CHANNELS * 9,
        REFERENCE_CONV1_CHANNELS,
        REFERENCE_CONV2_CHANNELS * REFERENCE_CONV1_CHANNELS * 9,
        REFERENCE_CONV2_CHANNELS,
        REFERENCE_FC1_OUTPUTS * REFERENCE_FC1_INPUTS,
        REFERENCE_FC1_OUTPUTS,
        REFERENCE_CLASSES * REFERENCE_FC1_OUTPUTS,
        REFERENCE_CLASSES,
    };
    for (size_t i = 0; i < DIGITS_NUM_WEIGHTS; ++i) digits_.weights[i].data = std::calloc(kFloats[i], sizeof(float));
    made_ = digits_model_create(&digits_, batch);
    model_ = *digits_model_get(made_);
    model_.symbols = symbols_;
    model_.num_symbols = 1;
  }
  ~DigitsNetwork() {
    digits_model_destroy(made_);
    digits_free(&digits_);
  }
  DigitsNetwork(const DigitsNetwork&) = delete;
  DigitsNetwork& operator=(const DigitsNetwork&) = delete;
  const gcap_model_t* model() const { return &model_; }

 private:
  const char* const symbols_[1] = {"batch"};
  digits_t digits_ = {};
  digits_model_t* made_ = nullptr;
  gcap_model_t model_ = {};
};

struct DigitsTensors {
  gcap_tensor_t images, probabilities;
};

// Zeros, for a batch of this size.
inline DigitsTensors MakeDigitsTensors(int64_t batch) {
  DigitsTensors t = {{nullptr, GCAP_DTYPE_F32, 4, {batch, 1, REFERENCE_IMAGE_SIDE, REFERENCE_IMAGE_SIDE}},
                     {nullptr, GCAP_DTYPE_F32, 2, {batch, REFERENCE_CLASSES}}};
  CheckCuda(cudaMalloc(&t.images.data, gcap_tensor_bytes(&t.images)));
  CheckCuda(cudaMalloc(&t.probabilities.data, gcap_tensor_bytes(&t.probabilities)));
  CheckCuda(cudaMemset(t.images.data, 0, gcap_tensor_bytes(&t.images)));
  CheckCuda(cudaDeviceSynchronize());
  return t;
}

inline void Free(const DigitsTensors& tensors) {
  CheckCuda(cudaFree(tensors.images.data));
  CheckCuda(cudaFree(tensors.probabilities.data));
}

struct CapturedRun {
  cudaGraph_t graph;
  gcap_retained_t* retained;
};

// Captures a run of the EP that has these resources, after an eager run of the same shapes.
template <typename Run>
CapturedRun CaptureRun(const gcap_run_resources_t& resources, Run run) {
  gcap_capture_t* capture = nullptr;
  CapturedRun captured = {};
  Check(gcap_scratch_reservation_prepare(resources.scratch, resources.stream));
  Check(gcap_capture_begin(gcap_stream_handle(resources.stream), nullptr, &capture));
  run();
  Check(gcap_capture_end(capture, &captured.graph, &captured.retained));
  return captured;
}

inline void Release(const CapturedRun& captured) {
  CheckCuda(cudaGraphDestroy(captured.graph));
  gcap_retained_release(captured.retained);
}

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_GRAPH_DIGITS_NETWORK_H_
