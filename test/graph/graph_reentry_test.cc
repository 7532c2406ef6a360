// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Everything from everywhere: each callback that the graph manager may cause calls each function of the manager. Most
// of them waited for ever for a mutex that their own thread held; a destroy freed what the call above used afterwards.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kReplayed = 90, kReleased = 91, kBegun = 92, kScene = 0;

class GraphReentry : public ManagerTest {
 public:
  using ManagerTest::manager_;

  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    job_ = std::make_unique<CopyJob>();
    beside_job_ = std::make_unique<CopyJob>();
    beside_ = std::make_unique<RawStream>();
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
    options_.keep_source = true;
    options_.on_evict = [](void* test, int, const gcap_graph_info_t*) {
      GraphReentry* self = static_cast<GraphReentry*>(test);
      if (self->in_on_evict_) self->CallEverything();
    };
    options_.user = this;
    gcap_log_set_sink(
        [](void* test, gcap_log_level_t, const char*) {
          GraphReentry* self = static_cast<GraphReentry*>(test);
          ++self->warnings_;
          if (self->in_sink_) self->CallEverything();
        },
        this, GCAP_LOG_WARNING);
  }
  void TearDown() override {
    in_sink_ = in_on_evict_ = in_bytes_ = in_release_ = in_step_ = false;
    ManagerTest::TearDown();
    beside_.reset();
    beside_job_.reset();
    job_.reset();
  }

  // With graphs on a stream of their own, which the callbacks may replay and release.
  void CreateScene() {
    GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_));
    calls_ = 0;
    CaptureBeside(kReplayed);
  }
  void CaptureBeside(int id) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_ASSERT_OK(BeginPlain(manager_, id, beside_->get(), &kind));
    GCAP_EXPECT_CUDA(beside_job_->Issue(beside_->get()));
    GCAP_ASSERT_OK(EndPlain(manager_, nullptr, true));
  }

  // The callbacks of a capture, each of which calls everything if its flag is set.
  static void Step(void* test, bool) {
    if (Self(test)->in_step_) Self(test)->CallEverything();
  }
  static void Release(void* test) {
    if (Self(test)->in_release_) Self(test)->CallEverything();
  }
  static size_t Bytes(void* test) {
    if (Self(test)->in_bytes_) Self(test)->CallEverything();
    return 1;
  }
  static GraphReentry* Self(void* test) { return static_cast<GraphReentry*>(test); }

  void BeginWithCallbacks(int id) {
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_on_close(gcap_capture_current(), Step, this));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), Release, Bytes, this));
  }
  void CaptureWithCallbacks(int id) {
    BeginWithCallbacks(id);
    EXPECT_TRUE(End().ok());
  }

  void CallEverything() {
    if (inside_) return;  // what it causes does not call it again
    inside_ = true;
    ++calls_;
    const bool may_launch = !gcap_thread_is_capturing();
    AskEverything();
    if (may_launch) {
      beside_job_->set_input(++value_);
      GCAP_EXPECT_OK(Replay(manager_, kReplayed, true));
      EXPECT_EQ(beside_job_->output(), value_);
      beside_job_->set_input(++value_);
      GCAP_EXPECT_OK(RunPlain(manager_, kReplayed, beside_->get(), Issue, beside_job_.get(), true));
      EXPECT_EQ(beside_job_->output(), value_);
      GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, kReleased), GCAP_NOT_FOUND, "graph id 91");
      CaptureElsewhere();
    }
    BeginARun();
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "");
    gcap_log(GCAP_LOG_DEBUG, "from a callback");
    inside_ = false;
  }
  void AskEverything() {
    EXPECT_EQ(State(kReplayed), "CAPTURED");
    EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, kReplayed));
    (void)Info(kScene);
    gcap_status_free(gcap_graph_manager_explain(manager_, kScene, GCAP_GRAPH_WHY_CAPTURE_FAILED));
    GCAP_EXPECT_OK(gcap_graph_manager_dump(manager_, kReplayed, "/dev/null", 0));
    GCAP_EXPECT_FAILS(gcap_graph_manager_recapture(manager_, kReleased), GCAP_NOT_FOUND, "91");
  }
  void CaptureElsewhere() {
    const RawStream stream;
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }
  // A run inside of the begin or the end of another one is refused; elsewhere it goes well.
  void BeginARun() {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    const Outcome begun(BeginPlain(manager_, GCAP_GRAPH_ID_NONE, beside_->get(), &kind));
    const Outcome ended(EndPlain(manager_, nullptr, true));
    EXPECT_STREQ(gcap_code_name(begun.code), runs_are_refused_ ? "FAILED_PRECONDITION" : "OK") << begun.message;
    EXPECT_STREQ(gcap_code_name(ended.code), runs_are_refused_ ? "FAILED_PRECONDITION" : "OK") << ended.message;
  }
  static gcap_status_t Issue(void* job, cudaStream_t stream) {
    return GCAP_CUDA(static_cast<CopyJob*>(job)->Issue(stream));
  }

  gcap_graph_manager_options_t options_;
  std::unique_ptr<CopyJob> job_, beside_job_;
  std::unique_ptr<RawStream> beside_;
  bool in_sink_ = false, in_on_evict_ = false, in_bytes_ = false, in_release_ = false, in_step_ = false;
  bool inside_ = false;
  bool runs_are_refused_ = true;
  int calls_ = 0;
  int value_ = 0;
};

