// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Labels: which calls of the ledger have them, and what says so.

#include <cuda_runtime_api.h>

#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/capture/steps.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class CaptureLabels : public ScopeTest {
 protected:
  // The label of a call that is noted now.
  static std::string OfACall(gcap_capture_t* capture) {
    GCAP_CAPTURE_NOTE("a call", nullptr);
    gcap_capture_call_t call = {};
    gcap_capture_get_calls(capture, &call, 1);
    return call.label;
  }
  static void Open(const std::string& text) { gcap_label(std::string(text).c_str()); }  // the text is gone at once
  static void Close() { gcap_label(nullptr); }
};

TEST_F(CaptureLabels, NestAndEndInTheirOrder) {
  const RawStream stream;
  Open("decoder");  // before the scope
  gcap_capture_t* capture = Begin(stream.get());
  EXPECT_EQ(OfACall(capture), "decoder");
  Open("layer 3");
  EXPECT_EQ(OfACall(capture), "decoder > layer 3");
  Open("");
  EXPECT_EQ(OfACall(capture), "decoder > layer 3 > ");
  Close();
  Close();
  EXPECT_EQ(OfACall(capture), "decoder");
  Close();
  EXPECT_EQ(OfACall(capture), "");
  Open("later");
  EXPECT_TRUE(End(capture).ok());
  capture = Begin(stream.get());
  EXPECT_EQ(OfACall(capture), "later") << "a scope closes no label";
  Close();
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureLabels, OfEachCallStayInTheLedger) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  for (const char* text : {"a", "b"}) {
    Open(text);
    GCAP_CAPTURE_NOTE("work", nullptr);
    Close();
  }
  GCAP_CAPTURE_NOTE("work", nullptr);
  gcap_capture_call_t calls[3];
  ASSERT_EQ(gcap_capture_get_calls(capture, calls, 3), 3u);
  EXPECT_STREQ(calls[0].label, "a");
  EXPECT_STREQ(calls[1].label, "b");
  EXPECT_STREQ(calls[2].label, "");
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureLabels, CloseWhereNoneIsOpenDoesNothing) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  Close();
  Close();
  EXPECT_EQ(OfACall(capture), "");
  Open("one");
  EXPECT_EQ(OfACall(capture), "one");
  Close();
  EXPECT_EQ(OfACall(capture), "");
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureLabels, NestDeeperThanAreNamed) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  Open("outer");
  std::vector<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    seen.push_back(OfACall(capture));
    Open("");
  }
  EXPECT_EQ(seen[1], "outer > ");
  EXPECT_EQ(seen[30].size(), 95u) << "the text is full";
  EXPECT_EQ(OfACall(capture), seen[30]);
  for (int i = 99; i >= 0; --i) {
    Close();
    EXPECT_EQ(OfACall(capture), seen[i]) << i;
  }
  Close();
  EXPECT_EQ(OfACall(capture), "");
  EXPECT_TRUE(End(capture).ok());
}

// Beyond the sixty-fourth a label is in no text, whether there is room or not.
TEST_F(CaptureLabels, BeyondTheSixtyFourthAreCounted) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  for (int i = 0; i < 64; ++i) Open("");
  EXPECT_EQ(OfACall(capture), "") << "the first of the labels without a text leaves the text empty";
  Open("hidden");
  EXPECT_EQ(OfACall(capture), "");
  Close();
  Close();
  Open("shown");
  EXPECT_EQ(OfACall(capture), "shown");
  for (int i = 0; i < 64; ++i) Close();
  EXPECT_EQ(OfACall(capture), "");
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureLabels, ThatAreTooLongAreCutWhereACharacterBegins) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  Open(std::string(95, 'a'));
  EXPECT_EQ(OfACall(capture), std::string(95, 'a'));
  Close();
  Open(std::string(96, 'a'));
  EXPECT_EQ(OfACall(capture), std::string(92, 'a') + "...");
  Open("inner");
  EXPECT_EQ(OfACall(capture), std::string(92, 'a') + "...");
  Close();
  Close();
  Open(std::string(91, 'a') + "\xC3\xA4\xC3\xA4\xC3\xA4");
  EXPECT_EQ(OfACall(capture), std::string(91, 'a') + "...");
  Close();
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureLabels, AreTheirThreadsAlone) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  Open("mine");
  std::thread([this] {
    const RawStream other;
    gcap_capture_t* of_thread = Begin(other.get());
    Close();
    Open("yours");
    EXPECT_EQ(OfACall(of_thread), "yours");
    EXPECT_TRUE(End(of_thread).ok());
  }).join();
  EXPECT_EQ(OfACall(capture), "mine");
  Close();
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureLabels, AreInTheMessageOfTheCallThatBrokeTheCapture) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  void* memory = nullptr;
  Open("decoder");
  Open("layer 3");
  gcap_status_ignore(GCAP_CUDA(cudaMalloc(&memory, 64)));
  Close();
  const Outcome outcome = End(capture);
  Close();
  EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(outcome.Names("cudaMalloc(&memory, 64) in label 'decoder > layer 3' at ")) << outcome.message;
}

TEST_F(CaptureLabels, AreInTheMessageOfWorkThatEscaped) {
  const RawStream stream, other;
  gcap_capture_t* capture = Begin(stream.get());
  Open("aside");
  GCAP_CAPTURE_NOTE("an escaped call", other.get());
  Close();
  const Outcome escaped = End(capture);
  EXPECT_TRUE(escaped.Names("an escaped call in label 'aside' at ")) << escaped.message;
}

TEST_F(CaptureLabels, AreThoseOfTheStepsToo) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get(), /*ledger_calls=*/0);
  gcap_capture_steps_t steps = {};
  gcap_capture_keep_steps(capture, &steps);
  Open("first");
  GCAP_CAPTURE_NOTE("a call", stream.get());
  Close();
  GCAP_CAPTURE_NOTE("a call", stream.get());
  EXPECT_TRUE(End(capture).ok());
  ASSERT_EQ(steps.count, 2u);
  EXPECT_STREQ(steps.items[0].label, "first");
  EXPECT_STREQ(steps.items[1].label, "");
  gcap_capture_steps_free(&steps);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
