// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The test EP. A kernel keeps its node's op and control; what it computes, it reads off the tensors of the run. Kernels
// issue copies on the run's stream and nothing else, so the EP runs on the simulator and on a GPU alike.
//
// Locking: none; what threads share is atomic.

#include "test/ep/test_ep.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/runtime_ops.h"
#include "test/support/expect_status.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {

namespace {

struct Kernel {
  TestEp* ep;
  std::string op;
  NodeControl* control;
  std::vector<int64_t> sizes = {};  // what Shape copies to the device, also when its graph replays
};

gcap_status_t Copy(const gcap_kernel_context_t* context, void* to, const void* from, size_t bytes) {
  const cudaStream_t stream = gcap_stream_handle(context->resources.stream);
  return GCAP_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

gcap_status_t CopyInputToOutput(const gcap_kernel_context_t* context) {
  return Copy(context, context->outputs[0].data, context->inputs[0].data, gcap_tensor_bytes(&context->outputs[0]));
}

gcap_status_t Rotate(const gcap_kernel_context_t* context) {
  const size_t count = gcap_tensor_bytes(&context->outputs[0]) / sizeof(float);
  const float* x = static_cast<const float*>(context->inputs[0].data);
  float* y = static_cast<float*>(context->outputs[0].data);
  if (count == 0) return nullptr;
  if (count > 1) GCAP_RETURN_IF_ERROR(Copy(context, y, x + 1, (count - 1) * sizeof(float)));
  return Copy(context, y + count - 1, x, sizeof(float));
}

gcap_status_t Join(const gcap_kernel_context_t* context) {
  const size_t count = gcap_tensor_bytes(&context->outputs[0]) / sizeof(float);
  const size_t first = count / 2;
  const float* b = static_cast<const float*>(context->inputs[1].data);
  float* y = static_cast<float*>(context->outputs[0].data);
  GCAP_RETURN_IF_ERROR(Copy(context, y, context->inputs[0].data, first * sizeof(float)));
  return Copy(context, y + first, b + first, (count - first) * sizeof(float));
}

gcap_status_t Fill(const gcap_kernel_context_t* context, unsigned char byte) {
  return GCAP_CUDA(cudaMemsetAsync(context->outputs[0].data, byte, gcap_tensor_bytes(&context->outputs[0]),
                                   gcap_stream_handle(context->resources.stream)));
}

gcap_status_t Bounce(const gcap_kernel_context_t* context, NodeControl* control) {
  const gcap_run_resources_t& run = context->resources;
  const size_t bytes = gcap_tensor_bytes(&context->outputs[0]);
  const size_t wanted = control->scratch_bytes > bytes ? control->scratch_bytes.load() : bytes;
  void* scratch = nullptr;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, wanted, run.stream, &scratch));
  control->scratch = scratch;
  gcap_status_t status = Copy(context, scratch, context->inputs[0].data, bytes);
  if (status == nullptr) status = Copy(context, context->outputs[0].data, scratch, bytes);
  return gcap_status_join(status, gcap_scratch_free(run.scratch, scratch));
}

void CountExecution(void* control) { ++static_cast<NodeControl*>(control)->executions; }

gcap_status_t Shape(const gcap_kernel_context_t* context, std::vector<int64_t>* sizes) {
  const gcap_tensor_t& x = context->inputs[0];
  sizes->assign(x.shape, x.shape + x.rank);
  return GCAP_CUDA(cudaMemcpyAsync(context->outputs[0].data, sizes->data(), sizes->size() * sizeof(int64_t),
                                   cudaMemcpyHostToDevice, gcap_stream_handle(context->resources.stream)));
}

bool IsDue(When when) {
  if (when == When::kAlways) return true;
  return when == (gcap_thread_is_capturing() ? When::kInCapture : When::kOutsideCapture);
}

gcap_status_t Misbehave(const std::string& op, const gcap_kernel_context_t* context) {
  if (op == "Fail") return GCAP_STATUS(GCAP_UNAVAILABLE, "the kernel was told to fail");
  if (op == "Alloc") {
    void* memory = nullptr;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&memory, 256)));
    return GCAP_CUDA(cudaFree(memory));
  }
  // A copy to nowhere is refused, and the capture that it is missing from stays valid.
  gcap_status_ignore(Copy(context, nullptr, context->inputs[0].data, sizeof(float)));  // this is the misbehaviour
  return nullptr;
}