TEST_F(GraphReentry, FromTheLogSinkThatHearsOfARunThatWasNotEnded) {
  for (const int id : {GCAP_GRAPH_ID_NONE, kScene}) {
    SCOPED_TRACE(id);
    CreateScene();
    (void)Begin(id);
    in_sink_ = true;
    EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
    in_sink_ = false;
    EXPECT_TRUE(End().ok());
    EXPECT_EQ(calls_, 1);
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }
}

// The sink heard of the run before it was aborted. A capture of the sink's own aborted it, and freed its scope, which
// the manager then aborted a second time.
TEST_F(GraphReentry, FromTheLogSinkThatBeginsACapture) {
  CreateScene();
  ASSERT_EQ(Begin(kScene), GCAP_GRAPH_RUN_CAPTURE);
  gcap_log_set_sink(
      [](void* test, gcap_log_level_t, const char*) {
        GraphReentry* const self = Self(test);
        if (self->calls_++ > 0) return;
        EXPECT_FALSE(gcap_thread_is_capturing()) << "the run is aborted already";
        self->CaptureElsewhere();
      },
      this, GCAP_LOG_WARNING);
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  EXPECT_TRUE(End().ok());
  EXPECT_GE(calls_, 1);
  EXPECT_EQ(State(kScene), "READY");
}

// While a thread closes the run of a thread that has exited, others are refused. The owner was dead, so they closed the
// same run a second time, and opened their own in between.
TEST_F(GraphReentry, FromTheLogSinkThatHearsOfTheRunOfAnExitedThread) {
  for (const bool by_another_thread : {false, true}) {
    SCOPED_TRACE(by_another_thread);
    GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_));
    std::thread([this] { EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER); }).join();
    struct Scene {
      GraphReentry* test;
      bool by_another_thread;
      int calls;
    } scene = {this, by_another_thread, 0};
    gcap_log_set_sink(
        [](void* user, gcap_log_level_t, const char*) {
          Scene* const self = static_cast<Scene*>(user);
          if (self->calls++ > 0) return;
          const auto enter = [self] {
            gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
            gcap_graph_manager_t* manager = self->test->manager_;
            GCAP_EXPECT_FAILS(BeginPlain(manager, kBegun, self->test->beside_->get(), &kind), GCAP_FAILED_PRECONDITION,
                              "just being begun or ended");
            GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager), GCAP_FAILED_PRECONDITION, "");
          };
          if (self->by_another_thread) {
            std::thread(enter).join();
          } else {
            enter();
          }
        },
        &scene, GCAP_LOG_WARNING);
    EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
    EXPECT_TRUE(End().ok());
    EXPECT_EQ(scene.calls, 1);
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }
}

TEST_F(GraphReentry, FromTheLogSinkThatHearsOfACaptureWithoutANode) {
  CreateScene();
  ASSERT_EQ(Begin(kScene), GCAP_GRAPH_RUN_CAPTURE);
  in_sink_ = true;
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(State(kScene), "CAPTURED");
}

TEST_F(GraphReentry, FromTheLogSinkThatHearsOfARunThatIsDoneAgain) {
  CreateScene();
  in_sink_ = true;
  runs_are_refused_ = false;
  static int calls;
  calls = 0;
  const PlainWork fails_once = [](void* job, cudaStream_t stream) {
    return calls++ == 0 ? GCAP_STATUS(GCAP_INTERNAL, "the first time") : Issue(job, stream);
  };
  GCAP_EXPECT_OK(RunPlain(manager_, kScene, stream_->get(), fails_once, job_.get(), true));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(calls, 2);
}

