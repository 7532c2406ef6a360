// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Affine sets: one object a thread and set, ended once, by whichever of the two ends first.

#include "lib/internal/affine.h"

#include <limits.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"
#include "test/support/held_thread.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// A set of numbered objects that knows what was made and what became of it.
class Numbers {
 public:
  struct End {
    int number;
    bool by_thread_exit;
    pthread_t thread;
  };

  Numbers() {
    const gcap_affine_ops_t ops = {"number", Create, EndOne, this};
    GCAP_EXPECT_OK(gcap_affine_create(&ops, &set_));
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() { Destroy(); }

  void Destroy() {
    GCAP_EXPECT_OK(gcap_affine_destroy(set_));
    set_ = nullptr;
  }
  gcap_affine_t* set() { return set_; }
  int* Get() {
    void* object = nullptr;
    GCAP_EXPECT_OK(gcap_affine_get(set_, &object));
    return static_cast<int*>(object);
  }
  std::vector<End> ends() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ends_;
  }
  int made() const { return made_; }

  std::atomic<bool> refuse_create{false};
  std::function<gcap_status_t(int number)> on_end;  // set it before there are objects

 private:
  static gcap_status_t Create(void* user, void** out_object) {
    Numbers* self = static_cast<Numbers*>(user);
    if (self->refuse_create) return GCAP_STATUS(GCAP_UNAVAILABLE, "no numbers today");
    *out_object = new int(self->made_++);
    return nullptr;
  }
  static gcap_status_t EndOne(void* user, void* object, bool by_thread_exit) {
    Numbers* self = static_cast<Numbers*>(user);
    const int number = *static_cast<int*>(object);
    delete static_cast<int*>(object);
    {
      std::lock_guard<std::mutex> lock(self->mutex_);
      self->ends_.push_back({number, by_thread_exit, pthread_self()});
    }
    return self->on_end ? self->on_end(number) : nullptr;
  }

  std::mutex mutex_;
  std::vector<End> ends_;
  std::atomic<int> made_{0};
  gcap_affine_t* set_ = nullptr;
};

TEST(Affine, DestroyOfNullIsFine) { GCAP_EXPECT_OK(gcap_affine_destroy(nullptr)); }

TEST(Affine, ObjectIsMadeOnFirstUseAndKept) {
  Numbers numbers;
  EXPECT_EQ(gcap_affine_find(numbers.set()), nullptr);
  EXPECT_EQ(gcap_affine_count(numbers.set()), 0u);
  int* const mine = numbers.Get();
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(numbers.Get(), mine);
  EXPECT_EQ(gcap_affine_find(numbers.set()), mine);
  EXPECT_EQ(gcap_affine_count(numbers.set()), 1u);
  EXPECT_EQ(numbers.made(), 1);
}

TEST(Affine, FindMakesNothingOnAThreadThatNeverUsedAnySet) {
  Numbers numbers;
  std::thread([&] { EXPECT_EQ(gcap_affine_find(numbers.set()), nullptr); }).join();
  EXPECT_EQ(numbers.made(), 0);
}

TEST(Affine, ObjectEndsOnItsThreadWhenThatExits) {
  Numbers numbers;
  int* const mine = numbers.Get();
  pthread_t thread_id{};
  std::thread([&] {
    thread_id = pthread_self();
    EXPECT_NE(numbers.Get(), mine);
    EXPECT_EQ(gcap_affine_count(numbers.set()), 2u);
  }).join();
  ASSERT_EQ(numbers.ends().size(), 1u);
  EXPECT_EQ(numbers.ends()[0].number, 1);
  EXPECT_TRUE(numbers.ends()[0].by_thread_exit);
  EXPECT_TRUE(pthread_equal(numbers.ends()[0].thread, thread_id));
  EXPECT_EQ(gcap_affine_count(numbers.set()), 1u);
  EXPECT_EQ(numbers.Get(), mine);
}

TEST(Affine, ObjectOfALivingThreadEndsOnceWithItsSet) {
  Numbers numbers;
  Numbers others;
  HeldThread thread([&] {
    numbers.Get();
    others.Get();
  });
  numbers.Destroy();
  ASSERT_EQ(numbers.ends().size(), 1u);
  EXPECT_FALSE(numbers.ends()[0].by_thread_exit);
  EXPECT_TRUE(pthread_equal(numbers.ends()[0].thread, pthread_self()));
  thread.Release();
  EXPECT_EQ(numbers.ends().size(), 1u);
  EXPECT_EQ(others.ends().size(), 1u);
}

TEST(Affine, ThreadEndsItsObjectsNewestFirst) {
  constexpr int kSets = 6;
  std::vector<int> order;
  std::vector<std::unique_ptr<Numbers>> sets;
  for (int i = 0; i < kSets; ++i) {
    sets.push_back(std::make_unique<Numbers>());
    sets.back()->on_end = [&order, i](int) {
      order.push_back(i);
      return gcap_status_t(nullptr);
    };
  }
  std::thread([&] {
    for (const auto& set : sets) set->Get();
    sets[0]->Get();  // a look-up makes it no newer
  }).join();
  EXPECT_EQ(order, (std::vector<int>{5, 4, 3, 2, 1, 0}));
}