gcap_status_t ComputeOp(Kernel& kernel, const gcap_kernel_context_t* context) {
  if (kernel.op == "Shape") return Shape(context, &kernel.sizes);
  if (kernel.op == "Rotate") return Rotate(context);
  if (kernel.op == "Join") return Join(context);
  if (kernel.op == "Fill") return Fill(context, kernel.control->fill);
  if (kernel.op == "Bounce") return Bounce(context, kernel.control);
  GCAP_RETURN_IF_ERROR(CopyInputToOutput(context));
  if (kernel.op == "Count" && kernel.control->counts) {
    return GCAP_CUDA(cudaLaunchHostFunc(gcap_stream_handle(context->resources.stream), CountExecution, kernel.control));
  }
  if (kernel.op == "Leave") kernel.ep->config().leave();
  const bool misbehaves = kernel.control != nullptr && IsDue(kernel.control->misbehave);
  return misbehaves ? Misbehave(kernel.op, context) : nullptr;
}

}  // namespace

// The members of the EP's table.
struct TestEpOps {
  static TestEp* Ep(const void* self) { return static_cast<TestEp*>(const_cast<void*>(self)); }

  static bool Supports(void* self, const gcap_model_t*, const gcap_node_t* node) {
    return Ep(self)->config_.ops.count(node->op_type) > 0;
  }

  static gcap_status_t Compute(void* self, const gcap_kernel_context_t* context) {
    Kernel& kernel = *static_cast<Kernel*>(self);
    EXPECT_EQ(context->ep, kernel.ep->get());
    if (kernel.ep->on_compute != nullptr) kernel.ep->on_compute(kernel.op.c_str(), context);
    const int now = ++kernel.ep->computes_now_;
    int most = kernel.ep->most_computes_at_once_;
    while (most < now && !kernel.ep->most_computes_at_once_.compare_exchange_weak(most, now)) {
    }
    if (kernel.control != nullptr) {
      ++kernel.control->computes;
      std::this_thread::sleep_for(std::chrono::microseconds(kernel.control->pause_us));
    }
    gcap_status_t status = ComputeOp(kernel, context);
    --kernel.ep->computes_now_;
    return status;
  }

  static void DestroyKernel(void* self) {
    Kernel* kernel = static_cast<Kernel*>(self);
    --kernel->ep->live_kernels_;
    delete kernel;
  }

  static gcap_status_t CreateKernel(void* self, const gcap_model_t*, const gcap_node_t* node,
                                    gcap_kernel_t* out_kernel) {
    TestEp* ep = Ep(self);
    if (node->op_type == ep->config_.broken_op) return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no plan for %s", node->op_type);
    ++ep->live_kernels_;
    void* attributes = const_cast<void*>(node->attributes);
    out_kernel->self = new Kernel{ep, node->op_type, static_cast<NodeControl*>(attributes), {}};
    out_kernel->compute = Compute;
    out_kernel->destroy = DestroyKernel;
    const auto* control = static_cast<const NodeControl*>(node->attributes);
    out_kernel->not_capturable = control != nullptr && !control->capturable;
    return nullptr;
  }

  static gcap_input_place_t InputPlace(void*, const gcap_model_t*, const gcap_node_t* node, int input) {
    if (node->op_type == std::string("Shape")) return GCAP_INPUT_SHAPE_ONLY;
    const bool on_host = node->op_type == std::string("Reshape") && input == 1;
    return on_host ? GCAP_INPUT_IN_HOST_MEMORY : GCAP_INPUT_IN_EP_MEMORY;
  }

  static gcap_status_t InferShapes(void*, const gcap_model_t*, const gcap_node_t* node, const gcap_tensor_t* inputs,
                                   gcap_tensor_t* outputs) {
    if (node->num_inputs == 0) return nullptr;
    const bool reshapes = node->op_type == std::string("Reshape");
    if (reshapes && inputs[1].data == nullptr) return nullptr;
    const int64_t* sizes = reshapes ? static_cast<const int64_t*>(inputs[1].data) : inputs[0].shape;
    for (int i = 0; i < outputs[0].rank; ++i) outputs[0].shape[i] = sizes[i];
    return nullptr;
  }

  static gcap_graph_node_policy_t Policy(const void* self) { return Ep(self)->config_.policy; }

  static gcap_runtime_t* RuntimeOf(const void* self) { return Ep(self)->runtime_; }

  struct LateCopy {
    void* to;
    const void* from;
    size_t bytes;
  };

