// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The switch of callbacks by threads in turns: one thread runs at a time, and a number generator draws how far, and who
// is next. A thread is held where CUPTI is asked to change a callback, where a waiting thread looks at the clock, and
// between its calls. CUPTI and the clock are the test's. The switch lives once in a process, so that each schedule has
// a child. GCAP_SEED=N runs one seed.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

extern "C" {
#include "doctor/record/driver_calls.h"
#include "doctor/record/switch.h"
#include "doctor/record/writer.h"
}

namespace {

constexpr int kNobody = -1, kCaptures = 4, kSeeds = 200;
constexpr uint32_t kNumCallbacks = 807, kNumResources = 24;  // of CUPTI 13.0
constexpr uint64_t kSecond = 1000000000, kLessThanAStandstill = kSecond * 99 / 100;

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  _exit(1);
}

class Schedule;
Schedule* schedule;

// All of it belongs to the thread whose turn it is.
class Schedule {
 public:
  Schedule(unsigned seed, bool with_standstills) : random_(seed), with_standstills_(with_standstills) {}

  void Run() {
    std::vector<std::thread> threads;
    const int num_threads = 2 + static_cast<int>(Below(2));
    for (int i = 0; i < num_threads; ++i) live_.push_back(i);
    for (int i = 0; i < num_threads; ++i) threads.emplace_back([this, i] { RunThread(i); });
    for (std::thread& thread : threads) thread.join();
  }

  int Change(bool on, int32_t domain, uint32_t callback) {
    if (changing_ != kNobody) Fail("two threads change callbacks at once");
    changing_ = self_;
    Hold(false);
    changing_ = kNobody;
    last_change_ns_ = now_ns_;
    num_looks_ = 0;
    if (domain == GCAP_DOCTOR_CUPTI_RESOURCE) {
      resources_[callback] = on;
    } else if (callback >= kNumCallbacks) {
      return GCAP_DOCTOR_CUPTI_INVALID_PARAMETER;
    } else {
      if (!on && !is_stopped_ && num_seen_ != 0) Fail("a callback is disabled after a begin");
      driver_[callback] = on;
    }
    return GCAP_DOCTOR_CUPTI_SUCCESS;
  }

