// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/graph.h.

#include "test/fault/stream_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = StreamScene;

void Captured(S* s) { s->CaptureRun(S::kId); }

void TwoCaptured(S* s) {
  s->CaptureRun(S::kId);
  s->CaptureRun(S::kId + 1);
}

void OpenRun(S* s) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(gcap_graph_manager_begin_run(s->manager, S::kId, s->Handle(), &kind));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}

void OpenEagerRun(S* s) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(gcap_graph_manager_begin_run(s->manager, GCAP_GRAPH_ID_NONE, s->Handle(), &kind));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}

gcap_status_t Begin(S* s, int id) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  return gcap_graph_manager_begin_run(s->manager, id, s->Handle(), &kind);
}

void EndRun(S* s) { GCAP_EXPECT_OK(gcap_graph_manager_end_run(s->manager, nullptr, true)); }

gcap_status_t Destroy(S* s) {
  gcap_graph_manager_t* manager = s->manager;
  s->manager = nullptr;
  return gcap_graph_manager_destroy(manager);
}

}  // namespace

std::vector<Walk> GraphWalks() {
  std::vector<Walk> walks;
  walks.push_back(StreamWalk(
                      "gcap_graph_manager_create", "",
                      [](S* s) {
                        GCAP_EXPECT_OK(gcap_graph_manager_destroy(s->manager));
                        s->manager = nullptr;
                      },
                      [](S* s) { return s->CreateManager(); })
                      .MakesNoCall());
  walks.push_back(StreamWalk("gcap_graph_manager_destroy", "empty", nullptr, Destroy).MakesNoCall());
  walks.push_back(StreamWalk("gcap_graph_manager_destroy", "with graphs", TwoCaptured, Destroy));
  walks.push_back(StreamWalk("gcap_graph_manager_begin_run", "capture", nullptr, [](S* s) { return Begin(s, S::kId); })
                      .RecoversFrom(CallsOfACapture())
                      .Then<S>(EndRun));
  walks.push_back(
      StreamWalk("gcap_graph_manager_begin_run", "eager", nullptr, [](S* s) { return Begin(s, GCAP_GRAPH_ID_NONE); })
          .MakesNoCall()
          .Then<S>(EndRun));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "capture", OpenRun,
                             [](S* s) { return gcap_graph_manager_end_run(s->manager, nullptr, true); }));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "capture, issued", OpenRun,
                             [](S* s) { return gcap_graph_manager_end_run(s->manager, nullptr, false); }));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "eager", OpenEagerRun,
                             [](S* s) { return gcap_graph_manager_end_run(s->manager, nullptr, true); }));
  walks.push_back(StreamWalk("gcap_graph_manager_replay", "synchronised", Captured,
                             [](S* s) { return gcap_graph_manager_replay(s->manager, S::kId, true); }));
  walks.push_back(StreamWalk("gcap_graph_manager_replay", "issued", Captured,
                             [](S* s) { return gcap_graph_manager_replay(s->manager, S::kId, false); }));
  walks.push_back(StreamWalk("gcap_graph_manager_try_replay", "", Captured, [](S* s) {
    bool replayed = false;
    return gcap_graph_manager_try_replay(s->manager, S::kId, true, &replayed);
  }));
  walks.push_back(StreamWalk("gcap_graph_manager_release", "", Captured,
                             [](S* s) { return gcap_graph_manager_release(s->manager, S::kId); }));
  walks.push_back(StreamWalk("gcap_graph_manager_release_all", "", TwoCaptured,
                             [](S* s) { return gcap_graph_manager_release_all(s->manager); }));
  return walks;
}

}  // namespace testing
}  // namespace gcap
