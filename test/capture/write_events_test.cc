// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ledger of a scope as a file of events: what gcap-doctor's reader finds in it.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "doctor/events/recording.h"
#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "rules/rules.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/rules/event_texts.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

struct Destroy {
  void operator()(gcap_doctor_recording_t* recording) const { gcap_doctor_recording_destroy(recording); }
};
using Recording = std::unique_ptr<gcap_doctor_recording_t, Destroy>;

class CaptureEvents : public ScopeTest {
 protected:
  CaptureEvents() : path_(::testing::TempDir() + "/capture_events.txt") {}
  void TearDown() override {
    unlink(path_.c_str());
    ScopeTest::TearDown();
  }

  Recording Read() const {
    FILE* file = fopen(path_.c_str(), "r");
    if (file == nullptr) return nullptr;
    Recording recording(gcap_doctor_recording_read(file, path_.c_str()));
    fclose(file);
    EXPECT_EQ(recording->damage.lines, 0u) << recording->damage.reason;
    EXPECT_EQ(recording->num_threads, 1u);
    return recording;
  }

  // The place of the call that says that it broke the capture.
  static size_t CulpritOf(const Recording& recording) {
    size_t culprit = recording->num_calls;
    for (size_t i = 0; i < recording->num_calls; ++i) {
      const char* says = recording->calls[i].says;
      if (says == nullptr || strcmp(says, "invalidates capture 1") != 0) continue;
      EXPECT_EQ(culprit, recording->num_calls) << "two calls broke it";
      culprit = i;
    }
    return culprit;
  }

  const std::string path_;
};

void ExpectPlace(const Recording& recording, const gcap_doctor_event_call_t& call, int line) {
  ASSERT_LT(call.stack, recording->num_stacks);
  const uint32_t frame = gcap_doctor_recording_c_frame(recording.get(), call.stack);
  ASSERT_LT(frame, recording->num_frames);
  EXPECT_STREQ(recording->frames[frame].file, __FILE__);
  EXPECT_EQ(recording->frames[frame].line, static_cast<uint32_t>(line));
}

TEST_F(CaptureEvents, OfABrokenCaptureHaveTheCulpritAndItsPlace) {
  const RawStream stream;
  void* memory = nullptr;
  gcap_capture_t* capture = Begin(stream.get());
  GCAP_CAPTURE_NOTE("my kernel<<<1, 32>>>", stream.get());
  const int line = __LINE__ + 1;
  gcap_status_ignore(GCAP_CUDA(cudaMalloc(&memory, 64)));
  GCAP_CAPTURE_NOTE("a\tlater\\call", cudaStreamLegacy);
  GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
  const Recording recording = Read();
  ASSERT_NE(recording, nullptr);
  EXPECT_STREQ(recording->source, "events");
  EXPECT_STREQ(recording->program, program_invocation_name);
  EXPECT_EQ(recording->pid, static_cast<uint64_t>(getpid()));
  ASSERT_EQ(recording->num_calls, 4u);
  const gcap_doctor_event_call_t* calls = recording->calls;

  EXPECT_STREQ(calls[0].function, "cudaStreamBeginCapture");
  EXPECT_EQ(calls[0].mode, GCAP_DOCTOR_MODE_THREAD_LOCAL);
  EXPECT_STREQ(calls[0].says, "begins capture 1");
  EXPECT_STREQ(calls[1].function, "my kernel<<<1, 32>>>");
  EXPECT_STREQ(calls[1].arguments, "");
  EXPECT_EQ(calls[1].stream, calls[0].stream);
  EXPECT_EQ(calls[1].says, nullptr);

  EXPECT_EQ(CulpritOf(recording), 2u);
  EXPECT_STREQ(calls[2].function, "cudaMalloc");
  EXPECT_STREQ(calls[2].arguments, "&memory, 64");
  EXPECT_EQ(calls[2].result, 900);
  EXPECT_EQ(calls[2].stream, GCAP_DOCTOR_NONE);
  ExpectPlace(recording, calls[2], line);
  const gcap_rule_t* rule = gcap_rule_of_call(calls[2].function, calls[2].result);
  ASSERT_NE(rule, nullptr);
  EXPECT_STREQ(rule->id, "R26");

  EXPECT_STREQ(calls[3].function, "a\tlater\\call");
  ASSERT_NE(calls[3].stream, GCAP_DOCTOR_NONE);
  EXPECT_STREQ(recording->streams[calls[3].stream].what, "legacy");
  EXPECT_FALSE(recording->ended);
  EXPECT_EQ(recording->num_notes, 1u);  // that it had not ended
  EXPECT_FALSE(End(capture).ok());
}

