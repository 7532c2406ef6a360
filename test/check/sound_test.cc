// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sound operations: no check of them has a finding. Those of the kit, by gcap's kernels, cuBLASLt and cuDNN, and some
// whose work has branches, kept memory, state, holes, guards.

#include <cublasLt.h>
#include <cudnn.h>

#include "gcap/graph_guards.h"
#include "gcap/graph_holes.h"
#include "gcap/graph_taps.h"
#include "gcap/kit/ops/batch_norm.h"
#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/cudnn.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/layout.h"
#include "gcap/kit/ops/matmul.h"
#include "gcap/kit/ops/normalize.h"
#include "gcap/kit/ops/pool2d.h"
#include "gcap/kit/ops/reduce.h"
#include "test/check/operation.h"

namespace gcap {
namespace testing {
namespace {

struct Sound {
  std::string name;
  std::function<void(Operation* operation)> make;
};

using Resources = const gcap_run_resources_t*;

gcap_tensor_t Tensor(void* data, std::initializer_list<int64_t> shape, gcap_dtype_t type = GCAP_DTYPE_F32) {
  gcap_tensor_t tensor = {};
  tensor.data = data;
  tensor.dtype = type;
  for (int64_t size : shape) tensor.shape[tensor.rank++] = size;
  return tensor;
}

// Scratch of a run, which gets it with the work's outcome.
gcap_status_t WithScratch(Resources r, size_t bytes, const std::function<gcap_status_t(void*)>& use) {
  void* memory = nullptr;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, bytes, r->stream, &memory));
  gcap_status_t status = use(memory);
  return gcap_status_join(status, gcap_scratch_free(r->scratch, memory));
}

// --- gcap's kernels -------------------------------------------------------------------------------------------------------

Sound Unary(const char* name, gcap_unary_op_t op, gcap_dtype_t type) {
  return {name, [=](Operation* o) {
            const size_t bytes = kElements * gcap_dtype_bytes(type);
            const gcap_tensor_t x = Tensor(o->Input("x", bytes, type), {16, 16}, type);
            const gcap_tensor_t y = Tensor(o->Output("y", bytes, type), {16, 16}, type);
            o->work = [=](Resources r) { return gcap_unary(r->stream, op, &x, &y); };
          }};
}

Sound Binary(const char* name, gcap_binary_op_t op, gcap_dtype_t type, gcap_dtype_t result) {
  return {
      name, [=](Operation* o) {
        const size_t bytes = kElements * gcap_dtype_bytes(type);
        const gcap_tensor_t a = Tensor(o->Input("a", bytes, type), {16, 16}, type);
        const gcap_tensor_t b = Tensor(o->Input("b", 16 * gcap_dtype_bytes(type), type), {16}, type);
        const gcap_tensor_t y = Tensor(o->Output("y", kElements * gcap_dtype_bytes(result), result), {16, 16}, result);
        o->work = [=](Resources r) { return gcap_binary(r->stream, op, &a, &b, &y); };
      }};
}

Sound Reduce(const char* name, gcap_reduce_op_t op) {
  return {name, [=](Operation* o) {
            const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16});
            const gcap_tensor_t y = Tensor(o->Output("y", 16 * sizeof(float)), {16});
            o->work = [=](Resources r) {
              const int64_t axis = 1;
              return gcap_reduce(r->stream, op, &x, &axis, 1, &y);
            };
          }};
}

