// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Thread contexts: one a thread and set, and gone with whichever ends first. What any object of a thread does as the
// thread and its set come and go is in test/internal/affine_test.cc, and what managers do in test/graph.

#include "lib/runtime/thread_context.h"

#include <pthread.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/held_thread.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace {

using gcap::testing::HeldThread;
using gcap::testing::LogCatcher;
using gcap::testing::Outcome;
using gcap::testing::RawStream;

gcap_thread_context_t* Get(gcap_thread_contexts_t* set) {
  gcap_thread_context_t* context = nullptr;
  GCAP_EXPECT_OK(gcap_thread_contexts_get(set, &context));
  return context;
}
gcap_stream_t* StreamOf(gcap_thread_contexts_t* set) { return gcap_thread_context_stream(Get(set)); }
cudaStream_t HandleOf(gcap_thread_contexts_t* set) { return gcap_stream_handle(StreamOf(set)); }
gcap_graph_manager_t* GraphsOf(gcap_thread_contexts_t* set) { return gcap_thread_context_graphs(Get(set)); }

// Begins a run of id 0 on a stream, and tells whether the run is captured.
bool BeginCaptured(gcap_graph_manager_t* graphs, cudaStream_t stream, int id = 0) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(BeginPlain(graphs, id, stream, &kind));
  return kind == GCAP_GRAPH_RUN_CAPTURE;
}
void End(gcap_graph_manager_t* graphs) { GCAP_EXPECT_OK(EndPlain(graphs, nullptr, /*synchronize=*/true)); }

// A capture without gcap.
void BeginRaw(cudaStream_t stream) {
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
}
void EndRaw(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

class ThreadContexts : public gcap::testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    gcap_thread_contexts_options_init(&options_);
    options_.graph.min_num_runs_before_capture = 0;
    options_.on_end = [](void* self, gcap_stream_t* stream) {
      ThreadContexts* const test = static_cast<ThreadContexts*>(self);
      ++test->ends_;
      test->last_thread_ = pthread_self();
      if (gcap_stream_has_finished(stream, gcap_stream_sync_id(stream) - 1)) ++test->ends_with_idle_stream_;
      return gcap_status_t(nullptr);
    };
    options_.user = this;
  }
  gcap_thread_contexts_t* Create() {
    gcap_thread_contexts_t* set = nullptr;
    GCAP_EXPECT_OK(gcap_thread_contexts_create(&options_, &set));
    return set;
  }
  gcap_thread_contexts_t* CreateShared() {
    options_.shared = true;
    return Create();
  }

  gcap_thread_contexts_options_t options_;
  std::atomic<int> ends_{0}, ends_with_idle_stream_{0};
  std::atomic<pthread_t> last_thread_{};
};

TEST_F(ThreadContexts, UserStreamWithoutSharingIsRefused) {
  options_.has_user_stream = true;
  gcap_thread_contexts_t* set = reinterpret_cast<gcap_thread_contexts_t*>(this);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_create(&options_, &set), GCAP_INVALID_ARGUMENT, "shared");
  EXPECT_EQ(set, nullptr);
}

// Whoever captures it.
TEST_F(ThreadContexts, AnEndWhoseStreamIsCapturingIsRefusedBefore) {
  for (const bool shared : {false, true}) {
    options_.shared = shared;
    gcap_thread_contexts_t* set = Create();
    const cudaStream_t stream = gcap_stream_handle(StreamOf(set));
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    GCAP_EXPECT_FAILS(gcap_thread_contexts_check_end(set), GCAP_FAILED_PRECONDITION, "is capturing");
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    GCAP_EXPECT_OK(gcap_thread_contexts_check_end(set));
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
}

TEST_F(ThreadContexts, ContextIsMadeOnFirstUseAndKept) {
  gcap_thread_contexts_t* set = Create();
  EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
  gcap_thread_context_t* context = Get(set);
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(Get(set), context);
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  EXPECT_EQ(gcap_stream_ownership(StreamOf(set)), GCAP_STREAM_OWNED);
  EXPECT_EQ(gcap_stream_device(StreamOf(set)), 0);
  EXPECT_TRUE(gcap_stream_can_capture(StreamOf(set)));
  EXPECT_FALSE(gcap_graph_manager_is_captured(GraphsOf(set), 0));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, SetsHaveTheirOwn) {
  gcap_thread_contexts_t *a = Create(), *b = Create();
  EXPECT_NE(Get(a), Get(b));
  EXPECT_NE(StreamOf(a), StreamOf(b));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(a));
  EXPECT_EQ(gcap_thread_contexts_count(b), 1u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(b));
}