// Whatever a program's texts are, the file is UTF-8, and a line of it is a line.
TEST_F(CaptureEvents, WriteTextsAsTheFormatSays) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  for (const EventText& row : kEventTexts) GCAP_CAPTURE_NOTE(row.text, nullptr);
  GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
  std::ifstream file(path_);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const EventText& row : kEventTexts) {
    const std::string field = std::string("\tfunction=") + row.written + "\tresult=";
    EXPECT_NE(whole.find(field), std::string::npos) << row.written;
  }
  EXPECT_NE(Read(), nullptr);
  EXPECT_TRUE(End(capture).ok());
}

// What broke it is kept although the ledger has dropped it.
TEST_F(CaptureEvents, OfASmallLedgerHaveTheCulpritToo) {
  const RawStream stream;
  for (const size_t num_later : {2u, 3u}) {  // the ring has dropped the culprit alone, or one call more
    gcap_capture_t* capture = Begin(stream.get(), 2);
    EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
    gcap_status_ignore(gcap_status_from_cuda(cudaErrorStreamCaptureUnsupported, "f", "f.cc", 1));
    for (size_t i = 0; i < num_later; ++i) GCAP_CAPTURE_NOTE(std::to_string(i).c_str(), nullptr);
    GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
    const Recording recording = Read();
    ASSERT_NE(recording, nullptr);
    const gcap_doctor_event_call_t* calls = recording->calls;
    ASSERT_EQ(recording->num_calls, 4u);
    EXPECT_EQ(CulpritOf(recording), 1u);
    EXPECT_STREQ(calls[1].function, "f");
    EXPECT_EQ(calls[2].function, std::to_string(num_later - 2));
    EXPECT_EQ(calls[3].function, std::to_string(num_later - 1));
    for (size_t i = 1; i < 4; ++i) EXPECT_LT(calls[i - 1].number, calls[i].number);
    EXPECT_EQ(calls[3].number, num_later + 2);  // after the begin and the others
    ASSERT_EQ(recording->num_notes, 2u);
    const std::string kept = "the newest 2 of " + std::to_string(num_later + 1) + " calls";
    EXPECT_NE(strstr(recording->notes[0], kept.c_str()), nullptr) << recording->notes[0];
    EXPECT_FALSE(End(capture).ok());
  }
}

// Nothing broke this one: what the ring has dropped is not written, and is counted.
TEST_F(CaptureEvents, OfASmallLedgerAndASoundCaptureAreTheNewestCalls) {
  const RawStream stream;
  for (const size_t num_calls : {2u, 3u}) {
    gcap_capture_t* capture = Begin(stream.get(), 2);
    for (size_t i = 0; i < num_calls; ++i) GCAP_CAPTURE_NOTE(std::to_string(i).c_str(), nullptr);
    GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
    const Recording recording = Read();
    ASSERT_NE(recording, nullptr);
    ASSERT_EQ(recording->num_calls, 3u);
    EXPECT_EQ(CulpritOf(recording), recording->num_calls);
    for (size_t i = 1; i < 3; ++i) {
      EXPECT_EQ(recording->calls[i].function, std::to_string(num_calls - 3 + i));
      EXPECT_EQ(recording->calls[i].number, num_calls - 1 + i);
    }
    ASSERT_EQ(recording->num_notes, num_calls - 1);
    if (num_calls == 3) {
      EXPECT_NE(strstr(recording->notes[0], "only the newest 2 of 3 calls"), nullptr) << recording->notes[0];
    }
    EXPECT_TRUE(End(capture).ok());
  }
}

