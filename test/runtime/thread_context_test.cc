// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Thread contexts: one a thread and set, and gone with whichever ends first.

#include "lib/runtime/thread_context.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include "test/support/replays.h"

namespace {

using gcap::testing::HeldThread;
using gcap::testing::LogCatcher;
using gcap::testing::Outcome;
using gcap::testing::RawStream;

// What on_end saw.
struct Ends {
  std::atomic<int> count{0};
  std::atomic<int> with_idle_stream{0};
  std::atomic<pthread_t> last_thread{};
};

gcap_status_t OnEnd(void* user, gcap_stream_t* stream) {
  Ends* ends = static_cast<Ends*>(user);
  ++ends->count;
  ends->last_thread = pthread_self();
  if (gcap_stream_has_finished(stream, gcap_stream_sync_id(stream) - 1)) ++ends->with_idle_stream;
  return nullptr;
}

class ThreadContexts : public gcap::testing::DeviceTest {
 protected:
  gcap_thread_contexts_options_t Options() {
    gcap_thread_contexts_options_t options;
    gcap_thread_contexts_options_init(&options);
    options.on_end = OnEnd;
    options.user = &ends_;
    return options;
  }

  gcap_thread_contexts_t* Create() { return Create(Options()); }
  gcap_thread_contexts_t* Create(const gcap_thread_contexts_options_t& options) {
    gcap_thread_contexts_t* set = nullptr;
    GCAP_EXPECT_OK(gcap_thread_contexts_create(&options, &set));
    return set;
  }

  static gcap_thread_context_t* Get(gcap_thread_contexts_t* set) {
    gcap_thread_context_t* context = nullptr;
    GCAP_EXPECT_OK(gcap_thread_contexts_get(set, &context));
    return context;
  }

  Ends ends_;
};

TEST_F(ThreadContexts, OptionsDefaultToOneContextAThreadOnDeviceZero) {
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  EXPECT_EQ(options.device_id, 0);
  EXPECT_FALSE(options.shared);
  EXPECT_FALSE(options.has_user_stream);
  EXPECT_EQ(options.on_end, nullptr);
  gcap_graph_manager_options_t graph;
  gcap_graph_manager_options_init(&graph);
  EXPECT_EQ(options.graph.min_num_runs_before_capture, graph.min_num_runs_before_capture);
  EXPECT_EQ(options.graph.backoff_runs, graph.backoff_runs);
}

TEST_F(ThreadContexts, UserStreamWithoutSharingIsRefused) {
  gcap_thread_contexts_options_t options = Options();
  options.has_user_stream = true;
  gcap_thread_contexts_t* set = reinterpret_cast<gcap_thread_contexts_t*>(&options);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_create(&options, &set), GCAP_INVALID_ARGUMENT, "shared");
  EXPECT_EQ(set, nullptr);
}

TEST_F(ThreadContexts, DestroyOfNullIsFine) { GCAP_EXPECT_OK(gcap_thread_contexts_destroy(nullptr)); }

TEST_F(ThreadContexts, ContextIsMadeOnFirstUseAndKept) {
  gcap_thread_contexts_t* set = Create();
  EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
  gcap_thread_context_t* context = Get(set);
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  EXPECT_EQ(Get(set), context);
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  EXPECT_EQ(gcap_stream_ownership(stream), GCAP_STREAM_OWNED);
  EXPECT_EQ(gcap_stream_device(stream), 0);
  EXPECT_TRUE(gcap_stream_can_capture(stream));
  EXPECT_FALSE(gcap_graph_manager_is_captured(gcap_thread_context_graphs(context), 0));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, GraphOptionsReachTheManager) {
  gcap_thread_contexts_options_t options = Options();
  options.graph.min_num_runs_before_capture = 0;
  gcap_thread_contexts_t* set = Create(options);
  gcap_thread_context_t* context = Get(set);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_ASSERT_OK(BeginPlain(graphs, 0, gcap_stream_handle(gcap_thread_context_stream(context)), &kind));
  EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(EndPlain(graphs, nullptr, true));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, ThreadsHaveTheirOwn) {
  gcap_thread_contexts_t* set = Create();
  gcap_thread_context_t* const mine = Get(set);
  gcap_thread_context_t* other = nullptr;
  cudaStream_t other_handle = nullptr;
  std::thread([&] {
    other = Get(set);
    other_handle = gcap_stream_handle(gcap_thread_context_stream(other));
    EXPECT_EQ(gcap_thread_contexts_count(set), 2u);
  }).join();
  EXPECT_NE(other, mine);
  EXPECT_NE(other_handle, gcap_stream_handle(gcap_thread_context_stream(mine)));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, SetsHaveTheirOwn) {
  gcap_thread_contexts_t* a = Create();
  gcap_thread_contexts_t* b = Create();
  EXPECT_NE(Get(a), Get(b));
  EXPECT_NE(gcap_thread_context_stream(Get(a)), gcap_thread_context_stream(Get(b)));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(a));
  EXPECT_EQ(gcap_thread_contexts_count(b), 1u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(b));
}

