// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check_test.h: what the tests of the simulator's checks share: streams, memory, a kernel, and a look at the reports.
#ifndef GCAP_TEST_SIM_CHECK_TEST_H_
#define GCAP_TEST_SIM_CHECK_TEST_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace gcap_test {

// Seeds under which a verdict must be the same: what the checks see is the order that is missing, not its effect.
constexpr uint64_t kSeeds = 24;

// out[i] = in[i] + 1, on the bytes of both arrays.
inline char g_step_stub;

struct StepArgs {
  unsigned char* out;
  const unsigned char* in;
  size_t bytes;
};

inline void RunStep(const gcap_sim_launch_t*, void* const* args) {
  StepArgs a;
  memcpy(&a, args[0], sizeof(a));
  for (size_t i = 0; i < a.bytes; ++i) a.out[i] = static_cast<unsigned char>(a.in[i] + 1);
}

inline size_t StepAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  StepArgs a;
  memcpy(&a, args[0], sizeof(a));
  if (capacity < 2) return 2;
  out[0] = {a.in, a.bytes, 0};
  out[1] = {a.out, a.bytes, 1};
  return 2;
}

inline cudaError_t Step(unsigned char* out, const unsigned char* in, size_t bytes, cudaStream_t stream) {
  static const size_t arg_bytes[] = {sizeof(StepArgs)};
  static const bool registered = [] {
    const gcap_sim_kernel_t kernel = {&g_step_stub, "step", arg_bytes, 1, RunStep, StepAccesses};
    gcap_sim_register_kernel(&kernel);
    return true;
  }();
  (void)registered;
  StepArgs a = {out, in, bytes};
  void* args[] = {&a};
  return cudaLaunchKernel(&g_step_stub, dim3(1), dim3(1), args, 0, stream);
}

// The reports since the last look, in one text each.
inline std::vector<std::string> Reports() {
  std::vector<std::string> reports;
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  const size_t count = gcap_sim_check();
  for (size_t i = 0; i < count; ++i) reports.push_back(gcap_sim_report(i));
  return reports;
}

class Check : public testing::Test {
 protected:
  static constexpr size_t kBytes = 256;

  void SetUp() override {
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
    for (cudaStream_t* s : {&a_, &b_, &c_}) {
      ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    }
    ASSERT_EQ(cudaSuccess, cudaStreamCreate(&blocking_));
    for (cudaEvent_t* e : {&e1_, &e2_}) ASSERT_EQ(cudaSuccess, cudaEventCreate(e));
    for (unsigned char** m : {&x_, &y_, &z_}) {
      ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(m), kBytes));
      ASSERT_EQ(cudaSuccess, cudaMemset(*m, 0, kBytes));
    }
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    Reports();
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(0u, Reports().size());
    for (unsigned char* m : {x_, y_, z_}) EXPECT_EQ(cudaSuccess, cudaFree(m));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned_));
    for (cudaEvent_t e : {e1_, e2_}) EXPECT_EQ(cudaSuccess, cudaEventDestroy(e));
    for (cudaStream_t s : {a_, b_, c_, blocking_}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(s));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
  }

  // Runs the body under every seed; each must give exactly one report that holds all of the texts.
  template <typename Body>
  void ExpectOne(const std::vector<std::string>& texts, Body body) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<std::string> reports = Run(seed, body);
      ASSERT_EQ(1u, reports.size()) << "seed " << seed << All(reports);
      for (const std::string& text : texts) {
        ASSERT_NE(std::string::npos, reports[0].find(text)) << "seed " << seed << ": no '" << text << "' in\n"
                                                            << reports[0];
      }
    }
  }

  template <typename Body>
  void ExpectNone(Body body) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<std::string> reports = Run(seed, body);
      ASSERT_EQ(0u, reports.size()) << "seed " << seed << All(reports);
    }
  }

  static cudaError_t Fill(void* memory, cudaStream_t stream) { return cudaMemsetAsync(memory, 1, kBytes, stream); }

  static cudaError_t Copy(void* to, const void* from, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDefault, stream);
  }

  static cudaError_t Order(cudaStream_t first, cudaStream_t second, cudaEvent_t event) {
    cudaError_t code = cudaEventRecord(event, first);
    return code == cudaSuccess ? cudaStreamWaitEvent(second, event, 0) : code;
  }

  cudaStream_t a_, b_, c_, blocking_;
  cudaEvent_t e1_, e2_;
  unsigned char *x_, *y_, *z_;
  unsigned char* pinned_;

 private:
  template <typename Body>
  std::vector<std::string> Run(uint64_t seed, Body body) {
    gcap_sim_set_seed(seed);
    testing::internal::CaptureStderr();
    body();
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    std::vector<std::string> reports = Reports();
    testing::internal::GetCapturedStderr();
    return reports;
  }

  static std::string All(const std::vector<std::string>& reports) {
    std::string all = "\n";
    for (const std::string& report : reports) all += report;
    return all;
  }
};

}  // namespace gcap_test

#endif  // GCAP_TEST_SIM_CHECK_TEST_H_
