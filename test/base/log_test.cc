// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "gcap/log.h"

#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {
namespace {

struct Messages {
  std::vector<std::pair<gcap_log_level_t, std::string>> received;

  static void Receive(void* user, gcap_log_level_t level, const char* message) {
    static_cast<Messages*>(user)->received.emplace_back(level, message);
  }
};

class Log : public ::testing::Test {
 protected:
  void TearDown() override { gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_DEBUG); }

  Messages messages_;
};

TEST_F(Log, SendsFormattedMessagesToTheSink) {
  gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_DEBUG);
  gcap_log(GCAP_LOG_ERROR, "%s is %d", "it", 3);
  ASSERT_EQ(messages_.received.size(), 1u);
  EXPECT_EQ(messages_.received[0].first, GCAP_LOG_ERROR);
  EXPECT_EQ(messages_.received[0].second, "it is 3");
}

TEST_F(Log, SendsItsLevelAndAbove) {
  gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_WARNING);
  gcap_log(GCAP_LOG_DEBUG, "debug");
  gcap_log(GCAP_LOG_INFO, "info");
  gcap_log(GCAP_LOG_WARNING, "warning");
  gcap_log(GCAP_LOG_ERROR, "error");
  ASSERT_EQ(messages_.received.size(), 2u);
  EXPECT_EQ(messages_.received[0].second, "warning");
  EXPECT_EQ(messages_.received[1].second, "error");
}

TEST_F(Log, WritesWarningsAndAboveToStandardErrorByDefault) {
  ::testing::internal::CaptureStderr();
  gcap_log(GCAP_LOG_INFO, "quiet");
  gcap_log(GCAP_LOG_WARNING, "loud");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "gcap warning: loud\n");
}

TEST_F(Log, NullSinkRestoresTheDefaultWhateverTheLevel) {
  gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_DEBUG);
  gcap_log_set_sink(nullptr, &messages_, GCAP_LOG_DEBUG);
  ::testing::internal::CaptureStderr();
  gcap_log(GCAP_LOG_INFO, "quiet");
  gcap_log(GCAP_LOG_ERROR, "loud");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "gcap error: loud\n");
  EXPECT_TRUE(messages_.received.empty());
}

TEST_F(Log, CutsALongMessageAndKeepsItTerminated) {
  gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_DEBUG);
  const std::string text(5000, 'x');
  gcap_log(GCAP_LOG_INFO, "%s", text.c_str());
  ASSERT_EQ(messages_.received.size(), 1u);
  const std::string& received = messages_.received[0].second;
  EXPECT_GT(received.size(), 1000u);
  EXPECT_LT(received.size(), text.size());
  EXPECT_EQ(received, text.substr(0, received.size() - 3) + "...") << "a cut is marked";
}

// Was: a name with a newline forged a line of its own.
TEST_F(Log, MessageIsOneLineWithoutControlCharacters) {
  gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_DEBUG);
  gcap_log(GCAP_LOG_ERROR, "node '%s' gr\xc3\xbcn", "a\ngcap error: forged \x1b[2J");
  gcap_log(GCAP_LOG_ERROR, "%s", std::string(1000, '\n').c_str());
  ASSERT_EQ(messages_.received.size(), 2u);
  EXPECT_EQ(messages_.received[0].second, "node 'a\\x0agcap error: forged \\x1b[2J' gr\xc3\xbcn");
  const std::string& many = messages_.received[1].second;
  EXPECT_EQ(many.find('\n'), std::string::npos);
  EXPECT_LE(many.size(), 1023u);
  EXPECT_EQ(many.substr(many.size() - 7), "\\x0a...");
}

