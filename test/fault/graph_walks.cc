// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/graph.h and the headers beside it.

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

// --- Runs -----------------------------------------------------------------------------------------------------------

void Captured(S* s) { s->CaptureRun(S::kId); }
void TwoCaptured(S* s) {
  s->CaptureRun(S::kId);
  s->CaptureRun(S::kId + 1);
}
// A graph of a key, beside that of the id.
const gcap_graph_key_t kKey = {kShape, sizeof(kShape), "decode"};
gcap_run_t RunByKey(S* s) {
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, s->Handle(), true);
  run.key = &kKey;
  return run;
}
gcap_status_t ReplayKeyed(S* s) {
  const gcap_run_t run = RunByKey(s);
  return gcap_graph_manager_replay(s->manager, &run, nullptr);
}
gcap_status_t Find(S* s) {
  int id = 0;
  return gcap_graph_manager_find(s->manager, &kKey, &id);
}
// A decision that the work states, and one that was another when the graph was captured.
gcap_graph_guard_t GuardOf(const int* decision) {
  gcap_graph_guard_t guard;
  gcap_graph_guard_init(&guard);
  guard.name = "decision";
  guard.kind = GCAP_GRAPH_GUARD_BYTES;
  guard.address = decision;
  guard.bytes = sizeof(*decision);
  return guard;
}
int g_decision = 0;
gcap_status_t State(S*) {
  const gcap_graph_guard_t guard = GuardOf(&g_decision);
  return GCAP_GRAPH_GUARD(&guard);
}
void Stale(S* s) {
  s->CaptureRun(S::kId);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(s->manager, S::kId));
}

gcap_status_t Begin(S* s) { return BeginPlain(s->manager, S::kId, s->Handle(), kOut); }
gcap_status_t BeginEager(S* s) { return BeginPlain(s->manager, GCAP_GRAPH_ID_NONE, s->Handle(), kOut); }
void OpenRun(S* s) {
  GCAP_EXPECT_OK(Begin(s));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}
void OpenEagerRun(S* s) {
  GCAP_EXPECT_OK(BeginEager(s));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}
gcap_status_t End(S* s) { return EndPlain(s->manager, nullptr, /*synchronize=*/true); }
void EndRun(S* s) { GCAP_EXPECT_OK(End(s)); }
void EndAnyRun(S* s) { gcap_status_free(End(s)); }

