// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Trace files: their lines are in the order of the events' numbers, whoever writes them, and a file that cannot be made
// or finished is named.

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/allocator/trace_file.h"
}

namespace gcap {
namespace testing {
namespace {

std::string TracePath() { return std::string(std::getenv("TEST_TMPDIR")) + "/allocator.trace"; }

std::string ContentOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

gcap_allocator_event_t Alloc(uint64_t sequence) {
  gcap_allocator_event_t event = {};
  event.kind = GCAP_ALLOCATOR_EVENT_ALLOC;
  event.sequence = event.block = sequence;
  event.bytes = 8 * sequence;
  return event;
}

// The second thread reports while the first has not: it waits for the line before its own.
TEST(TraceFile, LinesAreInTheOrderOfTheirNumbers) {
  gcap_trace_file_t* file = nullptr;
  GCAP_ASSERT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
  std::vector<std::thread> threads;
  for (const uint64_t sequence : {3, 2, 1}) {
    threads.emplace_back([&, sequence] {
      const gcap_allocator_event_t event = Alloc(sequence);
      gcap_trace_file_on_event(file, &event);
    });
  }
  for (std::thread& thread : threads) thread.join();
  GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
  EXPECT_EQ(ContentOf(TracePath()), "a 1 8 0\na 2 16 0\na 3 24 0\n");
}

// A child process that exits would write again what is still in the buffer.
TEST(TraceFile, ALineIsInTheFileAtOnce) {
  gcap_trace_file_t* file = nullptr;
  GCAP_ASSERT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
  const gcap_allocator_event_t event = Alloc(1);
  gcap_trace_file_on_event(file, &event);
  EXPECT_EQ(ContentOf(TracePath()), "a 1 8 0\n");
  GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
}

// While a line is written, it may not.
TEST(TraceFile, AThreadMayBeCancelledAfterALine) {
  gcap_trace_file_t* file = nullptr;
  GCAP_ASSERT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
  const gcap_allocator_event_t event = Alloc(1);
  gcap_trace_file_on_event(file, &event);
  int state = PTHREAD_CANCEL_DISABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
  GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
}

TEST(TraceFile, ANumberOf64BitsIsWrittenWhole) {
  gcap_trace_file_t* file = nullptr;
  GCAP_ASSERT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
  gcap_allocator_event_t event = Alloc(1);
  event.block = event.bytes = UINT64_MAX;
  event.stream = reinterpret_cast<gcap_stream_t*>(UINTPTR_MAX);
  gcap_trace_file_on_event(file, &event);
  GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
  const std::string most = "18446744073709551615";
  EXPECT_EQ(ContentOf(TracePath()).rfind("a " + most + " " + most + " ", 0), 0u) << ContentOf(TracePath());
  EXPECT_EQ(ContentOf(TracePath()).back(), '\n');
}

TEST(TraceFile, WithoutHostMemoryThereIsNone) {
  gcap_trace_file_t* file = reinterpret_cast<gcap_trace_file_t*>(&file);
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_FAILS(gcap_trace_file_create(TracePath().c_str(), &file), GCAP_RESOURCE_EXHAUSTED, "");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(file, nullptr);
  GCAP_EXPECT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
  GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
}

TEST(TraceFile, HasOneWriterUntilItIsFlushedForGood) {
  gcap_trace_file_t *first = nullptr, *second = nullptr;
  GCAP_ASSERT_OK(gcap_trace_file_create(TracePath().c_str(), &first));
  GCAP_EXPECT_FAILS(gcap_trace_file_create(TracePath().c_str(), &second), GCAP_INVALID_ARGUMENT,
                    TracePath() + " is being written by another");
  EXPECT_EQ(second, nullptr);
  const gcap_allocator_event_t event = Alloc(1);
  gcap_trace_file_on_event(first, &event);
  gcap_trace_file_flush(first);
  EXPECT_EQ(ContentOf(TracePath()), "a 1 8 0\n");
  GCAP_EXPECT_OK(gcap_trace_file_create(TracePath().c_str(), &second));
  EXPECT_EQ(ContentOf(TracePath()), "") << "emptied";
  GCAP_EXPECT_OK(gcap_trace_file_destroy(second));
  GCAP_EXPECT_OK(gcap_trace_file_destroy(first));
}

// What is no regular file may have several writers.
TEST(TraceFile, MayBeADeviceOfSeveral) {
  gcap_trace_file_t* files[2] = {};
  for (gcap_trace_file_t*& file : files) GCAP_EXPECT_OK(gcap_trace_file_create("/dev/null", &file));
  for (gcap_trace_file_t* file : files) GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
}

// A daemon has closed its standard input, and the file gets that descriptor.
TEST(TraceFile, IsWrittenWhereTheStandardInputIsClosed) {
  const int input = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  gcap_trace_file_t* file = nullptr;
  GCAP_ASSERT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
  const gcap_allocator_event_t event = Alloc(1);
  gcap_trace_file_on_event(file, &event);
  GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
  if (input >= 0) {
    EXPECT_EQ(dup2(input, STDIN_FILENO), STDIN_FILENO);
    close(input);
  }
  EXPECT_EQ(ContentOf(TracePath()), "a 1 8 0\n");
}

// As any program's file: for whom the process lets, and no program.
TEST(TraceFile, IsMadeWithTheRightsThatTheProcessLeaves) {
  for (const mode_t kept_away : {0, 022, 077}) {
    unlink(TracePath().c_str());
    const mode_t before = umask(kept_away);
    gcap_trace_file_t* file = nullptr;
    GCAP_EXPECT_OK(gcap_trace_file_create(TracePath().c_str(), &file));
    umask(before);
    GCAP_EXPECT_OK(gcap_trace_file_destroy(file));
    struct stat made = {};
    ASSERT_EQ(stat(TracePath().c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0666 & ~kept_away);
  }
}

TEST(TraceFile, OneThatCannotBeWrittenOrFinishedIsNamed) {
  gcap_trace_file_t* file = nullptr;
  GCAP_EXPECT_FAILS(gcap_trace_file_create("/dev/null/none", &file), GCAP_INVALID_ARGUMENT,
                    "/dev/null/none cannot be written: Not a directory");
  EXPECT_EQ(file, nullptr);
  GCAP_ASSERT_OK(gcap_trace_file_create("/dev/full", &file));
  const gcap_allocator_event_t event = Alloc(1);
  gcap_trace_file_on_event(file, &event);
  GCAP_EXPECT_FAILS(gcap_trace_file_destroy(file), GCAP_LIBRARY_ERROR,
                    "the trace file is incomplete: No space left on device");
  GCAP_EXPECT_OK(gcap_trace_file_destroy(nullptr));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