std::vector<Sound> Kernels() {
  std::vector<Sound> all = {
      Unary("Relu", GCAP_UNARY_RELU, GCAP_DTYPE_F32),
      Unary("ReluOfHalves", GCAP_UNARY_RELU, GCAP_DTYPE_F16),
      Unary("Gelu", GCAP_UNARY_GELU, GCAP_DTYPE_F32),
      Unary("GeluTanh", GCAP_UNARY_GELU_TANH, GCAP_DTYPE_BF16),
      Unary("Sigmoid", GCAP_UNARY_SIGMOID, GCAP_DTYPE_F32),
      Unary("Tanh", GCAP_UNARY_TANH, GCAP_DTYPE_F32),
      Unary("Erf", GCAP_UNARY_ERF, GCAP_DTYPE_F32),
      Unary("Exp", GCAP_UNARY_EXP, GCAP_DTYPE_F32),
      Unary("LogWithNan", GCAP_UNARY_LOG, GCAP_DTYPE_F32),
      Unary("SqrtWithNan", GCAP_UNARY_SQRT, GCAP_DTYPE_F32),
      Unary("NegOfIntegers", GCAP_UNARY_NEG, GCAP_DTYPE_I64),
      Unary("Abs", GCAP_UNARY_ABS, GCAP_DTYPE_F32),
      Unary("Not", GCAP_UNARY_NOT, GCAP_DTYPE_BOOL),
      Unary("ReciprocalWithInfinity", GCAP_UNARY_RECIPROCAL, GCAP_DTYPE_F32),
      Binary("Plus", GCAP_BINARY_ADD, GCAP_DTYPE_F32, GCAP_DTYPE_F32),
      Binary("Minus", GCAP_BINARY_SUB, GCAP_DTYPE_F16, GCAP_DTYPE_F16),
      Binary("Times", GCAP_BINARY_MUL, GCAP_DTYPE_BF16, GCAP_DTYPE_BF16),
      Binary("DivOfIntegers", GCAP_BINARY_DIV, GCAP_DTYPE_I32, GCAP_DTYPE_I32),
      Binary("PowOfIntegers", GCAP_BINARY_POW, GCAP_DTYPE_I64, GCAP_DTYPE_I64),
      Binary("Min", GCAP_BINARY_MIN, GCAP_DTYPE_F32, GCAP_DTYPE_F32),
      Binary("Max", GCAP_BINARY_MAX, GCAP_DTYPE_F32, GCAP_DTYPE_F32),
      Binary("Equal", GCAP_BINARY_EQUAL, GCAP_DTYPE_I32, GCAP_DTYPE_BOOL),
      Binary("Less", GCAP_BINARY_LESS, GCAP_DTYPE_F32, GCAP_DTYPE_BOOL),
      Binary("Greater", GCAP_BINARY_GREATER, GCAP_DTYPE_F32, GCAP_DTYPE_BOOL),
      Binary("And", GCAP_BINARY_AND, GCAP_DTYPE_BOOL, GCAP_DTYPE_BOOL),
      Binary("Or", GCAP_BINARY_OR, GCAP_DTYPE_BOOL, GCAP_DTYPE_BOOL),
      Reduce("Sum", GCAP_REDUCE_SUM),
      Reduce("Mean", GCAP_REDUCE_MEAN),
      Reduce("Largest", GCAP_REDUCE_MAX),
      Reduce("Least", GCAP_REDUCE_MIN),
      Reduce("L1", GCAP_REDUCE_L1),
      Reduce("L2", GCAP_REDUCE_L2),
      Reduce("SumSquare", GCAP_REDUCE_SUM_SQUARE),
  };
  return all;
}

void MakeSoftmax(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16}), y = Tensor(o->Output("y"), {16, 16});
  o->work = [=](Resources r) { return gcap_softmax(r->stream, &x, 1, &y); };
}

void MakeLayerNorm(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16}), y = Tensor(o->Output("y"), {16, 16});
  const gcap_tensor_t scale = Tensor(o->Input("scale", 64), {16}), bias = Tensor(o->Input("bias", 64), {16});
  o->work = [=](Resources r) { return gcap_layer_norm(r->stream, &x, 1, 1e-5f, &scale, &bias, &y, nullptr, nullptr); };
}

void MakeTranspose(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {8, 32}), y = Tensor(o->Output("y"), {32, 8});
  o->work = [=](Resources r) {
    const int64_t perm[] = {1, 0};
    return gcap_transpose(r->stream, &x, perm, &y);
  };
}

void MakeConcat(Operation* o) {
  const gcap_tensor_t a = Tensor(o->Input("a"), {16, 16}), b = Tensor(o->Input("b"), {16, 16});
  const gcap_tensor_t y = Tensor(o->Output("y", 2 * kElementBytes), {16, 32});
  o->work = [=](Resources r) {
    const gcap_tensor_t inputs[] = {a, b};
    return gcap_concat(r->stream, inputs, 2, 1, &y);
  };
}

void MakeSplit(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16});
  const gcap_tensor_t y = Tensor(o->Output("y", kElementBytes / 2), {16, 8});
  const gcap_tensor_t z = Tensor(o->Output("z", kElementBytes / 2), {16, 8});
  o->work = [=](Resources r) {
    const gcap_tensor_t outputs[] = {y, z};
    return gcap_split(r->stream, &x, 1, outputs, 2);
  };
}

