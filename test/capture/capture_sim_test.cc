// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures when CUDA calls or allocations fail: what only the simulator can stage.

#include <functional>
#include <string>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/base/capture_hooks.h"
#include "lib/capture/inner.h"
#include "lib/capture/steps.h"
#include "lib/internal/capture_gate.h"
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

void CountClose(void* count, bool) { ++*static_cast<int*>(count); }
void CountCommit(void* count, bool committed) { *static_cast<int*>(count) += committed ? 1 : 0; }
void CountRelease(void* count) { ++*static_cast<int*>(count); }

class CaptureSim : public DeviceTest {
 protected:
  static void SetUpTestSuite() {
    gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_WARNING);  // abandoned on purpose
  }
  static void TearDownTestSuite() { gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING); }

  // What any end leaves: no stream that captures, no thread state, and a stream whose next capture is right.
  static void ExpectAsBefore(const RawStream& stream) {
    EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
    gcap_status_ignore(GCAP_STATUS(GCAP_CUDA_ERROR, "no scope is there to hear of it"));
    CopyJob job;
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
    size_t nodes = 0;
    GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, CopyJob::kNodes);
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }
};

TEST_F(CaptureSim, FaultsOfBeginUndoIt) {
  const RawStream stream;
  const Walked walked = WalkFaults([&stream](Fault& fault) {
    gcap_capture_t* capture = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_capture_begin(stream.get(), nullptr, &capture); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_EQ(outcome.ok(), capture != nullptr);
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    gcap_capture_abort(capture);
    ExpectAsBefore(stream);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaStreamGetDevice", "cudaStreamBeginCapture",
                                         "cudaStreamGetCaptureInfo"}));
}

TEST_F(CaptureSim, FaultsOfBeginStillAbortTheAbandonedOne) {
  const RawStream abandoned;
  const RawStream stream;
  WalkFaults([&](Fault& fault) {
    int closed = 0;
    gcap_capture_t* first = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(abandoned.get(), nullptr, &first));
    GCAP_EXPECT_OK(gcap_capture_on_close(first, CountClose, &closed));
    gcap_capture_t* capture = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_capture_begin(stream.get(), nullptr, &capture); });
    EXPECT_EQ(outcome.ok(), capture != nullptr);
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(abandoned.CaptureStatus(), cudaStreamCaptureStatusNone);
    gcap_capture_abort(capture);
    ExpectAsBefore(abandoned);
    ExpectAsBefore(stream);
  });
}

// The ledger asks after each call whether the capture goes on. Where that fails too, the call was left out.
TEST_F(CaptureSim, ACallThatFailsIsToldBeforeAQuestionThatFailsBehindIt) {
  const RawStream stream;
  const CopyJob job;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
  Fault fault(1, Reach::kAllAfter);
  fault.Arm();
  gcap_status_ignore(GCAP_CUDA(job.Issue(stream.get())));
  fault.Disarm();
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_EQ(outcome.cuda_error, cudaErrorUnknown);
  EXPECT_EQ(outcome.cuda_call, "job.Issue(stream.get())");
  ExpectAsBefore(stream);
}

// Was: the stream went on capturing, and every later call that a capture forbids failed.
TEST_F(CaptureSim, AnEndThatFailsIsTriedAgainWhereTheDriverDoesNotSayWhetherTheStreamCaptures) {
  const RawStream stream;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
  for (const char* function : {"cudaStreamEndCapture", "cudaStreamIsCapturing"}) {
    gcap_sim_fault_t fault = {};
    fault.function = function;
    fault.nth = 1;
    fault.code = cudaErrorUnknown;
    gcap_sim_inject(&fault);
  }
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "cudaStreamEndCapture");
  gcap_sim_clear_faults();
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
  ExpectAsBefore(stream);
}

