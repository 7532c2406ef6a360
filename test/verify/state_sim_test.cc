// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// States while calls fail: each fails once, nothing leaks, and no answer is a wrong one. And a thread on another device
// than the memory.

#include <cuda_runtime_api.h>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"

extern "C" {
#include "lib/verify/inner.h"
}

namespace gcap {
namespace testing {
namespace {

using VerifyStateFaults = DeviceTest;

// Keeps x, changes x, compares and puts x back.
gcap_status_t Use(void* x, cudaStream_t stream, gcap_verify_difference_t* difference) {
  const gcap_verify_block_t block = {"x", x, 256, GCAP_DTYPE_I32, 0, 0, true, false};
  gcap_verify_state_t* state = nullptr;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_create(&block, 1, 2, stream, &state));
  gcap_status_t status = gcap_verify_state_save(state, 0, stream);
  if (status == nullptr) status = GCAP_CUDA(cudaMemsetAsync(x, 1, 256, stream));
  if (status == nullptr) status = gcap_verify_state_save(state, 1, stream);
  if (status == nullptr) status = gcap_verify_state_restore(state, 0, stream);
  if (status == nullptr) status = gcap_verify_state_compare(state, GCAP_VERIFY_NOW, 1, stream, difference);
  return gcap_status_join(status, gcap_verify_state_destroy(state));
}

TEST_F(VerifyStateFaults, EachCallMayFail) {
  const RawStream stream;
  void* x = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&x, 256));
  GCAP_EXPECT_CUDA(cudaMemset(x, 0, 256));
  GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  gcap_verify_difference_t first = {};
  GCAP_EXPECT_OK(Use(x, stream.get(), &first));  // the driver's functions are got once
  for (const Reach reach : {Reach::kOneCall, Reach::kAllAfter}) {
    const Walked walked = WalkFaults(
        [&](Fault& fault) {
          GCAP_EXPECT_CUDA(cudaMemset(x, 0, 256));
          GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
          gcap_verify_difference_t difference = {};
          const Outcome outcome = fault.During([&] { return Use(x, stream.get(), &difference); });
          EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
          EXPECT_TRUE(outcome.ok() || fault.ComesFirst(outcome)) << outcome.message;
          EXPECT_TRUE(!outcome.ok() || difference.different == 64u) << difference.different;
          GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
        },
        reach);
    for (const char* function : {"cudaMalloc", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaFree"}) {
      EXPECT_EQ(walked.functions.count(function), 1u) << function;
    }
  }
  GCAP_EXPECT_CUDA(cudaFree(x));
}

TEST_F(VerifyStateFaults, TheCopiesAreOnTheStreamsDevice) {
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  {
    const RawStream stream;
    void* x = nullptr;
    GCAP_EXPECT_CUDA(cudaMalloc(&x, 256));
    GCAP_EXPECT_CUDA(cudaMemset(x, 0, 256));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
    gcap_sim_set_device_bytes(0, 1);  // nothing more can be had there
    gcap_verify_difference_t difference = {};
    GCAP_EXPECT_OK(Use(x, stream.get(), &difference));
    EXPECT_EQ(difference.different, 64u);
    gcap_sim_set_device_bytes(0, 0);
    int device = -1;
    GCAP_EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    GCAP_EXPECT_CUDA(cudaFree(x));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
