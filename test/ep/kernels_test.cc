// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a kernel may do with its context, in a session from warm-up to replay: take scratch before it looks at the
// stream, fork and join, and ask how the EP copies.

#include <functional>
#include <thread>
#include <vector>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/ep/model_builder.h"
#include "test/ep/test_ep.h"
#include "test/support/device_floats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::Gate;
using gcap::testing::GraphOptions;
using gcap::testing::ModelBuilder;

using Floats = std::vector<float>;
using Compute = std::function<gcap_status_t(const gcap_kernel_context_t&)>;

constexpr size_t kCount = 8;
constexpr size_t kBytes = kCount * sizeof(float);

// A session of one node, whose kernel is a function of the test.
class EpKernels : public gcap::testing::DeviceTest {
 protected:
  // `spoil`: what the EP's runtime has in place of gcap's; nullptr: gcap's own.
  void Create(const gcap_options_t& options, Compute compute, void (*spoil)(gcap_runtime_ops_t*) = nullptr) {
    compute_ = std::move(compute);
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.name = "kernels";
    ops.self = &compute_;
    ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
    ops.create_kernel = [](void* self, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
      out_kernel->self = self;
      out_kernel->compute = [](void* call, const gcap_kernel_context_t* context) {
        return (*static_cast<Compute*>(call))(*context);
      };
      return gcap_status_t(nullptr);
    };
    GCAP_ASSERT_OK(gcap_runtime_create(&options, &ops.runtime));
    if (spoil != nullptr) {
      own_ = ops.runtime;
      gcap_runtime_ops_t table = ForwardingOps::Runs(own_);
      spoil(&table);
      GCAP_ASSERT_OK(gcap_runtime_create_from(&table, &ops.runtime));
    }
    GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep_));
    ModelBuilder m;
    const int x = m.Value("x", {kCount}), y = m.Value("y", {kCount});
    m.inputs = {x};
    m.outputs = {y};
    m.Node("Test", "test", {x}, {y});
    const gcap_model_t model = m.Model();
    GCAP_ASSERT_OK(gcap_session_create(&model, &ep_, 1, nullptr, &session_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
    GCAP_EXPECT_OK(gcap_runtime_destroy(own_));
    session_ = nullptr;
    ep_ = nullptr;
    own_ = nullptr;
  }

  gcap_status_t Run(const DeviceFloats& x, const DeviceFloats& y, int graph_id, bool synchronize) {
    gcap_tensor_t input = {x.get(), GCAP_DTYPE_F32, 1, {kCount}}, output = {y.get(), GCAP_DTYPE_F32, 1, {kCount}};
    gcap_run_options_t options;
    gcap_run_options_init(&options);
    options.graph_id = graph_id;
    options.synchronize = synchronize;
    return gcap_session_run(session_, &options, &input, &output);
  }

  // With new content each time, in the place of the one before.
  void ExpectRightRun(int round, int graph_id = 0) {
    x_.Set(Floats(kCount, static_cast<float>(round)));
    y_.Set(Floats(kCount));
    GCAP_EXPECT_OK(Run(x_, y_, graph_id, /*synchronize=*/true));
    EXPECT_EQ(y_.Get(), x_.Get());
  }

  static gcap_status_t Copy(gcap_stream_t* stream, void* to, const void* from, size_t bytes) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gcap_stream_handle(stream)));
  }
  static gcap_status_t CopyAll(const gcap_kernel_context_t& context) {
    return Copy(context.resources.stream, context.outputs[0].data, context.inputs[0].data, kBytes);
  }

  DeviceFloats x_{Floats(kCount)}, y_{Floats(kCount)};
  Compute compute_;
  gcap_runtime_t* own_ = nullptr;  // behind a table of the test's
  gcap_ep_t* ep_ = nullptr;
  gcap_session_t* session_ = nullptr;
};

// As a convolution that looks for its algorithm: the thread's stream has had no work when scratch is asked. The block
// carries that stream's tag all the same, so another thread does not get it while the stream may use it. It is the
// whole first region: smaller ones are cached for the stream that had them, whatever their tag.
TEST_F(EpKernels, ScratchThatIsAskedBeforeTheStreamIsTagged) {
  constexpr size_t kRegion = size_t{1} << 20;
  Gate gate;
  bool holds = true;
  void* block = nullptr;
  Create(GraphOptions(), [&](const gcap_kernel_context_t& context) {
    const gcap_run_resources_t& run = context.resources;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, kRegion, run.stream, &block));
    if (holds) gate.Hold(gcap_stream_handle(run.stream));
    gcap_status_t status = Copy(run.stream, block, context.inputs[0].data, kBytes);
    if (status == nullptr) status = Copy(run.stream, context.outputs[0].data, block, kBytes);
    return gcap_status_join(status, gcap_scratch_free(run.scratch, block));
  });
  DeviceFloats x({1, 2, 3, 4, 5, 6, 7, 8}), first((Floats(kCount))), second((Floats(kCount)));
  GCAP_EXPECT_OK(Run(x, first, GCAP_GRAPH_ID_NONE, /*synchronize=*/false));
  void* const of_first = block;
  holds = false;
  std::thread([&] { GCAP_EXPECT_OK(Run(x, second, GCAP_GRAPH_ID_NONE, /*synchronize=*/true)); }).join();
  EXPECT_NE(block, of_first) << "the first stream has not come to its work yet";
  EXPECT_EQ(second.Get(), x.Get());
  gate.Open();
  GCAP_EXPECT_OK(gcap_runtime_synchronize(gcap_ep_runtime(ep_)));
  EXPECT_EQ(first.Get(), x.Get());
}