// Drawn indices are 0 to 3.
void MakeGather(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16});
  const gcap_tensor_t indices = Tensor(o->Input("indices", 4 * 8, GCAP_DTYPE_I64), {4}, GCAP_DTYPE_I64);
  const gcap_tensor_t y = Tensor(o->Output("y", kElementBytes / 4), {4, 16});
  o->work = [=](Resources r) { return gcap_gather(r->stream, &x, &indices, 0, &y); };
}

void MakeWhere(Operation* o) {
  const gcap_tensor_t condition = Tensor(o->Input("condition", kElements, GCAP_DTYPE_BOOL), {16, 16}, GCAP_DTYPE_BOOL);
  const gcap_tensor_t a = Tensor(o->Input("a"), {16, 16}), b = Tensor(o->Input("b"), {16, 16});
  const gcap_tensor_t y = Tensor(o->Output("y"), {16, 16});
  o->work = [=](Resources r) { return gcap_where(r->stream, &condition, &a, &b, &y); };
}

void MakeCast(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16});
  const gcap_tensor_t y = Tensor(o->Output("y", kElements * 4, GCAP_DTYPE_I32), {16, 16}, GCAP_DTYPE_I32);
  o->work = [=](Resources r) { return gcap_cast(r->stream, &x, &y); };
}

void MakeClipAndLeaky(Operation* o) {
  const gcap_tensor_t x = Tensor(o->Input("x"), {16, 16}), y = Tensor(o->Output("y"), {16, 16});
  o->work = [=](Resources r) {
    return WithScratch(r, kElementBytes, [&](void* memory) -> gcap_status_t {
      const gcap_tensor_t between = Tensor(memory, {16, 16});
      GCAP_RETURN_IF_ERROR(gcap_clip(r->stream, -1, 1, &x, &between));
      return gcap_leaky_relu(r->stream, 0.5f, &between, &y);
    });
  };
}

// --- cuBLASLt and cuDNN ---------------------------------------------------------------------------------------------------

// Algorithms may sum in another order on each stream: sums of 16 products of multiples of 1/8 are exact in f32, and in
// the output's type they are rounded once.
void MakeMatmul(Operation* o, gcap_dtype_t type, gcap_matmul_epilogue_t epilogue) {
  auto handle = std::shared_ptr<cublasLtHandle_t>(new cublasLtHandle_t(nullptr), [](cublasLtHandle_t* made) {
    EXPECT_EQ(cublasLtDestroy(*made), CUBLAS_STATUS_SUCCESS);
    delete made;
  });
  ASSERT_EQ(cublasLtCreate(handle.get()), CUBLAS_STATUS_SUCCESS);
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = *handle;
  options.m = options.n = options.k = 16;
  options.dtype = type;
  options.epilogue = epilogue;
  options.max_workspace_bytes = 1 << 20;
  gcap_matmul_t* made = nullptr;
  GCAP_ASSERT_OK(gcap_matmul_create(&options, &made));
  const std::shared_ptr<gcap_matmul_t> matmul(made, [handle](gcap_matmul_t* plan) { gcap_matmul_destroy(plan); });
  const size_t bytes = kElements * gcap_dtype_bytes(type);
  void *a = o->Input("a", bytes, type), *b = o->Input("b", bytes, type), *c = o->Output("c", bytes, type);
  const bool has_bias = epilogue == GCAP_MATMUL_EPILOGUE_BIAS || epilogue == GCAP_MATMUL_EPILOGUE_BIAS_RELU;
  void* bias = has_bias ? o->Input("bias", 16 * gcap_dtype_bytes(type), type) : nullptr;
  o->work = [=](Resources r) {
    return WithScratch(r, gcap_matmul_workspace_bytes(matmul.get()), [&](void* workspace) {
      return gcap_matmul_run(matmul.get(), r->stream, a, b, bias, nullptr, c, workspace);
    });
  };
}

void MakeConv(Operation* o, gcap_conv2d_direct_t direct) {
  gcap_conv2d_options_t options;
  gcap_conv2d_options_init(&options);
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  options.handle = handle;
  options.n = 1, options.c = 2, options.h = options.w = 8, options.k = 2;
  options.kernel_h = options.kernel_w = 3;
  options.pad_h = options.pad_w = 1;
  options.direct = direct;
  options.max_workspace_bytes = SIZE_MAX;
  gcap_conv2d_t* made = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&options, &made));
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
  const std::shared_ptr<gcap_conv2d_t> conv(made, gcap_conv2d_destroy);
  gcap_conv2d_info_t info;
  gcap_conv2d_get_info(made, &info);
  const void *x = o->Input("x", 2 * 64 * sizeof(float)), *weight = o->Input("weight", 4 * 9 * sizeof(float));
  const void* bias = o->Input("bias", 2 * sizeof(float));
  void* y = o->Output("y", 2 * 64 * sizeof(float));
  o->work = [=](Resources r) {
    return WithScratch(r, info.workspace_bytes, [&](void* workspace) {
      return gcap_conv2d_run(conv.get(), r->stream, x, weight, bias, y, workspace);
    });
  };
}