// Walks `end`, which gives the status of an end, for a capture of a job, whose latch is set when `latched`.
Walked WalkEnd(bool latched, const std::function<void(const RawStream&)>& expect_as_before) {
  const RawStream stream;
  return WalkFaults([&](Fault& fault) {
    const CopyJob job;
    int closed = 0;
    int committed = 0;
    int released = 0;
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, CountClose, &closed));
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, CountCommit, &committed));
    GCAP_EXPECT_OK(gcap_capture_retain(capture, CountRelease, /*bytes=*/nullptr, &released));
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    if (latched) {
      gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "latched"));
    }
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_capture_end(capture, &graph, &retained); });
    EXPECT_EQ(outcome.ok(), !latched && !fault.hit());
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(committed, outcome.ok() ? 1 : 0);
    EXPECT_EQ(released, outcome.ok() ? 0 : 1);
    EXPECT_EQ(graph != nullptr, outcome.ok());
    EXPECT_EQ(retained != nullptr, outcome.ok());
    if (!outcome.ok()) {
      EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
      EXPECT_TRUE(outcome.Names(latched ? "latched" : fault.function())) << outcome.message;
      EXPECT_TRUE(!fault.hit() || outcome.Names(fault.function())) << "nothing is swallowed: " << outcome.message;
    }
    gcap_retained_release(retained);
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    EXPECT_EQ(released, 1);
    expect_as_before(stream);
  });
}

TEST_F(CaptureSim, FaultsOfEndUndoTheCapture) {
  EXPECT_EQ(WalkEnd(/*latched=*/false, ExpectAsBefore).functions,
            (Functions{"cudaStreamGetCaptureInfo", "cudaStreamEndCapture"}));
}

TEST_F(CaptureSim, FaultsOfALatchedEndUndoTheCapture) {
  EXPECT_EQ(WalkEnd(/*latched=*/true, ExpectAsBefore).functions,
            (Functions{"cudaStreamGetCaptureInfo", "cudaStreamEndCapture", "cudaGraphDestroy"}));
}

TEST_F(CaptureSim, FaultsOfAbortUndoTheCapture) {
  const RawStream stream;
  const Walked walked = WalkFaults([&stream](Fault& fault) {
    const CopyJob job;
    int closed = 0;
    int released = 0;
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, CountClose, &closed));
    GCAP_EXPECT_OK(gcap_capture_retain(capture, CountRelease, /*bytes=*/nullptr, &released));
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    fault.During([capture] {
      gcap_capture_abort(capture);
      return gcap_status_t{nullptr};
    });
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(released, 1);
    ExpectAsBefore(stream);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamGetCaptureInfo", "cudaStreamEndCapture", "cudaGraphDestroy"}));
}

// Every call answers the same from then on, the end included: the scope goes all the same.
TEST_F(CaptureSim, OfALostDeviceEndsInAStatusThatNamesTheErrorAndLeavesNothing) {
  for (const bool aborted : {false, true}) {
    const RawStream stream;
    int closed = 0;
    int released = 0;
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, CountClose, &closed));
    GCAP_EXPECT_OK(gcap_capture_retain(capture, CountRelease, /*bytes=*/nullptr, &released));
    gcap_sim_fault_t fault = {};
    fault.nth = 1;
    fault.code = cudaErrorIllegalAddress;
    fault.sticky = 1;
    gcap_sim_inject(&fault);
    GCAP_CAPTURE_NOTE("my_kernel<<<1, 32>>>", stream.get());
    if (aborted) {
      gcap_capture_abort(capture);
    } else {
      cudaGraph_t graph = nullptr;
      gcap_retained_t* retained = nullptr;
      const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
      EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
      EXPECT_EQ(outcome.cuda_error, cudaErrorIllegalAddress) << outcome.message;
      EXPECT_EQ(graph, nullptr);
    }
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(released, 1);
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
    gcap_sim_clear_faults();
    // The driver was never asked to end it by a call that did anything.
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    ExpectAsBefore(stream);
  }
}

TEST_F(CaptureSim, FaultsOfANoteFailTheCapture) {
  const RawStream stream;
  const Walked walked = WalkFaults([&stream](Fault& fault) {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    fault.During([] {
      GCAP_CAPTURE_NOTE("first", nullptr);
      GCAP_CAPTURE_NOTE("second", nullptr);
      return gcap_status_t{nullptr};
    });
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    ExpectAsBefore(stream);
  });
  EXPECT_EQ(walked.functions, Functions{"cudaStreamIsCapturing"});
}

