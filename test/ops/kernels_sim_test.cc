// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What only the simulator can show of the kernels: every call that a launch makes fails once, and the status names it
// and nothing leaks; a launch allocates nothing and restores the caller's device; a failure inside a capture fails the
// capture; what a twin says that a launch touches.

#include <functional>

#include "gcap/capture.h"
#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/layout.h"
#include "gcap/kit/ops/normalize.h"
#include "gcap/kit/ops/pool2d.h"
#include "gcap/kit/ops/reduce.h"
#include "gcap_sim.h"
#include "ops/kernels/arrange.h"
#include "ops/kernels/attention.h"
#include "ops/kernels/cum_sum.h"
#include "ops/kernels/grid_sample.h"
#include "ops/kernels/indexed.h"
#include "ops/kernels/matmul_integer.h"
#include "ops/kernels/pad.h"
#include "ops/kernels/quantize.h"
#include "ops/kernels/range.h"
#include "ops/kernels/rotary.h"
#include "ops/kernels/select.h"
#include "test/ops/fail_each_call.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

class KernelsOnSim : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_conv2d_options_t options;
    gcap_conv2d_options_init(&options);
    options.n = options.c = options.k = options.kernel_h = options.kernel_w = 1;
    options.h = 2, options.w = 3;
    options.no_bias = true;
    options.direct = GCAP_CONV2D_DIRECT_ALWAYS;
    GCAP_ASSERT_OK(gcap_conv2d_create(&options, &conv_));
    gcap_pool2d_options_t pool;
    gcap_pool2d_options_init(&pool);
    pool.n = pool.c = 1, pool.h = 2, pool.w = 3;
    pool.kernel_h = pool.kernel_w = pool.dilation_w = 2;
    GCAP_ASSERT_OK(gcap_pool2d_create(&pool, &pool_));
  }
  void TearDown() override {
    gcap_conv2d_destroy(conv_);
    gcap_pool2d_destroy(pool_);
    OpTest::TearDown();
  }

  // One call of each function, all of which launch.
  std::vector<std::function<gcap_status_t()>> Runs() {
    return {
        [this] { return gcap_unary(stream_, GCAP_UNARY_RELU, &x_, &y_); },
        [this] { return gcap_leaky_relu(stream_, 0.5f, &x_, &y_); },
        [this] { return gcap_clip(stream_, 0.0, 1.0, &x_, &y_); },
        [this] { return gcap_cast(stream_, &x_, &y_); },
        [this] { return gcap_binary(stream_, GCAP_BINARY_ADD, &x_, &row_, &y_); },
        [this] { return gcap_binary(stream_, GCAP_BINARY_POW, &x_, &indices_, &y_); },
        [this] { return gcap_where(stream_, &condition_, &x_, &row_, &y_); },
        [this] { return gcap_reduce(stream_, GCAP_REDUCE_SUM, &x_, &kAxis, 1, &column_); },
        [this] { return gcap_softmax(stream_, &x_, 1, &y_); },
        [this] { return gcap_log_softmax(stream_, &x_, 0, &y_); },
        [this] { return gcap_layer_norm(stream_, &x_, 1, 0.1f, &row_, nullptr, &y_, nullptr, nullptr); },
        [this] { return gcap_lrn(stream_, &x_, 3, 1.0f, 0.5f, 1.0f, &y_); },
        [this] { return gcap_quantize(stream_, &quantization_, &x_, &bytes_); },
        [this] { return gcap_dequantize(stream_, &quantization_, &other_bytes_, &y_); },
        [this] { return gcap_quantization_of(stream_, &two_, &one_, &one_byte_); },
        [this] { return gcap_matmul_integer(stream_, &other_bytes_, &column_of_bytes_, nullptr, nullptr, &sums_); },
        [this] { return gcap_attention_weights(stream_, &attention_, &scores_, &weights_); },
        [this] { return gcap_rotate(stream_, &rotary_, &scores_, &weights_); },
        [this] { return gcap_transpose(stream_, &x_, kSwap, &transposed_); },
        [this] { return gcap_concat(stream_, &x_, 1, 0, &y_); },
        [this] { return gcap_split(stream_, &x_, 1, &y_, 1); },
        [this] { return gcap_slice(stream_, &x_, kZeros, nullptr, &column_slice_); },
        [this] { return gcap_gather(stream_, &x_, &indices_, 1, &column_slice_); },
        [this] { return gcap_pad(stream_, &x_, kZeros, GCAP_PAD_EDGE, nullptr, &y_); },
        [this] { return gcap_fill(stream_, kZeros, &y_); },
        [this] { return gcap_range(stream_, kZeros, kZeros, &column_); },
        [this] { return gcap_gather_elements(stream_, &x_, &indices_2d_, 1, &element_); },
        [this] { return gcap_gather_nd(stream_, &x_, &indices_2d_, 0, &row_of_y_); },
        [this] { return gcap_scatter_elements(stream_, GCAP_SCATTER_ADD, &indices_2d_, &x_element_, 1, &y_); },
        [this] { return gcap_scatter_nd(stream_, GCAP_SCATTER_NONE, &indices_2d_, &x_row_, &y_); },
        [this] { return gcap_write_cache(stream_, &indices_, &x_row_, 1, true, &row_of_y_); },
        [this] { return gcap_arg(stream_, &x_, 1, false, false, &arg_); },
        [this] { return gcap_top_k(stream_, &x_, 1, false, true, &column_slice_, &arg_); },
        [this] { return gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, &x_, nullptr, &y_); },
        [this] { return gcap_one_hot(stream_, &indices_, &pair_, 1, &hot_); },
        [this] { return gcap_reverse_sequence(stream_, &column_view_, &indices_, 0, &column_slice_); },
        [this] { return gcap_cum_sum(stream_, &x_, 1, false, false, &y_); },
        [this] {
          return gcap_grid_sample(stream_, GCAP_GRID_LINEAR, GCAP_GRID_ZEROS, false, &image_, &places_, &samples_);
        },
        [this] { return gcap_pool2d_run(pool_, stream_, x_.data, y_.data); },
        [this] { return gcap_conv2d_run(conv_, stream_, x_.data, row_.data, nullptr, y_.data, nullptr); },
    };
  }

  static constexpr int64_t kAxis = 1, kSwap[] = {1, 0}, kZeros[] = {0, 0};
  const DeviceTensor memory_{GCAP_DTYPE_F32, {2, 3}}, output_{GCAP_DTYPE_F32, {2, 3}}, flags_{GCAP_DTYPE_BOOL, {3}};
  const gcap_tensor_t x_ = memory_.view(), y_ = output_.view(), condition_ = flags_.view();
  const gcap_tensor_t row_ = View(GCAP_DTYPE_F32, {3}, x_.data), column_ = View(GCAP_DTYPE_F32, {2}, y_.data);
  const gcap_tensor_t transposed_ = View(GCAP_DTYPE_F32, {3, 2}, y_.data);
  const gcap_tensor_t column_slice_ = View(GCAP_DTYPE_F32, {2, 1}, y_.data);
  const gcap_tensor_t pair_ = View(GCAP_DTYPE_F32, {2}, x_.data), hot_ = View(GCAP_DTYPE_F32, {1, 6}, y_.data);
  const gcap_tensor_t column_view_ = View(GCAP_DTYPE_F32, {2, 1}, x_.data);
  const DeviceTensor index_{GCAP_DTYPE_I64, {1}, Values{2}};
  const gcap_tensor_t indices_ = index_.view(), indices_2d_ = View(GCAP_DTYPE_I64, {1, 1}, indices_.data);
  const gcap_tensor_t element_ = View(GCAP_DTYPE_F32, {1, 1}, y_.data),
                      x_element_ = View(GCAP_DTYPE_F32, {1, 1}, x_.data);
  const gcap_tensor_t x_row_ = View(GCAP_DTYPE_F32, {1, 3}, x_.data), row_of_y_ = View(GCAP_DTYPE_F32, {1, 3}, y_.data);
  const DeviceTensor arg_output_{GCAP_DTYPE_I64, {2, 1}};
  const gcap_tensor_t arg_ = arg_output_.view();
  const gcap_tensor_t scores_ = View(GCAP_DTYPE_F32, {1, 1, 2, 3}, x_.data);
  const gcap_tensor_t weights_ = View(GCAP_DTYPE_F32, {1, 1, 2, 3}, y_.data);
  const gcap_tensor_t scale_ = View(GCAP_DTYPE_F32, {1}, x_.data), bytes_ = View(GCAP_DTYPE_U8, {2, 3}, y_.data);
  const gcap_tensor_t other_bytes_ = View(GCAP_DTYPE_U8, {2, 3}, x_.data);
  const gcap_tensor_t column_of_bytes_ = View(GCAP_DTYPE_I8, {3}, x_.data), sums_ = View(GCAP_DTYPE_I32, {2}, y_.data);
  const gcap_tensor_t two_ = View(GCAP_DTYPE_F32, {2}, x_.data), one_ = View(GCAP_DTYPE_F32, {1}, y_.data);
  const gcap_tensor_t one_byte_ = View(GCAP_DTYPE_U8, {1}, static_cast<char*>(y_.data) + 8);
  const gcap_quantization_t quantization_ = {&scale_, nullptr, 0, 0, GCAP_DTYPE_F32};
  const gcap_tensor_t image_ = View(GCAP_DTYPE_F32, {1, 1, 6}, x_.data);
  const gcap_tensor_t places_ = View(GCAP_DTYPE_F32, {1, 5, 1}, x_.data);
  const gcap_tensor_t samples_ = View(GCAP_DTYPE_F32, {1, 1, 5}, y_.data);
  const gcap_tensor_t cosines_ = View(GCAP_DTYPE_F32, {2, 1}, x_.data);
  const gcap_attention_how_t attention_ = {0.0f, 1, nullptr, nullptr, 0.0f};
  const gcap_rotary_t rotary_ = {&cosines_, &cosines_, &indices_, 0, false};
  gcap_conv2d_t* conv_ = nullptr;
  gcap_pool2d_t* pool_ = nullptr;
};