gcap_status_t Work(void* scene, cudaStream_t stream) {
  const cudaError_t error = static_cast<S*>(scene)->job.Issue(stream);
  return gcap_status_from_cuda(error, "cudaMemcpyAsync", __FILE__, __LINE__);
}
gcap_status_t RunWork(S* s) { return RunPlain(s->manager, S::kId, s->Handle(), Work, s, true); }
gcap_status_t RunKeyed(S* s) {
  gcap_run_t run = RunByKey(s);
  run.work = [](void* scene, const gcap_run_resources_t* resources) { return Work(scene, resources->cuda_stream); };
  run.user = s;
  return gcap_graph_manager_run(s->manager, &run);
}
void CapturedKey(S* s) { GCAP_EXPECT_OK(RunKeyed(s)); }
gcap_status_t RunGuarded(S* s) {
  const PlainWork work = [](void* scene, cudaStream_t stream) {
    GCAP_RETURN_IF_ERROR(State(static_cast<S*>(scene)));
    return Work(scene, stream);
  };
  return RunPlain(s->manager, S::kId, s->Handle(), work, s, true);
}
// A hole whose function does what the work does.
gcap_status_t IssueHole(S* s, const gcap_run_resources_t* resources, bool break_where_refused = false) {
  gcap_graph_hole_t hole;
  gcap_graph_hole_init(&hole);
  hole.name = "job";
  hole.work = [](void* scene, const gcap_run_resources_t* at) { return Work(scene, at->cuda_stream); };
  hole.user = s;
  hole.break_where_refused = break_where_refused;
  return gcap_graph_hole_issue(resources, &hole);
}
gcap_status_t IssueHole(S* s, bool break_where_refused) {
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = s->Handle();
  return IssueHole(s, &resources, break_where_refused);
}
gcap_status_t IssueHole(S* s) { return IssueHole(s, false); }
gcap_status_t IssueStep(S* s) { return IssueHole(s, true); }
gcap_status_t IssueTap(S* s) {
  return gcap_graph_tap_issue(s->Handle(), "output", s->job.output_address(), sizeof(int));
}
gcap_status_t RunHoled(S* s) {
  gcap_run_t run = RunOf(S::kId, s->Handle(), /*synchronize=*/true);
  run.work = [](void* user, const gcap_run_resources_t* resources) {
    S* scene = static_cast<S*>(user);
    GCAP_RETURN_IF_ERROR(Work(scene, resources->cuda_stream));
    GCAP_RETURN_IF_ERROR(IssueHole(scene, resources));
    return Work(scene, resources->cuda_stream);
  };
  run.user = s;
  return gcap_graph_manager_run(s->manager, &run);
}
void CapturedHoled(S* s) { GCAP_EXPECT_OK(RunHoled(s)); }
// A replay that is compared with its work, in the job's output.
gcap_status_t RunVerified(S* s) {
  const gcap_graph_verify_buffer_t output = {"output", s->job.output_address(), sizeof(int), GCAP_DTYPE_I32, 0, 0,
                                             false};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &output;
  verify.num_buffers = 1;
  verify.each = 1;
  gcap_run_t run = RunOf(S::kId, s->Handle(), /*synchronize=*/true);
  run.work = [](void* scene, const gcap_run_resources_t* resources) { return Work(scene, resources->cuda_stream); };
  run.user = s;
  run.verify = &verify;
  return gcap_graph_manager_run(s->manager, &run);
}
void CapturedForOther(S* s) {
  for (g_decision = 1; g_decision < 3; ++g_decision) GCAP_EXPECT_OK(RunGuarded(s));
}
void CapturedForThese(S* s) {
  CapturedForOther(s);
  g_decision = 1;
}
gcap_status_t Plan(S* s) {
  const PlannedPlain run = {S::kId, Work, s};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  return PlanPlain(s->manager, s->Handle(), &run, 1, &plan);
}

gcap_status_t WarmUp(S* s, bool capture_only) {
  gcap_run_t run = RunOf(S::kId, s->Handle(), /*synchronize=*/true);
  run.work = [](void* scene, const gcap_run_resources_t* resources) { return Work(scene, resources->cuda_stream); };
  run.user = s;
  run.capture_only = capture_only;
  return gcap_graph_manager_warm_up(s->manager, &run, 1, nullptr, nullptr);
}

gcap_status_t Destroy(S* s) {
  gcap_graph_manager_t* manager = s->manager;
  s->manager = nullptr;
  return gcap_graph_manager_destroy(manager);
}
void WithoutManager(S* s) { GCAP_EXPECT_OK(Destroy(s)); }
// A manager that keeps what it captures, and one that audits each replay.
void NewManager(S* s, bool keep_source, gcap_graph_audit_level_t audit) {
  WithoutManager(s);
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.keep_source = keep_source;
  options.audit = audit;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &s->manager));
}
// A graph that is kept, and was signed.
void SignedCapture(S* s) {
  NewManager(s, /*keep_source=*/true, GCAP_GRAPH_AUDIT_OFF);
  GCAP_EXPECT_OK(BeginBound(s->manager, S::kId, s->Handle(), &kBinding, 1, kOut));
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
  EndRun(s);
}
void AuditReplays(S* s) { NewManager(s, /*keep_source=*/false, GCAP_GRAPH_AUDIT_EACH_REPLAY); }
void AuditedCapture(S* s) {
  AuditReplays(s);
  s->CaptureRun(S::kId);
}

