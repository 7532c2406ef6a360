// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table knows handles only by their value, so these tests need no streams.

#include "lib/internal/stream_table.h"

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

// The nth handle value. Real ones are addresses of heap blocks; the distance makes many of them meet in the table.
cudaStream_t Handle(size_t n) { return reinterpret_cast<cudaStream_t>(uintptr_t{0x5000} + 64 * n); }

// How a wrapper of these tests is waited for.
gcap_status_t Wait(void* wrapper) {
  (void)wrapper;
  return nullptr;
}

// A listed wrapper that is its own address.
struct Wrapper {
  Wrapper(cudaStream_t handle, unsigned long long id) {
    GCAP_EXPECT_OK(gcap_stream_table_add(&entry, handle, id, this, Wait));
  }
  Wrapper(const Wrapper&) = delete;
  Wrapper& operator=(const Wrapper&) = delete;
  ~Wrapper() { gcap_stream_table_remove(&entry); }

  gcap_stream_entry_t entry = {};
};

// A life kept by somebody who is not the wrapper's owner.
class KeptLife {
 public:
  explicit KeptLife(cudaStream_t handle) : life_(gcap_stream_table_life(handle)) {}
  KeptLife(const KeptLife&) = delete;
  KeptLife& operator=(const KeptLife&) = delete;
  ~KeptLife() { gcap_life_release(life_); }

  bool known() const { return life_ != nullptr; }
  bool goes_on() const { return gcap_life_goes_on(life_); }

 private:
  gcap_life_t* const life_;
};

TEST(StreamTable, FindsWhatIsListedUntilItGoes) {
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), nullptr);
  {
    const Wrapper wrapper(Handle(1), 1);
    EXPECT_EQ(gcap_stream_table_find(Handle(1)), &wrapper);
    EXPECT_EQ(gcap_stream_table_find(Handle(2)), nullptr);
  }
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), nullptr);
}

TEST(StreamTable, NeverFindsAHandleThatMeansAnotherStreamElsewhere) {
  for (const cudaStream_t alias : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    const Wrapper wrapper(alias, 1);
    EXPECT_EQ(gcap_stream_table_find(alias), nullptr);
    EXPECT_FALSE(KeptLife(alias).known());
  }
}

TEST(StreamTable, FindsTheNewestWrapperOfAStreamAndThenTheNextOne) {
  auto oldest = std::make_unique<Wrapper>(Handle(1), 7);
  auto middle = std::make_unique<Wrapper>(Handle(1), 7);
  auto newest = std::make_unique<Wrapper>(Handle(1), 7);
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), newest.get());
  middle.reset();
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), newest.get());
  newest.reset();
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), oldest.get());
  oldest.reset();
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), nullptr);
}

TEST(StreamTable, LifeEndsWithItsWrapper) {
  auto wrapper = std::make_unique<Wrapper>(Handle(1), 1);
  const KeptLife life(Handle(1));
  EXPECT_TRUE(life.known());
  EXPECT_TRUE(life.goes_on());
  wrapper.reset();
  EXPECT_FALSE(life.goes_on());
  EXPECT_FALSE(KeptLife(Handle(1)).known());
}

TEST(StreamTable, AReusedHandleValueUnlistsTheStaleWrapperForGood) {
  auto stale = std::make_unique<Wrapper>(Handle(1), 1);
  const KeptLife stale_life(Handle(1));
  {
    const Wrapper fresh(Handle(1), 2);
    EXPECT_EQ(gcap_stream_table_find(Handle(1)), &fresh);
    EXPECT_FALSE(stale_life.goes_on()) << "its stream is gone";
    EXPECT_TRUE(KeptLife(Handle(1)).goes_on());
  }
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), nullptr) << "the stale one must not come back";
  const Wrapper another(Handle(1), 3);
  stale.reset();
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), &another) << "nor take another's place with it";
}

