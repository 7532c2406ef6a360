// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of captures over captures, evictions, replays elsewhere and whole runs when any one of their CUDA calls
// fails, and of everything when the device is lost.

#include <algorithm>
#include <memory>
#include <string>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap/stream.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/manager_test.h"
#include "test/support/faults.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class GraphFaults : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    job_ = std::make_unique<CopyJob>();
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
  }
  void TearDown() override {
    ManagerTest::TearDown();
    job_.reset();
  }
  void CreateWithOptions() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  // Issues a captured run up to its end.
  void BeginAndIssue(int id, int value, int times, int* released) {
    job_->set_input(value);
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    for (int i = 0; i < times; ++i) GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, released));
  }
  void Capture(int id, int value, int* released) {
    BeginAndIssue(id, value, 1, released);
    EXPECT_TRUE(End().ok());
  }

  // Memory that the run's graph keeps.
  static void RetainAThird() {
    GCAP_EXPECT_OK(gcap_capture_retain(
        gcap_capture_current(), [](void*) {}, [](void*) { return kMany / 3; }, nullptr));
  }

  // Whatever failed before: the next runs of the id are right, captured at last and replayed.
  void ExpectNextRunsAreRight(int id) {
    EXPECT_FALSE(gcap_thread_is_capturing());
    for (int value = 100; !gcap_graph_manager_is_captured(manager_, id); ++value) {
      ASSERT_LT(value, 110) << "never captured again";
      job_->set_input(value);
      Run(id, *job_);
      EXPECT_EQ(job_->output(), value);
    }
    job_->set_input(200);
    GCAP_EXPECT_OK(Replay(manager_, id, true));
    EXPECT_EQ(job_->output(), 200);
  }

  // A capture over a capture, the new one of `times` jobs, with each of its end's calls failing.
  Walked WalkRecapture(int times) {
    return WalkFaults([this, times](Fault& fault) {
      int released[2] = {0, 0};
      CreateWithOptions();
      Capture(0, 1, &released[0]);
      GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
      BeginAndIssue(0, 2, times, &released[1]);
      const Outcome outcome = fault.During([this] { return EndPlain(manager_, nullptr, true); });
      const bool captured = gcap_graph_manager_is_captured(manager_, 0);
      EXPECT_NE(captured, outcome.code == GCAP_CAPTURE_INVALIDATED);
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      stream_->Synchronize();
      EXPECT_EQ(job_->output(), captured ? 2 : 1);
      EXPECT_EQ(released[1], captured ? 0 : 1);
      EXPECT_TRUE(captured || released[0] == 0) << "the old graph is kept for the next update";
      ExpectExplained(fault, outcome, times);
      ExpectNextRunsAreRight(0);
      DestroyManager();
      EXPECT_EQ(released[0], 1);
      EXPECT_EQ(released[1], 1);
    });
  }

  // A driver that will not update, or will not say why, is no failure of the run.
  void ExpectExplained(const Fault& fault, const Outcome& outcome, int times) {
    const bool only_words = times > 1 && outcome.ok() && fault.hit();
    const bool not_updated = fault.Is("cudaGraphExecUpdate") || fault.Is("cudaGraphKernelNodeGetAttribute") ||
                             fault.Is("cudaGraphKernelNodeGetParams");
    EXPECT_EQ(outcome.ok(), !fault.hit() || not_updated || only_words) << outcome.message;
    if (!gcap_graph_manager_is_captured(manager_, 0)) return;
    const bool refused = times > 1 || not_updated;
    EXPECT_EQ(Info(0).updates, refused ? 0u : 1u);
    EXPECT_EQ(Info(0).reinstantiations, refused ? 1u : 0u);
    const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
    EXPECT_EQ(refusal.ok(), !refused);
    EXPECT_TRUE(!refused || refusal.Names("cudaGraphExecUpdate")) << refusal.message;
  }

  gcap_graph_manager_options_t options_;
  std::unique_ptr<CopyJob> job_;
};