  // Of a thread that waits. There is no end to the time that it may wait, as long as callbacks change.
  uint64_t Look() {
    if (!may_wait_) Fail("a thread waits that begins no capture");
    if (++num_looks_ == 1000) Fail("a begin waits, and nobody switches");
    now_ns_ = std::min(now_ns_ + Below(kSecond), std::max(now_ns_, last_change_ns_ + kLessThanAStandstill));
    if (with_standstills_ && Below(4) == 0) {
      held_ = changing_;
      ++num_standstills_;
      now_ns_ += 10 * kSecond;
    }
    const uint64_t now_ns = now_ns_;
    Hold(true);
    return now_ns;
  }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }

  // --- Turns ---

  void Draw() {
    do {
      turn_ = live_.empty() ? kNobody : live_[Below(live_.size())];
    } while (turn_ == held_ && turn_ != kNobody);
    left_ = Below(uint64_t{1} << Below(12));
    turns_.notify_all();
  }

  void AwaitTurn(std::unique_lock<std::mutex>* lock) {
    turns_.wait(*lock, [this] { return turn_ == self_; });
  }

  void Hold(bool gives_way) {
    if (!gives_way && left_-- > 0) return;
    std::unique_lock<std::mutex> lock(mutex_);
    Draw();
    AwaitTurn(&lock);
  }

  void RunThread(int self) {
    self_ = self;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      AwaitTurn(&lock);
    }
    if (self == 0) Start();
    for (int i = 0; i < kCaptures; ++i) Capture(static_cast<uint32_t>(self + 1));
    std::lock_guard<std::mutex> lock(mutex_);
    live_.erase(std::find(live_.begin(), live_.end(), self));
    Draw();
  }

  // --- What the threads do ---

  template <typename Function>
  void Within(Function function) {
    ++num_within_;
    function();
    if (--num_within_ == 0) ExpectAsWished();
    Hold(Below(2) == 0);
  }

  void Start() {
    static gcap_doctor_cupti_t cupti;
    cupti.EnableCallback = [](uint32_t on, gcap_doctor_cupti_subscriber_t*, int32_t domain, uint32_t callback) {
      return schedule->Change(on != 0, domain, callback);
    };
    Within([] { gcap_doctor_switch_start(&cupti, nullptr, false); });
  }

  void Capture(uint32_t stream) {
    if (Below(10) == 0) {
      watches_frees_ = true;
      Within(gcap_doctor_switch_watch_frees);
    }
    ++num_open_;
    bool is_seen = false;
    Within([&] {
      const int num_standstills = num_standstills_;
      may_wait_ = true;
      gcap_doctor_switch_began(stream);
      may_wait_ = false;
      held_ = kNobody;
      is_seen = num_standstills_ == num_standstills;
      if (!is_seen) return;
      ++num_seen_;
      if (!is_stopped_ && !AllAreEnabled()) Fail("a callback is not enabled after a begin");
    });
    if (Below(40) == 0) {
      is_stopped_ = true;
      Within(gcap_doctor_switch_stop);
    }
    if (is_seen) --num_seen_;
    --num_open_;
    Within([&] { gcap_doctor_switch_ended(stream); });
  }

  // --- What is enabled ---

  bool AllAreEnabled() const {
    return std::all_of(&driver_[1], &driver_[kNumCallbacks], [](bool on) { return on; });
  }

  bool IsWished(uint32_t callback) const {
    const uint8_t role = gcap_doctor_driver_call(callback)->role;
    if (is_stopped_) return false;
    if (num_open_ != 0) return true;
    return role != GCAP_DOCTOR_ROLE_NONE && (role != GCAP_DOCTOR_ROLE_MANAGED_FREE || watches_frees_);
  }

  // Where no thread is within the switch.
  void ExpectAsWished() const {
    for (uint32_t i = 1; i < kNumCallbacks; ++i) {
      if (driver_[i] != IsWished(i)) Fail("a callback is not as it is wished");
    }
    const auto num_resources = std::count(resources_, resources_ + kNumResources, true);
    if (num_resources != (is_stopped_ ? 0 : 10)) Fail("a resource's callback is not as it is wished");
  }

  std::mt19937_64 random_;
  const bool with_standstills_;  // CUPTI may hold a thread that changes a callback until a begin that waits has left
  std::mutex mutex_;
  std::condition_variable turns_;
  int turn_ = 0, changing_ = kNobody, held_ = kNobody;
  uint64_t left_ = 0;  // of the turn
  std::vector<int> live_;
  bool driver_[kNumCallbacks] = {}, resources_[kNumResources] = {};
  uint64_t now_ns_ = 0, last_change_ns_ = 0;
  int num_looks_ = 0, num_within_ = 0, num_open_ = 0, num_standstills_ = 0;
  int num_seen_ = 0;  // open captures whose calls must all be seen
  bool watches_frees_ = false, is_stopped_ = false;
  static thread_local int self_;
  static thread_local bool may_wait_;
};

thread_local int Schedule::self_;
thread_local bool Schedule::may_wait_;

void RunSchedules(bool with_standstills) {
  const char* one = getenv("GCAP_SEED");
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    if (one != nullptr && static_cast<unsigned>(atoi(one)) != seed) continue;
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) {
      schedule = new Schedule(seed, with_standstills);
      schedule->Run();
      _exit(0);
    }
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0) << "GCAP_SEED=" << seed;
  }
}

TEST(Switch, NoCallAfterABeginIsLost) { RunSchedules(false); }

// Such a begin goes on without its callbacks; all is as it is wished once the thread is let go.
TEST(Switch, ABeginLeavesAThreadThatIsHeldInCupti) { RunSchedules(true); }

}  // namespace

uint64_t gcap_doctor_writer_now(void) { return schedule->Look(); }
