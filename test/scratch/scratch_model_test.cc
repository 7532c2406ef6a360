// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Random operations on several streams against an oracle that keeps no blocks, bins or sync ids: it knows for each
// granule who used it last and whose it is, and for each stream, by vector clock, what it comes after. The oracle says
// what is safe; whatever the arena hands out must be. After a synchronisation of all streams it also says what must be
// possible: every run of free granules can be had as one block.
//
// GCAP_TEST_SEED=n runs one seed alone.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "lib/stream/inner.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kStreams = 8;
constexpr int kOperations = 1500;
constexpr int kOperationsPerCount = 10;  // the oracle's counting takes longer than all else
constexpr int kNobody = -1;

using Clock = std::array<uint64_t, kStreams>;

void RaiseTo(Clock* clock, const Clock& other) {
  for (int i = 0; i < kStreams; ++i) (*clock)[i] = std::max((*clock)[i], other[i]);
}

struct Granule {
  bool live = false;
  int user = kNobody;  // the last to use it, at `time` of its own clock
  uint64_t time = 0;
  const void* reservation = nullptr;
};

struct Block {
  char* ptr;
  size_t bytes;
  int stream;
};

struct Reserved {
  gcap_scratch_reservation_t* handle;
  int stream;
  bool open;
  int graphs;                  // that share it
  std::set<const void*> kept;  // others that last as long
  int keepers = 0;             // others that it lasts as long as
};

struct Point {
  gcap_notification_t* notification = nullptr;
  bool recorded = false;
  Clock clock = {};
};

size_t NumGranules(size_t bytes) { return (bytes + kGranule - 1) / kGranule; }