void MakePool(Operation* o, gcap_pool2d_mode_t mode) {
  gcap_pool2d_options_t options;
  gcap_pool2d_options_init(&options);
  options.n = 1, options.c = 4, options.h = options.w = 8;
  options.kernel_h = options.kernel_w = options.stride_h = options.stride_w = 2;
  options.mode = mode;
  gcap_pool2d_t* made = nullptr;
  GCAP_ASSERT_OK(gcap_pool2d_create(&options, &made));
  const std::shared_ptr<gcap_pool2d_t> pool(made, gcap_pool2d_destroy);
  const void* x = o->Input("x");
  void* y = o->Output("y", kElementBytes / 4);
  o->work = [=](Resources r) { return gcap_pool2d_run(pool.get(), r->stream, x, y); };
}

gcap_status_t FillOnes(void* user, uint64_t seed, void* values) {
  const size_t count = *static_cast<const size_t*>(user);
  for (size_t i = 0; i < count; ++i) static_cast<float*>(values)[i] = 1.0f + static_cast<float>((seed + i) % 4);
  return nullptr;
}

// A variance is positive.
void MakeBatchNorm(Operation* o) {
  static const size_t channels = 4;
  gcap_batch_norm_options_t options;
  gcap_batch_norm_options_init(&options);
  options.n = 1, options.c = channels, options.h = options.w = 8;
  gcap_batch_norm_t* made = nullptr;
  GCAP_ASSERT_OK(gcap_batch_norm_create(&options, &made));
  const std::shared_ptr<gcap_batch_norm_t> norm(made, gcap_batch_norm_destroy);
  const void* x = o->Input("x");
  const float *scale = o->Input("scale", 16), *bias = o->Input("bias", 16), *mean = o->Input("mean", 16);
  const float* variance = o->Input("variance", 16);
  o->last_input().fill = FillOnes;
  o->last_input().fill_user = const_cast<size_t*>(&channels);
  void* y = o->Output("y");
  o->work = [=](Resources r) { return gcap_batch_norm_run(norm.get(), r->stream, x, scale, bias, mean, variance, y); };
}

// --- Works of several steps ----------------------------------------------------------------------------------------------

void MakeChain(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](Resources r) {
    return WithScratch(r, kElementBytes, [&](void* memory) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Relu(x, static_cast<float*>(memory), r->cuda_stream));
      GCAP_RETURN_IF_ERROR(Fill(y, 0, r->cuda_stream));
      return Add(static_cast<float*>(memory), y, 3, r->cuda_stream);
    });
  };
}

void MakeAccumulator(Operation* o) {
  float* sum = o->InPlace("sum");
  o->work = [=](Resources r) { return Add(sum, sum, 1, r->cuda_stream); };
}

// A generator whose state is on the device.
void MakeGenerator(Operation* o) {
  float* state = o->InPlace("state");
  float* y = o->Output("y");
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(state, state, 7, r->cuda_stream));
    return Relu(state, y, r->cuda_stream);
  };
}

// A ring of one entry: the cache is written where the step is, and read whole.
void MakeCache(Operation* o) {
  const float* x = o->Input("x", kElementBytes / 4);
  float* cache = o->InPlace("cache");
  float* y = o->Output("y");
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Copy(cache + kElements / 2, x, r->cuda_stream, kElementBytes / 4));
    return Add(cache, y, 1, r->cuda_stream);
  };
}

// A counter that the operation zeroes in its stream.
void MakeCounter(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* counter = o->Own()->floats();
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Fill(counter, 0, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Add(counter, counter, 1, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return Copy(y, counter, r->cuda_stream, sizeof(float));
  };
}

// What is needed once is made in the first run, and kept in scratch for all later ones.
void MakeKeptConstants(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto constants = std::make_shared<void*>(nullptr);
  o->work = [=](Resources r) -> gcap_status_t {
    if (*constants == nullptr) {
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, constants.get()));
      GCAP_RETURN_IF_ERROR(gcap_scratch_keep(r->scratch, *constants));
      GCAP_RETURN_IF_ERROR(Fill(*constants, 0x3f, r->cuda_stream));
    }
    GCAP_RETURN_IF_ERROR(Add(x, y, 1, r->cuda_stream));
    return Copy(y, *constants, r->cuda_stream, kElementBytes / 2);
  };
}