TEST_F(CaptureEvents, HaveTheLabelsOfTheWorkAndOfTheCalls) {
  const RawStream stream;
  for (const bool labelled : {true, false}) {
    gcap_capture_t* capture = Begin(stream.get());
    if (labelled) gcap_capture_set_label(capture, std::string(200, 'w').c_str());
    for (const char* label : {"", "a", "a", "b", "", "b"}) {
      if (label[0] != '\0') gcap_label(label);
      GCAP_CAPTURE_NOTE(label, nullptr);
      if (label[0] != '\0') gcap_label(nullptr);
    }
    GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
    const Recording recording = Read();
    ASSERT_NE(recording, nullptr);
    const gcap_doctor_event_call_t* calls = recording->calls;
    ASSERT_EQ(recording->num_calls, 7u);
    if (labelled) {
      ASSERT_NE(calls[0].label, nullptr);
      EXPECT_EQ(calls[0].label, std::string(GCAP_CAPTURE_LABEL_BYTES - 1, 'w'));
    } else {
      EXPECT_EQ(calls[0].label, nullptr);
    }
    for (const size_t i : {1, 5}) EXPECT_EQ(calls[i].range, GCAP_DOCTOR_NONE);
    EXPECT_EQ(calls[2].range, calls[3].range) << "they follow each other in one label";
    EXPECT_EQ(calls[4].range, calls[6].range);
    for (const size_t i : {2, 4}) {
      ASSERT_LT(calls[i].range, recording->num_ranges);
      EXPECT_STREQ(recording->ranges[calls[i].range].text, calls[i].function);
    }
    EXPECT_TRUE(End(capture).ok());
  }
}

// Somebody ended the capture under the scope; and a call that was given a stream that has no handle.
TEST_F(CaptureEvents, OfACaptureThatACallEndedSaySo) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_OK(GCAP_CUDA(cudaStreamEndCapture(stream.get(), &graph)));
  GCAP_CAPTURE_NOTE("later", cudaStreamPerThread);
  GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
  const Recording recording = Read();
  ASSERT_NE(recording, nullptr);
  ASSERT_EQ(recording->num_calls, 3u);
  EXPECT_STREQ(recording->calls[1].function, "cudaStreamEndCapture");
  EXPECT_STREQ(recording->calls[1].says, "ends capture 1");
  EXPECT_EQ(recording->calls[2].says, nullptr);
  ASSERT_LT(recording->calls[2].stream, recording->num_streams);
  EXPECT_STREQ(recording->streams[recording->calls[2].stream].what, "per_thread");
  EXPECT_FALSE(End(capture).ok());
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

// What is no call of a function is a name; a call's text may have been cut off before its closing parenthesis.
TEST_F(CaptureEvents, SplitTheTextOfACall) {
  const struct {
    const char *text, *function, *arguments;
  } rows[] = {{"f(a, g(b))", "f", "a, g(b)"},
              {"f()", "f", ""},
              {"f(a, b...", "f", "a, b..."},
              {"(a)", "(a)", ""},
              {"my f(a)", "my f(a)", ""},
              {"f<<<1, 2>>>(a)", "f<<<1, 2>>>(a)", ""},
              {"f", "f", ""},
              {"f) (", "f) (", ""},
              {"f)(a", "f)", "a"}};
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  for (const auto& row : rows) GCAP_CAPTURE_NOTE(row.text, nullptr);
  GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
  const Recording recording = Read();
  ASSERT_NE(recording, nullptr);
  const gcap_doctor_event_call_t* call = &recording->calls[1];
  for (const auto& row : rows) {
    EXPECT_STREQ(call->function, row.function) << row.text;
    EXPECT_STREQ(call->arguments, row.arguments) << row.text;
    ++call;
  }
  EXPECT_TRUE(End(capture).ok());
}

// A place may be unknown, and a capture may be given work by more streams than a file tells apart.
TEST_F(CaptureEvents, TellNoPlaceThatIsUnknownAndNoStreamBeyondTheSixtyFourth) {
  const RawStream stream;
  const std::vector<RawStream> others(70);
  gcap_capture_t* capture = Begin(stream.get(), 100);
  gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(stream.get())));  // broken: no stream is looked at any more
  gcap_capture_note("nowhere", stream.get(), nullptr, 0);
  gcap_capture_note("nowhere", stream.get(), "", 0);
  for (const RawStream& other : others) GCAP_CAPTURE_NOTE("elsewhere", other.get());
  GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
  const Recording recording = Read();
  ASSERT_NE(recording, nullptr);
  ASSERT_EQ(recording->num_calls, 4 + others.size());
  for (const size_t i : {2, 3}) EXPECT_EQ(recording->calls[i].stack, GCAP_DOCTOR_NONE);
  EXPECT_EQ(recording->num_streams, 64u);
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(recording->calls[4 + i].stream == GCAP_DOCTOR_NONE, i >= 63) << "its own stream is the first: " << i;
  }
  EXPECT_FALSE(End(capture).ok());
}