TEST_F(ThreadContexts, ManySetsInTurnKeepTheirContexts) {
  constexpr size_t kSets = 11;  // more than a thread remembers
  std::vector<gcap_thread_contexts_t*> sets;
  std::vector<gcap_thread_context_t*> first;
  for (size_t i = 0; i < kSets; ++i) {
    sets.push_back(Create());
    first.push_back(Get(sets[i]));
  }
  EXPECT_EQ(std::set<gcap_thread_context_t*>(first.begin(), first.end()).size(), kSets);
  for (size_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kSets; ++i) EXPECT_EQ(Get(sets[(i * 7) % kSets]), first[(i * 7) % kSets]);
  }
  for (gcap_thread_contexts_t* set : sets) {
    EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
  EXPECT_EQ(ends_.count, int{kSets});
}

TEST_F(ThreadContexts, SetAtAnOldAddressIsANewSet) {
  for (int i = 0; i < 20; ++i) {
    gcap_thread_contexts_t* set = Create();
    EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
    GCAP_EXPECT_OK(gcap_stream_synchronize(gcap_thread_context_stream(Get(set))));
    EXPECT_EQ(gcap_thread_contexts_count(set), 1u) << "the context is this set's, not that of one before";
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
}

TEST_F(ThreadContexts, ContextEndsWithItsThread) {
  gcap_thread_contexts_t* set = Create();
  Get(set);
  pthread_t thread_id{};
  std::thread([&] {
    Get(set);
    thread_id = pthread_self();
    EXPECT_EQ(ends_.count, 0);
  }).join();
  EXPECT_EQ(ends_.count, 1);
  EXPECT_TRUE(pthread_equal(ends_.last_thread, thread_id)) << "ended by the thread that it belonged to";
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 2);
}

TEST_F(ThreadContexts, ThreadEndsItsContextsOfAllSets) {
  gcap_thread_contexts_t* sets[3] = {Create(), Create(), Create()};
  std::thread([&] {
    for (gcap_thread_contexts_t* set : sets) Get(set);
  }).join();
  EXPECT_EQ(ends_.count, 3);
  for (gcap_thread_contexts_t* set : sets) {
    EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
}

TEST_F(ThreadContexts, ContextsOfLivingThreadsEndWithTheirSet) {
  gcap_thread_contexts_t* set = Create();
  gcap_thread_contexts_t* other_set = Create();
  HeldThread thread([&] {
    Get(set);
    Get(other_set);
  });
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 1);
  EXPECT_TRUE(pthread_equal(ends_.last_thread, pthread_self())) << "ended by the thread that ends the set";
  thread.Release();
  EXPECT_EQ(ends_.count, 2) << "the context of the set that is gone does not end twice";
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(other_set));
  EXPECT_EQ(ends_.count, 2);
}

TEST_F(ThreadContexts, SetThatEndsWaitsForAContextThatItsThreadIsEnding) {
  struct Ending {
    std::atomic<bool> begun{false}, done{false};
  } ending;
  gcap_thread_contexts_options_t options = Options();
  options.user = &ending;
  options.on_end = [](void* user, gcap_stream_t*) {
    static_cast<Ending*>(user)->begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other thread is in destroy by now
    static_cast<Ending*>(user)->done = true;
    return gcap_status_t(nullptr);
  };
  gcap_thread_contexts_t* set = Create(options);
  std::thread thread([&] { Get(set); });
  while (!ending.begun) std::this_thread::yield();
  EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_TRUE(ending.done);
  thread.join();
}