class ScratchModel : public DeviceTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (int i = 0; i < kStreams; ++i) {
      GCAP_ASSERT_OK(gcap_stream_create(0, &streams_[i]));
      GCAP_ASSERT_OK(gcap_notification_create(streams_[i], &points_[i].notification));
    }
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_chunk_bytes = kChunk;
    options.max_extend_bytes = 4 * kChunk;
    options.max_dead_bytes_per_chunk = 0;  // the oracle counts granules
    options.extend_as_requested = GetParam() % 4 == 1;
    options.memory_limit_bytes = GetParam() % 3 == 1 ? 12 * kChunk : 0;
    GCAP_ASSERT_OK(gcap_scratch_create(upstream_.get(), &options, &scratch_));
    // A deficit that cannot be made up is logged; here that is no news.
    gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_ERROR);
    upstream_.on_release = [this](const char* base, size_t bytes) { CheckReleased(base, bytes); };
  }
  void TearDown() override {
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    for (size_t i = 0; !reserved_.empty(); ++i) Release(i % reserved_.size());
    while (!blocks_.empty()) Free(0);
    for (int i = 0; i < kStreams && streams_[i] != nullptr; ++i) Synchronize(i);
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    for (int i = 0; i < kStreams; ++i) {
      gcap_notification_destroy(points_[i].notification);
      GCAP_EXPECT_OK(gcap_stream_destroy(streams_[i]));
    }
  }

  int Random(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }

  // --- The oracle
  // -----------------------------------------------------------------------------------------------------

  bool IsFinished(const Granule& granule) const {
    return granule.user == kNobody || finished_[granule.user] >= granule.time;
  }
  bool ComesAfter(int stream, const Granule& granule) const {
    return IsFinished(granule) || granule.user == stream || known_[stream][granule.user] >= granule.time;
  }
  Reserved* OpenOf(int stream) {
    for (Reserved& reserved : reserved_) {
      if (reserved.stream == stream && reserved.open) return &reserved;
    }
    return nullptr;
  }
  // The arena may synchronise a stream that lacks memory. It says so by the sync id; that it did is not checked here.
  void NoteSynchronisations() {
    for (int i = 0; i < kStreams; ++i) {
      const uint64_t sync_id = gcap_stream_sync_id(streams_[i]);
      if (sync_id != sync_ids_[i]) FinishInOracle(i);
      sync_ids_[i] = sync_id;
    }
  }
  // Everything issued so far on the stream, and what it waited for, is over.
  void FinishInOracle(int stream) {
    finished_[stream] = now_[stream];
    RaiseTo(&finished_, known_[stream]);
  }
  void CheckHandedOut(const char* ptr, size_t bytes, int stream) {
    const Reserved* open = OpenOf(stream);
    const void* reservation = open == nullptr ? nullptr : open->handle;
    for (size_t i = 0; i < NumGranules(bytes); ++i) {
      Granule& granule = granules_[ptr + i * kGranule];
      ASSERT_FALSE(granule.live) << "handed out twice";
      if (granule.reservation == nullptr) {
        ASSERT_TRUE(ComesAfter(stream, granule)) << "stream " << stream << " did not wait for " << granule.user;
      } else {
        ASSERT_EQ(granule.reservation, reservation) << "the memory of another graph";
      }
      granule.live = true;
      granule.user = stream;
      granule.reservation = reservation;
    }
  }
  void CheckReleased(const char* base, size_t bytes) {
    NoteSynchronisations();
    for (size_t i = 0; i < NumGranules(bytes); ++i) {
      const auto found = granules_.find(base + i * kGranule);
      if (found == granules_.end()) continue;  // never used
      EXPECT_FALSE(found->second.live) << "given back in use";
      EXPECT_EQ(found->second.reservation, nullptr) << "given back under a graph";
      EXPECT_TRUE(IsFinished(found->second)) << "given back while stream " << found->second.user << " may use it";
      granules_.erase(found);
    }
  }
  size_t LongestFreeRun() const {
    size_t longest = 0;
    for (const auto& [base, bytes] : upstream_.regions()) {
      size_t run = 0;
      for (size_t i = 0; i < NumGranules(bytes); ++i) {
        const auto found = granules_.find(base + i * kGranule);
        const bool is_free = found == granules_.end() || (!found->second.live && found->second.reservation == nullptr);
        run = is_free ? run + 1 : 0;
        longest = std::max(longest, run);
      }
    }
    return longest;
  }
  void CheckCounters() {
    size_t in_use = 0, requested = 0, held = 0;
    for (const Block& block : blocks_) {
      in_use += NumGranules(block.bytes) * kGranule;
      requested += block.bytes;
    }
    for (const auto& region : upstream_.regions()) held += region.second;
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    ASSERT_EQ(stats.in_use_bytes, in_use);
    ASSERT_EQ(stats.requested_in_use_bytes, requested);
    ASSERT_EQ(stats.total_allocated_bytes, held);
    std::map<const void*, size_t> reserved_bytes;
    for (const auto& entry : granules_) reserved_bytes[entry.second.reservation] += kGranule;
    for (const Reserved& reserved : reserved_) {
      if (reserved.graphs == 0) continue;  // not ours any more
      ASSERT_EQ(gcap_scratch_reservation_bytes(reserved.handle), reserved_bytes[reserved.handle]);
    }
  }

  // --- Operations
  // -----------------------------------------------------------------------------------------------------

  bool TryAlloc(size_t bytes, int stream) {
    const bool diverted = OpenOf(stream) != nullptr;
    const size_t requests = upstream_.requests().size();
    void* ptr = nullptr;
    const Outcome outcome(gcap_scratch_alloc(scratch_, bytes, streams_[stream], &ptr));
    NoteSynchronisations();
    if (diverted) {
      EXPECT_EQ(upstream_.requests().size(), requests) << "a reservation reached upstream";
    }
    if (!outcome.ok()) {
      EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
      return false;
    }
    CheckHandedOut(static_cast<char*>(ptr), bytes, stream);
    largest_[stream] = std::max(largest_[stream], bytes);
    blocks_.push_back({static_cast<char*>(ptr), bytes, stream});
    return true;
  }
  void Free(size_t index) {
    const Block block = blocks_[index];
    Reserved* open = OpenOf(block.stream);
    if (open != nullptr && !Keep(open, granules_[block.ptr].reservation)) {
      GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, block.ptr), GCAP_FAILED_PRECONDITION, "outside of a capture");
      return;
    }
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
    const uint64_t time = ++now_[block.stream];
    for (size_t i = 0; i < NumGranules(block.bytes); ++i) {
      Granule& granule = granules_[block.ptr + i * kGranule];
      granule.live = false;
      granule.time = time;
      if (granule.reservation == nullptr && open != nullptr) granule.reservation = open->handle;
    }
    GCAP_ASSERT_OK(gcap_scratch_free(scratch_, block.ptr));
  }
  Reserved* Find(const void* handle) {
    return &*std::find_if(reserved_.begin(), reserved_.end(), [&](const Reserved& r) { return r.handle == handle; });
  }
  bool Keeps(const void* handle, const void* other) {
    const std::set<const void*>& kept = Find(handle)->kept;
    return std::any_of(kept.begin(), kept.end(), [&](const void* k) { return k == other || Keeps(k, other); });
  }
  // What a capture frees of an earlier one lasts as long as both; false if that one lasts as long as this already.
  bool Keep(Reserved* open, const void* other) {
    if (other == nullptr || other == open->handle || Keeps(open->handle, other)) return true;
    if (Keeps(other, open->handle)) return false;
    open->kept.insert(other);
    ++Find(other)->keepers;
    return true;
  }
  void Record(int stream) {
    GCAP_ASSERT_OK(gcap_notification_record(points_[stream].notification));
    ++sync_ids_[stream];
    points_[stream].recorded = true;
    points_[stream].clock = known_[stream];
    points_[stream].clock[stream] = now_[stream];
  }
  void Wait(int consumer, int producer) {
    if (!points_[producer].recorded) return;
    GCAP_ASSERT_OK(gcap_notification_wait(points_[producer].notification, streams_[consumer]));
    RaiseTo(&known_[consumer], points_[producer].clock);
  }
  void Synchronize(int stream) {
    GCAP_ASSERT_OK(gcap_stream_synchronize(streams_[stream]));
    NoteSynchronisations();
  }
  void OpenOrClose(int stream) {
    Reserved* open = OpenOf(stream);
    if (open != nullptr) {
      gcap_scratch_reservation_close(open->handle);
      open->open = false;
      return;
    }
    for (Reserved& closed : reserved_) {
      if (closed.stream != stream || closed.graphs == 0 || Random(2) == 0) continue;
      GCAP_ASSERT_OK(gcap_scratch_reservation_reopen(closed.handle));
      closed.open = true;
      ++closed.graphs;
      return;
    }
    gcap_scratch_reservation_t* handle = nullptr;
    GCAP_ASSERT_OK(gcap_scratch_reservation_open(scratch_, streams_[stream], &handle));
    reserved_.push_back({handle, stream, true, 1, {}, 0});
  }
  // What the stream had as one block it will find for a capture. Not in an arena that is large: after Quiesce that is
  // all of it, and each time it would double.
  void Prepare(int stream) {
    size_t held = 0;
    for (const auto& region : upstream_.regions()) held += region.second;
    if (held > 16 * kChunk) return;
    if (!Outcome(gcap_scratch_reservation_prepare(scratch_, streams_[stream])).ok()) return;  // the limit
    if (OpenOf(stream) != nullptr || largest_[stream] == 0) return;
    OpenOrClose(stream);
    const bool found = TryAlloc(largest_[stream], stream);
    EXPECT_TRUE(found) << "stream " << stream << " had " << largest_[stream] << " bytes";
    if (found) Free(blocks_.size() - 1);
    OpenOrClose(stream);
  }
  void Release(size_t index) {
    if (reserved_[index].graphs == 0) return;  // it is there for others alone
    gcap_scratch_reservation_t* handle = reserved_[index].handle;
    if (--reserved_[index].graphs == 0) reserved_[index].open = false;
    EndIfGivenUp(handle);
    gcap_scratch_reservation_release(handle);
  }
  void EndIfGivenUp(const void* handle) {
    const Reserved reserved = *Find(handle);
    if (reserved.graphs > 0 || reserved.keepers > 0) return;
    reserved_.erase(reserved_.begin() + (Find(handle) - reserved_.data()));
    const uint64_t time = ++now_[reserved.stream];  // a replay may have used it until now
    for (auto& entry : granules_) {
      if (entry.second.reservation != handle) continue;
      entry.second.reservation = nullptr;
      entry.second.time = time;
    }
    for (const void* kept : reserved.kept) {
      --Find(kept)->keepers;
      EndIfGivenUp(kept);
    }
  }
  void Forget(int stream) {
    Synchronize(stream);
    const auto is_its = [stream](const auto& thing) { return thing.stream == stream; };
    const bool in_use =
        std::any_of(blocks_.begin(), blocks_.end(), is_its) || std::any_of(reserved_.begin(), reserved_.end(), is_its);
    const Outcome outcome(gcap_scratch_forget_stream(scratch_, streams_[stream]));
    ASSERT_EQ(outcome.code, in_use ? GCAP_FAILED_PRECONDITION : GCAP_OK) << outcome.message;
    if (!in_use) largest_[stream] = 0;
  }
  // Nothing runs and nothing is captured: the longest run of free granules can be had, and nothing longer without
  // upstream.
  void Quiesce() {
    for (int i = 0; i < kStreams; ++i) {
      Synchronize(i);
      if (OpenOf(i) != nullptr) OpenOrClose(i);
    }
    const int stream = Random(kStreams);
    const size_t longest = LongestFreeRun();
    upstream_.most_bytes = 0;
    const bool possible = longest == 0 || TryAlloc(longest * kGranule, stream);
    EXPECT_TRUE(possible) << longest << " free granules in a row";
    if (longest > 0 && possible) Free(blocks_.size() - 1);
    EXPECT_FALSE(TryAlloc((longest + 1) * kGranule, stream));
    upstream_.most_bytes = SIZE_MAX;
  }

  void Step() {
    const int stream = Random(kStreams);
    const int dice = Random(100);
    if (dice < 38) {
      TryAlloc(static_cast<size_t>(Random(10) == 0 ? 1 + Random(2 * kChunk) : 1 + Random(4 * kGranule)), stream);
    } else if (dice < 70) {
      if (!blocks_.empty()) Free(static_cast<size_t>(Random(static_cast<int>(blocks_.size()))));
    } else if (dice < 77) {
      Record(stream);
    } else if (dice < 84) {
      Wait(stream, Random(kStreams));
    } else if (dice < 87) {
      Synchronize(stream);
    } else if (dice < 92) {
      OpenOrClose(stream);
    } else if (dice < 95) {
      if (!reserved_.empty()) Release(static_cast<size_t>(Random(static_cast<int>(reserved_.size()))));
    } else if (dice < 97) {
      GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    } else if (dice < 98) {
      Forget(stream);
    } else if (Random(2) == 0) {
      Prepare(stream);
    } else {
      Quiesce();
    }
    GCAP_ASSERT_OK(gcap_scratch_validate(scratch_));
  }

  std::mt19937 random_{GetParam()};
  Upstream upstream_;
  gcap_scratch_t* scratch_ = nullptr;
  std::array<gcap_stream_t*, kStreams> streams_ = {};
  std::array<Point, kStreams> points_;
  std::vector<Block> blocks_;
  std::vector<Reserved> reserved_;
  std::array<size_t, kStreams> largest_ = {};  // of each stream's blocks so far

  std::map<const char*, Granule> granules_;
  Clock now_ = {};  // of each stream
  std::array<uint64_t, kStreams> sync_ids_ = {};
  Clock finished_ = {};  // known to be over on the host
  std::array<Clock, kStreams> known_ = {};
};

std::vector<unsigned> Seeds() {
  const char* seed = std::getenv("GCAP_TEST_SEED");
  if (seed != nullptr) return {static_cast<unsigned>(std::strtoul(seed, nullptr, 10))};
  return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
}

INSTANTIATE_TEST_SUITE_P(Seed, ScratchModel, ::testing::ValuesIn(Seeds()), ::testing::PrintToStringParamName());

TEST_P(ScratchModel, HandsOutOnlyWhatIsSafe) {
  for (int i = 0; i < kOperations; ++i) {
    SCOPED_TRACE("GCAP_TEST_SEED=" + std::to_string(GetParam()) + ", operation " + std::to_string(i));
    Step();
    if (i % kOperationsPerCount == 0) CheckCounters();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