TEST(Affine, ManySetsInTurnKeepTheirObjects) {
  constexpr size_t kSets = 11;  // more than a thread remembers
  std::vector<std::unique_ptr<Numbers>> sets;
  std::vector<int*> first;
  for (size_t i = 0; i < kSets; ++i) {
    sets.push_back(std::make_unique<Numbers>());
    first.push_back(sets[i]->Get());
  }
  for (size_t step = 0; step < 3 * kSets; ++step) {
    const size_t i = step * 7 % kSets;
    EXPECT_EQ(step % 2 == 0 ? sets[i]->Get() : gcap_affine_find(sets[i]->set()), first[i]);
  }
  for (const auto& set : sets) EXPECT_EQ(set->made(), 1);
}

TEST(Affine, SetAtAnOldAddressIsANewSet) {
  for (int i = 0; i < 20; ++i) {
    Numbers numbers;
    EXPECT_EQ(gcap_affine_find(numbers.set()), nullptr);
    EXPECT_EQ(*numbers.Get(), 0);
  }
}

// Neither end leaves anything: that of a set, which is the thread's list entry too, and that of a thread.
TEST(Affine, NoBlockIsKeptOfSetsAndThreadsThatWere) {
  { Numbers().Get(); }  // this thread's record stays
  const long before = LiveBlocks();
  for (int i = 0; i < 5; ++i) {
    Numbers numbers;
    numbers.Get();
    std::thread([&] { numbers.Get(); }).join();
  }
  EXPECT_EQ(LiveBlocks(), before);
}

TEST(Affine, SetThatEndsWaitsForAnObjectThatItsThreadIsEnding) {
  std::atomic<bool> begun{false}, done{false};
  Numbers numbers;
  numbers.on_end = [&](int) {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other thread is in destroy by now
    done = true;
    return gcap_status_t(nullptr);
  };
  std::thread thread([&] { numbers.Get(); });
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(gcap_affine_count(numbers.set()), 0u);
  numbers.Destroy();
  EXPECT_TRUE(done);
  thread.join();
}

TEST(Affine, FailureOfCreateIsReportedAndTheNextTryMakesOne) {
  Numbers numbers;
  numbers.refuse_create = true;
  void* object = &numbers;
  GCAP_EXPECT_FAILS(gcap_affine_get(numbers.set(), &object), GCAP_UNAVAILABLE, "no numbers today");
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(gcap_affine_count(numbers.set()), 0u);
  numbers.refuse_create = false;
  EXPECT_NE(numbers.Get(), nullptr);
}

TEST(Affine, FailuresOfEndAreJoinedByDestroyAndLoggedAtTheEndOfAThread) {
  const gcap_affine_ops_t ops = {
      "thing",
      [](void* user, void** out_object) {
        *out_object = user;
        return gcap_status_t(nullptr);
      },
      [](void*, void*, bool) { return GCAP_STATUS(GCAP_INTERNAL, "it would not end"); },
      const_cast<char*>("object"),
  };
  gcap_affine_t* set = nullptr;
  GCAP_ASSERT_OK(gcap_affine_create(&ops, &set));
  void* object = nullptr;
  LogCatcher log;
  std::thread([&] { GCAP_EXPECT_OK(gcap_affine_get(set, &object)); }).join();
  EXPECT_NE(log.text().find("at the end of a thread, its thing: "), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("it would not end"), std::string::npos) << log.text();
  GCAP_EXPECT_OK(gcap_affine_get(set, &object));
  GCAP_EXPECT_FAILS(gcap_affine_destroy(set), GCAP_INTERNAL, "it would not end");
}

TEST(Affine, EachLackOfMemoryIsReportedAndLeavesNothing) {
  const gcap_affine_ops_t ops = {"thing", nullptr, nullptr, nullptr};
  gcap_affine_t* none = nullptr;
  {
    HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_affine_create(&ops, &none), GCAP_RESOURCE_EXHAUSTED, "");
    EXPECT_EQ(failure.hits(), 1);
  }
  EXPECT_EQ(none, nullptr);
  Numbers numbers;
  std::thread([&] {  // a new thread has no record yet
    for (int try_number = 0; try_number < 2; ++try_number) {
      void* object = nullptr;
      {
        HeapFailure failure;
        GCAP_EXPECT_FAILS(gcap_affine_get(numbers.set(), &object), GCAP_RESOURCE_EXHAUSTED, "");
        EXPECT_EQ(failure.hits(), 1);
      }
      EXPECT_EQ(object, nullptr);
      if (try_number == 0) {  // makes the record, so that the object itself is next
        Numbers other;
        other.Get();
      }
    }
    EXPECT_EQ(numbers.made(), 0);
    EXPECT_NE(numbers.Get(), nullptr);
  })
      .join();
  EXPECT_EQ(numbers.ends().size(), 1u);
}