TEST_F(ThreadContexts, OnEndFindsTheStreamIdleAndAlive) {
  gcap_thread_contexts_t* set = Create();
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  std::thread([&] {
    gcap_stream_t* stream = gcap_thread_context_stream(Get(set));
    EXPECT_EQ(cudaMemsetAsync(memory, 0x5a, 4096, gcap_stream_handle(stream)), cudaSuccess);
  }).join();
  EXPECT_EQ(ends_.count, 1);
  EXPECT_EQ(ends_.with_idle_stream, 1);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// Writes down when a graph let go of what it retained.
void ReleaseRetained(void* user) { *static_cast<int*>(user) = 1; }

TEST_F(ThreadContexts, GraphsAreReleasedBeforeOnEnd) {
  struct Seen {
    int retained_released = 0;
    int at_end = -1;
  } seen;
  gcap_thread_contexts_options_t options = Options();
  options.graph.min_num_runs_before_capture = 0;
  options.user = &seen;
  options.on_end = [](void* user, gcap_stream_t*) {
    static_cast<Seen*>(user)->at_end = static_cast<Seen*>(user)->retained_released;
    return gcap_status_t(nullptr);
  };
  gcap_thread_contexts_t* set = Create(options);
  std::thread([&] {
    gcap_thread_context_t* context = Get(set);
    gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
    gcap_graph_run_kind_t kind;
    GCAP_ASSERT_OK(BeginPlain(graphs, 0, gcap_stream_handle(gcap_thread_context_stream(context)), &kind));
    GCAP_EXPECT_OK(
        gcap_capture_retain(gcap_capture_current(), ReleaseRetained, /*bytes=*/nullptr, &seen.retained_released));
    GCAP_EXPECT_OK(EndPlain(graphs, nullptr, /*synchronize=*/false));
    EXPECT_EQ(seen.retained_released, 0);
  }).join();
  EXPECT_EQ(seen.at_end, 1);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, StreamThatOnEndCannotLetGoIsKeptAndTheStatusSaysSo) {
  gcap_stream_t* kept = nullptr;
  gcap_thread_contexts_options_t options = Options();
  options.user = &kept;
  options.on_end = [](void* user, gcap_stream_t* stream) {
    *static_cast<gcap_stream_t**>(user) = stream;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "somebody has a block of it");
  };
  gcap_thread_contexts_t* set = Create(options);
  gcap_stream_t* stream = gcap_thread_context_stream(Get(set));
  const Outcome outcome(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(outcome.code, GCAP_LEAKED) << "the set is gone. Was: what on_end answered";
  EXPECT_TRUE(outcome.Names("kept for ever")) << outcome.message;
  EXPECT_TRUE(outcome.Names("somebody has a block of it")) << outcome.message;
  EXPECT_EQ(kept, stream);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(ThreadContexts, NoDeviceOfThatNumberIsReportedAndNothingIsKept) {
  gcap_thread_contexts_options_t options = Options();
  options.device_id = 999;
  gcap_thread_contexts_t* set = Create(options);
  gcap_thread_context_t* context = reinterpret_cast<gcap_thread_context_t*>(&options);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(set, &context), GCAP_INVALID_ARGUMENT, "device_id is 999");
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 0);
}

TEST_F(ThreadContexts, CapturingThreadGetsTheContextThatItHasButNoNewOne) {
  gcap_thread_contexts_t* old_set = Create();
  gcap_thread_contexts_t* new_set = Create();
  gcap_thread_context_t* const old_context = Get(old_set);
  const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(old_context));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  EXPECT_EQ(Get(old_set), old_context);
  EXPECT_EQ(gcap_stream_handle(gcap_thread_context_stream(old_context)), stream);
  EXPECT_NE(gcap_thread_context_graphs(old_context), nullptr);
  gcap_thread_context_t* context = old_context;
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(new_set, &context), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(gcap_thread_contexts_count(new_set), 0u);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_NE(Get(new_set), nullptr);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(new_set));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(old_set));
}

TEST_F(ThreadContexts, SharedContextIsTheSameForAllThreadsAndEndsWithTheSet) {
  gcap_thread_contexts_options_t options = Options();
  options.shared = true;
  gcap_thread_contexts_t* set = Create(options);
  gcap_thread_context_t* first = nullptr;
  EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
  std::thread([&] { first = Get(set); }).join();
  EXPECT_EQ(ends_.count, 0) << "the thread that made it may go";
  EXPECT_EQ(Get(set), first);
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  GCAP_EXPECT_OK(gcap_stream_synchronize(gcap_thread_context_stream(first)));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 1);
}

