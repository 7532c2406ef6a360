// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/kit/session.h, gcap/kit/io_binding.h, gcap/options.h and gcap/kit/run_options.h.

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

gcap_status_t Run(S* s) { return s->rig->Run(s->x, s->y, S::kId, /*synchronize=*/true); }

gcap_status_t Plan(S* s) {
  const gcap_tensor_t input = Tensor(s->x.get(), {2, 3}), output = Tensor(s->y.get(), {2, 3});
  const gcap_run_options_t options = RunOptions(S::kId, /*synchronize=*/true);
  const gcap_warm_up_run_t run = {&options, &input, &output};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  return gcap_session_plan(s->rig->session, &run, 1, &plan);
}

gcap_status_t RunBound(S* s) {
  gcap_status_t status = s->RunBound();
  if (status == nullptr) {
    EXPECT_EQ(s->host_y, ChainOf(s->host_x));
  }
  return status;
}

}  // namespace

std::vector<Walk> SessionWalks() {
  std::vector<Walk> walks;
  walks.push_back(SessionWalk(
      "gcap_session_create", "",
      [](S* s) {
        s->rig = std::make_unique<ChainRig>();
        GCAP_EXPECT_OK(TestEp::Create(GraphOptions(1), {}, &s->rig->ep));
      },
      [](S* s) { return s->rig->CreateSession(); }));
  walks.push_back(SessionWalk("gcap_session_destroy", "", Captured, [](S* s) {
                    return s->DestroySession();
                  }).RecoversFrom({"cudaThreadExchangeStreamCaptureMode"}));
  walks.push_back(SessionWalk("gcap_session_run", "eager", Cold, Run));
  walks.push_back(SessionWalk("gcap_session_run", "capture", Warm, Run).RecoversFrom({"*"}));
  walks.push_back(SessionWalk("gcap_session_run", "replay", Captured, Run));
  walks.push_back(SessionWalk("gcap_session_warm_up", "", Cold, [](S* s) {
                    return s->rig->WarmUp(s->x, s->y, S::kId);
                  }).RecoversFrom({"*"}));
  walks.push_back(SessionWalk("gcap_session_plan", "", Warm, Plan));
  walks.push_back(SessionWalk("gcap_session_release_captured_graph", "", Captured,
                              [](S* s) { return gcap_session_release_captured_graph(s->rig->session, S::kId); }));
  walks.push_back(SessionWalk("gcap_io_binding_create", "", Cold, [](S* s) {
                    return gcap_io_binding_create(s->rig->session, &s->binding);
                  }).MakesNoCall());
  walks.push_back(
      SessionWalk("gcap_io_binding_destroy", "", Bound, [](S* s) { return s->DestroyBinding(); }).RecoversFrom({"*"}));
  walks.push_back(SessionWalk("gcap_io_binding_bind_input", "", Unbound, [](S* s) { return s->BindX(); }));
  walks.push_back(SessionWalk("gcap_io_binding_bind_output", "", Unbound, [](S* s) { return s->BindY(); }));
  walks.push_back(SessionWalk("gcap_io_binding_clear", "", Bound, [](S* s) {
                    return gcap_io_binding_clear(s->binding);
                  }).RecoversFrom({"*"}));
  walks.push_back(SessionWalk("gcap_io_binding_synchronize", "", Bound,
                              [](S* s) { return gcap_io_binding_synchronize(s->binding); }));
  walks.push_back(SessionWalk("gcap_session_run_bound", "eager", Bound, RunBound));
  walks.push_back(SessionWalk("gcap_session_run_bound", "capture", BoundWarm, RunBound).RecoversFrom({"*"}));
  walks.push_back(SessionWalk("gcap_session_run_bound", "replay", BoundCaptured, RunBound));
  walks.push_back(SessionWalk("gcap_session_warm_up_bound", "", Bound, [](S* s) {
                    const gcap_run_options_t options = RunOptions(S::kBoundId, /*synchronize=*/true);
                    return gcap_session_warm_up_bound(s->rig->session, &options, s->binding);
                  }).RecoversFrom({"*"}));
  walks.push_back(SessionWalk("gcap_options_parse", "", nullptr, [](S*) {
                    gcap_options_t options;
                    gcap_options_init(&options);
                    const char* const key = "enable_cuda_graph";
                    const char* const value = "1";
                    return gcap_options_parse(&options, &key, &value, 1);
                  }).MakesNoCall());
  walks.push_back(SessionWalk("gcap_options_parse_for_ep", "", nullptr, [](S*) {
                    gcap_options_t options;
                    gcap_options_init(&options);
                    const char* const key = "ep.mine.enable_cuda_graph";
                    const char* const value = "1";
                    return gcap_options_parse_for_ep(&options, "mine", &key, &value, 1);
                  }).MakesNoCall());
  walks.push_back(SessionWalk("gcap_options_get", "", nullptr, [](S*) {
                    const gcap_options_t options = GraphOptions(1);
                    char value[8];
                    return gcap_options_get(&options, "enable_cuda_graph", value, sizeof(value));
                  }).MakesNoCall());
  walks.push_back(SessionWalk("gcap_run_options_parse", "", nullptr, [](S*) {
                    gcap_run_options_t options;
                    gcap_run_options_init(&options);
                    const char* const key = "gpu_graph_id";
                    const char* const value = "7";
                    return gcap_run_options_parse(&options, &key, &value, 1);
                  }).MakesNoCall());
  walks.push_back(SessionWalk("gcap_struct_find_field", "", nullptr, [](S*) {
                    size_t offset = 0, bytes = 0;
                    return gcap_struct_find_field("gcap_run_t", "id", &offset, &bytes);
                  }).MakesNoCall());
  walks.push_back(SessionWalk("gcap_struct_init", "", nullptr, [](S*) {
                    gcap_run_t run;
                    return gcap_struct_init("gcap_run_t", &run, sizeof(run));
                  }).MakesNoCall());
  walks.push_back(SessionWalk("gcap_options_check", "", nullptr, [](S*) {
                    const gcap_options_t options = GraphOptions(1);
                    return gcap_options_check(&options);
                  }).MakesNoCall());
  return walks;
}

}  // namespace testing
}  // namespace gcap
