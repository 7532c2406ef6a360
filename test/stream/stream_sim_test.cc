// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams when CUDA calls or allocations fail, and on two devices: what only the simulator can stage.

#include <cstdio>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/internal/synchronize.h"
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"

extern "C" {
#include "lib/internal/stream_watch.h"
#include "lib/stream/inner.h"
}

namespace gcap {
namespace testing {
namespace {

// Every step below works for a stream of device 1 while device 0 is current, so that each call that fails is one on the
// way there or back.
gcap_stream_t* NewStream(int device = 1) {
  gcap_stream_t* stream = nullptr;
  GCAP_EXPECT_OK(gcap_stream_create(device, &stream));
  return stream;
}

void CountRelease(void* count) { ++*static_cast<int*>(count); }

class StreamFaults : public DeviceTest {};

TEST_F(StreamFaults, OfCreateLeaveNothing) {
  for (const Reach reach : {Reach::kOneCall, Reach::kAllAfter}) {
    const auto trial = [](Fault& fault) {
      gcap_stream_t* stream = nullptr;
      const Outcome outcome = fault.During([&stream] { return gcap_stream_create(1, &stream); });
      EXPECT_EQ(outcome.ok(), stream != nullptr);
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    };
    EXPECT_EQ(WalkFaults(trial, reach).functions,
              (Functions{"cudaGetDeviceCount", "cudaGetDevice", "cudaSetDevice", "cudaStreamCreateWithFlags",
                         "cudaStreamIsCapturing", "cudaStreamGetDevice", "cudaStreamGetId"}));
  }
}

TEST_F(StreamFaults, OfWrapLeaveNothing) {
  const RawStream raw;
  const Walked walked = WalkFaults([&raw](Fault& fault) {
    gcap_stream_t* stream = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream); });
    EXPECT_EQ(outcome.ok(), stream != nullptr);
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(gcap_stream_from_handle(raw.get()), stream);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  });
  EXPECT_EQ(walked.functions,
            (Functions{"cudaGetDeviceCount", "cudaStreamIsCapturing", "cudaStreamGetDevice", "cudaStreamGetId"}));
}

// One attachment of a kind that counts.
int objects_made = 0;
int objects_destroyed = 0;
const gcap_attachment_key_t kObject = {"object_t",
                                       [](gcap_stream_t*, void** out) -> gcap_status_t {
                                         ++objects_made;
                                         EXPECT_EQ(CurrentDevice(), 1) << "made with the stream's device current";
                                         *out = &objects_made;
                                         return nullptr;
                                       },
                                       [](void*) { ++objects_destroyed; }};

TEST_F(StreamFaults, OfDestroyEndAllOrKeepAll) {
  int failures_behind_release = 0, failures_behind_end = 0;
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_stream_t* stream = NewStream();
    gcap_stream_t* other = NewStream();
    int released = 0;
    objects_destroyed = 0;
    void* object = nullptr;
    GCAP_EXPECT_OK(gcap_stream_attachment(stream, &kObject, &object));
    GCAP_EXPECT_OK(gcap_stream_defer(stream, CountRelease, &released));
    const cudaStream_t handle = gcap_stream_handle(stream);
    const Outcome outcome = fault.During([stream] { return gcap_stream_destroy(stream); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    // The capture mode is borrowed twice: to drain, and to end the attachments, which goes on without it.
    const bool drained = fault.Is("cudaThreadExchangeStreamCaptureMode") && !outcome.Names("cannot be drained");
    const bool kept = fault.hit() && !drained && !fault.Is("cudaEventDestroy") && !fault.Is("cudaStreamDestroy") &&
                      !fault.Is("cudaGetDevice") && !fault.Is("cudaSetDevice");
    // The code tells, so that nobody uses a stream that is gone. Was: CUDA_ERROR for both.
    EXPECT_EQ(outcome.code, kept ? GCAP_CUDA_ERROR : outcome.ok() ? GCAP_OK : GCAP_LEAKED) << outcome.message;
    // The stream is drained before its release and, since those may have issued work, behind it and the attachment's
    // end.
    EXPECT_TRUE(kept || objects_destroyed == 1);
    failures_behind_end += kept && objects_destroyed == 1;
    const bool failed_behind_release = kept && released == 1;
    EXPECT_EQ(released, kept && !failed_behind_release ? 0 : 1);
    failures_behind_release += failed_behind_release;
    EXPECT_EQ(gcap_stream_from_handle(handle), kept ? stream : nullptr);
    if (kept) {
      EXPECT_EQ(gcap_stream_has_waited(other, stream, 0), failed_behind_release)
          << "what is tagged with work that was not waited for must never look free";
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));  // nothing was half destroyed, so it can still be ended
    }
    GCAP_EXPECT_OK(gcap_stream_destroy(other));
  });
  EXPECT_EQ(walked.functions,
            (Functions{"cudaStreamIsCapturing", "cudaThreadExchangeStreamCaptureMode", "cudaStreamSynchronize",
                       "cudaEventDestroy", "cudaGetDevice", "cudaSetDevice", "cudaStreamDestroy"}));
  EXPECT_GT(failures_behind_release, 0);
  EXPECT_GT(failures_behind_end, 0);
}