TEST_F(Log, MayBeCalledByManyThreads) {
  static thread_local int received_here = 0;
  gcap_log_set_sink([](void*, gcap_log_level_t, const char*) { ++received_here; }, nullptr, GCAP_LOG_INFO);
  std::vector<std::thread> threads;
  std::vector<int> counts(4);
  for (int& count : counts) {
    threads.emplace_back([&count] {
      for (int i = 0; i < 100; ++i) gcap_log(GCAP_LOG_INFO, "%d", i);
      count = received_here;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts, std::vector<int>(4, 100));
}

// A thread that was cancelled in the sink left its stack on the list of calls, and a change of the sink waited for
// ever.
TEST_F(Log, AThreadIsCancelledBehindTheSink) {
  static std::atomic<int> returned;
  returned = 0;
  gcap_log_set_sink(
      [](void*, gcap_log_level_t, const char*) {
        pthread_testcancel();
        ++returned;
      },
      nullptr, GCAP_LOG_INFO);
  pthread_t thread;
  const auto run = [](void*) -> void* {
    pthread_cancel(pthread_self());
    gcap_log(GCAP_LOG_INFO, "a message");
    pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, run, nullptr), 0);
  void* end = nullptr;
  ASSERT_EQ(pthread_join(thread, &end), 0);
  EXPECT_EQ(end, PTHREAD_CANCELED);
  ASSERT_EQ(returned, 1);
  gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_INFO);
}

// They read beyond the table of names.
TEST_F(Log, LevelsThatDoNotExistCountAsTheNearest) {
  const auto level = [](int value) { return static_cast<gcap_log_level_t>(value); };
  gcap_log_set_sink(Messages::Receive, &messages_, level(1000));
  gcap_log(level(4), "just above");
  gcap_log(level(1000000), "far above");
  gcap_log(GCAP_LOG_WARNING, "below");
  ASSERT_EQ(messages_.received.size(), 2u);
  EXPECT_EQ(messages_.received[0].first, GCAP_LOG_ERROR);
  EXPECT_EQ(messages_.received[1].first, GCAP_LOG_ERROR);
  gcap_log_set_sink(Messages::Receive, &messages_, level(-1));
  gcap_log(level(-7), "below all");
  ASSERT_EQ(messages_.received.size(), 3u);
  EXPECT_EQ(messages_.received[2].first, GCAP_LOG_DEBUG);
  gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_DEBUG);
  ::testing::internal::CaptureStderr();
  gcap_log(level(4), "loud");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "gcap error: loud\n");
}

// A sink that caused a message each time called itself until the stack was full.
TEST_F(Log, MessagesOfASinkGoToStandardError) {
  static int calls;
  calls = 0;
  gcap_log_set_sink(
      [](void*, gcap_log_level_t, const char*) {
        ++calls;
        gcap_log(GCAP_LOG_ERROR, "from the sink");
        gcap_log(GCAP_LOG_INFO, "quiet");
      },
      nullptr, GCAP_LOG_DEBUG);
  ::testing::internal::CaptureStderr();
  gcap_log(GCAP_LOG_INFO, "first");
  gcap_log(GCAP_LOG_INFO, "second");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "gcap error: from the sink\ngcap error: from the sink\n");
  EXPECT_EQ(calls, 2);
}

TEST_F(Log, ASinkMaySetAnotherOne) {
  static Messages* next;
  next = &messages_;
  gcap_log_set_sink(
      [](void*, gcap_log_level_t, const char*) { gcap_log_set_sink(Messages::Receive, next, GCAP_LOG_INFO); }, nullptr,
      GCAP_LOG_DEBUG);
  gcap_log(GCAP_LOG_INFO, "first");
  gcap_log(GCAP_LOG_INFO, "second");
  ASSERT_EQ(messages_.received.size(), 1u);
  EXPECT_EQ(messages_.received[0].second, "second");
}

// Sink, user and level were three variables without a lock: a message could go to one sink with the user of another,
// and to a sink that was replaced long ago.
TEST_F(Log, ASinkThatWasReplacedIsNotCalledAnyMore) {
  struct User {
    std::atomic<bool> is_set{true};
    std::atomic<int> late{0};
  };
  const auto receive = [](void* user, gcap_log_level_t, const char*) {
    User* self = static_cast<User*>(user);
    std::this_thread::yield();
    if (!self->is_set) ++self->late;
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&stop] {
      while (!stop) gcap_log(GCAP_LOG_INFO, "a message");
    });
  }
  int late = 0;
  for (int i = 0; i < 500; ++i) {
    User users[2];
    gcap_log_set_sink(receive, &users[0], GCAP_LOG_INFO);
    gcap_log_set_sink(receive, &users[1], GCAP_LOG_INFO);
    users[0].is_set = false;
    gcap_log_set_sink(Messages::Receive, &messages_, GCAP_LOG_ERROR);
    users[1].is_set = false;
    std::this_thread::yield();
    late += users[0].late + users[1].late;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(late, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