TEST_F(GraphReentry, FromACloseStep) {
  CreateScene();
  in_step_ = true;
  CaptureWithCallbacks(kScene);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(State(kScene), "CAPTURED");
  BeginWithCallbacks(kScene + 1);
  EXPECT_STREQ(gcap_code_name(End(GCAP_STATUS(GCAP_INTERNAL, "no")).code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(calls_, 2);
  BeginWithCallbacks(kScene + 2);
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);  // aborts it
  EXPECT_EQ(calls_, 3);
  EXPECT_TRUE(End().ok());
}

// A close step of a capture that its run's owner gave up by itself. The end of the run was accepted here, and so was
// the destroy after it; the scope then told a manager that was freed.
TEST_F(GraphReentry, FromACloseStepBehindTheManagersBack) {
  CreateScene();
  BeginWithCallbacks(kScene);
  in_step_ = true;
  inside_ = true;  // only what may be wrong here, since no call of the manager is under way
  static GraphReentry* self;
  self = this;
  GCAP_EXPECT_OK(gcap_capture_on_close(
      gcap_capture_current(),
      [](void*, bool) {
        gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
        GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(self->manager_), GCAP_FAILED_PRECONDITION, "begun or ended");
        GCAP_EXPECT_FAILS(BeginPlain(self->manager_, GCAP_GRAPH_ID_NONE, self->beside_->get(), &kind),
                          GCAP_FAILED_PRECONDITION, "begun or ended");
        GCAP_EXPECT_FAILS(EndPlain(self->manager_, nullptr, false), GCAP_FAILED_PRECONDITION,
                          "begun or ended, and this is a callback");
      },
      nullptr));
  gcap_capture_abort(gcap_capture_current());
  EXPECT_STREQ(gcap_code_name(End().code), "CAPTURE_INVALIDATED");
}

TEST_F(GraphReentry, FromTheReleaseOfAFailedCapture) {
  CreateScene();
  BeginWithCallbacks(kScene);
  in_release_ = true;
  EXPECT_STREQ(gcap_code_name(End(GCAP_STATUS(GCAP_INTERNAL, "no")).code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(calls_, 1);
}

TEST_F(GraphReentry, FromTheReleaseOfAGraph) {
  CreateScene();
  CaptureWithCallbacks(kScene);
  in_release_ = true;
  runs_are_refused_ = false;
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kScene));
  EXPECT_EQ(calls_, 1);
}

// In destroy the graphs are gone already, runs are refused, and so is a second destroy.
TEST_F(GraphReentry, FromAReleaseInDestroy) {
  static gcap_graph_manager_t* manager;
  static cudaStream_t stream;
  static int calls;
  calls = 0;
  CreateScene();
  manager = manager_;
  stream = stream_->get();
  ASSERT_EQ(Begin(kScene), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
  GCAP_EXPECT_OK(gcap_capture_retain(
      gcap_capture_current(),
      [](void*) {
        ++calls;
        gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
        GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager), GCAP_FAILED_PRECONDITION, "has not returned");
        GCAP_EXPECT_FAILS(BeginPlain(manager, kBegun, stream, &kind), GCAP_FAILED_PRECONDITION, "is being destroyed");
        EXPECT_FALSE(gcap_graph_manager_is_captured(manager, kReplayed));
        GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager));
      },
      /*bytes=*/nullptr, nullptr));
  EXPECT_TRUE(End().ok());
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
  EXPECT_EQ(calls, 1);
}

TEST_F(GraphReentry, FromBytes) {
  options_.max_bytes = 100 * kMany;
  CreateScene();
  CaptureWithCallbacks(kScene);
  in_bytes_ = true;
  runs_are_refused_ = false;
  EXPECT_EQ(RetainedBytes(kScene), 1u);
  EXPECT_EQ(calls_, 1);
  calls_ = 0;
  runs_are_refused_ = true;
  ASSERT_EQ(Begin(kScene + 1), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
  EXPECT_TRUE(End().ok());
  EXPECT_GE(calls_, 1) << "the budget asks";
}

// What a graph retains while somebody asks for its bytes is released when the answer is there.
TEST_F(GraphReentry, BytesMayReleaseTheirGraph) {
  static gcap_graph_manager_t* manager;
  static int released, asked;
  released = asked = 0;
  options_.max_bytes = 100 * kMany;
  CreateScene();
  manager = manager_;
  for (const bool by_budget : {false, true}) {
    released = asked = 0;
    ASSERT_EQ(Begin(kScene), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(
        gcap_capture_current(), [](void*) { ++released; },
        [](void*) {
          if (asked++ == 0) return size_t{1};
          GCAP_EXPECT_OK(gcap_graph_manager_release(manager, kScene));
          EXPECT_EQ(released, 0);
          return size_t{1};
        },
        nullptr));
    EXPECT_TRUE(End().ok());
    EXPECT_EQ(asked, 1);
    if (by_budget) {
      CaptureBeside(kReleased);
    } else {
      EXPECT_EQ(RetainedBytes(kScene), 1u);
    }
    EXPECT_EQ(released, 1);
    EXPECT_EQ(State(kScene), "COLD");
  }
}

// A replay while the budget asks, as another thread may do it, took its graph out of the walk: a new graph that was not
// asked counted nothing, and the budget was exceeded.
TEST_F(GraphReentry, ReplaysHideNoGraphFromTheBudget) {
  static gcap_graph_manager_t* manager;
  static int newest;
  static bool is_inside;
  options_.max_bytes = 1500 * kMany;
  options_.on_evict = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_));
  manager = manager_;
  const auto bytes = [](void*) {
    bool replayed = false;
    if (!is_inside) {
      is_inside = true;
      for (int id = 0; id <= newest; ++id) GCAP_EXPECT_OK(TryReplay(manager, id, /*synchronize=*/false, &replayed));
      is_inside = false;
    }
    return 1000 * kMany;
  };
  size_t sum = 0;
  for (newest = 0; newest < 4; ++newest) {
    ASSERT_EQ(Begin(newest), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(
        gcap_capture_current(), [](void*) {}, bytes, nullptr));
    EXPECT_TRUE(End().ok());
  }
  newest = -1;
  for (int id = 0; id < 4; ++id) sum += RetainedBytes(id);
  EXPECT_EQ(sum, 1000 * kMany) << "one graph fits into the budget";
}

