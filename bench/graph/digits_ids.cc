// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#include "bench/graph/digits_ids.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/graph/paired.h"
#include "examples/minimal_ep/digits/digits.h"
#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/session.h"

namespace gcap {
namespace bench {

size_t FreeBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  CheckCuda(cudaMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

std::vector<DigitsCase> DigitsCases(bool is_small) {
  if (is_small) return {{"few ids", 3, 1, 1, false}, {"few ids, memory shared", 3, 1, 1, true}};
  return {
      {"32 ids, batches of 1 to 32", 32, 1, 1, false},
      {"32 ids, batches of 1 to 32, memory shared", 32, 1, 1, true},
      {"32 ids, batches of 64 to 2048", 32, 64, 64, false},
      {"32 ids, batches of 64 to 2048, memory shared", 32, 64, 64, true},
  };
}

namespace {

const char* const kSymbols[] = {"batch"};

// The network without its trained weights, whose values nobody reads here.
class Network {
 public:
  Network() {
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
    made_ = digits_model_create(&digits_, GCAP_DIM_SYMBOL(0));
    model_ = *digits_model_get(made_);
    model_.symbols = kSymbols;
    model_.num_symbols = 1;
  }
  ~Network() {
    digits_model_destroy(made_);
    digits_free(&digits_);
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  const gcap_model_t* model() const { return &model_; }

 private:
  digits_t digits_ = {};
  digits_model_t* made_ = nullptr;
  gcap_model_t model_ = {};
};

struct Tensors {
  gcap_tensor_t images, probabilities;
};

Tensors MakeTensors(int64_t batch) {
  Tensors t = {{nullptr, GCAP_DTYPE_F32, 4, {batch, 1, REFERENCE_IMAGE_SIDE, REFERENCE_IMAGE_SIDE}},
               {nullptr, GCAP_DTYPE_F32, 2, {batch, REFERENCE_CLASSES}}};
  CheckCuda(cudaMalloc(&t.images.data, gcap_tensor_bytes(&t.images)));
  CheckCuda(cudaMalloc(&t.probabilities.data, gcap_tensor_bytes(&t.probabilities)));
  CheckCuda(cudaMemset(t.images.data, 0, gcap_tensor_bytes(&t.images)));
  CheckCuda(cudaDeviceSynchronize());
  return t;
}

size_t ScratchBytes(gcap_runtime_t* runtime) {
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(runtime), &stats);
  return static_cast<size_t>(stats.total_allocated_bytes);
}

struct Held {
  size_t bytes, nodes, captured;
};

Held Sum(gcap_runtime_t* runtime, int ids) {
  Held held = {};
  for (int id = 0; id < ids; ++id) {
    gcap_graph_info_t info;
    gcap_runtime_get_graph_info(runtime, id, &info);
    held.bytes += info.bytes;
    held.nodes += info.nodes;
    held.captured += info.state == GCAP_GRAPH_CAPTURED;
  }
  return held;
}

double Kib(size_t bytes) { return static_cast<double>(bytes) / 1024.0; }

}  // namespace

void RunDigits(const DigitsCase& digits_case) {
  const Network network;
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.share_graph_memory = digits_case.share_graph_memory;
  gcap_ep_t* ep = nullptr;
  gcap_runtime_t* runtime = nullptr;
  gcap_session_t* session = nullptr;
  Check(minimal_ep_create(&options, &ep, &runtime));
  Check(gcap_session_create(network.model(), &ep, 1, nullptr, &session));
  std::vector<Tensors> tensors;
  for (int id = 0; id < digits_case.ids; ++id) {
    tensors.push_back(MakeTensors(digits_case.first_batch + id * digits_case.more_batch));
  }
  auto round = [&] {
    for (int id = digits_case.ids; id-- > 0;) {  // the largest first
      gcap_run_options_t run;
      gcap_run_options_init(&run);
      run.graph_id = id;
      const Tensors& t = tensors[static_cast<size_t>(id)];
      Check(gcap_session_run(session, &run, &t.images, &t.probabilities));
    }
    CheckCuda(cudaDeviceSynchronize());
  };
  round();
  round();
  const size_t free_before = FreeBytes(), scratch_before = ScratchBytes(runtime);
  round();
  const size_t free_after = FreeBytes(), scratch_after = ScratchBytes(runtime);
  const Held held = Sum(runtime, digits_case.ids);
  std::printf("\ndigits, %s: %zu captured, %zu nodes\n", digits_case.name, held.captured, held.nodes);
  std::printf("  device memory taken by the captures: %.0f KiB, of which scratch got %.0f (%.0f held before)\n",
              Kib(free_before) - Kib(free_after), Kib(scratch_after - scratch_before), Kib(scratch_before));
  std::printf("  the graphs hold by gcap_graph_info_t.bytes: %.1f KiB\n", Kib(held.bytes));
  Check(gcap_session_destroy(session));
  Check(gcap_ep_destroy(ep));
}

}  // namespace bench
}  // namespace gcap