// More scratch than eager runs leave.
constexpr size_t kLarge = size_t{32} << 20;

// Its capture takes a larger workspace than its eager runs: a first capture lacks the memory.
void MakeLargerInCapture(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](Resources r) {
    const size_t bytes = gcap_thread_is_capturing() ? kLarge : kElementBytes;
    return WithScratch(r, bytes, [&](void* memory) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Relu(x, static_cast<float*>(memory), r->cuda_stream));
      return Add(static_cast<float*>(memory), y, 3, r->cuda_stream);
    });
  };
}

// A capture that lacks memory had other scratch before, which is nobody's when the next attempt has a graph.
void MakeOtherScratchInSecondCapture(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto captures = std::make_shared<int>(0);
  o->work = [=](Resources r) {
    const bool is_first = gcap_thread_is_capturing() && ++*captures == 1;
    const bool is_large = gcap_thread_is_capturing() && !is_first;
    return WithScratch(r, is_large ? kLarge : kLarge / 16, [&](void* memory) -> gcap_status_t {
      if (is_first) return WithScratch(r, kLarge, [](void*) -> gcap_status_t { return nullptr; });
      GCAP_RETURN_IF_ERROR(Relu(x, static_cast<float*>(memory), r->cuda_stream));
      return Add(static_cast<float*>(memory), y, 3, r->cuda_stream);
    });
  };
}

// Two branches, each with its own scratch, joined by events.
void MakeFork(Operation* o) {
  struct Branch {
    Branch() {
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      EXPECT_EQ(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
      EXPECT_EQ(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), cudaSuccess);
    }
    ~Branch() {
      EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
      EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    cudaStream_t stream = nullptr;
    cudaEvent_t fork = nullptr, join = nullptr;
  };
  const float* x = o->Input("x");
  float *y = o->Output("y"), *z = o->Output("z");
  auto branch = std::make_shared<Branch>();
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(branch->fork, r->cuda_stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(branch->stream, branch->fork, 0)));
    GCAP_RETURN_IF_ERROR(Add(x, z, 2, branch->stream));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(branch->join, branch->stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(r->cuda_stream, branch->join, 0)));
    return Add(z, z, 1, r->cuda_stream);
  };
}

struct HoleCall {
  const float* x;
  float* y;
};

gcap_status_t WorkOfHole(void* user, Resources r) {
  const HoleCall* const call = static_cast<const HoleCall*>(user);
  GCAP_RETURN_IF_ERROR(Add(call->x, call->y, 1, r->cuda_stream));
  return GCAP_CUDA(cudaStreamSynchronize(r->cuda_stream));  // no capture could hold it
}

void MakeHole(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* between = o->Own()->floats();
  auto call = std::make_shared<HoleCall>(HoleCall{between, y});
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Relu(x, between, r->cuda_stream));
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.name = "attention";
    hole.work = WorkOfHole;
    hole.user = call.get();
    GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(r, &hole));
    return Add(y, y, 2, r->cuda_stream);
  };
}

void MakeTap(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(gcap_graph_tap_issue(r->cuda_stream, "relu", y, kElementBytes));
    return Add(y, y, 1, r->cuda_stream);
  };
}

gcap_status_t FillSwitch(void* user, uint64_t, void* value) {
  int32_t* const next = static_cast<int32_t*>(user);
  *static_cast<int32_t*>(value) = *next;
  *next = 1 - *next;
  return nullptr;
}

// A decision of the host that the work states: a graph is not replayed for another one.
void MakeGuard(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto is_relu = std::make_shared<int32_t>(0);
  auto next = std::make_shared<int32_t>(0);
  o->HostInput("is_relu", is_relu.get(), GCAP_DTYPE_I32);
  o->last_input().fill = FillSwitch;
  o->last_input().fill_user = next.get();
  o->Keep(next);
  o->work = [=](Resources r) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "is_relu";
    guard.address = is_relu.get();
    guard.bytes = sizeof(int32_t);
    guard.low = guard.high = *is_relu;
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return *is_relu != 0 ? Relu(x, y, r->cuda_stream) : Add(x, y, 1, r->cuda_stream);
  };
}

struct HostWork {
  float* to;
};

