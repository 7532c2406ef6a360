// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's log, read: what each phrase of a line becomes, and what is skipped. The lines are those of runs.
#include <gtest/gtest.h>
#include <stdio.h>

#include <memory>
#include <string>

#include "doctor/events/recording.h"

namespace {

struct Destroy {
  void operator()(gcap_doctor_recording_t* recording) const { gcap_doctor_recording_destroy(recording); }
};
using Recording = std::unique_ptr<gcap_doctor_recording_t, Destroy>;

Recording Read(std::string text) {
  FILE* file = fmemopen(text.data(), text.size(), "r");
  Recording recording(gcap_doctor_recording_read(file, "sim.log"));
  fclose(file);
  return recording;
}

const gcap_doctor_event_call_t* Find(const Recording& recording, uint64_t number) {
  for (size_t i = 0; i < recording->num_calls; ++i) {
    if (recording->calls[i].number == number) return &recording->calls[i];
  }
  return nullptr;
}

std::string StreamOf(const Recording& recording, const gcap_doctor_event_call_t* call) {
  if (call == nullptr || call->stream == GCAP_DOCTOR_NONE) return "none";
  const gcap_doctor_event_stream_t& stream = recording->streams[call->stream];
  return std::to_string(stream.id) + " " + stream.what;
}

// A capture that a wait for its own stream breaks; then one that ends well and is launched twice.
const char kRun[] =
    "gcap sim: #1 thread 1 cudaStreamCreateWithFlags(non-blocking) -> 0 cudaSuccess, makes stream 1\n"
    "gcap sim: #2 thread 1 cudaMalloc(64 bytes) -> 0 cudaSuccess\n"
    "gcap sim: #12 thread 1 cudaStreamBeginCapture(stream 1, mode thread-local) -> 0 cudaSuccess, makes graph 5, "
    "begins "
    "capture 1 [capture 1 active]\n"
    "gcap sim: #13 thread 1 cudaMemsetAsync(stream 1) -> 0 cudaSuccess, makes graph node 6 (memset of graph 5) "
    "[capture "
    "1 active]\n"
    "gcap sim: broken capture: a call that a capturing stream cannot be given (R11)\n"
    "  broken by cudaStreamSynchronize, call #15, thread 1\n"
    "gcap sim: #15 thread 1 cudaStreamSynchronize(stream 1) -> 900 cudaErrorStreamCaptureUnsupported, invalidates "
    "capture 1: rule R11: a call that a capturing stream cannot be given; remedy: do it before the capture begins or "
    "after it ends; cache a stream's flags, id and device at creation; see docs/rules/r11.md [capture 1 invalidated]\n"
    "gcap sim: #17 thread 1 cudaGetLastError() -> 900 cudaErrorStreamCaptureUnsupported\n"
    "gcap sim: #21 thread 1 cudaStreamEndCapture(stream 1) -> 901 cudaErrorStreamCaptureInvalidated, ends capture 1\n"
    "gcap sim: #22 thread 1 cudaStreamBeginCapture(stream 1, mode global) -> 0 cudaSuccess, makes graph 5.2, begins "
    "capture 2 [capture 2 active]\n"
    "gcap sim: #23 thread 1 cudaMemcpyAsync(stream 1, 64 bytes, pageable memory to device) -> 0 cudaSuccess, makes "
    "graph "
    "node 6.2 (memcpy of graph 5.2) [capture 2 active]\n"
    "gcap sim: #24 thread 1 cudaStreamEndCapture(stream 1) -> 0 cudaSuccess, ends capture 2\n"
    "gcap sim: #25 thread 1 cudaGraphInstantiate(graph 5.2) -> 0 cudaSuccess, makes exec 8\n"
    "gcap sim: #26 thread 1 cudaGraphLaunch(stream 1, exec 8) -> 0 cudaSuccess\n"
    "gcap sim: #27 thread 1 cudaGraphLaunch(stream 1, exec 8) -> 1 cudaErrorInvalidValue\n";

TEST(SimLog, CapturesHaveTheirCallsModesAndGraphs) {
  Recording recording = Read(kRun);
  EXPECT_EQ(gcap_doctor_recording_count_calls(recording.get()), recording->num_calls);
  EXPECT_STREQ(recording->source, "simulator log");
  EXPECT_EQ(recording->damage.lines, 0u);
  EXPECT_EQ(recording->num_calls, 12u);
  const gcap_doctor_event_call_t* begin = Find(recording, 12);
  ASSERT_NE(begin, nullptr);
  EXPECT_STREQ(begin->function, "cudaStreamBeginCapture");
  EXPECT_STREQ(begin->arguments, "stream 1, mode thread-local");
  EXPECT_EQ(begin->mode, GCAP_DOCTOR_MODE_THREAD_LOCAL);
  EXPECT_STREQ(begin->says, "makes graph 5, begins capture 1 [capture 1 active]");
  EXPECT_EQ(Find(recording, 22)->mode, GCAP_DOCTOR_MODE_GLOBAL);
  EXPECT_EQ(StreamOf(recording, begin), "1 nonblocking");

  const gcap_doctor_event_call_t* culprit = Find(recording, 15);
  EXPECT_EQ(culprit->result, 900);
  EXPECT_EQ(std::string(culprit->says).find("invalidates capture 1: rule R11: "), 0u);
  EXPECT_EQ(Find(recording, 17), nullptr);  // the last error is no call of its own

  // Only the end that succeeds has a graph, and its second capture another one than the first, in the same place.
  EXPECT_EQ(Find(recording, 21)->graph, GCAP_DOCTOR_NONE);
  ASSERT_EQ(recording->num_nodes, 2u);
  EXPECT_NE(recording->nodes[0].graph, recording->nodes[1].graph);
  EXPECT_NE(recording->nodes[0].id, recording->nodes[1].id);
  EXPECT_EQ(Find(recording, 24)->graph, recording->nodes[1].graph);
  EXPECT_STREQ(recording->nodes[0].type, "memset");
  EXPECT_STREQ(recording->nodes[1].type, "memcpy");
  EXPECT_EQ(&recording->calls[recording->nodes[1].call], Find(recording, 23));
  EXPECT_EQ(Find(recording, 13)->num_nodes, 1u);
}

TEST(SimLog, CopiesSayWhatMemoryTheyUse) {
  Recording recording = Read(
      "#1 thread 1 cudaMemcpyAsync(stream 1, 64 bytes, pageable memory to device) -> 0 cudaSuccess\n"
      "#2 thread 1 cudaMemcpyAsync(stream 1, 8 bytes, device to pinned memory) -> 0 cudaSuccess\n"
      "#3 thread 1 cudaMemcpyAsync(stream 1, 8 bytes, device to device) -> 0 cudaSuccess\n"
      "#4 thread 1 cudaMemcpyAsync(stream 1, 8 bytes, device to managed memory) -> 0 cudaSuccess\n"
      "#5 thread 1 cudaMemcpy(legacy stream, 8 bytes, pinned memory to pageable memory) -> 0 cudaSuccess\n"
      "#6 thread 1 cudaMemcpy(legacy stream, 8 bytes) -> 1 cudaErrorInvalidValue\n");
  const struct {
    const char* copy;
    gcap_doctor_event_host_t host;
    uint64_t bytes;
  } expected[] = {{"htod", GCAP_DOCTOR_HOST_PAGEABLE, 64}, {"dtoh", GCAP_DOCTOR_HOST_PINNED, 8},
                  {"dtod", GCAP_DOCTOR_HOST_UNKNOWN, 8},   {"default", GCAP_DOCTOR_HOST_UNKNOWN, 8},
                  {"htoh", GCAP_DOCTOR_HOST_PAGEABLE, 8},  {nullptr, GCAP_DOCTOR_HOST_UNKNOWN, 8}};
  ASSERT_EQ(recording->num_calls, 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_STREQ(recording->calls[i].copy, expected[i].copy) << i + 1;
    EXPECT_EQ(recording->calls[i].host, expected[i].host) << i + 1;
    EXPECT_EQ(recording->calls[i].bytes, expected[i].bytes) << i + 1;
  }
  EXPECT_EQ(StreamOf(recording, &recording->calls[4]), "0 legacy");
}

TEST(SimLog, ExecutablesHaveTheirGraphAndLaunches) {
  Recording recording = Read(kRun);
  ASSERT_EQ(recording->num_execs, 1u);
  const gcap_doctor_event_exec_t& exec = recording->execs[0];
  EXPECT_EQ(exec.graph, Find(recording, 24)->graph);
  EXPECT_EQ(&recording->calls[exec.call], Find(recording, 25));
  EXPECT_EQ(exec.replays, 2u);
  EXPECT_EQ(exec.failed_replays, 1u);
  EXPECT_EQ(Find(recording, 27)->exec, exec.id);
  EXPECT_EQ(Find(recording, 27)->result, 1);
}

TEST(SimLog, StreamsAndEventsAreToldApartWhereAPlaceIsUsedAgain) {
  Recording recording = Read(
      "#1 thread 1 cudaStreamCreate(blocking) -> 0 cudaSuccess, makes stream 4\n"
      "#2 thread 1 cudaStreamDestroy(stream 4) -> 0 cudaSuccess\n"
      "#3 thread 1 cudaStreamCreateWithFlags(non-blocking) -> 0 cudaSuccess, makes stream 4.2\n"
      "#4 thread 1 cudaStreamWaitEvent(event 3, stream 4.2) -> 0 cudaSuccess, joins capture 1 [capture 1 active]\n"
      "#5 thread 1 cudaEventRecord(event 3.2, legacy stream) -> 0 cudaSuccess\n"
      "#6 thread 1 cudaStreamQuery(per-thread stream) -> 0 cudaSuccess\n"
      "#7 thread 2 cudaStreamQuery(per-thread stream) -> 600 cudaErrorNotReady\n"
      "#8 thread 2 cudaStreamQuery(stream 4.2) -> 0 cudaSuccess\n");
  EXPECT_EQ(StreamOf(recording, Find(recording, 2)), "4 blocking");
  EXPECT_EQ(recording->streams[Find(recording, 4)->stream].what, std::string("nonblocking"));
  EXPECT_NE(Find(recording, 2)->stream, Find(recording, 4)->stream);
  EXPECT_EQ(Find(recording, 4)->stream, Find(recording, 8)->stream);
  EXPECT_NE(Find(recording, 4)->event, Find(recording, 5)->event);
  EXPECT_EQ(StreamOf(recording, Find(recording, 5)), "0 legacy");
  EXPECT_EQ(recording->streams[Find(recording, 6)->stream].what, std::string("per_thread"));
  EXPECT_NE(Find(recording, 6)->stream, Find(recording, 7)->stream);
}

TEST(SimLog, ThreadsHaveTheirNames) {
  Recording recording = Read(
      "#1 thread 12 cudaGetDevice() -> 0 cudaSuccess\n"
      "#3 turn 0 cudaGetDevice() -> 0 cudaSuccess\n"
      "#2 host functions cudaGetDevice() -> 800 cudaErrorNotPermitted\n"
      "#4 turn 0 cudaGetDevice() -> 0 cudaSuccess\n");
  ASSERT_EQ(recording->num_calls, 4u);
  EXPECT_EQ(recording->calls[1].number, 2u);
  EXPECT_EQ(recording->threads[recording->calls[0].thread].id, 12u);
  EXPECT_STREQ(recording->threads[recording->calls[0].thread].name, "");
  EXPECT_STREQ(recording->threads[recording->calls[1].thread].name, "host functions");
  EXPECT_STREQ(recording->threads[recording->calls[2].thread].name, "turn 0");
  EXPECT_EQ(recording->calls[2].thread, recording->calls[3].thread);
  EXPECT_EQ(recording->num_threads, 3u);
}

TEST(SimLog, EndsWhereTheSimulatorSaysSo) {
  const std::string call = "gcap sim: #1 thread 1 cudaGetDevice() -> 0 cudaSuccess\n";
  EXPECT_TRUE(Read(call + "gcap sim: the program ends\n")->ended);
  EXPECT_FALSE(Read(call)->ended);
}

TEST(SimLog, KernelsHaveTheirWholeNames) {
  Recording recording = Read(
      "#1 thread 1 cudaLaunchKernel(kernel void scale<float, 4>(float*, int), stream 1) -> 0 cudaSuccess, makes graph "
      "node 6 (kernel of graph 5) [capture 1 active]\n"
      "#2 thread 1 cudaLaunchKernel(kernel relu, per-thread stream) -> 0 cudaSuccess\n");
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_STREQ(recording->calls[0].kernel, "void scale<float, 4>(float*, int)");
  EXPECT_EQ(StreamOf(recording, &recording->calls[0]), "1 ");
  EXPECT_STREQ(recording->calls[1].kernel, "relu");
  ASSERT_EQ(recording->num_nodes, 1u);
  EXPECT_STREQ(recording->nodes[0].type, "kernel");
}

TEST(SimLog, OtherWordsAreSkippedAndLinesCutShortAreCounted) {
  Recording recording = Read(
      "my engine starts\n"
      "gcap warning: graph id 0 is run again, eagerly\n"
      "90 percentgcap sim: #1 thread 1 cudaStreamQuery(stream 1) -> 0 cudaSuccess\n"
      "  at main (main.c:7)\n"
      "gcap sim: #2 thread 1 cudaStreamQuery(stre\n"
      "gcap sim: #3 thread 1 cudaStreamQuery(stream 1) -> x\n"
      "# 4 thread 1 is a comment\n"
      "gcap sim: #5 thread 1 cudaStreamQuery(stream 1) -> 0 cudaSuccess");
  EXPECT_STREQ(recording->source, "simulator log");
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_EQ(recording->calls[0].number, 1u);
  EXPECT_EQ(recording->calls[0].line, 3u);
  EXPECT_EQ(recording->calls[1].number, 5u);
  EXPECT_EQ(recording->damage.lines, 2u);
  EXPECT_EQ(recording->damage.first, 5u);
  EXPECT_STREQ(recording->damage.reason, "a call without its arguments or its answer");
}

// Labels that no simulator gives, and numbers beyond any.
TEST(SimLog, StrangeNumbersAreNoNames) {
  Recording recording = Read(
      "#1 thread 1 cudaStreamQuery(stream 99999999999999999999) -> 0 cudaSuccess\n"
      "#2 thread 1 cudaStreamQuery(stream 4294967295.7) -> 0 cudaSuccess, makes graph node 5 (memset\n"
      "#3 thread 1 cudaStreamQuery(stream , event ., graph , exec x, a foreign stream) -> 0 cudaSuccess, makes exec \n"
      "#99999999999 thread 1 cudaStreamQuery() -> 0 cudaSuccess\n"
      "#5 thread 99999999 cudaStreamQuery() -> 0 cudaSuccess\n");
  ASSERT_EQ(recording->num_calls, 3u);
  EXPECT_EQ(recording->calls[0].stream, GCAP_DOCTOR_NONE);
  EXPECT_NE(recording->calls[1].stream, GCAP_DOCTOR_NONE);
  EXPECT_EQ(recording->calls[2].stream, GCAP_DOCTOR_NONE);
  EXPECT_EQ(recording->calls[2].event, GCAP_DOCTOR_NONE);
  EXPECT_EQ(recording->num_nodes + recording->num_execs, 0u);
  EXPECT_EQ(recording->damage.lines, 1u);
}

}  // namespace
