// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Faulty operations, as miniatures of what published threads report: each is found, as what it is. A thread is named
// where the operation does what that thread tells.

#include "test/check/operation.h"

namespace gcap {
namespace testing {
namespace {

struct Faulty {
  const char* name;
  gcap_check_kind_t kind;
  const char* text;  // in the sentence
  void (*make)(Operation* operation);
};

// The weight is an argument that the host computes anew for each step: paiml/aprender#2030.
void MakeStaleScalar(Operation* o) {
  auto weight = std::make_shared<int32_t>(0);
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->HostInput("weight", weight.get(), GCAP_DTYPE_I32);
  o->work = [=](const gcap_run_resources_t* r) { return Add(x, y, static_cast<uint64_t>(*weight), r->cuda_stream); };
}

// A wait for the stream between two kernels, for a time or a check: flashinfer-ai/flashinfer#4690.
void MakeWaitInside(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(r->cuda_stream)));
    return Add(y, y, 1, r->cuda_stream);
  };
}

// A sum that is added to what the output had: a first call looks right where memory was zero.
void MakeAccumulates(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  float* sum = o->Own()->floats();
  o->work = [=](const gcap_run_resources_t* r) {
    GCAP_RETURN_IF_ERROR(Add(sum, sum, 1, r->cuda_stream));
    GCAP_RETURN_IF_ERROR(Relu(x, y, r->cuda_stream));
    return Copy(y, sum, r->cuda_stream, sizeof(float));
  };
}

const Faulty kFaulty[] = {
    {"StaleScalar", GCAP_CHECK_FROZEN, "frozen value", MakeStaleScalar},
    {"WaitInside", GCAP_CHECK_NOT_CAPTURED, "cudaStreamSynchronize", MakeWaitInside},
    {"Accumulates", GCAP_CHECK_NOT_REPEATABLE, "'y'", MakeAccumulates},
};

class FaultyOperation : public DeviceTest, public ::testing::WithParamInterface<Faulty> {};

TEST_P(FaultyOperation, IsFound) {
  const Faulty& faulty = GetParam();
  Operation operation(faulty.name);
  faulty.make(&operation);
  gcap_check_report_t report;
  gcap_check_report_init(&report);
  GCAP_ASSERT_OK(operation.Run(&report));
  const std::string text = TextOf(operation.check, report);
  EXPECT_TRUE(report.is_done);
  ASSERT_GE(report.num_findings, 1u) << text;
  EXPECT_EQ(report.findings[0].kind, faulty.kind) << text;
  EXPECT_NE(std::string(report.findings[0].sentence).find(faulty.text), std::string::npos) << text;
  EXPECT_STRNE(report.findings[0].remedy, "");
}

INSTANTIATE_TEST_SUITE_P(Published, FaultyOperation, ::testing::ValuesIn(kFaulty),
                         [](const ::testing::TestParamInfo<Faulty>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace testing
}  // namespace gcap
