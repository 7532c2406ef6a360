// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/graph.h.

#include "test/fault/stream_scene.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {
namespace {

using S = StreamScene;

const int64_t kShape[] = {2, 3};
const gcap_graph_binding_t kBinding = {"x", kShape, 2, kShape};

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

gcap_status_t Work(void* scene, cudaStream_t stream) {
  const cudaError_t error = static_cast<S*>(scene)->job.Issue(stream);
  return gcap_status_from_cuda(error, "cudaMemcpyAsync", __FILE__, __LINE__);
}

gcap_status_t Plan(S* s) {
  const gcap_graph_planned_run_t run = {S::kId, Work, s};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  return gcap_graph_manager_plan(s->manager, s->Handle(), &run, 1, &plan);
}

gcap_status_t RunWork(S* s) { return gcap_graph_manager_run(s->manager, S::kId, s->Handle(), Work, s, true); }

// A manager that keeps what it captures, and has captured a run that was signed.
void SignedCapture(S* s) {
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(s->manager));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.keep_source = true;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &s->manager));
  OpenRun(s);
  GCAP_EXPECT_OK(gcap_graph_manager_sign(s->manager, &kBinding, 1));
  EndRun(s);
}

void Stale(S* s) {
  s->CaptureRun(S::kId);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(s->manager, S::kId));
}

void AddQuestions(std::vector<Walk>* walks) {
  walks->push_back(StreamWalk("gcap_graph_manager_explain", "a failure", Captured, [](S* s) {
                     return gcap_graph_manager_explain(s->manager, S::kId, GCAP_GRAPH_WHY_CAPTURE_FAILED);
                   }).MakesNoCall());
  walks->push_back(StreamWalk("gcap_graph_manager_explain", "a refused update", Captured, [](S* s) {
                     return gcap_graph_manager_explain(s->manager, S::kId, GCAP_GRAPH_WHY_NOT_UPDATED);
                   }).MakesNoCall());
  walks->push_back(StreamWalk("gcap_graph_manager_sign", "", OpenRun,
                              [](S* s) { return gcap_graph_manager_sign(s->manager, &kBinding, 1); })
                       .MakesNoCall()
                       .Then<S>(EndRun));
  walks->push_back(StreamWalk("gcap_graph_manager_check_signature", "", SignedCapture, [](S* s) {
                     return gcap_graph_manager_check_signature(s->manager, S::kId, &kBinding, 1);
                   }).MakesNoCall());
  walks->push_back(StreamWalk("gcap_graph_manager_dump", "", SignedCapture,
                              [](S* s) { return gcap_graph_manager_dump(s->manager, S::kId, "/dev/null", 0); }));
}

void AddWholeRuns(std::vector<Walk>* walks) {
  walks->push_back(StreamWalk("gcap_graph_manager_run", "capture", nullptr, RunWork).RecoversFrom({"*"}));
  walks->push_back(StreamWalk("gcap_graph_manager_run", "replay", Captured, RunWork));
  walks->push_back(StreamWalk("gcap_graph_manager_plan", "", nullptr, Plan));
  // Why an update in place failed is told by gcap_graph_manager_explain.
  walks->push_back(StreamWalk("gcap_graph_manager_run", "update", Stale, RunWork).RecoversFrom({"*"}).WithoutALog());
  walks->push_back(StreamWalk("gcap_graph_manager_recapture", "", Captured, [](S* s) {
                     return gcap_graph_manager_recapture(s->manager, S::kId);
                   }).MakesNoCall());
  walks->push_back(StreamWalk("gcap_graph_manager_replay", "on another stream", Captured,
                              [](S* s) { return ReplayOn(s->manager, S::kId, gcap_stream_handle(s->other), true); }));
  walks->push_back(StreamWalk("gcap_graph_manager_replay", "signed", SignedCapture,
                              [](S* s) { return ReplayBound(s->manager, S::kId, &kBinding, 1, true); }));
  walks->push_back(StreamWalk("gcap_graph_manager_upload", "", Captured,
                              [](S* s) { return gcap_graph_manager_upload(s->manager, S::kId); }));
}

}  // namespace

std::vector<Walk> GraphWalks() {
  std::vector<Walk> walks;
  AddWholeRuns(&walks);
  AddQuestions(&walks);
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
                      .RecoversFrom({"*"})
                      .Then<S>(EndRun));
  walks.push_back(
      StreamWalk("gcap_graph_manager_begin_run", "eager", nullptr, [](S* s) { return Begin(s, GCAP_GRAPH_ID_NONE); })
          .MakesNoCall()
          .Then<S>(EndRun));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "capture", OpenRun, [](S* s) {
                    return gcap_graph_manager_end_run(s->manager, nullptr, true);
                  }).RecoversFrom(kMeasurements));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "capture, issued", OpenRun, [](S* s) {
                    return gcap_graph_manager_end_run(s->manager, nullptr, false);
                  }).RecoversFrom(kMeasurements));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "eager", OpenEagerRun,
                             [](S* s) { return gcap_graph_manager_end_run(s->manager, nullptr, true); }));
  walks.push_back(StreamWalk("gcap_graph_manager_replay", "synchronised", Captured,
                             [](S* s) { return Replay(s->manager, S::kId, true); }));
  walks.push_back(StreamWalk("gcap_graph_manager_replay", "issued", Captured,
                             [](S* s) { return Replay(s->manager, S::kId, false); }));
  walks.push_back(StreamWalk("gcap_graph_manager_replay", "if there is one", Captured, [](S* s) {
    bool replayed = false;
    return TryReplay(s->manager, S::kId, true, &replayed);
  }));
  walks.push_back(StreamWalk("gcap_graph_manager_release", "", Captured,
                             [](S* s) { return gcap_graph_manager_release(s->manager, S::kId); }));
  walks.push_back(StreamWalk("gcap_graph_manager_release_all", "", TwoCaptured,
                             [](S* s) { return gcap_graph_manager_release_all(s->manager); }));
  return walks;
}

}  // namespace testing
}  // namespace gcap
