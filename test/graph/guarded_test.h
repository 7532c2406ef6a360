// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// guarded_test.h: runs by id whose work states guards.
#ifndef GCAP_TEST_GRAPH_GUARDED_TEST_H_
#define GCAP_TEST_GRAPH_GUARDED_TEST_H_

#include <atomic>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "gcap/graph_guards.h"
#include "test/graph/keyed_test.h"

namespace gcap {
namespace testing {

// A function of a guard, which answers as it is told.
struct Asked {
  std::atomic<int64_t> answer{0};
  std::atomic<bool> fails{false};
  std::atomic<int> calls{0};
  std::function<void()> also;  // what it does besides

  static gcap_status_t Ask(void* user, int64_t* out_answer) {
    Asked* asked = static_cast<Asked*>(user);
    ++asked->calls;
    if (asked->also) asked->also();
    if (asked->fails) return GCAP_STATUS(GCAP_UNAVAILABLE, "as told");
    *out_answer = asked->answer;
    return nullptr;
  }
};

class GuardedTest : public KeyedTest {
 protected:
  static gcap_graph_guard_t Guard(const char* name, gcap_graph_guard_kind_t kind, const void* address) {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = name;
    guard.kind = kind;
    guard.address = address;
    return guard;
  }
  template <class Value>
  static gcap_graph_guard_t Integer(const char* name, const Value& value, int64_t low, int64_t high) {
    gcap_graph_guard_t guard =
        Guard(name, GCAP_GRAPH_GUARD_INTEGER, const_cast<const std::remove_cv_t<Value>*>(&value));
    guard.bytes = sizeof(value);
    guard.is_unsigned = std::is_unsigned<std::remove_cv_t<Value>>::value;
    guard.low = low;
    guard.high = high;
    return guard;
  }
  static gcap_graph_guard_t Answer(const char* name, Asked* asked) {
    gcap_graph_guard_t guard = Guard(name, GCAP_GRAPH_GUARD_ANSWER, nullptr);
    guard.ask = Asked::Ask;
    guard.user = asked;
    return guard;
  }

  // A run of `id` that states the guards and fills. It must succeed, and do what its own step does.
  gcap_run_outcome_t RunGuarded(int id, const std::vector<gcap_graph_guard_t>& guards, int value) {
    *seen_ = 0xff;
    const Outcome run = RunWork(RunBy(nullptr, id), [&](cudaStream_t stream) -> gcap_status_t {
      for (const gcap_graph_guard_t& guard : guards) GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      return Fill(stream, value);
    });
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(Seen(), value);
    return result_.outcome;
  }
  bool Replays(int id) {
    bool replayed = false;
    const gcap_run_t run = RunOf(id, stream_->get(), /*synchronize=*/true);
    GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, &replayed));
    return replayed;
  }
  // A run of `id` on one buffer that may move.
  Outcome RunOnBuffer(int id, const std::function<gcap_status_t(cudaStream_t, void*)>& work) {
    const gcap_graph_buffer_t item = {"byte", byte_, 1, 0};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = &item;
    buffers.count = 1;
    gcap_run_t run = RunBy(nullptr, id);
    run.buffers = &buffers;
    using Function = std::function<gcap_status_t(cudaStream_t, void*)>;
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      return (*static_cast<const Function*>(user))(resources->cuda_stream, resources->addresses[0]);
    };
    run.user = const_cast<Function*>(&work);
    return Outcome(gcap_graph_manager_run(manager_, &run));
  }
  const RawStream other_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_GUARDED_TEST_H_
