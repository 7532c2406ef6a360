// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each function of ONNX Runtime's that may fail, and that the plugin calls, fails: while the library is registered,
// while a session is made, while it runs and copies. The step succeeds with the right output, or has a message; the
// next one without the failure succeeds, and nothing leaks.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

struct Slot {
  const char* name;
  bool of_ep_api;
  size_t offset;
};

#define API(name) \
  { #name, false, offsetof(gcap_ort_api_t, name) }
#define EP_API(name) \
  { #name, true, offsetof(gcap_ort_ep_api_t, name) }

// Not here: KernelInfoGetAttribute_*, whose failure is how ONNX Runtime says that there is no such attribute.
const Slot kSlots[] = {
    API(GetTensorMutableData),
    API(CastTypeInfoToTensorInfo),
    API(GetTensorElementType),
    API(GetDimensionsCount),
    API(GetDimensions),
    API(GetAllocatorWithDefaultOptions),
    API(KernelContext_GetInput),
    API(KernelContext_GetOutput),
    API(KernelInfo_GetInputCount),
    API(KernelInfo_GetOutputCount),
    API(KernelInfo_GetInputTypeInfo),
    API(KernelInfo_GetOutputTypeInfo),
    API(KernelInfo_GetNodeName),
    API(KernelInfoGetConstantInput_tensor),
    API(Logger_LogMessage),
    API(Logger_GetLoggingSeverityLevel),
    API(ReadOpAttr),
    API(GetValueInfoName),
    API(GetValueInfoTypeInfo),
    API(GetTensorSizeInBytes),
    API(CreateMemoryInfo_V2),
    API(ValueInfo_GetInitializerValue),
    API(ValueInfo_IsConstantInitializer),
    API(Graph_GetNumNodes),
    API(Graph_GetNodes),
    API(Node_GetName),
    API(Node_GetOperatorType),
    API(Node_GetDomain),
    API(Node_GetSinceVersion),
    API(Node_GetNumInputs),
    API(Node_GetInputs),
    API(Node_GetNumOutputs),
    API(Node_GetOutputs),
    API(Node_GetNumAttributes),
    API(Node_GetAttributes),
    API(OpAttr_GetTensorAttributeAsOrtValue),
    API(OpAttr_GetType),
    API(OpAttr_GetName),
    API(GetTensorData),
    API(GetSessionOptionsConfigEntries),
    API(GetTensorElementTypeAndShapeDataReference),
    EP_API(CreateEpDevice),
    EP_API(EpGraphSupportInfo_AddSingleNode),
    EP_API(EpDevice_AddAllocatorInfo),
    EP_API(CreateHardwareDevice),
    EP_API(CreateKernelRegistry),
    EP_API(KernelRegistry_AddKernel),
    EP_API(CreateKernelDefBuilder),
    EP_API(KernelDefBuilder_SetOperatorType),
    EP_API(KernelDefBuilder_SetDomain),
    EP_API(KernelDefBuilder_SetSinceVersion),
    EP_API(KernelDefBuilder_SetExecutionProvider),
    EP_API(KernelDefBuilder_SetInputMemType),
    EP_API(KernelDefBuilder_SetOutputMemType),
    EP_API(KernelDefBuilder_Build),
    EP_API(EpGraphSupportInfo_LookUpKernel),
    EP_API(KernelInfo_GetEp),
};

// c = softmax(reshape(a, (1, -1))) + b + zeros of b's shape: attributes, one of which is a tensor, inputs on the host,
// a constant.
std::string Model() {
  return OnnxModel()
      .Node("Reshape", "reshape", {"a", "shape"}, {"r"})
      .Int("axis", -1)
      .Node("Softmax", "softmax", {"r"}, {"s"})
      .Node("Shape", "shape_of_b", {"b"}, {"sizes"})
      .Tensor("value", std::vector<float>{0})
      .Node("ConstantOfShape", "zeros", {"sizes"}, {"z"})
      .Node("Sum", "sum", {"s", "b", "z"}, {"c"})
      .Constant("shape", {2}, std::vector<int64_t>{1, -1})
      .Input("a", {2})
      .Input("b", {kAnySize, 2})
      .Output("c", {kAnySize, 2})
      .Bytes();
}

class HostFaultTest : public OrtTest {
 protected:
  void Break(const Slot& slot) {
    Find<test_plugin_break_slot_t>("test_plugin_break_slot")(slot.of_ep_api, slot.offset / sizeof(void*));
  }
  void Restore() { Find<test_plugin_restore_slots_t>("test_plugin_restore_slots")(); }

  std::string Create(std::unique_ptr<OrtSession>* session) {
    session->reset(new OrtSession(ort_, env(), device(), Model(), {{"enable_cuda_graph", "1"}}));
    return (*session)->error();
  }
};

TEST_F(HostFaultTest, WhileASessionIsMadeAndRuns) {
  DeviceTensor a(ort_, env(), device(), {2}, {3, 3}), b(ort_, env(), device(), {1, 2}, {1, 2}),
      c(ort_, env(), device(), {1, 2}, {});
  const auto bind = [&](OrtSession* session) {
    session->BindInput("a", a);
    session->BindInput("b", b);
    session->BindOutput("c", c);
  };
  const size_t live = Live();
  int failed_creations = 0, failed_runs = 0;
  for (const Slot& slot : kSlots) {
    SCOPED_TRACE(slot.name);
    std::unique_ptr<OrtSession> session;
    Break(slot);
    const std::string created = Create(&session);
    Restore();
    failed_creations += !created.empty();
    if (!created.empty()) {
      EXPECT_EQ(Create(&session), "") << "without the failure, after " << created;
    }
    bind(session.get());
    Break(slot);
    const std::string ran = session->Run();
    Restore();
    failed_runs += !ran.empty();
    if (!ran.empty()) {
      EXPECT_EQ(session->Run(), "") << "without the failure, after " << ran;
    }
    EXPECT_EQ(c.Get(), (Floats{1.5f, 2.5f}));
    EXPECT_EQ(session->Run(), "");
    EXPECT_EQ(c.Get(), (Floats{1.5f, 2.5f}));
  }
  EXPECT_LE(Live(), live);
  EXPECT_GT(failed_creations, 20);
  EXPECT_GT(failed_runs, 2);
}

TEST_F(HostFaultTest, WhileTensorsAreCopied) {
  DeviceTensor from(ort_, env(), device(), {2}, {3, 4}), to(ort_, env(), device(), {2}, {0, 0});
  gcap_ort_value_t *src = from.value(), *dst = to.value();
  for (const Slot& slot : kSlots) {
    SCOPED_TRACE(slot.name);
    to.Set({0, 0});
    Break(slot);
    const std::string error = ort_->Take(api().CopyTensors(env(), &src, &dst, nullptr, 1));
    Restore();
    EXPECT_EQ(to.Get(), error.empty() ? (Floats{3, 4}) : (Floats{0, 0})) << error;
  }
}

TEST_F(HostFaultTest, WhileTheLibraryIsRegistered) {
  const std::string path = PluginPath();
  for (const Slot& slot : kSlots) {
    SCOPED_TRACE(slot.name);
    const size_t live = Live();
    Ok(api().UnregisterExecutionProviderLibrary(env(), kRegistration));
    Break(slot);
    const std::string error = ort_->Take(api().RegisterExecutionProviderLibrary(env(), kRegistration, path.c_str()));
    Restore();
    if (!error.empty()) {
      EXPECT_NE(error.find("the test makes ONNX Runtime fail"), std::string::npos) << error;
      Ok(api().RegisterExecutionProviderLibrary(env(), kRegistration, path.c_str()));
    }
    EXPECT_LE(Live(), live);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