// What a release lost was told behind the reason why the stream is kept, though that came later.
TEST_F(StreamFaults, OfDestroyAreToldInTheirOrder) {
  const auto trial = [&](Fault& fault) {
    gcap_stream_t* stream = NewStream();
    int released = 0;
    GCAP_EXPECT_OK(gcap_stream_defer(stream, CountRelease, &released));
    const cudaStream_t handle = gcap_stream_handle(stream);
    const Outcome outcome = fault.During([stream] { return gcap_stream_destroy(stream); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const bool kept = gcap_stream_from_handle(handle) == stream;
    EXPECT_EQ(kept, outcome.code == GCAP_CUDA_ERROR) << outcome.message;
    if (kept) {
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    }
  };
  const Walked walked = WalkFaults(trial, Reach::kAllAfter);
  EXPECT_EQ(walked.functions.count("cudaEventDestroy"), 1u);
}

// Walks a step that drains the stream of a job with a deferred release.
void WalkDrain(const std::function<gcap_status_t(gcap_stream_t*)>& step) {
  const Walked walked = WalkFaults([&step](Fault& fault) {
    gcap_stream_t* stream = NewStream();
    CopyJob job;
    int released = 0;
    job.set_input(3);
    GCAP_EXPECT_CUDA(cudaSetDevice(1));
    GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(stream)));
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
    GCAP_EXPECT_OK(gcap_stream_defer(stream, CountRelease, &released));
    const Outcome outcome = fault.During([&step, stream] { return step(stream); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    if (outcome.ok()) {
      EXPECT_EQ(job.output(), 3);
      EXPECT_EQ(released, 1);
    }
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(job.output(), 3);
    EXPECT_EQ(released, 1);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaThreadExchangeStreamCaptureMode",
                                         "cudaStreamSynchronize", "cudaEventDestroy"}));
}

TEST_F(StreamFaults, OfSynchronizeLoseNoRelease) { WalkDrain(gcap_stream_synchronize); }

TEST_F(StreamFaults, OfSynchronizeByTheHandleLoseNoRelease) {
  WalkDrain([](gcap_stream_t* stream) { return gcap_synchronize_stream(gcap_stream_handle(stream)); });
}

TEST_F(StreamFaults, OfEndRunWithSynchronizeLoseNoRelease) {
  WalkDrain([](gcap_stream_t* stream) { return gcap_stream_end_run(stream, true); });
}

TEST_F(StreamFaults, OfEndRunLoseNoRelease) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_stream_t* stream = NewStream();
    int released = 0;
    GCAP_EXPECT_OK(gcap_stream_defer(stream, CountRelease, &released));
    GCAP_EXPECT_OK(gcap_stream_defer(stream, CountRelease, &released));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(gcap_stream_handle(stream)));
    const Outcome outcome = fault.During([stream] { return gcap_stream_end_run(stream, false); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    if (outcome.ok()) {
      EXPECT_EQ(released, 2);
    }
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(released, 2);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaThreadExchangeStreamCaptureMode",
                                         "cudaEventQuery", "cudaEventDestroy"}));
}

