// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "gcap/log.h"

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

}  // namespace
}  // namespace testing
}  // namespace gcap