TEST_F(ThreadContexts, SharedContextIsOneHoweverManyThreadsMakeItAtOnce) {
  for (int round = 0; round < 20; ++round) {
    gcap_thread_contexts_options_t options = Options();
    options.shared = true;
    gcap_thread_contexts_t* set = Create(options);
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
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
}

TEST_F(ThreadContexts, UserStreamIsWrappedAndOutlivesTheSet) {
  cudaStream_t user_stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&user_stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_thread_contexts_options_t options = Options();
  options.shared = true;
  options.has_user_stream = true;
  options.user_stream = user_stream;
  gcap_thread_contexts_t* set = Create(options);
  gcap_stream_t* stream = gcap_thread_context_stream(Get(set));
  EXPECT_EQ(gcap_stream_handle(stream), user_stream);
  EXPECT_EQ(gcap_stream_ownership(stream), GCAP_STREAM_USER);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 1);
  EXPECT_EQ(cudaStreamSynchronize(user_stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(user_stream), cudaSuccess);
}

TEST_F(ThreadContexts, DefaultStreamMayBeTheUsersButNotBeCaptured) {
  gcap_thread_contexts_options_t options = Options();
  options.shared = true;
  options.has_user_stream = true;
  gcap_thread_contexts_t* set = Create(options);
  gcap_stream_t* stream = gcap_thread_context_stream(Get(set));
  EXPECT_EQ(gcap_stream_handle(stream), nullptr);
  EXPECT_FALSE(gcap_stream_can_capture(stream));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// A key whose destructor asks for a context again when the thread's contexts have ended already.
struct LateUser {
  gcap_thread_contexts_t* set;
  size_t count_after_get;
};
void UseLate(void* value) {
  LateUser* late = static_cast<LateUser*>(value);
  gcap_thread_context_t* context = nullptr;
  GCAP_EXPECT_OK(gcap_thread_contexts_get(late->set, &context));
  late->count_after_get = gcap_thread_contexts_count(late->set);
  GCAP_EXPECT_OK(gcap_stream_synchronize(gcap_thread_context_stream(context)));
}

TEST_F(ThreadContexts, ThreadThatUsesOneWhileItExitsGetsALiveOne) {
  gcap_thread_contexts_t* set = Create();
  Get(set);
  // Keys that are made later are destroyed later, by the C library that we run on: after the thread's contexts.
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, UseLate), 0);
  LateUser late = {set, 0};
  std::thread([&] {
    Get(set);
    ASSERT_EQ(pthread_setspecific(key, &late), 0);
  }).join();
  EXPECT_EQ(late.count_after_get, 2u);
  EXPECT_EQ(gcap_thread_contexts_count(set), 1u);
  ASSERT_EQ(pthread_key_delete(key), 0);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// Threads come and go while sets do: each thread works with some of the sets and exits, and a set ends as soon as its
// last user has left its run, while that thread may be exiting.
TEST_F(ThreadContexts, ThreadsAndSetsComeAndGo) {
  constexpr int kRounds = 6;
  constexpr int kThreads = 16;
  constexpr size_t kSets = 3;
  std::atomic<int> made{0};
  for (int round = 0; round < kRounds; ++round) {
    gcap_thread_contexts_t* sets[kSets];
    std::atomic<int> users[kSets];
    for (size_t s = 0; s < kSets; ++s) {
      sets[s] = Create();
      users[s] = kThreads;
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < kSets; ++i) {
          const size_t s = (i + static_cast<size_t>(t)) % kSets;
          if ((t + static_cast<int>(s)) % 4 != 0) {  // not every thread uses every set
            gcap_thread_context_t* context = Get(sets[s]);
            GCAP_EXPECT_OK(gcap_stream_synchronize(gcap_thread_context_stream(context)));
            EXPECT_EQ(Get(sets[s]), context);
            ++made;
          }
          --users[s];
        }
      });
    }
    for (size_t s = 0; s < kSets; ++s) {
      while (users[s] > 0) std::this_thread::yield();
      GCAP_EXPECT_OK(gcap_thread_contexts_destroy(sets[s]));
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(ends_.count, made);
}

