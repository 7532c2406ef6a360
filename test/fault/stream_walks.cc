// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/stream.h.

#include "test/fault/stream_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = StreamScene;

// Something that takes a call to make.
const gcap_attachment_key_t kKey = {
    "the number of devices",
    [](gcap_stream_t*, void** out_object) {
      static int count = 0;
      *out_object = &count;
      return GCAP_CUDA(cudaGetDeviceCount(&count));
    },
    [](void*) {},
};

void Release(void*) {}

void Notify(S* s) { GCAP_EXPECT_OK(gcap_notification_create(s->stream, &s->notification)); }

void NotifyAndRecord(S* s) {
  Notify(s);
  GCAP_EXPECT_OK(gcap_notification_record(s->notification));
}

void WithWork(S* s) { GCAP_EXPECT_CUDA(s->job.Issue(s->Handle())); }

void WithDeferred(S* s) {
  WithWork(s);
  GCAP_EXPECT_OK(gcap_stream_defer(s->stream, Release, nullptr));
}

void WithAll(S* s) {
  WithDeferred(s);
  GCAP_EXPECT_OK(gcap_stream_attachment(s->stream, &kKey, kOut));
}

void DropOther(S* s) {
  GCAP_EXPECT_OK(gcap_stream_destroy(s->other));
  s->other = nullptr;
}

gcap_status_t Destroy(S* s) {
  gcap_stream_t* stream = s->stream;
  s->stream = nullptr;
  return gcap_stream_destroy(stream);
}

}  // namespace

std::vector<Walk> StreamWalks() {
  return {
      WalkOf<S>(CALL(gcap_stream_create, 0, &s->other), DropOther),
      WalkOf<S>(CALL(gcap_stream_wrap, s->Handle(), GCAP_STREAM_EXTERNAL, 0, 0, &s->other), DropOther),
      WalkOf<S>("gcap_stream_destroy", Destroy, nullptr, "empty"),
      WalkOf<S>("gcap_stream_destroy", Destroy, WithAll, "with work, a deferred release and an attachment"),
      WalkOf<S>(CALL(gcap_stream_synchronize, s->stream), WithDeferred),
      WalkOf<S>(CALL(gcap_stream_end_run, s->stream, true), WithDeferred, "synchronised"),
      WalkOf<S>(CALL(gcap_stream_end_run, s->stream, false), WithDeferred, "issued"),
      WalkOf<S>(CALL(gcap_notification_create, s->stream, &s->notification)),
      WalkOf<S>(CALL(gcap_notification_record, s->notification), Notify),
      WalkOf<S>(CALL(gcap_notification_wait, s->notification, s->other), NotifyAndRecord),
      WalkOf<S>(CALL(gcap_notification_wait_on_host, s->notification), NotifyAndRecord),
      WalkOf<S>(CALL(gcap_stream_attachment, s->stream, &kKey, kOut), nullptr, "first use"),
      WalkOf<S>(CALL(gcap_stream_defer, s->stream, Release, nullptr), WithWork),
  };
}

}  // namespace testing
}  // namespace gcap