TEST_F(GraphReentry, FromOnEvict) {
  options_.max_graphs = 2;
  CreateScene();
  CaptureWithCallbacks(kScene);
  GCAP_EXPECT_OK(Replay(manager_, kReplayed, true));
  in_on_evict_ = true;
  in_release_ = true;
  runs_are_refused_ = false;
  CaptureWithCallbacks(kScene + 1);
  EXPECT_EQ(State(kScene), "READY");
  EXPECT_GE(calls_, 1);
}

TEST_F(GraphReentry, FromTheWorkOfARun) {
  CreateScene();
  static GraphReentry* self;
  self = this;
  const PlainWork work = [](void* job, cudaStream_t stream) {
    self->AskEverything();
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(self->manager_), GCAP_FAILED_PRECONDITION, "has not returned yet");
    return Issue(job, stream);
  };
  GCAP_EXPECT_OK(RunPlain(manager_, kScene, stream_->get(), work, job_.get(), true));
  EXPECT_EQ(State(kScene), "CAPTURED");
  GCAP_EXPECT_OK(RunPlain(manager_, GCAP_GRAPH_ID_NONE, stream_->get(), work, job_.get(), true));
}

// The end of the run by its own work is against the rules; the manager was then destroyed under its run.
TEST_F(GraphReentry, FromWorkThatHasEndedItsRun) {
  CreateScene();
  static GraphReentry* self;
  self = this;
  const PlainWork work = [](void*, cudaStream_t) {
    GCAP_EXPECT_OK(EndPlain(self->manager_, nullptr, /*synchronize=*/false));
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(self->manager_), GCAP_FAILED_PRECONDITION, "has not returned yet");
    return gcap_status_t(nullptr);
  };
  GCAP_EXPECT_FAILS(RunPlain(manager_, GCAP_GRAPH_ID_NONE, stream_->get(), work, nullptr, true),
                    GCAP_FAILED_PRECONDITION, "no run");
}

// One thread begins and ends runs, without the manager's lock; others replay, ask and release meanwhile.
TEST_F(GraphReentry, BesideOtherThreads) {
  constexpr int kIds = 6;
  options_.max_graphs = 4;
  options_.max_bytes = 100 * kMany;
  options_.on_evict = nullptr;
  gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_WARNING);
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_));
  std::atomic<bool> stop{false};
  std::atomic<int> replays{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t, &stop, &replays] {
      for (int i = t; !stop; ++i) {
        (void)Info(i % kIds);
        bool replayed = false;
        const Outcome outcome(TryReplay(manager_, i % kIds, /*synchronize=*/false, &replayed));
        EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_FAILED_PRECONDITION) << outcome.message;
        replays += replayed;
        if (i % 16 != 0) continue;
        const Outcome released(gcap_graph_manager_release(manager_, i % kIds));
        EXPECT_TRUE(released.ok() || released.code == GCAP_FAILED_PRECONDITION || released.code == GCAP_NOT_FOUND)
            << released.message;
      }
    });
  }
  int captures = 0;
  for (int i = 0; i < 300 || replays == 0; ++i) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    const Outcome begun(BeginPlain(manager_, i % kIds, stream_->get(), &kind));
    if (begun.code == GCAP_ALREADY_EXISTS) continue;
    EXPECT_TRUE(begun.ok()) << begun.message;
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
    if (HasFailure()) break;
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), Release, Bytes, this));
    const Outcome ended = End();
    EXPECT_TRUE(ended.ok()) << "nobody broke the capture: " << ended.message;
    ++captures;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(captures, 0);
  stream_->Synchronize();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
