// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ops without host memory: each allocation of a plan or a handle fails once, the simulated libraries' too; the
// caller is told and nothing is left.

#include <functional>

#include "gcap/kit/ops/batch_norm.h"
#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/cublas.h"
#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/matmul.h"
#include "gcap/kit/ops/pool2d.h"
#include "gcap_sim.h"
#include "test/base/heap_failure.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

class OpsHeap : public OpTest {
 protected:
  // `make` fails when its allocation behind `skip` others does; it ends what it made.
  void FailAllocation(int skip, const char* culprit, const std::function<gcap_status_t()>& make) {
    GCAP_ASSERT_OK(make());
    const size_t live = gcap_sim_live(nullptr);
    gcap_status_t status = nullptr;
    {
      HeapFailure failure(/*count=*/1, skip);
      status = make();
      EXPECT_EQ(failure.hits(), 1);
    }
    GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, culprit);
    EXPECT_EQ(gcap_sim_live(nullptr), live);
    GCAP_EXPECT_OK(make());
  }
};

TEST_F(OpsHeap, PlansSayThatThereIsNoHostMemory) {
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublaslt = nullptr;
  GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &cudnn));
  GCAP_ASSERT_OK(gcap_stream_cublaslt_handle(stream_, &cublaslt));
  FailAllocation(0, "no host memory for a matmul", [&] {
    gcap_matmul_options_t o;
    gcap_matmul_options_init(&o);
    o.handle = cublaslt;
    o.m = o.n = o.k = 4;
    gcap_matmul_t* plan = nullptr;
    gcap_status_t status = gcap_matmul_create(&o, &plan);
    gcap_matmul_destroy(plan);
    return status;
  });
  FailAllocation(0, "no host memory for a convolution", [&] {
    gcap_conv2d_options_t o;
    gcap_conv2d_options_init(&o);
    o.handle = cudnn;
    o.n = o.c = o.h = o.w = o.k = o.kernel_h = o.kernel_w = 1;
    o.relu = true;
    gcap_conv2d_t* plan = nullptr;
    gcap_status_t status = gcap_conv2d_create(&o, &plan);
    gcap_conv2d_destroy(plan);
    return status;
  });
  FailAllocation(0, "no host memory for a pooling", [&] {
    gcap_pool2d_options_t o;
    gcap_pool2d_options_init(&o);
    o.n = o.c = o.h = o.w = 2;
    o.global = true;
    gcap_pool2d_t* plan = nullptr;
    gcap_status_t status = gcap_pool2d_create(&o, &plan);
    gcap_pool2d_destroy(plan);
    return status;
  });
  FailAllocation(0, "no host memory for a batch normalization", [&] {
    gcap_batch_norm_options_t o;
    gcap_batch_norm_options_init(&o);
    o.n = o.c = o.h = o.w = 2;
    gcap_batch_norm_t* plan = nullptr;
    gcap_status_t status = gcap_batch_norm_create(&o, &plan);
    gcap_batch_norm_destroy(plan);
    return status;
  });
}

// The first allocation is the attachment, the second the handle's owner.
TEST_F(OpsHeap, HandlesSayThatThereIsNoHostMemory) {
  const auto fail = [](const char* culprit, const auto& get) {
    gcap_stream_t* stream = nullptr;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    const size_t live = gcap_sim_live(nullptr);
    gcap_status_t status = nullptr;
    {
      HeapFailure failure(/*count=*/1, /*skip=*/1);
      status = get(stream);
      EXPECT_EQ(failure.hits(), 1);
    }
    GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, culprit);
    EXPECT_EQ(gcap_sim_live(nullptr), live);
    GCAP_EXPECT_OK(get(stream));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  };
  fail("no host memory for a cuBLAS handle", [](gcap_stream_t* stream) {
    cublasHandle_t handle = nullptr;
    return gcap_stream_cublas_handle(stream, &handle);
  });
  fail("no host memory for a cuBLASLt handle", [](gcap_stream_t* stream) {
    cublasLtHandle_t handle = nullptr;
    return gcap_stream_cublaslt_handle(stream, &handle);
  });
}

}  // namespace
}  // namespace testing
}  // namespace gcap
