// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/graph.h.

#include "gcap/graph_buffers.h"
#include "gcap/graph_contents.h"
#include "gcap/graph_plan.h"
#include "test/fault/stream_scene.h"
#include "test/support/plain_runs.h"
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
  GCAP_EXPECT_OK(BeginPlain(s->manager, S::kId, s->Handle(), &kind));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}

void OpenEagerRun(S* s) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(BeginPlain(s->manager, GCAP_GRAPH_ID_NONE, s->Handle(), &kind));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}

gcap_status_t Begin(S* s, int id) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  return BeginPlain(s->manager, id, s->Handle(), &kind);
}

void EndRun(S* s) { GCAP_EXPECT_OK(EndPlain(s->manager, nullptr, true)); }

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
  const PlannedPlain run = {S::kId, Work, s};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  return PlanPlain(s->manager, s->Handle(), &run, 1, &plan);
}

gcap_status_t RunWork(S* s) { return RunPlain(s->manager, S::kId, s->Handle(), Work, s, true); }

// A manager that keeps what it captures, and has captured a run that was signed.
void SignedCapture(S* s) {
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(s->manager));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.keep_source = true;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &s->manager));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(BeginBound(s->manager, S::kId, s->Handle(), &kBinding, 1, &kind));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
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
}

// --- Buffers that move ----------------------------------------------------------------------------------------------

// Two pieces of device memory, and a job that fills one of them.
class MovingScene : public StreamScene {
 public:
  MovingScene() {
    for (void*& piece : memory) GCAP_EXPECT_CUDA(cudaMalloc(&piece, kBytes));
  }
  gcap_status_t End() override {
    gcap_status_t status = StreamScene::End();
    gcap_graph_notes_destroy(notes);
    if (before != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(before));
    }
    for (void* piece : memory) GCAP_EXPECT_CUDA(cudaFree(piece));
    return status;
  }
  gcap_graph_buffers_t Buffers(int piece) {
    item = {"piece", memory[piece], kBytes, 0};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = &item;
    buffers.count = 1;
    return buffers;
  }
  gcap_status_t RunOn(int piece) {
    const gcap_graph_buffers_t buffers = Buffers(piece);
    return RunPlainOn(manager, kId, Handle(), &buffers, Fill, nullptr, true);
  }
  static gcap_status_t Fill(void*, cudaStream_t stream, void* const* addresses) {
    return GCAP_CUDA(cudaMemsetAsync(addresses[0], 1, kBytes, stream));
  }

  static constexpr size_t kBytes = 256;
  void* memory[2] = {};
  gcap_graph_buffer_t item;
  cudaGraph_t before = nullptr;
  gcap_graph_notes_t* notes = nullptr;
};

gcap_status_t BeginOn(MovingScene* s) {
  const gcap_graph_buffers_t buffers = s->Buffers(0);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  void* address = nullptr;
  return BeginPlainOn(s->manager, MovingScene::kId, s->Handle(), &buffers, &kind, &address);
}

void RunOnFirst(MovingScene* s) { GCAP_EXPECT_OK(s->RunOn(0)); }

void EndMovingRun(MovingScene* s) { EndRun(s); }

void OpenRehearsal(MovingScene* s) {
  GCAP_EXPECT_OK(BeginOn(s));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(s->memory[1], 1, MovingScene::kBytes, s->Handle()));
}

// Two graphs of one fill each.
void TwoGraphs(MovingScene* s) {
  for (cudaGraph_t* graph : {&s->before, &s->graph}) {
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(s->Handle(), cudaStreamCaptureModeThreadLocal));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(s->memory[graph == &s->graph], 1, MovingScene::kBytes, s->Handle()));
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(s->Handle(), graph));
  }
}

Walk MovingWalk(const char* function, const char* variant, void (*prepare)(MovingScene*),
                gcap_status_t (*act)(MovingScene*)) {
  return MakeWalk<MovingScene>(function, variant, prepare, act);
}