TEST_F(StreamFaults, OfDeferLeaveTheReleaseToTheCaller) {
  gcap_stream_t* stream = NewStream();
  const Walked walked = WalkFaults([stream](Fault& fault) {
    int released = 0;
    const Outcome outcome = fault.During([&] { return gcap_stream_defer(stream, CountRelease, &released); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(released, outcome.ok() ? 1 : 0);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaGetDevice", "cudaSetDevice",
                                         "cudaEventCreateWithFlags", "cudaEventRecord"}));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamFaults, OfDeferInAScopeLeaveTheReleaseToTheCaller) {
  gcap_stream_t* stream = NewStream();
  const Walked walked = WalkFaults([stream](Fault& fault) {
    int released = 0;
    gcap_capture_t* capture = nullptr;
    gcap_capture_options_t options;
    gcap_capture_options_init(&options);
    options.ledger_calls = 0;  // the ledger's own calls are not under test
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream), &options, &capture));
    const Outcome outcome = fault.During([&] { return gcap_stream_defer(stream, CountRelease, &released); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    gcap_capture_abort(capture);
    EXPECT_EQ(released, outcome.ok() ? 1 : 0);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing"}));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamFaults, OfAttachmentLeaveNone) {
  const Walked walked = WalkFaults([](Fault& fault) {
    objects_made = objects_destroyed = 0;
    gcap_stream_t* stream = NewStream();
    void* object = nullptr;
    // The walk counts the calls of gcap, so the object's own must not be among them.
    static const gcap_attachment_key_t key = {"object_t",
                                              [](gcap_stream_t*, void** out) -> gcap_status_t {
                                                ++objects_made;
                                                *out = &objects_made;
                                                return nullptr;
                                              },
                                              kObject.destroy};
    const Outcome outcome = fault.During([&] { return gcap_stream_attachment(stream, &key, &object); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(object, outcome.ok() ? &objects_made : nullptr);
    EXPECT_EQ(objects_made - objects_destroyed, outcome.ok() ? 1 : 0);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    EXPECT_EQ(objects_made, objects_destroyed);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaGetDevice", "cudaSetDevice",
                                         "cudaThreadExchangeStreamCaptureMode"}));
}

TEST_F(StreamFaults, OfNotificationCreateLeaveNothing) {
  gcap_stream_t* producer = NewStream();
  const Walked walked = WalkFaults([producer](Fault& fault) {
    gcap_notification_t* notification = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_notification_create(producer, &notification); });
    EXPECT_EQ(outcome.ok(), notification != nullptr);
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    gcap_notification_destroy(notification);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaGetDevice", "cudaSetDevice", "cudaEventCreateWithFlags"}));
  GCAP_EXPECT_OK(gcap_stream_destroy(producer));
}

// A producer, a consumer and a notification between them, for one trial.
struct NotificationWalk {
  gcap_stream_t* producer = NewStream(0);
  gcap_stream_t* consumer = NewStream(0);
  gcap_notification_t* notification = nullptr;

  NotificationWalk() { GCAP_EXPECT_OK(gcap_notification_create(producer, &notification)); }
  ~NotificationWalk() {
    gcap_notification_destroy(notification);
    GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
    GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  }
  NotificationWalk(const NotificationWalk&) = delete;
  NotificationWalk& operator=(const NotificationWalk&) = delete;

  // Runs the step with the fault armed. A failure must say why, and have changed nothing.
  template <typename Step>
  bool Succeeds(Fault& fault, Step step) {
    const uint64_t before = gcap_stream_sync_id(producer);
    const Outcome outcome = fault.During(step);
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    if (!outcome.ok()) {
      EXPECT_EQ(gcap_stream_sync_id(producer), before);
      EXPECT_FALSE(gcap_stream_has_waited(consumer, producer, 0));
      EXPECT_FALSE(gcap_stream_has_finished(producer, 0));
    }
    return outcome.ok();
  }
};

TEST_F(StreamFaults, OfRecordLeaveTheNotificationAsItWas) {
  const Walked walked = WalkFaults([](Fault& fault) {
    NotificationWalk walk;
    const bool recorded = walk.Succeeds(fault, [&] { return gcap_notification_record(walk.notification); });
    EXPECT_EQ(Outcome(gcap_notification_wait(walk.notification, walk.consumer)).ok(), recorded);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaEventRecord"}));
}

TEST_F(StreamFaults, OfWaitTeachTheConsumerNothing) {
  const Walked walked = WalkFaults([](Fault& fault) {
    NotificationWalk walk;
    GCAP_EXPECT_OK(gcap_notification_record(walk.notification));
    walk.Succeeds(fault, [&] { return gcap_notification_wait(walk.notification, walk.consumer); });
    GCAP_EXPECT_OK(gcap_notification_wait(walk.notification, walk.consumer));
    EXPECT_TRUE(gcap_stream_has_waited(walk.consumer, walk.producer, 0));
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaStreamWaitEvent"}));
}

TEST_F(StreamFaults, OfWaitOnHostFinishNothing) {
  const Walked walked = WalkFaults([](Fault& fault) {
    NotificationWalk walk;
    GCAP_EXPECT_OK(gcap_notification_record(walk.notification));
    walk.Succeeds(fault, [&] { return gcap_notification_wait_on_host(walk.notification); });
    GCAP_EXPECT_OK(gcap_notification_wait_on_host(walk.notification));
    EXPECT_TRUE(gcap_stream_has_finished(walk.producer, 0));
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaThreadExchangeStreamCaptureMode", "cudaEventSynchronize"}));
}

// --- A lost device --------------------------------------------------------------------------------------------------

using StreamLost = DeviceTest;

TEST_F(StreamLost, EveryCallSaysSoAndTheStreamIsKept) {
  gcap_stream_t* stream = NewStream(0);
  gcap_stream_t* other = NewStream(0);
  gcap_notification_t* recorded = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream, &recorded));
  GCAP_EXPECT_OK(gcap_notification_record(recorded));
  int released = 0;
  GCAP_EXPECT_OK(gcap_stream_defer(stream, CountRelease, &released));
  const auto before = LiveHandles();

  gcap_sim_fault_t fault = {};
  fault.function = "cudaStreamSynchronize";
  fault.nth = 1;
  fault.code = cudaErrorIllegalAddress;
  fault.sticky = 1;
  gcap_sim_inject(&fault);
  GCAP_EXPECT_FAILS(gcap_stream_synchronize(stream), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
  gcap_stream_t* made = nullptr;
  gcap_notification_t* notification = nullptr;
  void* object = nullptr;
  const std::function<gcap_status_t()> calls[] = {
      [&] { return gcap_stream_create(0, &made); },
      [&] { return gcap_stream_wrap(gcap_stream_handle(stream), GCAP_STREAM_USER, 0, 0, &made); },
      [&] { return gcap_stream_synchronize(stream); },
      [&] { return gcap_stream_end_run(stream, false); },
      [&] { return gcap_stream_end_run(stream, true); },
      [&] { return gcap_stream_defer(stream, CountRelease, &released); },
      [&] { return gcap_stream_attachment(stream, &kObject, &object); },
      [&] { return gcap_notification_create(stream, &notification); },
      [&] { return gcap_notification_record(recorded); },
      [&] { return gcap_notification_wait(recorded, other); },
      [&] { return gcap_notification_wait_on_host(recorded); },
      [&] { return gcap_stream_destroy(stream); },
  };
  for (const auto& call : calls) {
    const Outcome outcome(call());
    EXPECT_STREQ(gcap_code_name(outcome.code), "DEVICE_LOST") << &call - calls << ": " << outcome.message;
    EXPECT_EQ(outcome.cuda_error, cudaErrorIllegalAddress) << &call - calls;
  }
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(notification, nullptr);
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(released, 0) << "the work that reads the buffer may never have been";
  EXPECT_FALSE(gcap_stream_has_waited(other, stream, 0));
  EXPECT_EQ(gcap_stream_from_handle(gcap_stream_handle(stream)), stream);
  gcap_sim_clear_faults();
  EXPECT_EQ(LiveHandles(), before);

  gcap_notification_destroy(recorded);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(released, 1);
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

// --- Driver calls that are promised, or promised not to happen ------------------------------------------------------

class StreamCalls : public DeviceTest {};

TEST_F(StreamCalls, QuestionsToTheTimelineAskNoDriver) {
  gcap_stream_t* producer = NewStream(0);
  gcap_stream_t* consumer = NewStream(0);
  const uint64_t before = gcap_sim_calls(nullptr);
  gcap_stream_has_waited(consumer, producer, 0);
  gcap_stream_has_finished(producer, 0);
  gcap_stream_sync_id(producer);
  gcap_stream_can_capture(producer);
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
  GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
}

TEST_F(StreamCalls, FromHandleAsksNoDriver) {
  gcap_stream_t* stream = NewStream(0);
  const cudaStream_t handle = gcap_stream_handle(stream);
  const uint64_t before = gcap_sim_calls(nullptr);
  EXPECT_EQ(gcap_stream_from_handle(handle), stream);
  EXPECT_EQ(gcap_stream_from_handle(nullptr), nullptr);
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamCalls, WaitsInAScopeAreRefusedWithoutTheDriver) {
  gcap_stream_t* stream = NewStream(0);
  gcap_stream_t* other = NewStream(0);
  GCAP_EXPECT_OK(gcap_stream_defer(
      other, [](void*) {}, nullptr));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture));
  const uint64_t before = gcap_sim_calls(nullptr);
  for (gcap_stream_t* each : {stream, other}) {
    GCAP_EXPECT_FAILS(gcap_stream_synchronize(each), GCAP_FAILED_PRECONDITION, "gcap_stream_synchronize");
    GCAP_EXPECT_FAILS(gcap_stream_end_run(each, true), GCAP_FAILED_PRECONDITION, "gcap_stream_end_run");
  }
  GCAP_EXPECT_FAILS(gcap_stream_end_run(other, false), GCAP_FAILED_PRECONDITION, "gcap_stream_end_run");
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
  gcap_capture_abort(capture);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

TEST_F(StreamCalls, AForkThatIsNotJoinedIsNamed) {
  gcap_stream_t* origin = NewStream(0);
  gcap_stream_t* forked = NewStream(0);
  gcap_notification_t* fork = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(origin, &fork));
  CopyJob job;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(origin), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_notification_record(fork));
  GCAP_EXPECT_OK(gcap_notification_wait(fork, forked));
  GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(forked)));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  char culprit[64];
  snprintf(culprit, sizeof(culprit), "%p", static_cast<void*>(gcap_stream_handle(forked)));
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, culprit);
  gcap_notification_destroy(fork);
  GCAP_EXPECT_OK(gcap_stream_destroy(origin));
  GCAP_EXPECT_OK(gcap_stream_destroy(forked));
}

TEST_F(StreamCalls, EndRunWithNothingToReleaseAsksNoDriver) {
  gcap_stream_t* stream = NewStream(0);
  const uint64_t before = gcap_sim_calls(nullptr);
  GCAP_EXPECT_OK(gcap_stream_end_run(stream, false));
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamCalls, AnAttachmentThatIsThereAsksNoDriver) {
  gcap_stream_t* stream = NewStream();
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream, &kObject, &object));
  const uint64_t before = gcap_sim_calls(nullptr);
  GCAP_EXPECT_OK(gcap_stream_attachment(stream, &kObject, &object));
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamCalls, AStreamIsNotWrappedForAnotherDevice) {
  gcap_stream_t* stream = NewStream(1);
  gcap_stream_t* wrapper = nullptr;
  GCAP_EXPECT_FAILS(gcap_stream_wrap(gcap_stream_handle(stream), GCAP_STREAM_USER, 0, 0, &wrapper),
                    GCAP_INVALID_ARGUMENT, "device_id is 0");
  EXPECT_EQ(wrapper, nullptr);
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream), GCAP_STREAM_USER, 0, 1, &wrapper));
  GCAP_EXPECT_OK(gcap_stream_destroy(wrapper));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamCalls, StreamsLiveOnTheirDevice) {
  gcap_stream_t* stream = NewStream(1);
  EXPECT_EQ(CurrentDevice(), 0) << "the current device is unchanged";
  EXPECT_EQ(gcap_stream_device(stream), 1);
  int device = -1;
  GCAP_EXPECT_CUDA(cudaStreamGetDevice(gcap_stream_handle(stream), &device));
  EXPECT_EQ(device, 1);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(StreamCalls, AWatcherIsToldOfEachStreamThatEnds) {
  struct Watcher {
    gcap_stream_watch_t watch;  // the first member: it is what is called back with
    std::vector<gcap_stream_t*> ended;
  };
  Watcher watcher = {};
  watcher.watch.stream_ends = [](gcap_stream_watch_t* watch, gcap_stream_t* stream) {
    reinterpret_cast<Watcher*>(watch)->ended.push_back(stream);
  };
  gcap_stream_watch_add(&watcher.watch);
  gcap_stream_t* const streams[] = {NewStream(0), NewStream(1)};
  for (gcap_stream_t* stream : streams) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(watcher.ended, std::vector<gcap_stream_t*>(std::begin(streams), std::end(streams)));
  gcap_stream_watch_remove(&watcher.watch);
  GCAP_EXPECT_OK(gcap_stream_destroy(NewStream(0)));
  EXPECT_EQ(watcher.ended.size(), 2u);
}

// --- Without host memory --------------------------------------------------------------------------------------------

// What ends on a stream may leave work there, for which its end waits again.
TEST(StreamSim, TheEndOfAStreamWithNothingAttachedWaitsOnce) {
  gcap_stream_t* stream = NewStream(0);
  const uint64_t waits = gcap_sim_calls("cudaStreamSynchronize");
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(gcap_sim_calls("cudaStreamSynchronize"), waits + 1);
}

class StreamWithoutMemory : public DeviceTest {
 protected:
  // The next allocation of `step` fails: the status says so, and no handle is left.
  template <typename Step>
  static void ExpectExhausted(Step step) {
    const auto before = LiveHandles();
    Outcome outcome(nullptr);
    {
      const HeapFailure no_memory;
      outcome = Outcome(step());
      EXPECT_EQ(no_memory.hits(), 1);
    }
    EXPECT_STREQ(gcap_code_name(outcome.code), "RESOURCE_EXHAUSTED");
    EXPECT_EQ(LiveHandles(), before);
  }
};

TEST_F(StreamWithoutMemory, EveryObjectIsRefused) {
  const RawStream raw;
  gcap_stream_t* stream = nullptr;
  ExpectExhausted([&] { return gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream); });
  EXPECT_EQ(stream, nullptr);
  stream = NewStream(0);
  gcap_notification_t* notification = nullptr;
  ExpectExhausted([&] { return gcap_notification_create(stream, &notification); });
  EXPECT_EQ(notification, nullptr);
  int released = 0;
  ExpectExhausted([&] { return gcap_stream_defer(stream, CountRelease, &released); });
  void* object = nullptr;
  ExpectExhausted([&] { return gcap_stream_attachment(stream, &kObject, &object); });
  EXPECT_EQ(object, nullptr);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(released, 0);
}