TEST_F(GraphFaults, OfAnUpdateInPlaceGiveAStatusOrTheResults) {
  options_.upload = true;
  const Walked walked = WalkRecapture(1);
  for (const char* function :
       {"cudaGraphExecUpdate", "cudaGraphUpload", "cudaGraphNodeGetType", "cudaEventCreateWithFlags", "cudaEventRecord",
        "cudaEventQuery", "cudaEventDestroy", "cudaStreamIsCapturing", "cudaGraphLaunch"}) {
    EXPECT_EQ(walked.functions.count(function), 1u) << function;
  }
}

TEST_F(GraphFaults, OfANewExecutableGiveAStatusOrTheResults) {
  options_.keep_source = true;
  const Walked walked = WalkRecapture(2);
  for (const char* function : {"cudaGraphExecUpdate", "cudaGraphInstantiateWithParams", "cudaGraphExecDestroy",
                               "cudaGraphDestroy", "cudaEventQuery"}) {
    EXPECT_EQ(walked.functions.count(function), 1u) << function;
  }
}

// The driver may fail an instantiation with an error, and give "success" as the reason.
TEST_F(GraphFaults, AnInstantiationThatFailsWithoutAReasonSaysSo) {
  WalkFaults([this](Fault& fault) {
    int released = 0;
    CreateWithOptions();
    BeginAndIssue(0, 1, 1, &released);
    const Outcome outcome = fault.During([this] { return EndPlain(manager_, nullptr, true); });
    EXPECT_FALSE(outcome.Names("success")) << outcome.message;
    if (fault.Is("cudaGraphInstantiateWithParams")) {
      EXPECT_TRUE(outcome.Names("the graph cannot be instantiated (the driver gives no reason)")) << outcome.message;
    }
    stream_->Synchronize();
    DestroyManager();
  });
}

// A node of another type: the refusal asks for the node's name.
TEST_F(GraphFaults, OfTheExplanationOfARefusalLoseOnlyTheExplanation) {
  char* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 64));
  WalkFaults([&](Fault& fault) {
    int released = 0;
    CreateWithOptions();
    Capture(0, 1, &released);
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
    ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, i, 64, stream_->get()));
    const Outcome outcome = fault.During([this] { return EndPlain(manager_, nullptr, true); });
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_TRUE(outcome.ok() || !fault.Is("cudaGraphKernelNodeGetParams")) << outcome.message;
    if (outcome.ok()) {
      const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
      EXPECT_TRUE(refusal.Names("graph id 0 could not be updated in place")) << refusal.message;
    }
    stream_->Synchronize();
    DestroyManager();
    EXPECT_EQ(released, 1);
  });
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