// As those of an EP that waits in its own way: the flag comes to it, and a run that need not wait may.
TEST_F(EpKernels, OfAnEpThatAlwaysWaitsAreDoneWhateverTheFlag) {
  static std::vector<bool> flags;
  static cudaStream_t stream;
  flags.clear();
  const auto waits = [](gcap_runtime_ops_t* ops) {
    ops->is_graph_capture_enabled = nullptr;
    ops->begin_run = [](void*, const gcap_run_t*, gcap_graph_run_kind_t*, void**) { return gcap_status_t(nullptr); };
    ops->end_run = [](void*, const gcap_run_t* run, gcap_status_t run_status) {
      flags.push_back(run->synchronize);
      return gcap_status_join(run_status, GCAP_CUDA(cudaStreamSynchronize(stream)));
    };
  };
  const auto compute = [](const gcap_kernel_context_t& context) {
    stream = gcap_stream_handle(context.resources.stream);
    return CopyAll(context);
  };
  Create(GraphOptions(), compute, waits);
  x_.Set({1, 2, 3, 4, 5, 6, 7, 8});
  for (const bool synchronize : {false, true, false}) {
    DeviceFloats y((Floats(kCount)));
    GCAP_EXPECT_OK(Run(x_, y, 0, synchronize));
    EXPECT_EQ(y.Get(), x_.Get());
  }
  EXPECT_EQ(flags, std::vector<bool>({false, true, false}));
}

// It says that graphs are off, since they are no business of the host's, which could replay them.
TEST_F(EpKernels, OfAnEpWithGraphsOfItsOwnRunEachTimeAndNothingIsReplayed) {
  static int replays;
  replays = 0;
  const auto has_graphs = [](gcap_runtime_ops_t* ops) {
    ops->is_graph_capture_enabled = [](const void*) { return false; };
    ops->is_captured = [](void*, int) { return true; };
    ops->replay = [](void*, const gcap_run_t*, bool* out_replayed) {
      ++replays;
      *out_replayed = true;
      return gcap_status_t(nullptr);
    };
  };
  int computes = 0;
  const auto compute = [&computes](const gcap_kernel_context_t& context) {
    ++computes;
    return CopyAll(context);
  };
  Create(GraphOptions(1), compute, has_graphs);
  for (int run = 1; run <= 4; ++run) {
    ExpectRightRun(run);
    EXPECT_EQ(computes, run);
  }
  EXPECT_EQ(replays, 0);
}

TEST_F(EpKernels, ForkAndJoinThroughTheirRuntime) {
  Create(GraphOptions(1), [](const gcap_kernel_context_t& context) {
    gcap_stream_t* streams[2];
    const size_t half = kCount / 2;
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(gcap_ep_runtime(context.ep), 2, streams));
    for (size_t i = 0; i < 2; ++i) {
      const float* from = static_cast<const float*>(context.inputs[0].data) + i * half;
      float* to = static_cast<float*>(context.outputs[0].data) + (1 - i) * half;
      GCAP_RETURN_IF_ERROR(Copy(streams[i], to, from, half * sizeof(float)));
    }
    return gcap_runtime_join(gcap_ep_runtime(context.ep));
  });
  for (float round = 1; round <= 4; ++round) {
    x_.Set({round, 2, 3, 4, 5, 6, 7, 8});
    GCAP_EXPECT_OK(Run(x_, y_, 0, /*synchronize=*/true));
    EXPECT_EQ(y_.Get(), Floats({5, 6, 7, 8, round, 2, 3, 4}));
  }
  EXPECT_TRUE(gcap_runtime_is_captured(gcap_ep_runtime(ep_), 0));
}

// ONNX Runtime's kernels read the same option (DoCopyOnDefaultStream).
TEST_F(EpKernels, AskWhetherCopiesAreInTheDefaultStream) {
  for (const bool in_default_stream : {true, false}) {
    gcap_options_t options = GraphOptions();
    options.do_copy_in_default_stream = in_default_stream;
    bool seen = !in_default_stream;
    Create(options, [&seen](const gcap_kernel_context_t& context) {
      seen = RuntimeInfo(gcap_ep_runtime(context.ep)).copies_in_default_stream;
      return CopyAll(context);
    });
    ExpectRightRun(1, GCAP_GRAPH_ID_NONE);
    EXPECT_EQ(seen, in_default_stream);
    TearDown();
  }
}

}  // namespace
