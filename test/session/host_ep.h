// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host_ep.h: an EP that runs on the host, for sessions on several EPs. Its ops:
//   Shape   the sizes of x as i64; x is not read
//   Add     y = x + z, of i64
//   Negate  y = -x, of f32
// An open size is that of the first input.
#ifndef GCAP_TEST_SESSION_HOST_EP_H_
#define GCAP_TEST_SESSION_HOST_EP_H_

#include <atomic>
#include <set>
#include <string>

#include "gcap/kit/ep.h"
#include "gcap/kit/ep_ops.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

class HostEp {
 public:
  explicit HostEp(const std::set<std::string>& supported = {"Shape", "Add", "Negate"}) : supported_(supported) {
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.name = "host";
    ops.self = this;
    ops.runs_on_host = true;
    ops.supports_concurrent_runs = true;
    ops.supports = [](void* self, const gcap_model_t*, const gcap_node_t* node) {
      return static_cast<HostEp*>(self)->supported_.count(node->op_type) > 0;
    };
    ops.input_place = [](void*, const gcap_model_t*, const gcap_node_t* node, int) {
      return node->op_type == std::string("Shape") ? GCAP_INPUT_SHAPE_ONLY : GCAP_INPUT_IN_EP_MEMORY;
    };
    ops.infer_shapes = [](void*, const gcap_model_t*, const gcap_node_t*, const gcap_tensor_t* inputs,
                          gcap_tensor_t* outputs) {
      for (int i = 0; i < outputs[0].rank; ++i) outputs[0].shape[i] = inputs[0].shape[i];
      return gcap_status_t(nullptr);
    };
    ops.create_kernel = [](void* self, const gcap_model_t*, const gcap_node_t* node, gcap_kernel_t* out_kernel) {
      HostEp* ep = static_cast<HostEp*>(self);
      ++ep->live_kernels;
      out_kernel->self = new Kernel{ep, node->op_type};
      out_kernel->compute = Compute;
      out_kernel->destroy = [](void* kernel) {
        --static_cast<Kernel*>(kernel)->ep->live_kernels;
        delete static_cast<Kernel*>(kernel);
      };
      return gcap_status_t(nullptr);
    };
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep_));
  }
  ~HostEp() {
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));
    EXPECT_EQ(live_kernels, 0);
  }
  HostEp(const HostEp&) = delete;
  HostEp& operator=(const HostEp&) = delete;

  gcap_ep_t* get() const { return ep_; }

  std::atomic<int> computes{0};
  std::atomic<int> live_kernels{0};
  std::atomic<bool> fails{false};
  void (*leave)() = nullptr;  // what each compute calls; it need not return

 private:
  struct Kernel {
    HostEp* ep;
    std::string op;
  };

  static gcap_status_t Compute(void* self, const gcap_kernel_context_t* context) {
    const Kernel& kernel = *static_cast<Kernel*>(self);
    EXPECT_EQ(context->ep, kernel.ep->ep_);
    EXPECT_EQ(context->resources.stream, nullptr);
    EXPECT_EQ(context->resources.scratch, nullptr);
    EXPECT_EQ(context->resources.allocator, nullptr);
    ++kernel.ep->computes;
    if (kernel.ep->leave != nullptr) kernel.ep->leave();
    if (kernel.ep->fails) return GCAP_STATUS(GCAP_UNAVAILABLE, "the host's kernel was told to fail");
    const gcap_tensor_t* x = context->inputs;
    const gcap_tensor_t& y = context->outputs[0];
    for (int64_t i = 0; i < gcap_tensor_elements(&y); ++i) {
      if (kernel.op == "Shape") static_cast<int64_t*>(y.data)[i] = x->shape[i];
      if (kernel.op == "Negate") static_cast<float*>(y.data)[i] = -static_cast<float*>(x->data)[i];
      if (kernel.op == "Add") {
        static_cast<int64_t*>(y.data)[i] = static_cast<int64_t*>(x[0].data)[i] + static_cast<int64_t*>(x[1].data)[i];
      }
    }
    return nullptr;
  }

  const std::set<std::string> supported_;
  gcap_ep_t* ep_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SESSION_HOST_EP_H_