TEST_F(CaptureSim, NotesAskTheDriverOnceUntilTheCaptureIsBrokenAndNeverWithoutALedger) {
  const RawStream stream;
  for (const uint32_t ledger_calls : {0u, 4u}) {
    const gcap_capture_options_t options = {sizeof(gcap_capture_options_t), GCAP_CAPTURE_THREAD_LOCAL, ledger_calls};
    const uint64_t asked = ledger_calls == 0 ? 0 : 1;
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), &options, &capture));
    uint64_t before = gcap_sim_calls(nullptr);
    GCAP_CAPTURE_NOTE("a good one", nullptr);
    EXPECT_EQ(gcap_sim_calls(nullptr), before + asked);
    EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess);
    (void)cudaGetLastError();
    GCAP_CAPTURE_NOTE("a bad one", nullptr);
    before = gcap_sim_calls(nullptr);
    GCAP_CAPTURE_NOTE("a late one", nullptr);
    EXPECT_EQ(gcap_sim_calls(nullptr), before);
    gcap_capture_abort(capture);
    ExpectAsBefore(stream);
  }
}

TEST_F(CaptureSim, QuestionsAskNoDriver) {
  const RawStream stream;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
  const uint64_t before = gcap_sim_calls(nullptr);
  EXPECT_TRUE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
  EXPECT_EQ(gcap_capture_current(), capture);
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
  gcap_capture_abort(capture);
}

TEST_F(CaptureSim, WithoutMemoryABeginIsRefused) {
  const RawStream stream;
  gcap_capture_t* capture = nullptr;
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), nullptr, &capture), GCAP_RESOURCE_EXHAUSTED, "memory");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(capture, nullptr);
  ExpectAsBefore(stream);
}

TEST_F(CaptureSim, WithoutMemoryAStepIsRefusedAndTheCaptureFails) {
  const RawStream stream;
  gcap_capture_t* capture = nullptr;
  int called = 0;
  // By name, and as modules below the scope ask.
  const std::function<gcap_status_t()> asks[] = {
      [&] { return gcap_capture_on_close(capture, CountClose, &called); },
      [&] { return gcap_capture_retain(capture, CountRelease, /*bytes=*/nullptr, &called); },
      [&] { return gcap_thread_capture_hooks->on_close(CountClose, &called); },
      [&] { return gcap_thread_capture_hooks->retain(CountRelease, nullptr, nullptr, &called); },
  };
  for (const auto& ask : asks) {
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    {
      const HeapFailure no_memory;
      GCAP_EXPECT_FAILS(ask(), GCAP_RESOURCE_EXHAUSTED, "memory");
      EXPECT_EQ(no_memory.hits(), 1);
    }
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "memory");
    EXPECT_EQ(called, 0) << "refused: neither run nor released";
    ExpectAsBefore(stream);
  }
}

// As modules below the scope ask.
TEST_F(CaptureSim, WhetherAStreamIsInTheCaptureIsNotGuessed) {
  const RawStream origin, forked, idle, elsewhere;
  const cudaStream_t to_fork = forked.get();
  const gcap_capture_options_t no_ledger = {sizeof(no_ledger), GCAP_CAPTURE_THREAD_LOCAL, 0};  // asks questions too
  const struct {
    const RawStream* stream;
    bool is_inside;
    uint64_t calls;
  } rows[] = {{&origin, true, 0}, {&forked, true, 2}, {&idle, false, 1}, {&elsewhere, false, 2}};
  for (const auto& row : rows) {
    SCOPED_TRACE(&row - rows);
    const Walked walked = WalkFaults([&](Fault& fault) {
      gcap_capture_t* capture = nullptr;
      cudaGraph_t graph = nullptr;
      GCAP_EXPECT_CUDA(cudaStreamBeginCapture(elsewhere.get(), cudaStreamCaptureModeThreadLocal));
      GCAP_ASSERT_OK(gcap_capture_begin(origin.get(), &no_ledger, &capture));
      GCAP_EXPECT_OK(gcap_capture_fork(capture, &to_fork, 1));
      bool is_inside = false;
      const Outcome outcome =
          fault.During([&] { return gcap_thread_capture_hooks->captures(row.stream->get(), &is_inside); });
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      EXPECT_EQ(is_inside, row.is_inside && outcome.ok());
      gcap_capture_abort(capture);
      GCAP_EXPECT_CUDA(cudaStreamEndCapture(elsewhere.get(), &graph));
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    });
    EXPECT_EQ(walked.calls, row.calls);
  }
}

