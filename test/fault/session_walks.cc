// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/kit/session.h, gcap/kit/io_binding.h, gcap/kit/check.h, gcap/options.h, gcap/kit/run_options.h,
// gcap/fields.h and gcap/buckets.h.

#include "gcap/buckets.h"
#include "gcap/fields.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/check.h"
#include "gcap/options.h"
#include "test/fault/session_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = SessionScene;

void Warm(S* s) { s->Run(1); }
void Captured(S* s) { s->Run(2); }

void Unbound(S* s) { s->CreateBinding(); }
void Bound(S* s) { s->Bind(0); }
void BoundWarm(S* s) { s->Bind(1); }
void BoundCaptured(S* s) { s->Bind(2); }

void EpAlone(S* s) {
  s->rig = std::make_unique<ChainRig>();
  GCAP_EXPECT_OK(TestEp::Create(GraphOptions(1), {}, &s->rig->ep));
}

gcap_status_t Run(S* s) { return s->rig->Run(s->x, s->y, S::kId, /*synchronize=*/true); }

gcap_status_t ChooseBuckets(S*) {
  const gcap_size_count_t size = {1, 1};
  size_t bucket = 0;
  gcap_buckets_choice_t choice;
  gcap_buckets_choice_init(&choice);
  return gcap_buckets_choose(&size, 1, nullptr, 1, &bucket, &choice);
}

gcap_status_t Plan(S* s) {
  const gcap_tensor_t input = Tensor(s->x.get(), {2, 3}), output = Tensor(s->y.get(), {2, 3});
  const gcap_run_options_t options = RunOptions(S::kId, /*synchronize=*/true);
  const gcap_warm_up_run_t run = {&options, &input, &output};
  return gcap_session_plan(s->rig->session, &run, 1, &s->plan);
}

gcap_status_t RunBound(S* s) {
  gcap_status_t status = s->RunBound();
  if (status == nullptr) {
    EXPECT_EQ(s->host_y, ChainOf(s->host_x));
  }
  return status;
}

gcap_status_t WarmUpBound(S* s) {
  const gcap_run_options_t options = RunOptions(S::kBoundId, /*synchronize=*/true);
  return gcap_session_warm_up_bound(s->rig->session, &options, s->binding);
}

// A check, which captures on a stream of its own.
struct CheckScene : SessionScene {
  cudaStream_t CapturingStream() override { return stream; }
  cudaStream_t stream = nullptr;
};

// An operation that copies x to y. What fails in one of its eager runs, or in its capture, is a finding: see
// test/check:check_sim_test.
gcap_status_t CopyX(void* scene, const gcap_run_resources_t* resources) {
  CheckScene* s = static_cast<CheckScene*>(scene);
  s->stream = resources->cuda_stream;
  return GCAP_CUDA(
      cudaMemcpyAsync(s->y.get(), s->x.get(), s->x.Bytes(), cudaMemcpyDeviceToDevice, resources->cuda_stream));
}
gcap_status_t Check(CheckScene* s) {
  gcap_check_buffer_t input = {}, output = {};
  input.address = s->x.get();
  output.address = s->y.get();
  input.bytes = output.bytes = s->x.Bytes();
  gcap_check_t check;
  gcap_check_init(&check);
  check.work = CopyX;
  check.user = s;
  check.inputs = &input;
  check.outputs = &output;
  check.num_inputs = check.num_outputs = 1;
  gcap_check_report_t report;
  gcap_check_report_init(&report);
  return gcap_check_capturable(&check, &report);
}

// Options and pairs of texts.
const char *const kKey = "enable_cuda_graph", *const kKeyOfEp = "ep.mine.enable_cuda_graph", *const kOne = "1";
const char* const kRunKey = "gpu_graph_id";
void Defaults(S* s) { gcap_options_init(&s->options); }

}  // namespace

std::vector<Walk> SessionWalks() {
  return {
      WalkOf<S>("gcap_session_create", ACT(s->rig->CreateSession()), EpAlone),
      WalkOf<S>("gcap_session_destroy", ACT(s->DestroySession()), Captured)
          .RecoversFrom({"cudaThreadExchangeStreamCaptureMode"}),
      WalkOf<S>("gcap_session_run", Run, nullptr, "eager"),
      WalkOf<S>("gcap_session_run", Run, Warm, "capture").Recovers(),
      WalkOf<S>("gcap_session_run", Run, Captured, "replay"),
      WalkOf<S>("gcap_session_warm_up", ACT(s->rig->WarmUp(s->x, s->y, S::kId))).Recovers(),
      WalkOf<S>("gcap_session_plan", Plan, Warm),
      WalkOf<S>(CALL(gcap_session_release_captured_graph, s->rig->session, S::kId), Captured),
      WalkOf<S>(CALL(gcap_io_binding_create, s->rig->session, &s->binding)).MakesNoCall(),
      WalkOf<S>("gcap_io_binding_destroy", ACT(s->DestroyBinding()), Bound).Recovers(),
      WalkOf<S>("gcap_io_binding_bind_input", ACT(s->BindX()), Unbound),
      WalkOf<S>("gcap_io_binding_bind_output", ACT(s->BindY()), Unbound),
      WalkOf<S>(CALL(gcap_io_binding_clear, s->binding), Bound).Recovers(),
      WalkOf<S>(CALL(gcap_io_binding_synchronize, s->binding), Bound),
      WalkOf<S>("gcap_session_run_bound", RunBound, Bound, "eager"),
      WalkOf<S>("gcap_session_run_bound", RunBound, BoundWarm, "capture").Recovers(),
      WalkOf<S>("gcap_session_run_bound", RunBound, BoundCaptured, "replay"),
      WalkOf<S>("gcap_session_warm_up_bound", WarmUpBound, Bound).Recovers(),
      WalkOf<CheckScene>("gcap_check_capturable", Check).Recovers().WithoutALog(),
      WalkOf<S>(CALL(gcap_options_parse, &s->options, &kKey, &kOne, 1), Defaults).MakesNoCall(),
      WalkOf<S>(CALL(gcap_options_parse_for_ep, &s->options, "mine", &kKeyOfEp, &kOne, 1), Defaults).MakesNoCall(),
      WalkOf<S>(CALL(gcap_options_get, &s->options, kKey, s->text, sizeof(s->text)), Defaults).MakesNoCall(),
      WalkOf<S>(CALL(gcap_run_options_parse, &s->run_options, &kRunKey, &kOne, 1),
                [](S* s) { gcap_run_options_init(&s->run_options); })
          .MakesNoCall(),
      WalkOf<S>(CALL(gcap_struct_find_field, "gcap_run_t", "id", kOut, kOut)).MakesNoCall(),
      WalkOf<S>("gcap_buckets_choose", ChooseBuckets).MakesNoCall(),
      WalkOf<S>(CALL(gcap_struct_init, "gcap_run_t", &s->run, sizeof(s->run))).MakesNoCall(),
  };
}

}  // namespace testing
}  // namespace gcap