TEST(StreamTable, AWrapperOfUnknownIdIsTrustedAloneAndOnlyAsTheNewest) {
  const Wrapper known(Handle(1), 1);
  const KeptLife known_life(Handle(1));
  auto unknown = std::make_unique<Wrapper>(Handle(1), 0);
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), unknown.get());
  unknown.reset();
  EXPECT_EQ(gcap_stream_table_find(Handle(1)), nullptr) << "the older may be of a stream that is gone";
  EXPECT_TRUE(known_life.goes_on()) << "but nobody knows that it is gone";
}

// Lists streams without end, each with the first allocation failing: most need one, for the life; those that come when
// the table is full need it for the table.
TEST(StreamTable, WithoutMemoryListsNothing) {
  std::vector<std::unique_ptr<Wrapper>> wrappers;
  std::set<std::string> reasons;
  for (size_t i = 0; i < 200; ++i) {
    gcap_stream_entry_t entry = {};
    Outcome outcome(nullptr);
    {
      const HeapFailure no_memory;
      outcome = Outcome(gcap_stream_table_add(&entry, Handle(i), i + 1, &entry, Wait));
      EXPECT_EQ(no_memory.hits(), 1);
    }
    EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
    reasons.insert(outcome.message);
    EXPECT_EQ(gcap_stream_table_find(Handle(i)), nullptr);
    gcap_stream_table_remove(&entry);  // fine, also for what was never listed
    wrappers.push_back(std::make_unique<Wrapper>(Handle(i), i + 1));
    for (const auto& wrapper : wrappers) ASSERT_EQ(gcap_stream_table_find(wrapper->entry.handle), wrapper.get());
  }
  EXPECT_EQ(reasons.size(), 2u) << "both allocations have failed";
}