TEST_F(KernelsOnSim, RunsReportEachFailingCall) {
  for (const auto& run : Runs()) FailEachCall({"cudaGetDevice", "cudaLaunchKernel"}, {}, run);
}

TEST_F(KernelsOnSim, RunsMakeNothing) {
  for (const auto& run : Runs()) {
    const uint64_t calls = gcap_sim_calls(nullptr);
    const size_t live = gcap_sim_live(nullptr);
    GCAP_EXPECT_OK(run());
    EXPECT_EQ(gcap_sim_calls(nullptr) - calls, 2u);  // which device, and the launch
    EXPECT_EQ(gcap_sim_live(nullptr), live);
  }
}

TEST_F(KernelsOnSim, AFailedLaunchFailsTheCapture) {
  for (const auto& run : Runs()) {
    gcap_capture_t* capture = nullptr;
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
    gcap_sim_fail_nth("cudaLaunchKernel", 1, cudaErrorUnknown);
    gcap_status_ignore(run());  // the caller forgets it; the latch does not
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "cudaLaunchKernel");
    EXPECT_EQ(graph, nullptr);
    GCAP_EXPECT_OK(run());  // the stream is usable
  }
}

// The caller's device is 0, the stream's is 1.
TEST_F(KernelsOnSim, RunsSetTheStreamsDeviceAndRestoreTheCallers) {
  GCAP_ASSERT_OK(gcap_stream_destroy(stream_));
  GCAP_ASSERT_OK(gcap_stream_create(1, &stream_));
  // The operands are memory of device 0.
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  GCAP_EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
  for (const auto& run : Runs()) {
    const uint64_t before = gcap_sim_calls("cudaSetDevice");
    GCAP_EXPECT_OK(run());
    EXPECT_EQ(gcap_sim_calls("cudaSetDevice"), before + 2);
    int device = -1;
    GCAP_EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    Synchronize();
  }
}