std::vector<Walk> RunWalks() {
  return {
      WalkOf<S>("gcap_graph_manager_create", ACT(s->CreateManager()), WithoutManager).MakesNoCall(),
      WalkOf<S>("gcap_graph_manager_destroy", Destroy, nullptr, "empty").MakesNoCall(),
      WalkOf<S>("gcap_graph_manager_destroy", Destroy, TwoCaptured, "with graphs"),
      WalkOf<S>("gcap_graph_manager_begin_run", Begin, nullptr, "capture").Recovers().Then<S>(EndRun),
      WalkOf<S>("gcap_graph_manager_begin_run", BeginEager, nullptr, "eager").MakesNoCall().Then<S>(EndRun),
      WalkOf<S>("gcap_graph_manager_end_run", End, OpenRun, "capture").RecoversFrom(kMeasurements),
      WalkOf<S>("gcap_graph_manager_end_run", ACT(EndPlain(s->manager, nullptr, false)), OpenRun, "capture, issued")
          .RecoversFrom(kMeasurements),
      WalkOf<S>("gcap_graph_manager_end_run", End, OpenEagerRun, "eager"),
      WalkOf<S>("gcap_graph_manager_run", RunWork, nullptr, "capture").Recovers(),
      WalkOf<S>("gcap_graph_manager_run", RunWork, Captured, "replay"),
      // Why an update in place failed is told by gcap_graph_manager_explain.
      WalkOf<S>("gcap_graph_manager_run", RunWork, Stale, "update").Recovers().WithoutALog(),
      WalkOf<S>("gcap_graph_manager_run", RunWork, AuditReplays, "audited capture").Recovers().WithoutALog(),
      WalkOf<S>("gcap_graph_manager_run", RunWork, AuditedCapture, "audited replay"),
      WalkOf<S>("gcap_graph_manager_replay", ACT(Replay(s->manager, S::kId, true)), Captured, "synchronised"),
      WalkOf<S>("gcap_graph_manager_replay", ACT(Replay(s->manager, S::kId, false)), Captured, "issued"),
      WalkOf<S>("gcap_graph_manager_replay", ACT(TryReplay(s->manager, S::kId, true, kOut)), Captured,
                "if there is one"),
      WalkOf<S>("gcap_graph_manager_replay", ACT(ReplayOn(s->manager, S::kId, gcap_stream_handle(s->other), true)),
                Captured, "on another stream"),
      WalkOf<S>("gcap_graph_manager_replay", ACT(ReplayBound(s->manager, S::kId, &kBinding, 1, true)), SignedCapture,
                "signed"),
      WalkOf<S>("gcap_graph_manager_run", RunKeyed, nullptr, "capture of a key").Recovers(),
      WalkOf<S>("gcap_graph_manager_replay", ReplayKeyed, CapturedKey, "by key"),
      WalkOf<S>("gcap_graph_manager_find", Find, CapturedKey).MakesNoCall(),
      WalkOf<S>("gcap_graph_guard_state", State, OpenRun).MakesNoCall().Then<S>(EndRun),
      WalkOf<S>("gcap_graph_hole_issue", IssueHole, OpenRun).AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_graph_hole_issue", IssueStep, OpenRun, "break_where_refused").AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_graph_hole_issue", IssueHole, nullptr, "outside of a run"),
      WalkOf<S>("gcap_graph_tap_issue", IssueTap, OpenRun)
          .RecoversFrom({"cudaStreamIsCapturing"})  // the ledger's question: the end of the run asks again
          .WithoutALog()
          .AlwaysThen<S>(EndAnyRun),
      WalkOf<S>("gcap_graph_manager_run", RunVerified, Captured, "verified replay"),
      WalkOf<S>("gcap_graph_manager_run", RunHoled, nullptr, "capture with a hole").Recovers(),
      WalkOf<S>("gcap_graph_manager_run", RunHoled, CapturedHoled, "replay with a hole"),
      WalkOf<S>("gcap_graph_manager_replay", ACT(ReplayOn(s->manager, S::kId, gcap_stream_handle(s->other), true)),
                CapturedHoled, "with a hole, on another stream"),
      WalkOf<S>(CALL(gcap_graph_manager_release, s->manager, S::kId), CapturedHoled, "with a hole"),
      WalkOf<S>("gcap_graph_manager_run", RunGuarded, CapturedForOther, "capture of a variant").Recovers(),
      WalkOf<S>("gcap_graph_manager_run", RunGuarded, CapturedForThese, "replay of a variant"),
      WalkOf<S>(CALL(gcap_graph_manager_release, s->manager, S::kId), CapturedForOther, "variants"),
      WalkOf<S>(CALL(gcap_graph_manager_recapture, s->manager, S::kId), Captured).MakesNoCall(),
      WalkOf<S>(CALL(gcap_graph_manager_release, s->manager, S::kId), Captured),
      WalkOf<S>(CALL(gcap_graph_manager_release_all, s->manager), TwoCaptured),
      WalkOf<S>("gcap_graph_manager_plan", Plan),
      WalkOf<S>("gcap_graph_manager_warm_up", ACT(WarmUp(s, /*capture_only=*/false))).Recovers(),
      WalkOf<S>("gcap_graph_manager_warm_up", ACT(WarmUp(s, /*capture_only=*/true)), nullptr, "captured only")
          .RecoversFrom(kMeasurements),
      WalkOf<S>(CALL(gcap_graph_manager_explain, s->manager, S::kId, GCAP_GRAPH_WHY_CAPTURE_FAILED), Captured,
                "a failure")
          .MakesNoCall(),
      WalkOf<S>(CALL(gcap_graph_manager_explain, s->manager, S::kId, GCAP_GRAPH_WHY_NOT_UPDATED), Captured,
                "a refused update")
          .MakesNoCall(),
      WalkOf<S>(CALL(gcap_graph_manager_dump, s->manager, S::kId, "/dev/null", 0), SignedCapture),
      WalkOf<S>(CALL(gcap_graph_manager_audit, s->manager, S::kId, nullptr, nullptr, nullptr), AuditedCapture),
  };
}