// The same rules over std::map, for random steps: streams come with fresh ids at old handle values, wrappers come and
// go in any order, some without an id, some long after their stream.
class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed) {}

  void Step() {
    const size_t handle = Below(kHandles);
    switch (Below(4)) {
      case 0: stream_at_[handle] = ++last_id_; break;
      case 1:
      case 2: Add(handle, Below(8) == 0 ? 0 : stream_at_[handle]); break;
      default: RemoveOne();
    }
  }

  void Check() {
    for (size_t handle = 0; handle < kHandles; ++handle) {
      const auto& chain = chains_[handle];
      ASSERT_EQ(gcap_stream_table_find(Handle(handle)), chain.empty() ? nullptr : chain.back()) << "handle " << handle;
    }
  }

  size_t most() const { return most_; }

 private:
  static constexpr size_t kHandles = 300;  // the table grows several times
  static constexpr size_t kMostWrappers = 500;

  size_t Below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  void Add(size_t handle, unsigned long long id) {
    if (wrappers_.size() == kMostWrappers) return RemoveOne();
    std::vector<Wrapper*>& chain = chains_[handle];
    const bool together = !chain.empty() && id != 0 && ids_[chain.back()] == id;
    if (!together) chain.clear();
    wrappers_.push_back(std::make_unique<Wrapper>(Handle(handle), id));
    ids_[wrappers_.back().get()] = id;
    chain.push_back(wrappers_.back().get());
    if (most_ < wrappers_.size()) most_ = wrappers_.size();
  }

  void RemoveOne() {
    if (wrappers_.empty()) return;
    std::swap(wrappers_[Below(wrappers_.size())], wrappers_.back());
    Wrapper* gone = wrappers_.back().get();
    for (auto& at : chains_) {
      for (size_t i = 0; i < at.second.size(); ++i) {
        if (at.second[i] == gone) at.second.erase(at.second.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    ids_.erase(gone);
    wrappers_.pop_back();
  }

  std::mt19937 random_;
  unsigned long long last_id_ = 0;
  std::map<size_t, unsigned long long> stream_at_;  // the id of the stream that has the handle value now; 0: unknown
  std::map<size_t, std::vector<Wrapper*>> chains_;  // newest last
  std::map<Wrapper*, unsigned long long> ids_;
  std::vector<std::unique_ptr<Wrapper>> wrappers_;
  size_t most_ = 0;
};

TEST(StreamTable, DoesAsAMapDoesForRandomSteps) {
  constexpr uint32_t kSeed = 20;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Model model(kSeed);
  for (int step = 0; step < 6000; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    model.Step();
    model.Check();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(model.most(), 200u) << "the steps must fill more than the first table";
}

// Wrappers of ever new streams come and go: the table stays as large as those alive at once need. An add allocates the
// wrapper's life; a second allocation would be a larger table.
TEST(StreamTable, DoesNotGrowWithWrappersThatAreGone) {
  constexpr size_t kAlive = 8, kChurn = 20000;
  std::vector<std::unique_ptr<Wrapper>> alive(kAlive);
  for (size_t i = 0; i < kChurn; ++i) {
    std::unique_ptr<Wrapper>& wrapper = alive[i % kAlive];
    wrapper.reset();
    // The memory of the test's own object is of C++, which the failure does not see.
    const HeapFailure second(/*count=*/1, /*skip=*/i < kAlive ? 2 : 1);
    wrapper = std::make_unique<Wrapper>(Handle(1000 + i), 100000 + i);
    ASSERT_EQ(second.hits(), 0) << "wrapper " << i;
    ASSERT_EQ(gcap_stream_table_find(Handle(1000 + i)), wrapper.get());
    if (i >= kAlive) {
      ASSERT_EQ(gcap_stream_table_find(Handle(1000 + i - kAlive)), nullptr);
    }
  }
}

TEST(StreamTable, ReadersFindTheirStreamWhileOthersComeAndGo) {
  constexpr size_t kStable = 8;
  constexpr size_t kWriters = 3;
  constexpr size_t kHandlesOfAWriter = 40;
  constexpr int kRounds = 60;
  std::vector<std::unique_ptr<Wrapper>> stable;
  for (size_t i = 0; i < kStable; ++i) stable.push_back(std::make_unique<Wrapper>(Handle(i), i + 1));

  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&stable, &done] {
      while (!done) {
        for (size_t i = 0; i < kStable; ++i) ASSERT_EQ(gcap_stream_table_find(Handle(i)), stable[i].get());
      }
    });
  }
  std::vector<std::thread> writers;
  for (size_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([w] {
      const auto mine = [w](size_t i) { return Handle(kStable + w * kHandlesOfAWriter + i); };
      unsigned long long id = 1000 * (w + 1);
      for (int round = 0; round < kRounds; ++round) {
        std::vector<std::unique_ptr<Wrapper>> wrappers;
        for (size_t i = 0; i < kHandlesOfAWriter; ++i) {
          wrappers.push_back(std::make_unique<Wrapper>(mine(i), ++id));
          ASSERT_EQ(gcap_stream_table_find(mine(i)), wrappers[i].get());
        }
        for (size_t i = 0; i < kHandlesOfAWriter; ++i) {
          wrappers[i].reset();
          ASSERT_EQ(gcap_stream_table_find(mine(i)), nullptr);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(StreamTable, AReaderOfAChangingHandleFindsOneOfItsWrappersOrNone) {
  constexpr int kRounds = 20000;
  std::atomic<bool> done{false};
  gcap_stream_entry_t entries[2] = {};
  gcap_stream_entry_t others[2] = {};
  std::thread reader([&] {
    while (!done) {
      void* found = gcap_stream_table_find(Handle(1));
      ASSERT_TRUE(found == nullptr || found == &entries[0] || found == &entries[1]);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    // The cells of the two handles change places again and again.
    gcap_stream_entry_t* entry = &entries[round % 2];
    gcap_stream_entry_t* other = &others[round % 2];
    const unsigned long long id = static_cast<unsigned long long>(round) + 1;
    GCAP_EXPECT_OK(gcap_stream_table_add(other, Handle(1 + 64 * 64), id, other, Wait));
    GCAP_EXPECT_OK(gcap_stream_table_add(entry, Handle(1), id, entry, Wait));
    gcap_stream_table_remove(other);
    gcap_stream_table_remove(entry);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