TEST_F(ThreadContexts, NullIsAnswered) {
  gcap_thread_contexts_t* set = nullptr;
  const gcap_thread_contexts_options_t options = Options();
  GCAP_EXPECT_FAILS(gcap_thread_contexts_create(nullptr, &set), GCAP_INVALID_ARGUMENT, "options is NULL");
  EXPECT_EQ(set, nullptr);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_create(&options, nullptr), GCAP_INVALID_ARGUMENT, "out_contexts is NULL");
  gcap_thread_context_t* context = reinterpret_cast<gcap_thread_context_t*>(&set);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(nullptr, &context), GCAP_INVALID_ARGUMENT, "contexts is NULL");
  EXPECT_EQ(context, nullptr);
  set = Create();
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(set, nullptr), GCAP_INVALID_ARGUMENT, "out_context is NULL");
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, DestroyByACapturingThreadIsRefusedAndDestroysNothing) {
  gcap_thread_contexts_t* set = Create();
  gcap_thread_context_t* const context = Get(set);
  std::thread([&] { Get(set); }).join();
  EXPECT_EQ(ends_.count, 1);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(gcap_thread_context_stream(context)), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_EQ(ends_.count, 1);
  EXPECT_EQ(Get(set), context);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 2);
}

// Also where the set has no context that captures.
TEST_F(ThreadContexts, DestroyByAThreadThatCapturesElsewhereIsRefused) {
  gcap_thread_contexts_t* set = Create();
  const RawStream stream;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_FAILED_PRECONDITION, "capturing");
  gcap_capture_abort(capture);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// Also where the context has no graph, whose end would be refused.
TEST_F(ThreadContexts, DestroyWhileSomebodyCapturesAContextsStreamIsRefused) {
  gcap_thread_contexts_t* set = Create();
  const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(Get(set)));
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_FAILED_PRECONDITION, "is capturing");
  EXPECT_EQ(ends_.count, 0);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(ends_.count, 1);
}

// Was: the set was freed while it said that nothing was destroyed, and the contexts that came first had ended.
TEST_F(ThreadContexts, WhileOneContextCannotEndNoneDoes) {
  enum { kStreamCaptures, kGraphsStreamCaptures, kRunOfAThread };
  for (int reason : {kStreamCaptures, kGraphsStreamCaptures, kRunOfAThread}) {
    SCOPED_TRACE(reason);
    gcap_thread_contexts_options_t options = Options();
    options.graph.min_num_runs_before_capture = 0;
    gcap_thread_contexts_t* set = Create(options);
    cudaStream_t raw = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking), cudaSuccess);
    ends_.count = 0;
    // Three contexts with a graph each; the second one is in the way.
    gcap_thread_context_t* contexts[3] = {};
    cudaStream_t captured[3] = {};
    const auto capture_graph = [&](int i) {
      contexts[i] = Get(set);
      gcap_graph_manager_t* graphs = gcap_thread_context_graphs(contexts[i]);
      cudaStream_t own = gcap_stream_handle(gcap_thread_context_stream(contexts[i]));
      captured[i] = i == 1 && reason == kGraphsStreamCaptures ? raw : own;
      gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
      GCAP_EXPECT_OK(BeginPlain(graphs, 0, captured[i], &kind));
      GCAP_EXPECT_OK(EndPlain(graphs, nullptr, /*synchronize=*/true));
      if (i == 1 && reason == kRunOfAThread) {
        GCAP_EXPECT_OK(BeginPlain(graphs, GCAP_GRAPH_ID_NONE, own, &kind));
      }
    };
    HeldThread first([&] { capture_graph(0); });
    HeldThread second([&] { capture_graph(1); });
    HeldThread third([&] { capture_graph(2); });
    if (reason != kRunOfAThread) {
      ASSERT_EQ(cudaStreamBeginCapture(captured[1], cudaStreamCaptureModeRelaxed), cudaSuccess);
    }
    const char* culprit = reason == kRunOfAThread ? "has a run" : "is capturing";
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_FAILED_PRECONDITION, culprit);
    EXPECT_EQ(ends_.count, 0);
    EXPECT_EQ(gcap_thread_contexts_count(set), 3u);
    for (gcap_thread_context_t* context : {contexts[0], contexts[2]})
      EXPECT_TRUE(gcap_graph_manager_is_captured(gcap_thread_context_graphs(context), 0));
    if (reason != kRunOfAThread) {
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(captured[1], &graph), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    } else {
      second.Release();  // whose exit ends its run
    }
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
    EXPECT_EQ(ends_.count, 3);
    first.Release();
    if (reason != kRunOfAThread) second.Release();
    third.Release();
    EXPECT_EQ(cudaStreamDestroy(raw), cudaSuccess);
  }
}

