// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/kit/session.h, gcap/kit/io_binding.h, gcap/options.h, gcap/kit/run_options.h and gcap/fields.h.

#include "gcap/fields.h"
#include "gcap/graph_plan.h"
#include "gcap/options.h"
#include "test/fault/session_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = SessionScene;

void Cold(S*) {}
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

// Options and pairs of texts.
const char *const kKey = "enable_cuda_graph", *const kKeyOfEp = "ep.mine.enable_cuda_graph", *const kOne = "1";
const char* const kRunKey = "gpu_graph_id";
void Defaults(S* s) { gcap_options_init(&s->options); }

}  // namespace

std::vector<Walk> SessionWalks() {
  return {
      SessionWalk("gcap_session_create", "", EpAlone, ACT(s->rig->CreateSession())),
      SessionWalk("gcap_session_destroy", "", Captured, ACT(s->DestroySession()))
          .RecoversFrom({"cudaThreadExchangeStreamCaptureMode"}),
      SessionWalk("gcap_session_run", "eager", Cold, Run),
      SessionWalk("gcap_session_run", "capture", Warm, Run).RecoversFrom({"*"}),
      SessionWalk("gcap_session_run", "replay", Captured, Run),
      SessionWalk("gcap_session_warm_up", "", Cold, ACT(s->rig->WarmUp(s->x, s->y, S::kId))).RecoversFrom({"*"}),
      SessionWalk("gcap_session_plan", "", Warm, Plan),
      SessionWalk("gcap_session_release_captured_graph", "", Captured,
                  ACT(gcap_session_release_captured_graph(s->rig->session, S::kId))),
      SessionWalk("gcap_io_binding_create", "", Cold, ACT(gcap_io_binding_create(s->rig->session, &s->binding)))
          .MakesNoCall(),
      SessionWalk("gcap_io_binding_destroy", "", Bound, ACT(s->DestroyBinding())).RecoversFrom({"*"}),
      SessionWalk("gcap_io_binding_bind_input", "", Unbound, ACT(s->BindX())),
      SessionWalk("gcap_io_binding_bind_output", "", Unbound, ACT(s->BindY())),
      SessionWalk("gcap_io_binding_clear_inputs", "", Bound, ACT(gcap_io_binding_clear_inputs(s->binding)))
          .RecoversFrom({"*"}),
      SessionWalk("gcap_io_binding_clear_outputs", "", Bound, ACT(gcap_io_binding_clear_outputs(s->binding)))
          .RecoversFrom({"*"}),
      SessionWalk("gcap_io_binding_synchronize_inputs", "", Bound, ACT(gcap_io_binding_synchronize_inputs(s->binding))),
      SessionWalk("gcap_io_binding_synchronize_outputs", "", Bound,
                  ACT(gcap_io_binding_synchronize_outputs(s->binding))),
      SessionWalk("gcap_session_run_bound", "eager", Bound, RunBound),
      SessionWalk("gcap_session_run_bound", "capture", BoundWarm, RunBound).RecoversFrom({"*"}),
      SessionWalk("gcap_session_run_bound", "replay", BoundCaptured, RunBound),
      SessionWalk("gcap_session_warm_up_bound", "", Bound, WarmUpBound).RecoversFrom({"*"}),
      SessionWalk("gcap_options_parse", "", Defaults, ACT(gcap_options_parse(&s->options, &kKey, &kOne, 1)))
          .MakesNoCall(),
      SessionWalk("gcap_options_parse_for_ep", "", Defaults,
                  ACT(gcap_options_parse_for_ep(&s->options, "mine", &kKeyOfEp, &kOne, 1)))
          .MakesNoCall(),
      SessionWalk("gcap_options_get", "", Defaults, ACT(gcap_options_get(&s->options, kKey, s->text, sizeof(s->text))))
          .MakesNoCall(),
      SessionWalk("gcap_options_check", "", Defaults, ACT(gcap_options_check(&s->options))).MakesNoCall(),
      SessionWalk(
          "gcap_run_options_parse", "", [](S* s) { gcap_run_options_init(&s->run_options); },
          ACT(gcap_run_options_parse(&s->run_options, &kRunKey, &kOne, 1)))
          .MakesNoCall(),
      SessionWalk("gcap_struct_find_field", "", Cold,
                  ACT(gcap_struct_find_field("gcap_run_t", "id", &s->offset, &s->bytes)))
          .MakesNoCall(),
      SessionWalk("gcap_struct_init", "", Cold, ACT(gcap_struct_init("gcap_run_t", &s->run, sizeof(s->run))))
          .MakesNoCall(),
  };
}

}  // namespace testing
}  // namespace gcap
