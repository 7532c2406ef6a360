// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A child process that is forked while threads are at work in gcap: each call that would take a lock is refused, and
// the message names the fork. Was: nearly every child waited for ever, for a lock of a thread that it does not have.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/kit.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/fault/out.h"
#include "test/fault/stream_scene.h"
#include "test/session/session_test.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

static std::function<void()> in_dump;

extern "C" cudaError_t __wrap_cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  in_dump();
  return cudaSuccess;
}

namespace gcap {
namespace testing {
namespace {

gcap_status_t Nothing(void*, const gcap_run_resources_t*) { return nullptr; }
gcap_status_t NothingOnStream(void*, cudaStream_t) { return nullptr; }
void Release(void*) {}
void Close(void*, bool) {}

// What the parent has, used once, so that the thread that forks knows it.
struct World : StreamScene {
  World() {
    gcap_pool_allocator_options_init(&pool_options);
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(rig.Create(GraphOptions(1)));
    runtime = rig.ep->runtime();
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
    for (int run = 0; run < 3; ++run) GCAP_EXPECT_OK(rig.Run(x, y));
    GCAP_EXPECT_OK(gcap_io_binding_create(rig.session, &binding));
    GCAP_EXPECT_OK(gcap_stream_pool_create(0, &pool));
    gcap_stream_t* idle = nullptr;
    GCAP_EXPECT_OK(gcap_stream_pool_acquire(pool, &pooled));
    GCAP_EXPECT_OK(gcap_stream_pool_acquire(pool, &idle));
    GCAP_EXPECT_OK(gcap_stream_pool_release(pool, idle));  // what the next acquire gives
    GCAP_EXPECT_OK(gcap_scratch_alloc(resources.scratch, 1000, resources.stream, &block));
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(resources.scratch, resources.stream, &reservation));
    gcap_scratch_reservation_close(reservation);
    GCAP_EXPECT_OK(gcap_notification_create(resources.stream, &notification));
    GCAP_EXPECT_OK(gcap_notification_record(notification));
    GCAP_EXPECT_CUDA(cudaGraphCreate(&graph, 0));
    GCAP_EXPECT_OK(gcap_graph_notes_create(graph, nullptr, nullptr, &notes));
    CaptureRun(0);
  }
  ~World() override {
    gcap_graph_notes_destroy(notes);
    GCAP_EXPECT_OK(End());
    gcap_scratch_reservation_release(reservation);
    GCAP_EXPECT_OK(gcap_scratch_free(resources.scratch, block));
    GCAP_EXPECT_OK(gcap_stream_pool_release(pool, pooled));
    GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
    GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
  }
  ChainRig rig;
  DeviceFloats x{Floats(kCount)}, y{Floats(kCount)};
  const cudaStream_t raw = Handle();
  gcap_runtime_t* runtime = nullptr;
  gcap_io_binding_t* binding = nullptr;
  gcap_run_resources_t resources = {};
  gcap_stream_pool_t* pool = nullptr;
  gcap_stream_t* pooled = nullptr;
  void* block = nullptr;
  gcap_scratch_reservation_t* reservation = nullptr;
  gcap_graph_notes_t* notes = nullptr;
  gcap_pool_allocator_options_t pool_options;
  const gcap_graph_buffers_t no_buffers = {};
  const gcap_model_t no_model = {};
  gcap_graph_plan_t plan;
  const gcap_check_t check = {};
  gcap_check_report_t report = [] {
    gcap_check_report_t empty;
    gcap_check_report_init(&empty);
    return empty;
  }();
};

// A child of AddressSanitizer's may wait for a lock of the sanitizer's allocator that another thread held at the fork:
// the allocator of GCC 12 is not locked over a fork, as that of libc is.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kBusyThreads = 0;
#else
constexpr int kBusyThreads = 2;
#endif

struct Call {
  const char* text;
  gcap_status_t (*make)(World* w);
};

#define REFUSED(...)                                                                \
  {                                                                                 \
#__VA_ARGS__, [](World * w) -> gcap_status_t { return (void)w, (__VA_ARGS__); } \
  }

const Call kCalls[] = {
    REFUSED(gcap_scratch_alloc(w->resources.scratch, 1000, w->resources.stream, kOut)),
    REFUSED(gcap_scratch_free(w->resources.scratch, w->block)),
    REFUSED(gcap_scratch_validate(w->resources.scratch)),
    REFUSED(gcap_scratch_trim(w->resources.scratch)),
    REFUSED(gcap_scratch_keep(w->resources.scratch, w->block)),
    REFUSED(gcap_scratch_forget_stream(w->resources.scratch, w->pooled)),
    REFUSED(gcap_scratch_create(w->resources.allocator, nullptr, kOut)),
    REFUSED(gcap_scratch_reservation_open(w->resources.scratch, w->pooled, kOut)),
    REFUSED(gcap_scratch_reservation_prepare(w->resources.scratch, w->pooled)),
    REFUSED(gcap_scratch_reservation_reopen(w->reservation)),
    REFUSED(gcap_scratch_destroy(w->resources.scratch)),
    REFUSED(gcap_allocator_alloc(w->resources.allocator, 64, kOut)),
    REFUSED(gcap_stream_create(0, kOut)),
    REFUSED(gcap_stream_wrap(w->raw, GCAP_STREAM_USER, 0, 0, kOut)),
    REFUSED(gcap_stream_defer(w->resources.stream, Release, nullptr)),
    REFUSED(gcap_notification_create(w->resources.stream, kOut)),
    REFUSED(gcap_notification_record(w->notification)),
    REFUSED(gcap_notification_wait(w->notification, w->resources.stream)),
    REFUSED(gcap_notification_wait_on_host(w->notification)),
    REFUSED(gcap_stream_pool_create(0, kOut)),
    REFUSED(gcap_stream_pool_acquire(w->pool, kOut)),
    REFUSED(gcap_device_allocator_create(0, kOut)),
    REFUSED(gcap_pool_allocator_create(&w->pool_options, kOut)),
    REFUSED(gcap_external_allocator_create(nullptr, kOut)),
    REFUSED(gcap_allocator_create(nullptr, kOut)),
    REFUSED(gcap_graph_manager_create(nullptr, kOut)),
    REFUSED(gcap_runtime_create(nullptr, kOut)),
    REFUSED(gcap_runtime_get_resources(w->runtime, kOut)),
    REFUSED(gcap_capture_retain(gcap_capture_current(), Release, /*bytes=*/nullptr, w)),
    REFUSED(gcap_capture_on_close(gcap_capture_current(), Close, w)),
    REFUSED(gcap_capture_fork(gcap_capture_current(), &w->raw, 1)),
    REFUSED(gcap_capture_join(gcap_capture_current(), &w->raw, 1)),
    REFUSED(gcap_stream_synchronize(w->resources.stream)),
    REFUSED(gcap_stream_destroy(w->resources.stream)),
    REFUSED(gcap_stream_pool_release(w->pool, w->pooled)),
    REFUSED(gcap_stream_pool_destroy(w->pool)),
    REFUSED(gcap_capture_begin(w->raw, nullptr, kOut)),
    REFUSED(gcap_capture_end(gcap_capture_current(), kOut, kOut)),
    REFUSED(gcap_capture_write_events(gcap_capture_current(), "/dev/null")),
    REFUSED(RunPlain(w->manager, 0, w->raw, NothingOnStream, nullptr, true)),
    REFUSED(Replay(w->manager, 0, true)),
    REFUSED(gcap_graph_manager_release(w->manager, 0)),
    REFUSED(gcap_graph_manager_destroy(w->manager)),
    REFUSED(BeginPlain(w->manager, 5, w->raw, kOut)),
    REFUSED(EndPlain(w->manager, nullptr, true)),
    REFUSED(BeginPlainOn(w->manager, 5, w->raw, &w->no_buffers, kOut, nullptr)),
    REFUSED(gcap_graph_manager_recapture(w->manager, 0)),
    REFUSED(gcap_graph_manager_explain(w->manager, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED)),
    REFUSED(gcap_graph_manager_dump(w->manager, 0, "/dev/null", 0)),
    REFUSED(gcap_graph_manager_audit(w->manager, 0, nullptr, nullptr, nullptr)),
    REFUSED(gcap_graph_manager_check_moves(w->manager, 0)),
    REFUSED(gcap_graph_manager_plan(w->manager, nullptr, 0, &w->plan)),
    REFUSED(gcap_graph_manager_warm_up(w->manager, nullptr, 0, nullptr, nullptr)),
    REFUSED(gcap_graph_notes_create(w->graph, nullptr, nullptr, kOut)),
    REFUSED(gcap_graph_audit(w->notes, nullptr, nullptr, nullptr)),
    REFUSED(gcap_runtime_copy_tensors(w->runtime, nullptr, 0)),
    REFUSED(gcap_runtime_create_stream(w->runtime, kOut)),
    REFUSED(gcap_runtime_get_allocator(w->runtime, GCAP_MEMORY_PINNED, kOut)),
    REFUSED(gcap_runtime_fork(w->runtime, 1, kOut)),
    REFUSED(gcap_runtime_join(w->runtime)),
    REFUSED(RunOnRuntime(w->runtime, 0, Nothing, nullptr, true)),
    REFUSED(BeginRun(w->runtime, 0)),
    REFUSED(PlanOnRuntime(w->runtime, nullptr, 0, &w->plan)),
    REFUSED(gcap_runtime_warm_up(w->runtime, nullptr, 0, nullptr, nullptr)),
    REFUSED(EndRun(w->runtime, nullptr, true)),
    REFUSED(TryReplay(w->runtime, 0, /*synchronize=*/true, nullptr)),
    REFUSED(gcap_runtime_destroy(w->runtime)),
    REFUSED(w->rig.Run(w->x, w->y)),
    REFUSED(gcap_io_binding_destroy(w->binding)),
    REFUSED(gcap_session_run_bound(w->rig.session, nullptr, w->binding)),
    REFUSED(gcap_session_create(&w->no_model, nullptr, 0, nullptr, kOut)),
    REFUSED(gcap_session_release_captured_graph(w->rig.session, 0)),
    REFUSED(gcap_session_warm_up(w->rig.session, nullptr, 0, nullptr, nullptr)),
    REFUSED(gcap_session_plan(w->rig.session, nullptr, 0, &w->plan)),
    REFUSED(gcap_session_destroy(w->rig.session)),
    REFUSED(gcap_ep_destroy(w->rig.ep->get())),
    REFUSED(gcap_check_capturable(&w->check, &w->report)),
};

// In the child. Gives the number of calls that were not refused as they should be.
int CountWrong(World* world) {
  alarm(600);  // for what waits for ever: the child then ends with the signal
  int wrong = gcap_thread_is_capturing();
  for (const Call& call : kCalls) {
    const uint64_t cuda_calls = gcap_sim_calls(nullptr);
    const Outcome outcome(call.make(world));
    const bool is_refused = outcome.code == GCAP_FAILED_PRECONDITION && outcome.Names("forked");
    if (is_refused && gcap_sim_calls(nullptr) == cuda_calls) continue;
    fprintf(stderr, "%s: %s, %d CUDA calls: %s\n", call.text, gcap_code_name(outcome.code),
            static_cast<int>(gcap_sim_calls(nullptr) - cuda_calls), outcome.message.c_str());
    ++wrong;
  }
  return wrong;
}

// Whether the child did all that it should.
void ExpectGoodEnd(pid_t child) {
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFEXITED(ended)) << "ended by signal " << WTERMSIG(ended);
  EXPECT_EQ(WEXITSTATUS(ended), 0) << "calls that were not refused";
}

// Was: the destroy of a manager took its mutex before it asked. Here another thread of the parent holds the mutex: it
// is in the runtime's call that writes a graph.
TEST(Fork, ChildDestroysNoManagerWhoseLockAnotherThreadHolds) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.keep_source = true;
  gcap_graph_manager_t* manager = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  GCAP_ASSERT_OK(RunPlain(manager, 0, stream, NothingOnStream, nullptr, true));
  std::promise<void> is_inside, may_return;
  in_dump = [&] {
    is_inside.set_value();
    may_return.get_future().wait();
  };
  std::thread dumper([&] { GCAP_EXPECT_OK(gcap_graph_manager_dump(manager, 0, "/dev/null", 0)); });
  is_inside.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(600);
    const Outcome outcome(gcap_graph_manager_destroy(manager));
    _exit(outcome.code == GCAP_FAILED_PRECONDITION && outcome.Names("forked") ? 0 : 1);
  }
  EXPECT_GE(child, 0);
  if (child > 0) ExpectGoodEnd(child);
  may_return.set_value();
  dumper.join();
  in_dump = nullptr;
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Fork, ChildIsRefusedInsteadOfWaitingForThreadsThatItDoesNotHave) {
  World world;
  std::atomic<bool> go_on{true};
  std::vector<std::thread> busy;
  for (int i = 0; i < kBusyThreads; ++i) {
    busy.emplace_back([&] {
      DeviceFloats x{Floats(kCount)}, y{Floats(kCount)};
      gcap_stream_t* stream = nullptr;
      GCAP_EXPECT_OK(gcap_stream_create(0, &stream));
      while (go_on) {
        void* memory = nullptr;
        GCAP_EXPECT_OK(gcap_scratch_alloc(world.resources.scratch, 1000, stream, &memory));
        GCAP_EXPECT_OK(gcap_scratch_free(world.resources.scratch, memory));
        GCAP_EXPECT_OK(gcap_scratch_validate(world.resources.scratch));
        GCAP_EXPECT_OK(world.rig.Run(x, y));
        gcap_graph_info_t info;
        gcap_graph_manager_get_info(world.manager, 0, &info);
      }
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      GCAP_EXPECT_OK(gcap_scratch_forget_stream(world.resources.scratch, stream));
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(CountWrong(&world));
    ExpectGoodEnd(child);
  }
  go_on = false;
  for (std::thread& thread : busy) thread.join();
  GCAP_EXPECT_OK(world.rig.Run(world.x, world.y));  // the parent is none the worse
}

}  // namespace
}  // namespace testing
}  // namespace gcap