TEST_F(StreamWithoutMemory, AWaitOrdersButIsForgotten) {
  gcap_stream_t* producer = NewStream(0);
  gcap_stream_t* consumer = NewStream(0);
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(producer, &notification));
  GCAP_EXPECT_OK(gcap_notification_record(notification));
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_FALSE(gcap_stream_has_waited(consumer, producer, 0)) << "knowing less is safe";
  GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
  EXPECT_TRUE(gcap_stream_has_waited(consumer, producer, 0));
  gcap_notification_destroy(notification);
  GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
}

// A producer that has waited for ten others, and a notification of it that was not recorded yet.
struct Learned {
  static constexpr int kOthers = 10;

  Learned() {
    for (gcap_stream_t*& other : others) {
      other = NewStream(0);
      Wait(producer, other);
    }
    GCAP_EXPECT_OK(gcap_notification_create(producer, &notification));
  }
  ~Learned() {
    gcap_notification_destroy(notification);
    for (gcap_stream_t* other : others) GCAP_EXPECT_OK(gcap_stream_destroy(other));
    GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
    GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  }
  Learned(const Learned&) = delete;
  Learned& operator=(const Learned&) = delete;

  static void Wait(gcap_stream_t* consumer, gcap_stream_t* producer) {
    gcap_notification_t* point = nullptr;
    GCAP_EXPECT_OK(gcap_notification_create(producer, &point));
    GCAP_EXPECT_OK(gcap_notification_record(point));
    GCAP_EXPECT_OK(gcap_notification_wait(point, consumer));
    gcap_notification_destroy(point);
  }