// --- Buffers that move, and what is in graphs -----------------------------------------------------------------------

// Two pieces of device memory, a job that fills one of them, and graphs.
class MovingScene : public StreamScene {
 public:
  MovingScene() {
    for (void*& piece : memory) GCAP_EXPECT_CUDA(cudaMalloc(&piece, kBytes));
    gcap_graph_buffers_init(&buffers);
    buffers.items = &item;
    buffers.count = 1;
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
  gcap_status_t RunOn(int piece) {
    item.address = memory[piece];
    const auto fill = [](void*, cudaStream_t stream, void* const* addresses) {
      return GCAP_CUDA(cudaMemsetAsync(addresses[0], 1, kBytes, stream));
    };
    return RunPlainOn(manager, kId, Handle(), &buffers, fill, nullptr, true);
  }
  gcap_status_t BeginOn() {
    item.address = memory[0];
    return BeginPlainOn(manager, kId, Handle(), &buffers, kOut, kOut);
  }

  static constexpr size_t kBytes = 256;
  void* memory[2] = {};
  gcap_graph_buffer_t item = {"piece", nullptr, kBytes, 0};
  gcap_graph_buffers_t buffers;
  cudaGraph_t before = nullptr;
  gcap_graph_notes_t* notes = nullptr;
};

void RunOnFirst(MovingScene* s) { GCAP_EXPECT_OK(s->RunOn(0)); }
void EndMovingRun(MovingScene* s) { EndRun(s); }
void OpenRehearsal(MovingScene* s) {
  GCAP_EXPECT_OK(s->BeginOn());
  GCAP_EXPECT_CUDA(cudaMemsetAsync(s->memory[1], 1, MovingScene::kBytes, s->Handle()));
}
void AuditedMoving(MovingScene* s) {
  AuditReplays(s);
  RunOnFirst(s);
}

// Two graphs of one fill each.
void TwoGraphs(MovingScene* s) {
  for (cudaGraph_t* graph : {&s->before, &s->graph}) {
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(s->Handle(), cudaStreamCaptureModeThreadLocal));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(s->memory[graph == &s->graph], 1, MovingScene::kBytes, s->Handle()));
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(s->Handle(), graph));
  }
}
gcap_status_t MakeNotes(MovingScene* s) { return gcap_graph_notes_create(s->graph, nullptr, nullptr, &s->notes); }
void NotesOfAGraph(MovingScene* s) {
  TwoGraphs(s);
  GCAP_EXPECT_OK(MakeNotes(s));
}