// Whichever module ends first what it has of the thread: the context is older than the capture here.
TEST_F(ThreadContexts, ContextOfAThreadThatExitsInsideACaptureEndsAllTheSame) {
  gcap_thread_contexts_t* set = Create();
  LogCatcher log;
  std::thread([&] {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(gcap_thread_context_stream(Get(set))), nullptr, &capture));
  }).join();
  EXPECT_EQ(ends_.count, 1);
  EXPECT_EQ(ends_.with_idle_stream, 1);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  EXPECT_NE(log.text().find("exits inside"), std::string::npos) << log.text();
  EXPECT_EQ(log.text().find("kept for ever"), std::string::npos) << log.text();
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

TEST_F(ThreadContexts, ContextOfAThreadThatExitsInsideARunEndsAllTheSame) {
  for (const uint32_t eager_runs : {0u, 2u}) {  // the run that is left is a captured one, then an eager one
    gcap_thread_contexts_options_t options = Options();
    options.graph.min_num_runs_before_capture = eager_runs;
    gcap_thread_contexts_t* set = Create(options);
    LogCatcher log;
    std::thread([&] {
      gcap_thread_context_t* context = Get(set);
      gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
      GCAP_ASSERT_OK(BeginPlain(gcap_thread_context_graphs(context), 0,
                                gcap_stream_handle(gcap_thread_context_stream(context)), &kind));
      EXPECT_EQ(kind, eager_runs == 0 ? GCAP_GRAPH_RUN_CAPTURE : GCAP_GRAPH_RUN_EAGER);
    }).join();
    EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
    EXPECT_EQ(log.text().find("kept for ever"), std::string::npos) << log.text();
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
  EXPECT_EQ(ends_.count, 2);
}

TEST_F(ThreadContexts, SharedContextIsUsableAfterAThreadThatExitedInsideARun) {
  for (const uint32_t eager_runs : {0u, 2u}) {  // the run that is left is a captured one, then an eager one
    gcap_thread_contexts_options_t options = Options();
    options.shared = true;
    options.graph.min_num_runs_before_capture = eager_runs;
    gcap_thread_contexts_t* set = Create(options);
    gcap_thread_context_t* const context = Get(set);
    gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
    const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(context));
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    LogCatcher log;
    std::thread([&] {
      GCAP_EXPECT_OK(BeginPlain(graphs, 0, stream, &kind));
      EXPECT_EQ(kind, eager_runs == 0 ? GCAP_GRAPH_RUN_CAPTURE : GCAP_GRAPH_RUN_EAGER);
    }).join();
    EXPECT_EQ(ends_.count, eager_runs == 0 ? 0 : 1) << "a shared context ends with its set";
    GCAP_EXPECT_OK(BeginPlain(graphs, 0, stream, &kind));
    GCAP_EXPECT_OK(EndPlain(graphs, nullptr, /*synchronize=*/true));
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
}

TEST_F(ThreadContexts, SharedContextReplaysAfterAThreadThatExitedInsideACapture) {
  gcap_thread_contexts_options_t options = Options();
  options.shared = true;
  options.graph.min_num_runs_before_capture = 0;
  gcap_thread_contexts_t* set = Create(options);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(Get(set));
  const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(Get(set)));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_ASSERT_OK(BeginPlain(graphs, 0, stream, &kind));
  GCAP_ASSERT_OK(EndPlain(graphs, nullptr, /*synchronize=*/true));
  {
    LogCatcher log;
    std::thread([&] {
      GCAP_EXPECT_OK(BeginPlain(graphs, 1, stream, &kind));
      EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
    }).join();
  }
  GCAP_EXPECT_OK(Replay(graphs, 0, /*synchronize=*/true));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

}  // namespace