void AddMoving(std::vector<Walk>* walks) {
  walks->push_back(
      MovingWalk("gcap_graph_diff", "", TwoGraphs,
                 [](MovingScene* s) { return gcap_graph_diff(s->before, s->graph, nullptr, nullptr, nullptr); })
          .RecoversFrom({"cudaGraphMemsetNodeGetParams"})
          .WithoutALog());
  walks->push_back(MovingWalk("gcap_graph_manager_begin_run", "rehearsal", nullptr, BeginOn)
                       .RecoversFrom({"*"})
                       .WithoutALog()
                       .Then<MovingScene>(EndMovingRun));
  walks->push_back(MovingWalk("gcap_graph_manager_end_run", "rehearsal", OpenRehearsal,
                              [](MovingScene* s) { return EndPlain(s->manager, nullptr, true); })
                       .RecoversFrom({"*"})
                       .WithoutALog());
  walks->push_back(
      MovingWalk("gcap_graph_manager_run", "rehearsal and capture", nullptr, [](MovingScene* s) { return s->RunOn(0); })
          .RecoversFrom({"*"})
          .WithoutALog());
  // A graph that cannot be moved leaves the run to its work.
  walks->push_back(MovingWalk("gcap_graph_manager_run", "replay on other buffers", RunOnFirst,
                              [](MovingScene* s) { return s->RunOn(1); })
                       .RecoversFrom({"cudaGetDevice", "cudaThreadExchangeStreamCaptureMode", "cuCtxGetCurrent",
                                      "cudaGraphExecMemsetNodeSetParams"}));
  walks->push_back(MovingWalk("gcap_graph_manager_check_moves", "", RunOnFirst, [](MovingScene* s) {
    return gcap_graph_manager_check_moves(s->manager, MovingScene::kId);
  }));
  walks->push_back(MovingWalk("gcap_graph_manager_bind", "", RunOnFirst, [](MovingScene* s) {
    return gcap_graph_manager_bind(s->manager, MovingScene::kId, 0, s->memory[1]);
  }));
}

// --- Audits ---------------------------------------------------------------------------------------------------------

template <typename Scene>
void AuditReplays(Scene* s) {
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(s->manager));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.audit = GCAP_GRAPH_AUDIT_EACH_REPLAY;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &s->manager));
}

void AuditedCapture(S* s) {
  AuditReplays(s);
  s->CaptureRun(S::kId);
}

void AuditedMoving(MovingScene* s) {
  AuditReplays(s);
  RunOnFirst(s);
}

gcap_status_t MakeNotes(MovingScene* s) { return gcap_graph_notes_create(s->graph, nullptr, nullptr, &s->notes); }

void NotesOfAGraph(MovingScene* s) {
  TwoGraphs(s);
  GCAP_EXPECT_OK(MakeNotes(s));
}

void AddAudits(std::vector<Walk>* walks) {
  walks->push_back(MovingWalk("gcap_graph_notes_create", "", TwoGraphs, MakeNotes)
                       .RecoversFrom({"cudaGraphMemsetNodeGetParams"})
                       .WithoutALog());
  walks->push_back(MovingWalk("gcap_graph_audit", "", NotesOfAGraph,
                              [](MovingScene* s) { return gcap_graph_audit(s->notes, nullptr, nullptr, nullptr); }));
  walks->push_back(StreamWalk("gcap_graph_manager_audit", "", AuditedCapture, [](S* s) {
    return gcap_graph_manager_audit(s->manager, S::kId, nullptr, nullptr, nullptr);
  }));
  walks->push_back(StreamWalk("gcap_graph_manager_run", "audited capture", AuditReplays<S>, RunWork)
                       .RecoversFrom({"*"})
                       .WithoutALog());
  walks->push_back(StreamWalk("gcap_graph_manager_run", "audited replay", AuditedCapture, RunWork));
  walks->push_back(MovingWalk("gcap_graph_manager_bind", "audited", AuditedMoving, [](MovingScene* s) {
    return gcap_graph_manager_bind(s->manager, MovingScene::kId, 0, s->memory[1]);
  }));
}

}  // namespace

std::vector<Walk> GraphWalks() {
  std::vector<Walk> walks;
  AddAudits(&walks);
  AddMoving(&walks);
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
                    return EndPlain(s->manager, nullptr, true);
                  }).RecoversFrom(kMeasurements));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "capture, issued", OpenRun, [](S* s) {
                    return EndPlain(s->manager, nullptr, false);
                  }).RecoversFrom(kMeasurements));
  walks.push_back(StreamWalk("gcap_graph_manager_end_run", "eager", OpenEagerRun,
                             [](S* s) { return EndPlain(s->manager, nullptr, true); }));
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