  // From the host by way of pinned memory, which a host function fills. One thread at a time.
  static gcap_status_t CopyLate(TestEp* ep, const gcap_copy_t& copy) {
    if (copy.src_memory.kind != GCAP_MEMORY_HOST || copy.stream == nullptr) {
      return gcap_runtime_copy_tensors(ep->runtime_, &copy, 1);
    }
    constexpr size_t kBytes = 4096;
    void*& staged = ep->staged_[ep->num_staged_++ % 64];
    if (staged == nullptr) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocHost(&staged, kBytes)));
    const LateCopy late = {static_cast<char*>(staged) + sizeof(LateCopy), copy.src->data, gcap_tensor_bytes(copy.src)};
    EXPECT_LE(sizeof(LateCopy) + late.bytes, kBytes);
    *static_cast<LateCopy*>(staged) = late;
    const cudaStream_t stream = gcap_stream_handle(copy.stream);
    const auto fill = [](void* self) {
      const LateCopy* self_copy = static_cast<LateCopy*>(self);
      std::memcpy(self_copy->to, self_copy->from, self_copy->bytes);
    };
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(stream, fill, staged)));
    return GCAP_CUDA(cudaMemcpyAsync(copy.dst->data, late.to, late.bytes, cudaMemcpyHostToDevice, stream));
  }

  // The table of a runtime around that of the EP.
  static gcap_runtime_ops_t OuterTable(TestEp* ep) {
    const gcap_runtime_ops_t runs = ForwardingOpsBy<RuntimeOf>::Runs(ep);
    gcap_runtime_ops_t ops = ep->config_.counts_runs ? runs : ForwardingOpsBy<RuntimeOf>::Least(ep);
    ops.is_concurrent_run_supported = runs.is_concurrent_run_supported;
    if (!ep->config_.counts_runs) return ops;
    if (ep->config_.copies_late) {
      ops.can_copy = [](const void* self, gcap_memory_t src, gcap_memory_t dst) {
        const bool is_to_host = dst.kind == GCAP_MEMORY_HOST || dst.kind == GCAP_MEMORY_PINNED;
        if (is_to_host && !Ep(self)->config_.copies_to_host) return false;
        return gcap_runtime_can_copy(RuntimeOf(self), src, dst);
      };
      ops.copy_tensors = [](void* self, const gcap_copy_t* copies, size_t count) {
        for (size_t i = 0; i < count; ++i) GCAP_RETURN_IF_ERROR(CopyLate(Ep(self), copies[i]));
        return gcap_status_t(nullptr);
      };
    }
    ops.begin_run = [](void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind, void** out_addresses) {
      ++Ep(self)->begun_runs_;
      return gcap_runtime_begin_run(RuntimeOf(self), run, out_kind, out_addresses);
    };
    ops.end_run = [](void* self, const gcap_run_t* run, gcap_status_t run_status) {
      ++Ep(self)->ended_runs_;
      return gcap_runtime_end_run(RuntimeOf(self), run, run_status);
    };
    return ops;
  }

  static gcap_ep_ops_t Table(TestEp* ep) {
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(gcap_ep_ops_t);
    ops.name = ep->config_.name.c_str();
    ops.self = ep;
    ops.supports = Supports;
    ops.create_kernel = CreateKernel;
    ops.input_place = InputPlace;
    ops.infer_shapes = InferShapes;
    ops.graph_capture_node_assignment_policy = Policy;
    ops.runtime = ep->outer_ != nullptr ? ep->outer_ : ep->runtime_;
    ops.destroy = [](void*) { return gcap_status_t(nullptr); };  // TestEp ends the runtime
    return ops;
  }
};

gcap_status_t TestEp::Create(const gcap_options_t& options, const TestEpConfig& config, std::unique_ptr<TestEp>* out) {
  std::unique_ptr<TestEp> ep(new TestEp(config));
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(&options, &ep->runtime_));
  if (!config.has_run_members || config.counts_runs) {
    const gcap_runtime_ops_t outer = TestEpOps::OuterTable(ep.get());
    GCAP_RETURN_IF_ERROR(gcap_runtime_create_from(&outer, &ep->outer_));
  }
  const gcap_ep_ops_t ops = TestEpOps::Table(ep.get());
  GCAP_RETURN_IF_ERROR(gcap_ep_create(&ops, &ep->ep_));
  *out = std::move(ep);
  return nullptr;
}

gcap_status_t TestEp::End() {
  gcap_status_t status = gcap_ep_destroy(ep_);
  ep_ = nullptr;
  status = gcap_status_join(status, gcap_runtime_destroy(outer_));
  outer_ = nullptr;
  status = gcap_status_join(status, gcap_runtime_destroy(runtime_));
  runtime_ = nullptr;
  for (void*& staged : staged_) {
    if (staged != nullptr) {
      EXPECT_EQ(cudaFreeHost(staged), cudaSuccess);
    }
    staged = nullptr;
  }
  return status;
}

TestEp::~TestEp() {
  GCAP_EXPECT_OK(End());
  EXPECT_EQ(live_kernels_, 0);
}

gcap_graph_info_t TestEp::Info(int graph_id) const { return GraphInfo(runtime_, graph_id); }

gcap_options_t GraphOptions(unsigned min_runs) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = min_runs;
  return options;
}

}  // namespace testing
}  // namespace gcap
