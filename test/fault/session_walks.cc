// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/session.h, gcap/options.h and gcap/run_options.h.

#include "gcap/options.h"
#include "test/fault/session_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = SessionScene;

void Cold(S*) {}
void Warm(S* s) { s->Run(1); }
void Captured(S* s) { s->Run(2); }

gcap_status_t Run(S* s) { return s->rig->Run(s->x, s->y, S::kId, /*synchronize=*/true); }

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
  walks.push_back(SessionWalk("gcap_session_release_captured_graph", "", Captured,
                              [](S* s) { return gcap_session_release_captured_graph(s->rig->session, S::kId); }));
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
  walks.push_back(SessionWalk("gcap_options_check", "", nullptr, [](S*) {
                    const gcap_options_t options = GraphOptions(1);
                    return gcap_options_check(&options);
                  }).MakesNoCall());
  return walks;
}

}  // namespace testing
}  // namespace gcap
