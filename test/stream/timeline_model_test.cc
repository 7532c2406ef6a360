// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Timelines against the rule itself: for random streams, notifications and waits, what gcap knows is what a plain map
// per stream knows, neither more nor less.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using Knowledge = std::map<int, uint64_t>;  // by stream: its points below this one are passed

struct ModelStream {
  explicit ModelStream(int name) : name(name) { GCAP_EXPECT_OK(gcap_stream_create(0, &stream)); }
  ModelStream(const ModelStream&) = delete;
  ModelStream& operator=(const ModelStream&) = delete;
  ~ModelStream() { GCAP_EXPECT_OK(gcap_stream_destroy(stream)); }

  const int name;  // never used twice
  gcap_stream_t* stream = nullptr;
  uint64_t sync_id = 0;
  uint64_t finished = 0;
  Knowledge known;
};

struct ModelNotification {
  explicit ModelNotification(ModelStream* producer) : producer(producer) {
    GCAP_EXPECT_OK(gcap_notification_create(producer->stream, &notification));
  }
  ModelNotification(const ModelNotification&) = delete;
  ModelNotification& operator=(const ModelNotification&) = delete;
  ~ModelNotification() { gcap_notification_destroy(notification); }

  void Record() {
    GCAP_EXPECT_OK(gcap_notification_record(notification));
    sync_id = ++producer->sync_id;
    known = producer->known;
    known[producer->name] = sync_id;
  }

  ModelStream* const producer;
  gcap_notification_t* notification = nullptr;
  uint64_t sync_id = 0;  // 0: never recorded
  Knowledge known;
};

class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed) {}

  void Step() {
    switch (Below(12)) {
      case 0: return AddStream();
      case 1: return RemoveStream();
      case 2: return Synchronize();
      case 3: return WaitOnHost();
      case 4:
      case 5: return AddNotification();
      case 6: return RecordAgain();
      default: return Wait();
    }
  }

  void Check() {
    for (const auto& consumer : streams_) {
      for (const auto& producer : streams_) {
        const auto found = consumer->known.find(producer->name);
        const uint64_t known = found != consumer->known.end() ? found->second : 0;
        for (const uint64_t id : {uint64_t{0}, known, known - (known > 0), producer->sync_id, producer->finished}) {
          const bool expected = consumer == producer || known > id || producer->finished > id;
          ASSERT_EQ(gcap_stream_has_waited(consumer->stream, producer->stream, id), expected)
              << consumer->name << " after " << producer->name << " at " << id;
        }
        ASSERT_EQ(gcap_stream_sync_id(producer->stream), producer->sync_id);
      }
    }
  }

  int streams_made() const { return next_name_; }

 private:
  static constexpr size_t kMostStreams = 24;  // more than the first capacity of what a stream knows
  static constexpr size_t kMostNotifications = 40;

  size_t Below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  ModelStream* AnyStream() { return streams_[Below(streams_.size())].get(); }

  void AddStream() {
    if (streams_.size() < kMostStreams) streams_.push_back(std::make_unique<ModelStream>(next_name_++));
  }

  // A stream outlives its notifications; what others know of it stays with them, and concerns nobody any more.
  void RemoveStream() {
    if (streams_.empty() || Below(2) == 0) return;  // so that there are many most of the time
    std::swap(streams_[Below(streams_.size())], streams_.back());
    for (size_t i = notifications_.size(); i > 0; --i) {
      if (notifications_[i - 1]->producer == streams_.back().get()) {
        notifications_.erase(notifications_.begin() + static_cast<ptrdiff_t>(i - 1));
      }
    }
    Finish(streams_.back()->known);  // it is drained
    streams_.pop_back();
  }

  void Synchronize() {
    if (streams_.empty()) return;
    ModelStream* stream = AnyStream();
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream->stream));
    stream->finished = ++stream->sync_id;
    Finish(stream->known);
  }

  // The host has come after all of it.
  void Finish(const Knowledge& known) {
    for (const auto& stream : streams_) {
      const auto found = known.find(stream->name);
      if (found != known.end()) stream->finished = std::max(stream->finished, found->second);
    }
  }

  void AddNotification() {
    if (streams_.empty()) return;
    if (notifications_.size() == kMostNotifications) notifications_.erase(notifications_.begin());
    notifications_.push_back(std::make_unique<ModelNotification>(AnyStream()));
    notifications_.back()->Record();
  }

  void RecordAgain() {
    if (!notifications_.empty()) notifications_[Below(notifications_.size())]->Record();
  }

  void WaitOnHost() {
    if (notifications_.empty()) return;
    const ModelNotification& notification = *notifications_[Below(notifications_.size())];
    GCAP_EXPECT_OK(gcap_notification_wait_on_host(notification.notification));
    Finish(notification.known);  // its own point included
  }

  void Wait() {
    if (notifications_.empty()) return;
    const ModelNotification& notification = *notifications_[Below(notifications_.size())];
    ModelStream* consumer = AnyStream();
    GCAP_EXPECT_OK(gcap_notification_wait(notification.notification, consumer->stream));
    for (const auto& point : notification.known) {
      uint64_t& known = consumer->known[point.first];
      if (known < point.second) known = point.second;
    }
  }

  std::mt19937 random_;
  int next_name_ = 0;
  std::vector<std::unique_ptr<ModelStream>> streams_;
  std::vector<std::unique_ptr<ModelNotification>> notifications_;
};

class TimelineModel : public DeviceTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(TimelineModel, KnowsWhatTheRuleSays) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  Model model(GetParam());
  for (int step = 0; step < 1200; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    model.Step();
    if (step % 8 == 0) model.Check();
    if (HasFailure()) return;
  }
  EXPECT_GT(model.streams_made(), 60) << "most of them must be gone";
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimelineModel, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace testing
}  // namespace gcap