// A thread-specific value whose destructor does something; keys made later have their destructors called later.
class AtExit {
 public:
  explicit AtExit(void (*destructor)(void*)) { EXPECT_EQ(pthread_key_create(&key_, destructor), 0); }
  ~AtExit() { EXPECT_EQ(pthread_key_delete(key_), 0); }
  void Set(void* value) { EXPECT_EQ(pthread_setspecific(key_, value), 0); }

 private:
  pthread_key_t key_;
};

TEST(Affine, DestructorThatAsksAfterTheExitGetsAnObjectThatEndsToo) {
  Numbers numbers;
  numbers.Get();  // the module's own key is there, so the one below comes after it
  AtExit at_exit([](void* user) { EXPECT_NE(static_cast<Numbers*>(user)->Get(), nullptr); });
  std::thread([&] {
    numbers.Get();
    at_exit.Set(&numbers);
  }).join();
  EXPECT_EQ(numbers.made(), 3);
  EXPECT_EQ(numbers.ends().size(), 2u) << "all but the one of this thread";
  EXPECT_EQ(gcap_affine_count(numbers.set()), 1u);
}

TEST(Affine, DestructorThatNeverStopsAskingIsRefusedAndNothingRemains) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer forgets a thread in the last round of destructors";
#endif
  struct Asker {
    Numbers numbers;
    AtExit* at_exit = nullptr;
    int asked = 0, refused = 0;
  } asker;
  asker.numbers.Get();
  AtExit at_exit([](void* user) {
    Asker* self = static_cast<Asker*>(user);
    ++self->asked;
    void* object = nullptr;
    const Outcome outcome(gcap_affine_get(self->numbers.set(), &object));
    if (!outcome.ok()) {
      ++self->refused;
      EXPECT_EQ(outcome.code, GCAP_FAILED_PRECONDITION);
      EXPECT_TRUE(outcome.Names("exiting")) << outcome.message;
      EXPECT_EQ(object, nullptr);
    }
    self->at_exit->Set(self);  // again in the next round
  });
  asker.at_exit = &at_exit;
  std::thread([&] {
    asker.numbers.Get();
    at_exit.Set(&asker);
  }).join();
  EXPECT_EQ(asker.asked, PTHREAD_DESTRUCTOR_ITERATIONS);
  EXPECT_EQ(asker.refused, 1);
  EXPECT_EQ(gcap_affine_count(asker.numbers.set()), 1u) << "the one of this thread";
}

TEST(Affine, EndFindsWhatItsThreadStillHas) {
  Numbers older, newer;
  int* kept = nullptr;
  newer.on_end = [&](int) {
    EXPECT_EQ(older.Get(), kept);
    EXPECT_EQ(gcap_affine_find(newer.set()), nullptr) << "its own is gone";
    return gcap_status_t(nullptr);
  };
  std::thread([&] {
    kept = older.Get();
    newer.Get();
  }).join();
  EXPECT_EQ(older.made(), 1);
  EXPECT_EQ(older.ends().size(), 1u);
}

TEST(Affine, ObjectThatEndMakesEndsToo) {
  Numbers numbers;
  numbers.on_end = [&](int number) {
    if (number < 3) numbers.Get();
    return gcap_status_t(nullptr);
  };
  std::thread([&] { numbers.Get(); }).join();
  EXPECT_EQ(numbers.made(), 4);
  EXPECT_EQ(numbers.ends().size(), 4u);
  EXPECT_EQ(gcap_affine_count(numbers.set()), 0u);
}

// Threads come and go while sets do: everything that was made has ended, once.
TEST(Affine, NothingRemainsOfThreadsAndSetsThatEndAtOnce) {
  constexpr unsigned kSeed = 5;
  constexpr int kRounds = 200, kThreads = 6, kSets = 6;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<Numbers>> sets;
    for (int i = 0; i < kSets; ++i) sets.push_back(std::make_unique<Numbers>());
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&sets, &done, first = random() % kSets, uses = 1 + random() % kSets] {
        for (size_t use = 0; use < uses; ++use) {
          int* const object = sets[(first + use) % kSets]->Get();
          EXPECT_EQ(sets[(first + use) % kSets]->Get(), object);
        }
        ++done;
      });
    }
    while (done < kThreads) std::this_thread::yield();
    for (const auto& set : sets) set->Destroy();  // the threads are exiting now
    for (std::thread& thread : threads) thread.join();
    for (const auto& set : sets) {
      std::vector<int> times(set->made(), 0);
      for (const Numbers::End& end : set->ends()) ++times[end.number];
      EXPECT_EQ(times, std::vector<int>(set->made(), 1));
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