std::vector<Walk> MovingWalks() {
  using S = MovingScene;
  const std::set<std::string> contents = {"cudaGraphMemsetNodeGetParams"};
  const auto bind = ACT(gcap_graph_manager_bind(s->manager, S::kId, 0, s->memory[1]));
  return {
      WalkOf<S>("gcap_graph_manager_begin_run", ACT(s->BeginOn()), nullptr, "rehearsal")
          .Recovers()
          .WithoutALog()
          .Then<S>(EndMovingRun),
      WalkOf<S>("gcap_graph_manager_end_run", ACT(End(s)), OpenRehearsal, "rehearsal").Recovers().WithoutALog(),
      WalkOf<S>("gcap_graph_manager_run", ACT(s->RunOn(0)), nullptr, "rehearsal and capture").Recovers().WithoutALog(),
      // A graph that cannot be moved leaves the run to its work.
      WalkOf<S>("gcap_graph_manager_run", ACT(s->RunOn(1)), RunOnFirst, "replay on other buffers")
          .RecoversFrom({"cudaGetDevice", "cudaThreadExchangeStreamCaptureMode", "cuCtxGetCurrent",
                         "cudaGraphExecMemsetNodeSetParams"}),
      WalkOf<S>(CALL(gcap_graph_manager_check_moves, s->manager, S::kId), RunOnFirst),
      WalkOf<S>("gcap_graph_manager_bind", bind, RunOnFirst),
      WalkOf<S>("gcap_graph_manager_bind", bind, AuditedMoving, "audited"),
      WalkOf<S>(CALL(gcap_graph_diff, s->before, s->graph, nullptr, nullptr, nullptr), TwoGraphs)
          .RecoversFrom(contents)
          .WithoutALog(),
      WalkOf<S>("gcap_graph_notes_create", MakeNotes, TwoGraphs).RecoversFrom(contents).WithoutALog(),
      WalkOf<S>(CALL(gcap_graph_audit, s->notes, nullptr, nullptr, nullptr), NotesOfAGraph),
  };
}

// --- Values ---------------------------------------------------------------------------------------------------------

// A number in memory, which the work copies, and a byte that a fill of the work has.
class ValuesScene : public StreamScene {
 public:
  ValuesScene() {
    GCAP_EXPECT_CUDA(cudaMalloc(&memory, 2 * sizeof(number)));
    gcap_graph_buffers_init(&buffers);
    buffers.values = values;
    buffers.num_values = 2;
  }
  // Whatever failed, the next runs of the id have the values that they ask for.
  void ExpectNextRunWorks() override {
    StreamScene::ExpectNextRunWorks();
    for (int i = 0; i < 3; ++i) {
      GCAP_EXPECT_OK(Run(90 + i));
      ExpectOutput();
    }
  }
  gcap_status_t End() override {
    gcap_status_t status = StreamScene::End();
    GCAP_EXPECT_CUDA(cudaFree(memory));
    return status;
  }
  gcap_run_t RunWith(int new_number, int new_fill) {
    number = new_number;
    fill = static_cast<unsigned char>(new_fill);
    gcap_run_t run = RunOf(kId, Handle(), /*synchronize=*/true);
    run.buffers = &buffers;
    run.user = this;
    run.work = [](void* scene, const gcap_run_resources_t* r) {
      int* const to = static_cast<int*>(static_cast<ValuesScene*>(scene)->memory);
      const int byte = *static_cast<const unsigned char*>(r->values[1]);
      GCAP_RETURN_IF_ERROR(
          GCAP_CUDA(cudaMemcpyAsync(to, r->values[0], sizeof(int), cudaMemcpyDeviceToDevice, r->cuda_stream)));
      return GCAP_CUDA(cudaMemsetAsync(to + 1, byte, sizeof(int), r->cuda_stream));
    };
    return run;
  }
  gcap_status_t Run(int each, int id = kId) {
    gcap_run_t run = RunWith(1000 + each, each);
    run.id = id;
    return gcap_graph_manager_run(manager, &run);
  }
  gcap_status_t Replay(int new_number, int new_fill) {
    const gcap_run_t run = RunWith(new_number, new_fill);
    return gcap_graph_manager_replay(manager, &run, nullptr);
  }
  gcap_status_t Plan() {
    const gcap_run_t run = RunWith(1, 1);
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    return gcap_graph_manager_plan(manager, &run, 1, &plan);
  }
  void ExpectOutput() {
    int found[2] = {};
    GCAP_EXPECT_CUDA(cudaMemcpy(found, memory, sizeof(found), cudaMemcpyDeviceToHost));
    EXPECT_EQ(found[0], number);
    EXPECT_EQ(found[1], fill * 0x01010101);
  }