// What is issued after a begin that failed would run at once.
TEST_F(CaptureSim, FaultsOfASplitGiveNoGraphAndTellWhetherTheStreamIsLeft) {
  const RawStream stream;
  const CopyJob job;
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_capture_t* capture = nullptr;
    gcap_capture_steps_t steps = {};
    cudaGraph_t graph = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    gcap_capture_keep_steps(capture, &steps);
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    const Outcome outcome = fault.During([&] { return gcap_capture_split(capture, "sort", &graph); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_EQ(graph != nullptr, outcome.ok());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_TRUE(gcap_capture_is_left(capture) || !fault.Is("cudaStreamBeginCapture"));
    EXPECT_EQ(stream.CaptureStatus() == cudaStreamCaptureStatusNone, gcap_capture_is_left(capture));
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    const size_t noted = gcap_capture_get_calls(capture, nullptr, 0);
    GCAP_CAPTURE_NOTE("heard", nullptr);
    EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 0), noted + 1) << "the scope hears as before";
    EXPECT_TRUE(gcap_thread_is_capturing());
    gcap_retained_t* retained = nullptr;
    const Outcome ended(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(ended.ok(), outcome.ok());
    EXPECT_TRUE(ended.ok() || ended.Names(fault.function())) << ended.message;
    if (ended.ok()) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    gcap_capture_steps_free(&steps);
    ExpectAsBefore(stream);
  });
  EXPECT_EQ(walked.functions.count("cudaStreamBeginCapture"), 1u);
  EXPECT_EQ(walked.functions.count("cudaStreamEndCapture"), 1u);
  EXPECT_EQ(walked.functions.count("cudaGraphGetNodes"), 1u);
}

// Before the attempt nothing is unjoined; the attempt leaves work of another stream that is joined behind it.
TEST_F(CaptureSim, FaultsOfAnAttemptFailTheCaptureAndAreTold) {
  const RawStream stream, other;
  const CopyJob job;
  const cudaStream_t to_fork = other.get();
  for (const bool within : {false, true}) {
    const Walked walked = WalkFaults([&](Fault& fault) {
      gcap_capture_t* capture = nullptr;
      gcap_capture_attempt_t attempt = {};
      GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
      GCAP_EXPECT_OK(gcap_capture_fork(capture, &to_fork, 1));
      GCAP_EXPECT_CUDA(job.Issue(other.get()));
      const auto begin = [&] { return gcap_capture_attempt_begin(capture, "sort", &attempt); };
      const auto end = [&] { return gcap_capture_attempt_end(&attempt, "sort"); };
      Outcome outcome = within ? Outcome(begin()) : fault.During(begin);
      if (outcome.ok()) {
        GCAP_EXPECT_CUDA(job.Issue(stream.get()));
        outcome = within ? fault.During(end) : Outcome(end());
      }
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      EXPECT_FALSE(gcap_capture_is_in_attempt());
      gcap_status_ignore(gcap_capture_join(capture, &to_fork, 1));
      cudaGraph_t graph = nullptr;
      gcap_retained_t* retained = nullptr;
      const Outcome ended(gcap_capture_end(capture, &graph, &retained));
      EXPECT_EQ(ended.ok(), !fault.hit());
      if (graph != nullptr) {
        GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
      }
      ExpectAsBefore(stream);
    });
    EXPECT_EQ(walked.functions, (Functions{"cudaGraphGetEdges", "cudaStreamGetCaptureInfo", "cudaStreamIsCapturing"}));
  }
}

TEST_F(CaptureSim, WithoutMemoryForTheRetainedListTheEndFailsAndReleases) {
  const RawStream stream;
  int released = 0;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_capture_retain(capture, CountRelease, /*bytes=*/nullptr, &released));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "memory");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(graph, nullptr);
  ExpectAsBefore(stream);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
