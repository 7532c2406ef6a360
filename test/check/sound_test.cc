// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sound operations: no check of them has a finding.

#include "test/check/operation.h"

namespace gcap {
namespace testing {
namespace {

struct Sound {
  const char* name;
  void (*make)(Operation* operation);
};

void MakeRelu(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) { return Relu(x, y, r->cuda_stream); };
}

void MakeWithScratch(Operation* o) {
  const float* x = o->Input("x");
  float* y = o->Output("y");
  o->work = [=](const gcap_run_resources_t* r) {
    void* temporary = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, &temporary));
    gcap_status_t status = Relu(x, static_cast<float*>(temporary), r->cuda_stream);
    if (status == nullptr) status = Add(static_cast<float*>(temporary), y, 3, r->cuda_stream);
    return gcap_status_join(status, gcap_scratch_free(r->scratch, temporary));
  };
}

void MakeInPlace(Operation* o) {
  float* y = o->InPlace("y");
  o->work = [=](const gcap_run_resources_t* r) { return Add(y, y, 1, r->cuda_stream); };
}

const Sound kSound[] = {
    {"Relu", MakeRelu},
    {"WithScratch", MakeWithScratch},
    {"InPlace", MakeInPlace},
};

class SoundOperation : public DeviceTest, public ::testing::WithParamInterface<Sound> {};

TEST_P(SoundOperation, HasNoFinding) {
  Operation operation(GetParam().name);
  GetParam().make(&operation);
  gcap_check_report_t report;
  gcap_check_report_init(&report);
  GCAP_ASSERT_OK(operation.Run(&report));
  EXPECT_TRUE(report.is_done);
  EXPECT_EQ(report.num_findings, 0u) << TextOf(operation.check, report);
  EXPECT_GE(report.replays, 7u);
  EXPECT_GE(report.nodes, 1u);
}

INSTANTIATE_TEST_SUITE_P(Kernels, SoundOperation, ::testing::ValuesIn(kSound),
                         [](const ::testing::TestParamInfo<Sound>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace testing
}  // namespace gcap