  void* memory = nullptr;
  int number = 0;
  unsigned char fill = 0;
  const unsigned char low = 0, high = 120;
  gcap_graph_buffers_t buffers;
  const gcap_graph_value_t values[2] = {
      {"number", &number, sizeof(number), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true},
      {"fill", &fill, sizeof(fill), GCAP_GRAPH_VALUE_UNSIGNED, &low, &high, false, false}};
};

void ExpectOutput(ValuesScene* s) { s->ExpectOutput(); }
void CapturedWithValues(ValuesScene* s) { GCAP_EXPECT_OK(s->Run(1)); }
// The next copy begins a half of the ring, whose 64 slots are in two.
void HalfOfTheRing(ValuesScene* s) {
  CapturedWithValues(s);
  for (int i = 1; i < 32; ++i) GCAP_EXPECT_OK(s->Replay(i, 1));
}

std::vector<Walk> ValuesWalks() {
  using S = ValuesScene;
  // A graph whose nodes cannot be set leaves the run to its work.
  const std::set<std::string> sets = {"cudaGetDevice", "cudaThreadExchangeStreamCaptureMode", "cuCtxGetCurrent",
                                      "cudaGraphExecMemsetNodeSetParams"};
  return {
      WalkOf<S>("gcap_graph_manager_run", ACT(s->Run(1, GCAP_GRAPH_ID_NONE)), nullptr, "eager, with values")
          .Then<S>(ExpectOutput),
      WalkOf<S>("gcap_graph_manager_run", ACT(s->Run(1)), nullptr, "capture with values")
          .Recovers()
          .WithoutALog()
          .Then<S>(ExpectOutput),
      WalkOf<S>("gcap_graph_manager_run", ACT(s->Run(2)), CapturedWithValues, "replay with other values")
          .RecoversFrom(sets)
          .Then<S>(ExpectOutput),
      WalkOf<S>("gcap_graph_manager_replay", ACT(s->Replay(7, 1)), CapturedWithValues, "with a value in memory")
          .Then<S>(ExpectOutput),
      WalkOf<S>("gcap_graph_manager_replay", ACT(s->Replay(7, 9)), HalfOfTheRing, "with values, half a ring later")
          .Then<S>(ExpectOutput),
      WalkOf<S>(CALL(gcap_graph_manager_release, s->manager, S::kId), CapturedWithValues, "with values"),
      WalkOf<S>("gcap_graph_manager_plan", ACT(s->Plan()), nullptr, "with values"),
  };
}

}  // namespace

std::vector<Walk> GraphWalks() { return Joined({RunWalks(), MovingWalks(), ValuesWalks()}); }

}  // namespace testing
}  // namespace gcap