  int OthersKnown() const {
    int known = 0;
    for (gcap_stream_t* other : others) known += gcap_stream_has_waited(consumer, other, 0);
    return known;
  }

  gcap_stream_t* producer = NewStream(0);
  gcap_stream_t* consumer = NewStream(0);
  gcap_stream_t* others[kOthers] = {};
  gcap_notification_t* notification = nullptr;
};

TEST_F(StreamWithoutMemory, AWaitRaisesWhatIsKnownAndMissesTheRest) {
  Learned learned;
  Learned::Wait(learned.consumer, learned.others[0]);
  // The producer hears of a later point of one that the consumer knows, whose array has no room for ten more.
  const uint64_t later = gcap_stream_sync_id(learned.others[0]);
  Learned::Wait(learned.producer, learned.others[0]);
  EXPECT_FALSE(gcap_stream_has_waited(learned.consumer, learned.others[0], later));
  GCAP_EXPECT_OK(gcap_notification_record(learned.notification));
  // A wait behind gcap's back, so that the simulator has no need for memory in the one that counts.
  cudaEvent_t event = nullptr;
  GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  GCAP_EXPECT_CUDA(cudaEventRecord(event, gcap_stream_handle(learned.producer)));
  GCAP_EXPECT_CUDA(cudaStreamWaitEvent(gcap_stream_handle(learned.consumer), event, 0));
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_OK(gcap_notification_wait(learned.notification, learned.consumer));
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_TRUE(gcap_stream_has_waited(learned.consumer, learned.others[0], later));
  EXPECT_TRUE(gcap_stream_has_waited(learned.consumer, learned.producer, 0));
  EXPECT_EQ(learned.OthersKnown(), 1);
  GCAP_EXPECT_OK(gcap_notification_wait(learned.notification, learned.consumer));
  EXPECT_EQ(learned.OthersKnown(), Learned::kOthers);
}