// The simulator stops at a byte that is read but was never written, so a twin that declared more would stop here; and a
// written byte is one that a copy to the host may read.
TEST_F(KernelsOnSim, ABroadcastInputIsReadAsFarAsItReaches) {
  void* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&memory, 128));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 12, gcap_stream_handle(stream_)));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(static_cast<char*>(memory) + 64, 0, 16, gcap_stream_handle(stream_)));
  const gcap_tensor_t row = View(GCAP_DTYPE_F32, {1, 3}, memory);
  const gcap_tensor_t column = View(GCAP_DTYPE_F32, {4, 1}, static_cast<char*>(memory) + 64);
  const gcap_tensor_t y = View(GCAP_DTYPE_F32, {4, 3}, static_cast<char*>(memory) + 16);
  GCAP_EXPECT_OK(gcap_binary(stream_, GCAP_BINARY_ADD, &row, &column, &y));
  Synchronize();
  float host[12];
  GCAP_EXPECT_CUDA(cudaMemcpy(host, y.data, sizeof(host), cudaMemcpyDeviceToHost));
  EXPECT_EQ(host[11], 0.0f);
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

// Of [4,5] every other row backwards, and of it every other element: the rest of the memory was never written, and no
// slice of it was either.
TEST_F(KernelsOnSim, ASliceReadsNoMoreThanItsElements) {
  float* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 20 * sizeof(float)));
  for (int row : {3, 1}) {
    for (int column : {0, 2, 4}) {
      GCAP_EXPECT_CUDA(cudaMemsetAsync(memory + 5 * row + column, 0, sizeof(float), gcap_stream_handle(stream_)));
    }
  }
  const int64_t starts[] = {-1, 0}, steps[] = {-2, 2};
  const gcap_tensor_t x = View(GCAP_DTYPE_F32, {4, 5}, memory), y = y_;
  GCAP_EXPECT_OK(gcap_slice(stream_, &x, starts, steps, &y));
  Synchronize();
  EXPECT_EQ(output_.Get(), Values(6, 0.0));
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