TEST_F(GraphFaults, OfAnEvictionLeaveTheNewGraphCaptured) {
  options_.max_graphs = 1;
  const Walked walked = WalkFaults([this](Fault& fault) {
    int released[2] = {0, 0};
    CreateWithOptions();
    Capture(0, 1, &released[0]);
    BeginAndIssue(1, 2, 1, &released[1]);
    const Outcome outcome = fault.During([this] { return EndPlain(manager_, nullptr, true); });
    EXPECT_TRUE(outcome.ok() ? !fault.hit() || fault.MayBeOfAMeasurement() : fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const bool captured = gcap_graph_manager_is_captured(manager_, 1);
    EXPECT_NE(captured, outcome.code == GCAP_CAPTURE_INVALIDATED);
    EXPECT_EQ(State(0), captured ? "READY" : "CAPTURED");
    stream_->Synchronize();
    ExpectNextRunsAreRight(1);
    ExpectNextRunsAreRight(0);
    DestroyManager();
    EXPECT_EQ(released[0], 1);
    EXPECT_EQ(released[1], 1);
  });
  for (const char* function :
       {"cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventQuery", "cudaGraphExecDestroy"}) {
    EXPECT_EQ(walked.functions.count(function), 1u) << function;
  }
}

// One capture takes the place of two graphs, and neither can be marked for its end.
TEST_F(GraphFaults, OfTwoEvictionsAreToldInTheirOrder) {
  options_.max_bytes = kMany + (kMany >> 4);
  int released = 0;
  uint64_t most_evictions = 0;
  const auto trial = [&](Fault& fault) {
    CreateWithOptions();
    for (const int id : {0, 1}) {
      BeginAndIssue(id, 1, 1, &released);
      RetainAThird();
      EXPECT_TRUE(End().ok());
    }
    BeginAndIssue(2, 1, 1, &released);
    for (int i = 0; i < 3; ++i) RetainAThird();
    const Outcome outcome = fault.During([this] { return EndPlain(manager_, nullptr, true); });
    EXPECT_TRUE(!fault.hit() || fault.MayBeOfAMeasurement() || fault.Explains(outcome))
        << fault.function() << ": " << outcome.message;
    if (!outcome.ok()) most_evictions = std::max(most_evictions, Info(0).evictions + Info(1).evictions);
    if (stream_->CaptureStatus() != cudaStreamCaptureStatusNone) {  // its end failed twice
      cudaGraph_t graph = nullptr;
      GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    stream_->Synchronize();
    DestroyManager();
  };
  (void)WalkFaults(trial, Reach::kAllAfter);
  EXPECT_EQ(most_evictions, 2u);
}

// A graph is replaced while its stream is captured by somebody else: the event behind its last launch comes later.
TEST_F(GraphFaults, OfTheEndOfReplacedGraphsLeakWhatMayStillRunAndNothingElse) {
  // This thread captures its own stream, and launches the manager's graph on another, on purpose.
  gcap_sim_set_action(GCAP_SIM_CHECK_ESCAPED_WORK, GCAP_SIM_ACTION_OFF);
  const RawStream other;
  const Walked walked = WalkFaults([&](Fault& fault) {
    int released[2] = {0, 0};
    CreateWithOptions();
    Capture(0, 1, &released[0]);
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_ASSERT_OK(BeginPlain(manager_, 0, other.get(), &kind));
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_CUDA(job_->Issue(other.get()));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released[1]));
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, /*synchronize=*/false));
    EXPECT_EQ(Info(0).reinstantiations, 1u);
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    EXPECT_EQ(released[0], 0) << "nothing tells yet when its launch is done";
    const Outcome outcome = fault.During([this] { return gcap_graph_manager_destroy(manager_); });
    manager_ = nullptr;
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const int kept = 2 - released[0] - released[1];
    EXPECT_LE(kept, fault.hit() ? 1 : 0) << "one failure must not keep the other graph";
    if (kept == 1) fault.ExpectKept("exec");
    if (outcome.Names("kept for ever")) fault.ExpectKept("event");
    other.Synchronize();
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaGetDevice", "cudaEventCreateWithFlags",
                                         "cudaEventRecord", "cudaThreadExchangeStreamCaptureMode",
                                         "cudaEventSynchronize", "cudaEventDestroy", "cudaGraphExecDestroy"}));
  gcap_sim_set_action(GCAP_SIM_CHECK_ESCAPED_WORK, GCAP_SIM_ACTION_DEFAULT);
}

// --- Replays elsewhere, uploads, dumps ------------------------------------------------------------------------------

