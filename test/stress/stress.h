// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stress.h: what stress tests share: what is alive, what happened, calls that fail by chance and are tried again, and
// an object that is replaced by a new one while threads come and go.
#ifndef GCAP_TEST_STRESS_STRESS_H_
#define GCAP_TEST_STRESS_STRESS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "gcap/log.h"
#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

constexpr cudaError_t kFault = cudaErrorUnknown;  // of every injected fault

inline std::map<std::string, size_t> Live() {
  std::map<std::string, size_t> live = {{"all", gcap_sim_live(nullptr)}};
  for (const char* kind : {"stream", "event", "graph", "graph node", "exec", "device memory", "pinned memory"}) {
    live[kind] = gcap_sim_live(kind);
  }
  return live;
}

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The seed of the run, printed and given to the simulator.
inline uint64_t BeginWithSeed(uint64_t otherwise) {
  const uint64_t seed = FromEnvironment("GCAP_STRESS_SEED", otherwise);
  std::printf("seed %llu: GCAP_STRESS_SEED=%llu runs it again\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(seed));
  gcap_sim_set_seed(seed);
  return seed;
}

// Drops what gcap logs: failures are on purpose.
class Silence {
 public:
  Silence() {
    gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_ERROR);
  }
  ~Silence() { gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING); }
};

// What happened, for a test to see that it tested something. After the first thing that is wrong everybody stops.
struct Tally {
  std::atomic<int> threads{0}, runs{0}, replays{0}, releases{0}, abandoned{0}, ends{0}, evictions{0}, failures{0};
  std::atomic<bool> wrong{false};

  void Expect(bool right, const std::string& what) {
    if (right) return;
    ADD_FAILURE() << what;
    wrong = true;
  }
};

// Does `step` until it succeeds. Every failure must be an injected one, or one that `is_expected` knows will pass,
// however long that takes: another thread may have to exit first.
inline void Insist(Tally* tally, const std::function<gcap_status_t()>& step,
                   const std::function<bool(const Outcome&)>& is_expected = nullptr) {
  constexpr int kMostTries = 50;  // far more than faults of a few in a hundred calls need
  int tries = 0;
  while (tries < kMostTries) {
    const Outcome outcome(step());
    if (outcome.ok()) return;
    if (is_expected && is_expected(outcome)) {
      std::this_thread::yield();
      continue;
    }
    ++tries;
    ++tally->failures;
    tally->Expect(outcome.cuda_error == kFault && !outcome.Names("kept for ever"), outcome.message);
    if (tally->wrong) return;
  }
  tally->Expect(false, "still failing after " + std::to_string(tries) + " tries");
}

// Copies on a stream of the pool, and waits.
inline void CopyOnPool(Tally* tally, gcap_stream_pool_t* pool, void* to, const void* from, size_t bytes,
                       cudaMemcpyKind kind) {
  gcap_stream_t* stream = nullptr;
  Insist(tally, [&] { return gcap_stream_pool_acquire(pool, &stream); });
  if (stream == nullptr) return;
  EXPECT_EQ(cudaMemcpyAsync(to, from, bytes, kind, gcap_stream_handle(stream)), cudaSuccess);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_stream_pool_release(pool, stream));
}

// An object that is replaced by a new one now and then. Nobody is inside a run of it meanwhile; threads may exit.
template <typename Object>
class Replaced {
 public:
  using Create = std::function<gcap_status_t(Object** out_object)>;
  using Destroy = gcap_status_t (*)(Object* object);

  Replaced(Tally* tally, Create create, Destroy destroy)
      : tally_(tally), create_(std::move(create)), destroy_(destroy) {
    Insist(tally_, [this] { return create_(&object_); });
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() { GCAP_EXPECT_OK(destroy_(object_)); }

  Object* Enter() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !replacing_; });
    ++inside_;
    return object_;
  }
  void Leave() {
    std::lock_guard<std::mutex> lock(mutex_);
    --inside_;
    changed_.notify_all();
  }
  void Replace() {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (replacing_) return;
      replacing_ = true;
      changed_.wait(lock, [this] { return inside_ == 0; });
    }
    GCAP_EXPECT_OK(destroy_(object_));
    ++tally_->ends;
    Insist(tally_, [this] { return create_(&object_); });
    std::lock_guard<std::mutex> lock(mutex_);
    replacing_ = false;
    changed_.notify_all();
  }

 private:
  Tally* const tally_;
  const Create create_;
  const Destroy destroy_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool replacing_ = false;
  Object* object_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_STRESS_STRESS_H_