TEST_F(StreamWithoutMemory, AStreamThatCannotBeWrappedKeepsNoBlock) {
  const RawStream raw;
  for (int failed = 0, hits = 1; hits > 0; ++failed) {
    ASSERT_LT(failed, 10);
    const long before = LiveBlocks();
    gcap_stream_t* stream = nullptr;
    Outcome outcome(nullptr);
    {
      const HeapFailure no_memory(1, failed);
      outcome = Outcome(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream));
      hits = no_memory.hits();
    }
    EXPECT_EQ(outcome.code, hits > 0 ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    if (hits > 0) {
      EXPECT_EQ(LiveBlocks(), before) << failed;
    }
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
}

TEST_F(StreamWithoutMemory, ARecordCarriesLess) {
  Learned learned;
  {
    const HeapFailure no_memory(1, /*skip=*/1);  // the simulator's, for the event
    GCAP_EXPECT_OK(gcap_notification_record(learned.notification));
    EXPECT_EQ(no_memory.hits(), 1);
  }
  GCAP_EXPECT_OK(gcap_notification_wait(learned.notification, learned.consumer));
  EXPECT_TRUE(gcap_stream_has_waited(learned.consumer, learned.producer, 0));
  EXPECT_EQ(learned.OthersKnown(), 0) << "knowing less is safe";
  GCAP_EXPECT_OK(gcap_notification_record(learned.notification));
  GCAP_EXPECT_OK(gcap_notification_wait(learned.notification, learned.consumer));
  EXPECT_EQ(learned.OthersKnown(), Learned::kOthers);
}

// What the streams knew goes with them.
TEST_F(StreamWithoutMemory, NoBlockIsKeptOfStreamsThatWere) {
  // The simulator's tables grow now and then, so not every life is told from what it keeps.
  std::set<long> kept;
  for (int life = 0; life < 8; ++life) {
    const long before = LiveBlocks();
    { const Learned learned; }
    kept.insert(LiveBlocks() - before);
  }
  EXPECT_EQ(*kept.begin(), 0);
}

// One stream waits for one after the other, and each of these ends.
TEST_F(StreamWithoutMemory, NoBlockIsKeptByAStreamThatKnewManyThatWere) {
  gcap_stream_t* consumer = NewStream(0);
  std::set<long> kept;  // as above
  for (int round = 0; round < 8; ++round) {
    const long before = LiveBlocks();
    for (int life = 0; life < 100; ++life) {
      gcap_stream_t* producer = NewStream(0);
      gcap_notification_t* notification = nullptr;
      GCAP_EXPECT_OK(gcap_notification_create(producer, &notification));
      GCAP_EXPECT_OK(gcap_notification_record(notification));
      GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
      gcap_notification_destroy(notification);
      GCAP_EXPECT_OK(gcap_stream_destroy(producer));
    }
    kept.insert(LiveBlocks() - before);
  }
  EXPECT_EQ(*kept.begin(), 0);
  GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
}

TEST_F(StreamWithoutMemory, AReleaseDeferredInAScopeStaysTheCallers) {
  gcap_stream_t* stream = NewStream(0);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture));
  int released = 0;
  {
    const HeapFailure no_memory;
    const Outcome outcome(gcap_stream_defer(stream, CountRelease, &released));
    EXPECT_EQ(no_memory.hits(), 1);
    EXPECT_STREQ(gcap_code_name(outcome.code), "RESOURCE_EXHAUSTED");
  }
  gcap_capture_abort(capture);
  EXPECT_EQ(released, 0);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