TEST_F(GraphFaults, OfAReplayElsewhereLaunchNothingOrSaySo) {
  const RawStream other;
  const Walked walked = WalkFaults([&](Fault& fault) {
    int released = 0;
    CreateWithOptions();
    Capture(0, 1, &released);
    job_->set_input(2);
    const Outcome outcome = fault.During([&] { return ReplayOn(manager_, 0, other.get(), /*synchronize=*/true); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const bool launched = Info(0).replays == 2;
    EXPECT_TRUE(launched || !outcome.Names("was launched")) << outcome.message;
    other.Synchronize();
    EXPECT_EQ(job_->output(), launched ? 2 : 1);
    EXPECT_EQ(State(0), "CAPTURED");
    job_->set_input(3);
    GCAP_EXPECT_OK(ReplayOn(manager_, 0, other.get(), true));
    EXPECT_EQ(job_->output(), 3);
    DestroyManager();
    EXPECT_EQ(released, 1);
  });
  EXPECT_EQ(walked.functions,
            (Functions{"cudaStreamIsCapturing", "cudaStreamGetDevice", "cudaGetDevice", "cudaEventCreateWithFlags",
                       "cudaEventRecord", "cudaStreamWaitEvent", "cudaGraphLaunch",
                       "cudaThreadExchangeStreamCaptureMode", "cudaStreamSynchronize"}));
}

// The launch is out, its order cannot be told, and it cannot be waited for either.
TEST_F(GraphFaults, AReplayElsewhereThatIsLostSightOfKeepsTheGraphForEver) {
  const RawStream other;
  int released = 0;
  CreateWithOptions();
  Capture(0, 1, &released);
  const gcap_sim_fault_t no_order = {"cudaEventRecord", 2, 0, cudaErrorUnknown, 0};
  const gcap_sim_fault_t no_wait = {"cudaStreamSynchronize", 1, 0, cudaErrorUnknown, 0};
  gcap_sim_inject(&no_order);
  gcap_sim_inject(&no_wait);
  GCAP_EXPECT_FAILS(ReplayOn(manager_, 0, other.get(), false), GCAP_CUDA_ERROR, "was launched");
  gcap_sim_clear_faults();
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_LEAKED, "kept for ever");
  EXPECT_EQ(released, 0);
  EXPECT_EQ(State(0), "COLD");
  other.Synchronize();
  ExpectNextRunsAreRight(0);
}

TEST_F(GraphFaults, OfADumpLeaveTheGraphAsItIs) {
  options_.keep_source = true;
  CreateWithOptions();
  int released = 0;
  Capture(0, 1, &released);
  const std::string path = ::testing::TempDir() + "graph_fault_sim_test.dot";
  const Walked walked = WalkFaults([&](Fault& fault) {
    const Outcome outcome = fault.During([&] { return gcap_graph_manager_dump(manager_, 0, path.c_str(), 0); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    ExpectNextRunsAreRight(0);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaGraphDebugDotPrint"}));
  std::remove(path.c_str());
  DestroyManager();
}

// --- Whole runs -----------------------------------------------------------------------------------------------------

TEST_F(GraphFaults, OfAWholeRunGiveItsResultsOrAStatus) {
  for (const bool is_captured : {false, true}) {
    SCOPED_TRACE(is_captured);
    WalkFaults([&](Fault& fault) {
      CreateWithOptions();
      const auto issue = [](void* job, cudaStream_t stream) {
        return GCAP_CUDA(static_cast<CopyJob*>(job)->Issue(stream));
      };
      if (is_captured) Run(0, *job_);
      job_->set_input(7);
      const Outcome outcome =
          fault.During([&] { return RunPlain(manager_, 0, stream_->get(), issue, job_.get(), /*synchronize=*/true); });
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      EXPECT_STRNE(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED") << "it is run again";
      EXPECT_TRUE(!outcome.ok() || job_->output() == 7) << job_->output();
      stream_->Synchronize();
      ExpectNextRunsAreRight(0);
      DestroyManager();
    });
  }
}

// It waited for ever for the manager's lock, which its own thread held.
TEST_F(GraphFaults, OfABeginAreToldToASinkThatMayAskTheManager) {
  struct Sink {
    gcap_graph_manager_t* manager;
    std::string state;
  };
  CreateWithOptions();
  Sink sink = {manager_, ""};
  gcap_log_set_sink(
      [](void* user, gcap_log_level_t, const char*) {
        Sink* self = static_cast<Sink*>(user);
        gcap_graph_info_t info;
        gcap_graph_manager_get_info(self->manager, 0, &info);
        self->state = gcap_graph_state_name(info.state);
      },
      &sink, GCAP_LOG_WARNING);
  gcap_sim_fail_nth("cudaStreamBeginCapture", 1, cudaErrorUnknown);
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_EAGER);
  gcap_log_set_sink(CountLog, &warnings_, GCAP_LOG_WARNING);
  gcap_sim_clear_faults();
  EXPECT_EQ(sink.state, "CAPTURING");
  EXPECT_EQ(State(0), "COOLING");
  EXPECT_TRUE(End().ok());
}

// --- Streams of gcap ------------------------------------------------------------------------------------------------

TEST_F(GraphFaults, OfAskingForAStreamsIdentityAreReported) {
  gcap_stream_t* first = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_USER, 0, 0, &first));
  const Walked walked = WalkFaults([&](Fault& fault) {
    int released = 0;
    CreateWithOptions();
    gcap_stream_t* second = nullptr;
    GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_USER, 0, 0, &second));
    Capture(0, 1, &released);
    GCAP_EXPECT_OK(gcap_stream_destroy(second));
    job_->set_input(2);
    // Its wrapper is gone: another one of the same stream is found.
    const Outcome outcome = fault.During([this] { return Replay(manager_, 0, false); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    stream_->Synchronize();
    EXPECT_EQ(job_->output(), outcome.ok() ? 2 : 1);
    ExpectNextRunsAreRight(0);
    DestroyManager();
    EXPECT_EQ(released, 1);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaStreamGetId", "cudaGraphLaunch"}));
  GCAP_EXPECT_OK(gcap_stream_destroy(first));
}

// --- A device that is lost ------------------------------------------------------------------------------------------

TEST_F(GraphFaults, ADeviceThatIsLostMakesEveryCallAnswerAndDestroyEnd) {
  const PlainWork issue = [](void* job, cudaStream_t stream) {
    return GCAP_CUDA(static_cast<CopyJob*>(job)->Issue(stream));
  };
  for (const char* function : {"cudaGraphLaunch", "cudaStreamEndCapture", "cudaStreamBeginCapture"}) {
    SCOPED_TRACE(function);
    options_.max_graphs = 2;
    CreateWithOptions();
    int released = 0;
    Capture(0, 1, &released);
    Capture(1, 1, &released);
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 1));
    stream_->Synchronize();
    const gcap_sim_fault_t lost = {function, 1, 0, cudaErrorIllegalAddress, /*sticky=*/1};
    gcap_sim_inject(&lost);
    EXPECT_FALSE(Outcome(RunPlain(manager_, 1, stream_->get(), issue, job_.get(), true)).ok());
    EXPECT_FALSE(Outcome(RunPlain(manager_, 2, stream_->get(), issue, job_.get(), true)).ok());
    GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
    GCAP_EXPECT_FAILS(ReplayOn(manager_, 0, nullptr, true), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
    EXPECT_EQ(State(0), "CAPTURED");
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_LEAKED, "cudaErrorIllegalAddress");
    manager_ = nullptr;
    EXPECT_FALSE(gcap_thread_is_capturing());
    gcap_sim_clear_faults();
    (void)cudaGetLastError();
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    GCAP_EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    stream_ = std::make_unique<RawStream>();
  }
}

// --- Without host memory --------------------------------------------------------------------------------------------

// From its first callback on, the heap of this thread is empty. The driver has ended the capture by then: the simulator
// cannot do without memory.
struct EmptyHeap {
  static void FromCloseOn(void* heap, bool) { FromReleaseOn(heap); }
  static void FromReleaseOn(void* heap) {
    static_cast<EmptyHeap*>(heap)->failure = std::make_unique<HeapFailure>(1000);
  }

  std::unique_ptr<HeapFailure> failure;
};

// The code of a failure, by which a run decided to do the work again, was lost with the memory for its message.
TEST_F(GraphFaults, WithoutMemoryAFailedCaptureIsRunAgainOrSaysThatItFailed) {
  struct Scene {
    CopyJob* job;
    EmptyHeap heap;
    int calls, hits;
  };
  const PlainWork work = [](void* user, cudaStream_t stream) -> gcap_status_t {
    Scene* scene = static_cast<Scene*>(user);
    ++scene->calls;
    if (scene->heap.failure != nullptr) scene->hits = scene->heap.failure->hits();
    scene->heap.failure.reset();
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(scene->job->Issue(stream)));
    if (!gcap_thread_is_capturing()) return nullptr;
    GCAP_RETURN_IF_ERROR(gcap_capture_on_close(gcap_capture_current(), EmptyHeap::FromCloseOn, &scene->heap));
    return GCAP_STATUS(GCAP_UNAVAILABLE, "not now");
  };
  for (const bool reruns : {true, false}) {
    SCOPED_TRACE(reruns);
    options_.rerun_failed_capture = reruns;
    CreateWithOptions();
    Scene scene = {job_.get(), {}, 0, 0};
    job_->set_input(9 + reruns);
    gcap_status_t status = RunPlain(manager_, 0, stream_->get(), work, &scene, /*synchronize=*/true);
    if (!reruns) scene.hits = scene.heap.failure->hits();
    scene.heap.failure.reset();
    const Outcome outcome(status);
    EXPECT_GT(scene.hits, 1);
    EXPECT_EQ(scene.calls, reruns ? 2 : 1);
    EXPECT_STREQ(gcap_code_name(outcome.code), reruns ? "OK" : "CAPTURE_INVALIDATED") << outcome.message;
    EXPECT_TRUE(!reruns || job_->output() == 10);
    DestroyManager();
  }
}

// An end that had to leave something behind says so by its code alone, by which the caller knows that the object is
// gone.
TEST_F(GraphFaults, WithoutMemoryAnEndThatLeavesSomethingBehindKeepsItsCode) {
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(whole);
    EmptyHeap heap;
    CreateWithOptions();
    ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), EmptyHeap::FromReleaseOn, /*bytes=*/nullptr, &heap));
    EXPECT_TRUE(End().ok());
    gcap_sim_fail_nth("cudaGraphExecDestroy", 1, cudaErrorUnknown);
    gcap_status_t status = whole ? gcap_graph_manager_destroy(manager_) : gcap_graph_manager_release(manager_, 0);
    EXPECT_GT(heap.failure->hits(), 0);
    heap.failure.reset();
    gcap_sim_clear_faults();
    const Outcome outcome(status);
    EXPECT_STREQ(gcap_code_name(outcome.code), "LEAKED");
    EXPECT_TRUE(outcome.Names("cudaGraphExecDestroy")) << outcome.message;
    if (whole) manager_ = nullptr;
    if (!whole) DestroyManager();
  }
}

TEST_F(GraphFaults, WithoutMemoryACaptureEndsAsAFailedOne) {
  int hits = 1;
  for (int count = 1; hits == count; ++count) {
    SCOPED_TRACE(count);
    ASSERT_LT(count, 30);
    int released[2] = {0, 0};
    CreateWithOptions();
    Capture(0, 1, &released[0]);
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
    BeginAndIssue(0, 2, 1, &released[1]);
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory(count);
      status = EndPlain(manager_, nullptr, true);
      hits = no_memory.hits();
    }
    const Outcome outcome(status);
    const bool captured = gcap_graph_manager_is_captured(manager_, 0);
    EXPECT_TRUE(captured || !outcome.ok());
    stream_->Synchronize();
    EXPECT_EQ(job_->output(), captured ? 2 : 1);
    ExpectNextRunsAreRight(0);
    DestroyManager();
    EXPECT_EQ(released[0], 1);
    EXPECT_EQ(released[1], 1);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