void CUDART_CB CountOnHost(void* data) {
  float* const to = static_cast<HostWork*>(data)->to;
  for (size_t i = 0; i < kElements; ++i) to[i] += 1.0f;
}

// A host function on pinned memory that lives as long as the operation.
void MakeHostFunction(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, kElementBytes, cudaHostAllocDefault), cudaSuccess);
  const std::shared_ptr<void> owner(pinned, [](void* memory) { EXPECT_EQ(cudaFreeHost(memory), cudaSuccess); });
  auto host = std::make_shared<HostWork>(HostWork{static_cast<float*>(pinned)});
  o->Keep(owner);
  o->work = [=](Resources r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Copy(host->to, x, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(r->cuda_stream, CountOnHost, host.get())));
    return Copy(y, host->to, r->cuda_stream);
  };
}

// A value that the host reads, and that is the same in every run.
void MakeFixedScalar(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  auto weight = std::make_shared<int32_t>(0);
  o->HostInput("weight", weight.get(), GCAP_DTYPE_I32);
  o->last_input().fill = [](void*, uint64_t, void* value) -> gcap_status_t {
    *static_cast<int32_t*>(value) = 3;
    return nullptr;
  };
  o->work = [=](Resources r) { return Add(x, y, static_cast<uint64_t>(*weight), r->cuda_stream); };
}

std::vector<Sound> AllSound() {
  std::vector<Sound> all = Kernels();
  const Sound others[] = {
      {"Softmax", MakeSoftmax},
      {"LayerNorm", MakeLayerNorm},
      {"Transpose", MakeTranspose},
      {"Concat", MakeConcat},
      {"Split", MakeSplit},
      {"Gather", MakeGather},
      {"Where", MakeWhere},
      {"Cast", MakeCast},
      {"ClipAndLeaky", MakeClipAndLeaky},
      {"Matmul", [](Operation* o) { MakeMatmul(o, GCAP_DTYPE_F32, GCAP_MATMUL_EPILOGUE_NONE); }},
      {"MatmulBiasRelu", [](Operation* o) { MakeMatmul(o, GCAP_DTYPE_F16, GCAP_MATMUL_EPILOGUE_BIAS_RELU); }},
      {"MatmulOfBf16", [](Operation* o) { MakeMatmul(o, GCAP_DTYPE_BF16, GCAP_MATMUL_EPILOGUE_NONE); }},
      {"ConvByCudnn", [](Operation* o) { MakeConv(o, GCAP_CONV2D_DIRECT_NEVER); }},
      {"ConvByKernel", [](Operation* o) { MakeConv(o, GCAP_CONV2D_DIRECT_ALWAYS); }},
      {"MaxPool", [](Operation* o) { MakePool(o, GCAP_POOL2D_MAX); }},
      {"AveragePool", [](Operation* o) { MakePool(o, GCAP_POOL2D_AVERAGE); }},
      {"BatchNorm", MakeBatchNorm},
      {"Chain", MakeChain},
      {"Accumulator", MakeAccumulator},
      {"Generator", MakeGenerator},
      {"Cache", MakeCache},
      {"Counter", MakeCounter},
      {"KeptConstants", MakeKeptConstants},
      {"LargerInCapture", MakeLargerInCapture},
      {"OtherScratchInSecondCapture", MakeOtherScratchInSecondCapture},
      {"Fork", MakeFork},
      {"Hole", MakeHole},
      {"Tap", MakeTap},
      {"Guard", MakeGuard},
      {"HostFunction", MakeHostFunction},
      {"FixedScalar", MakeFixedScalar},
  };
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

class SoundOperation : public TimedChecks, public ::testing::WithParamInterface<Sound> {};

TEST_P(SoundOperation, HasNoFinding) {
  Operation operation(GetParam().name.c_str());
  GetParam().make(&operation);
  if (HasFatalFailure()) return;
  gcap_check_report_t report;
  gcap_check_report_init(&report);
  GCAP_ASSERT_OK(RunTimed(&operation, &report));
  EXPECT_TRUE(report.is_done);
  EXPECT_EQ(report.num_findings, 0u) << TextOf(operation.check, report);
  EXPECT_GE(report.replays + report.guarded_replays, 7u);
  EXPECT_GE(report.nodes, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, SoundOperation, ::testing::ValuesIn(AllSound()),
                         [](const ::testing::TestParamInfo<Sound>& info) { return info.param.name; });

}  // namespace
}  // namespace testing
}  // namespace gcap
