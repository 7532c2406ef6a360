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

void Nothing(S*) {}

void Notify(S* s) { GCAP_EXPECT_OK(gcap_notification_create(s->stream, &s->notification)); }

void NotifyAndRecord(S* s) {
  Notify(s);
  GCAP_EXPECT_OK(gcap_notification_record(s->notification));
}

void WithWork(S* s) { GCAP_EXPECT_CUDA(s->job.Issue(s->Handle())); }

void WithDeferred(S* s) {
  WithWork(s);
  GCAP_EXPECT_OK(gcap_stream_defer(
      s->stream, [](void*) {}, nullptr));
}

void WithAll(S* s) {
  WithDeferred(s);
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(s->stream, &kKey, &object));
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

// A stream pool beside the streams of the other walks.
class PoolScene : public StreamScene {
 public:
  PoolScene() { GCAP_EXPECT_OK(gcap_stream_pool_create(0, &pool)); }
  void ExpectNextRunWorks() override {
    StreamScene::ExpectNextRunWorks();
    if (pool == nullptr) return;
    if (pooled == nullptr) GCAP_ASSERT_OK(gcap_stream_pool_acquire(pool, &pooled));
    job.set_input(31);
    GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(pooled)));
    GCAP_EXPECT_OK(gcap_stream_synchronize(pooled));
    EXPECT_EQ(job.output(), 31);
  }
  gcap_status_t End() override {
    gcap_status_t status = nullptr;
    if (pooled != nullptr) status = gcap_stream_pool_release(pool, pooled);
    if (pool != nullptr) status = gcap_status_join(status, gcap_stream_pool_destroy(pool));
    return gcap_status_join(status, StreamScene::End());
  }
  void Acquire() { GCAP_EXPECT_OK(gcap_stream_pool_acquire(pool, &pooled)); }
  gcap_status_t Release() {
    gcap_status_t status = gcap_stream_pool_release(pool, pooled);
    if (status == nullptr) pooled = nullptr;
    return status;
  }
  gcap_status_t DestroyPool() {
    gcap_stream_pool_t* ended = pool;
    pool = nullptr;
    return gcap_stream_pool_destroy(ended);
  }

  gcap_stream_pool_t* pool = nullptr;
  gcap_stream_t* pooled = nullptr;
};

using P = PoolScene;

void Used(P* p) {
  p->Acquire();
  GCAP_EXPECT_OK(p->Release());
}

gcap_status_t AcquireFromPool(P* p) { return gcap_stream_pool_acquire(p->pool, &p->pooled); }

void AddPoolWalks(std::vector<Walk>* walks) {
  walks->push_back(MakeWalk<P>(
                       "gcap_stream_pool_create", "", [](P* p) { GCAP_EXPECT_OK(p->DestroyPool()); },
                       [](P* p) { return gcap_stream_pool_create(0, &p->pool); })
                       .MakesNoCall());
  walks->push_back(MakeWalk<P>("gcap_stream_pool_destroy", "", Used, [](P* p) { return p->DestroyPool(); })
                       .RecoversFrom({"cudaStreamIsCapturing"})
                       .WithoutALog());
  walks->push_back(MakeWalk<P>("gcap_stream_pool_acquire", "first", nullptr, AcquireFromPool));
  walks->push_back(MakeWalk<P>("gcap_stream_pool_acquire", "again", Used, AcquireFromPool).MakesNoCall());
  walks->push_back(MakeWalk<P>(
                       "gcap_stream_pool_release", "", [](P* p) { p->Acquire(); }, [](P* p) { return p->Release(); })
                       .MakesNoCall());
}

}  // namespace

std::vector<Walk> StreamWalks() {
  std::vector<Walk> walks;
  AddPoolWalks(&walks);
  walks.push_back(
      StreamWalk("gcap_stream_create", "", DropOther, [](S* s) { return gcap_stream_create(0, &s->other); }));
  walks.push_back(StreamWalk("gcap_stream_wrap", "", DropOther, [](S* s) {
    return gcap_stream_wrap(s->Handle(), GCAP_STREAM_EXTERNAL, 0, 0, &s->other);
  }));
  walks.push_back(StreamWalk("gcap_stream_destroy", "empty", Nothing, Destroy));
  walks.push_back(
      StreamWalk("gcap_stream_destroy", "with work, a deferred release and an attachment", WithAll, Destroy));
  walks.push_back(
      StreamWalk("gcap_stream_synchronize", "", WithDeferred, [](S* s) { return gcap_stream_synchronize(s->stream); }));
  walks.push_back(StreamWalk("gcap_stream_end_run", "synchronised", WithDeferred,
                             [](S* s) { return gcap_stream_end_run(s->stream, true); }));
  walks.push_back(StreamWalk("gcap_stream_end_run", "issued", WithDeferred,
                             [](S* s) { return gcap_stream_end_run(s->stream, false); }));
  walks.push_back(StreamWalk("gcap_notification_create", "", Nothing,
                             [](S* s) { return gcap_notification_create(s->stream, &s->notification); }));
  walks.push_back(StreamWalk("gcap_notification_record", "", Notify,
                             [](S* s) { return gcap_notification_record(s->notification); }));
  walks.push_back(StreamWalk("gcap_notification_wait", "", NotifyAndRecord,
                             [](S* s) { return gcap_notification_wait(s->notification, s->other); }));
  walks.push_back(StreamWalk("gcap_notification_wait_on_host", "", NotifyAndRecord,
                             [](S* s) { return gcap_notification_wait_on_host(s->notification); }));
  walks.push_back(StreamWalk("gcap_stream_attachment", "first use", Nothing, [](S* s) {
    void* object = nullptr;
    return gcap_stream_attachment(s->stream, &kKey, &object);
  }));
  walks.push_back(StreamWalk("gcap_stream_defer", "", WithWork, [](S* s) {
    return gcap_stream_defer(
        s->stream, [](void*) {}, nullptr);
  }));
  return walks;
}

}  // namespace testing
}  // namespace gcap