TEST_F(ThreadContexts, ContextEndsWithItsThread) {
  gcap_thread_contexts_t* set = Create();
  Get(set);
  pthread_t thread_id{};
  std::thread([&] {
    Get(set);
    thread_id = pthread_self();
    EXPECT_EQ(ends_, 0);
  }).join();
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(pthread_equal(last_thread_, thread_id)) << "ended by the thread that it belonged to";
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_, 2);
}

TEST_F(ThreadContexts, ContextsOfLivingThreadsEndWithTheirSet) {
  gcap_thread_contexts_t *set = Create(), *other_set = Create();
  HeldThread thread([&] {
    Get(set);
    Get(other_set);
  });
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(pthread_equal(last_thread_, pthread_self())) << "ended by the thread that ends the set";
  thread.Release();
  EXPECT_EQ(ends_, 2) << "the context of the set that is gone does not end twice";
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(other_set));
  EXPECT_EQ(ends_, 2);
}

TEST_F(ThreadContexts, OnEndFindsTheStreamIdleAndAlive) {
  gcap_thread_contexts_t* set = Create();
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  std::thread([&] { EXPECT_EQ(cudaMemsetAsync(memory, 0x5a, 4096, HandleOf(set)), cudaSuccess); }).join();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(ends_with_idle_stream_, 1);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(ThreadContexts, GraphsAreReleasedBeforeOnEnd) {
  struct Seen {
    int retained_released = 0;
    int at_end = -1;
  } seen;
  options_.user = &seen;
  options_.on_end = [](void* user, gcap_stream_t*) {
    static_cast<Seen*>(user)->at_end = static_cast<Seen*>(user)->retained_released;
    return gcap_status_t(nullptr);
  };
  gcap_thread_contexts_t* set = Create();
  std::thread([&] {
    EXPECT_TRUE(BeginCaptured(GraphsOf(set), HandleOf(set)));
    const auto release = [](void* user) { static_cast<Seen*>(user)->retained_released = 1; };
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), release, /*bytes=*/nullptr, &seen));
    End(GraphsOf(set));
    EXPECT_EQ(seen.retained_released, 0);
  }).join();
  EXPECT_EQ(seen.at_end, 1);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, StreamThatOnEndCannotLetGoIsKeptAndTheStatusSaysSo) {
  gcap_stream_t* kept = nullptr;
  options_.user = &kept;
  options_.on_end = [](void* user, gcap_stream_t* stream) {
    *static_cast<gcap_stream_t**>(user) = stream;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "somebody has a block of it");
  };
  gcap_thread_contexts_t* set = Create();
  gcap_stream_t* stream = StreamOf(set);
  const Outcome outcome(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(outcome.code, GCAP_LEAKED) << "the set is gone. Was: what on_end answered";
  EXPECT_TRUE(outcome.Names("kept for ever")) << outcome.message;
  EXPECT_TRUE(outcome.Names("somebody has a block of it")) << outcome.message;
  EXPECT_EQ(kept, stream);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(ThreadContexts, CapturingThreadGetsTheContextThatItHasButNoNewOne) {
  gcap_thread_contexts_t *old_set = Create(), *new_set = Create();
  gcap_thread_context_t* const old_context = Get(old_set);
  const cudaStream_t stream = HandleOf(old_set);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  EXPECT_EQ(Get(old_set), old_context);
  EXPECT_EQ(HandleOf(old_set), stream);
  EXPECT_NE(GraphsOf(old_set), nullptr);
  gcap_thread_context_t* context = old_context;
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(new_set, &context), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(gcap_thread_contexts_count(new_set), 0u);
  gcap_capture_abort(capture);
  EXPECT_NE(Get(new_set), nullptr);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(new_set));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(old_set));
}

TEST_F(ThreadContexts, SharedContextIsOneHoweverManyThreadsMakeItAtOnce) {
  for (int round = 0; round < 20; ++round) {
    gcap_thread_contexts_t* set = CreateShared();
    std::vector<gcap_thread_context_t*> seen(4);
    std::atomic<bool> start{false};
    std::vector<std::thread> threads;
    for (gcap_thread_context_t*& context : seen) {
      threads.emplace_back([&] {
        while (!start) std::this_thread::yield();
        context = Get(set);
      });
    }
    start = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set<gcap_thread_context_t*>(seen.begin(), seen.end()).size(), 1u);
    EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
    EXPECT_EQ(ends_, round) << "the threads that made it may go";
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
}