// A daemon has closed its standard input, and the file gets that descriptor.
TEST_F(CaptureEvents, AreWrittenWhereTheStandardInputIsClosed) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  const int input = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
  EXPECT_EQ(fcntl(STDIN_FILENO, F_GETFD), -1) << "the file is closed";
  if (input >= 0) {
    EXPECT_EQ(dup2(input, STDIN_FILENO), STDIN_FILENO);
    close(input);
  }
  EXPECT_NE(Read(), nullptr);
  EXPECT_TRUE(End(capture).ok());
}

struct Step {
  gcap_capture_t* capture;
  const char* path;
  std::string error = "not called";
};

void WriteInStep(void* user, bool) {
  Step* step = static_cast<Step*>(user);
  gcap_status_t status = gcap_capture_write_events(step->capture, step->path);
  step->error = status == nullptr ? "" : gcap_status_message(status);
  gcap_status_free(status);
}

TEST_F(CaptureEvents, FromACloseStepHaveTheEnd) {
  const RawStream stream;
  for (const bool breaks : {false, true}) {
    gcap_capture_t* capture = Begin(stream.get(), 4, GCAP_CAPTURE_GLOBAL);
    Step step = {capture, path_.c_str()};
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, WriteInStep, &step));
    if (breaks) gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(stream.get())));
    EXPECT_EQ(End(capture).ok(), !breaks);
    EXPECT_EQ(step.error, "");
    const Recording recording = Read();
    ASSERT_NE(recording, nullptr);
    EXPECT_TRUE(recording->ended);
    EXPECT_EQ(recording->calls[0].mode, GCAP_DOCTOR_MODE_GLOBAL);
    const gcap_doctor_event_call_t& end = recording->calls[recording->num_calls - 1];
    EXPECT_STREQ(end.function, "cudaStreamEndCapture");
    EXPECT_EQ(end.result, breaks ? 901 : 0);
    EXPECT_EQ(end.stream, recording->calls[0].stream);
    EXPECT_EQ(CulpritOf(recording), breaks ? 1u : recording->num_calls);
  }
}

TEST_F(CaptureEvents, AreRefusedWithTheReason) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get(), 0);
  const Outcome no_ledger(gcap_capture_write_events(capture, path_.c_str()));
  EXPECT_EQ(no_ledger.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(no_ledger.Names("its ledger_calls is 0")) << no_ledger.message;
  EXPECT_TRUE(End(capture).ok());

  capture = Begin(stream.get());
  const Outcome no_folder(gcap_capture_write_events(capture, "/no/such/folder/events.txt"));
  EXPECT_EQ(no_folder.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(no_folder.Names("/no/such/folder/events.txt cannot be written")) << no_folder.message;
  std::thread([&] {
    const Outcome elsewhere(gcap_capture_write_events(capture, path_.c_str()));
    EXPECT_EQ(elsewhere.code, GCAP_FAILED_PRECONDITION);
    EXPECT_TRUE(elsewhere.Names("another thread's")) << elsewhere.message;
  }).join();
  const Outcome full(gcap_capture_write_events(capture, "/dev/full"));
  EXPECT_EQ(full.code, GCAP_UNAVAILABLE);
  EXPECT_TRUE(full.Names("/dev/full is incomplete")) << full.message;
  EXPECT_EQ(Read(), nullptr);
  EXPECT_TRUE(End(capture).ok()) << "none of these fails the capture";
}

TEST_F(CaptureEvents, LeaveTheThreadAsCancelableAsItWas) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  for (const int state : {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE}) {
    int before = -1, after = -1;
    ASSERT_EQ(pthread_setcancelstate(state, &before), 0);
    GCAP_EXPECT_OK(gcap_capture_write_events(capture, path_.c_str()));
    ASSERT_EQ(pthread_setcancelstate(before, &after), 0);
    EXPECT_EQ(after, state);
  }
  EXPECT_TRUE(End(capture).ok());
}

}  // namespace
}  // namespace testing
}  // namespace gcap