TEST_F(ThreadContexts, NullIsAnswered) {
  gcap_thread_contexts_t* set = nullptr;
  GCAP_EXPECT_FAILS(gcap_thread_contexts_create(nullptr, &set), GCAP_INVALID_ARGUMENT, "options is NULL");
  EXPECT_EQ(set, nullptr);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_create(&options_, nullptr), GCAP_INVALID_ARGUMENT, "out_contexts is NULL");
  gcap_thread_context_t* context = reinterpret_cast<gcap_thread_context_t*>(&set);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(nullptr, &context), GCAP_INVALID_ARGUMENT, "contexts is NULL");
  EXPECT_EQ(context, nullptr);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(nullptr));
  set = Create();
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(set, nullptr), GCAP_INVALID_ARGUMENT, "out_context is NULL");
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// Was: the set was freed while it said that nothing was destroyed, and the contexts that came first had ended.
TEST_F(ThreadContexts, WhileOneContextCannotEndNoneDoes) {
  enum { kStreamCaptures, kGraphsStreamCaptures, kRunOfAThread };
  const RawStream raw;
  for (int reason : {kStreamCaptures, kGraphsStreamCaptures, kRunOfAThread}) {
    SCOPED_TRACE(reason);
    ends_ = 0;
    gcap_thread_contexts_t* set = Create();
    // Three contexts with a graph each; the second one is in the way.
    gcap_graph_manager_t* graphs[3] = {};
    cudaStream_t captured = nullptr;
    const auto capture_graph = [&](int i) {
      graphs[i] = GraphsOf(set);
      const cudaStream_t stream = i == 1 && reason == kGraphsStreamCaptures ? raw.get() : HandleOf(set);
      if (i == 1) captured = stream;
      EXPECT_TRUE(BeginCaptured(graphs[i], stream));
      End(graphs[i]);
      if (i == 1 && reason == kRunOfAThread) {
        EXPECT_FALSE(BeginCaptured(graphs[i], stream, GCAP_GRAPH_ID_NONE));
      }
    };
    HeldThread first([&] { capture_graph(0); });
    HeldThread second([&] { capture_graph(1); });
    HeldThread third([&] { capture_graph(2); });
    if (reason != kRunOfAThread) BeginRaw(captured);
    const char* culprit = reason == kRunOfAThread ? "has a run" : "is capturing";
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_FAILED_PRECONDITION, culprit);
    EXPECT_EQ(ends_, 0);
    EXPECT_EQ(gcap_thread_contexts_count(set), 3u);
    for (int i : {0, 2}) EXPECT_TRUE(gcap_graph_manager_is_captured(graphs[i], 0));
    if (reason != kRunOfAThread) EndRaw(captured);
    if (reason == kRunOfAThread) second.Release();  // whose exit ends its run
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
    EXPECT_EQ(ends_, 3);
    first.Release();
    if (reason != kRunOfAThread) second.Release();
    third.Release();
  }
}

// Whichever module ends first what it has of the thread: the context is older than the capture here.
TEST_F(ThreadContexts, ContextOfAThreadThatExitsInsideACaptureEndsAllTheSame) {
  gcap_thread_contexts_t* set = Create();
  LogCatcher log;
  std::thread([&] {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(HandleOf(set), nullptr, &capture));
  }).join();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(ends_with_idle_stream_, 1);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  EXPECT_NE(log.text().find("exits inside"), std::string::npos) << log.text();
  EXPECT_EQ(log.text().find("kept for ever"), std::string::npos) << log.text();
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// The run that is left is a captured one, then an eager one. A shared context stays, and is usable.
TEST_F(ThreadContexts, ContextOfAThreadThatExitsInsideARunEndsAllTheSame) {
  for (const bool shared : {false, true}) {
    for (const bool captures : {true, false}) {
      ends_ = 0;
      options_.shared = shared;
      options_.graph.min_num_runs_before_capture = captures ? 0 : 2;
      gcap_thread_contexts_t* set = Create();
      LogCatcher log;
      std::thread([&] { EXPECT_EQ(BeginCaptured(GraphsOf(set), HandleOf(set)), captures); }).join();
      EXPECT_EQ(gcap_thread_contexts_count(set), shared ? 1u : 0u);
      EXPECT_EQ(ends_, shared ? 0 : 1);
      EXPECT_EQ(log.text().find("kept for ever"), std::string::npos) << log.text();
      EXPECT_EQ(BeginCaptured(GraphsOf(set), HandleOf(set)), captures);
      End(GraphsOf(set));
      GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
    }
  }
}

}  // namespace
