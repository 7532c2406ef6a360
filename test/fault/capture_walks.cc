// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/capture.h.

#include "test/fault/stream_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = StreamScene;

void Begin(S* s) { s->BeginCapture(); }

void BeginAndIssue(S* s) {
  s->BeginCapture();
  GCAP_EXPECT_CUDA(s->job.Issue(s->Handle()));
}

gcap_status_t Fork(S* s) {
  const cudaStream_t other = gcap_stream_handle(s->other);
  return gcap_capture_fork(s->capture, &other, 1);
}

gcap_status_t Join(S* s) {
  const cudaStream_t other = gcap_stream_handle(s->other);
  return gcap_capture_join(s->capture, &other, 1);
}

void BeginAndFork(S* s) {
  s->BeginCapture();
  GCAP_EXPECT_OK(Fork(s));
}

void BeginForkAndJoin(S* s) {
  BeginAndFork(s);
  GCAP_EXPECT_CUDA(s->job.Issue(gcap_stream_handle(s->other)));
  GCAP_EXPECT_OK(Join(s));
}

gcap_status_t End(S* s) { return gcap_capture_end(s->capture, &s->graph, &s->retained); }

void Abort(S* s) { gcap_capture_abort(s->capture); }

}  // namespace

std::vector<Walk> CaptureWalks() {
  std::vector<Walk> walks;
  walks.push_back(StreamWalk("gcap_capture_begin", "", nullptr, [](S* s) {
                    return gcap_capture_begin(s->Handle(), nullptr, &s->capture);
                  }).Then<S>(Abort));
  walks.push_back(StreamWalk("gcap_capture_end", "", BeginAndIssue, End));
  walks.push_back(StreamWalk("gcap_capture_end", "after a fork", BeginForkAndJoin, End));
  // The ledger asks after each call whether the capture goes on; where it gets no answer, the next call or the end
  // does.
  walks.push_back(StreamWalk("gcap_capture_fork", "", Begin, Fork)
                      .RecoversFrom({"cudaStreamIsCapturing"})
                      .WithoutALog()
                      .AlwaysThen<S>(Abort));
  walks.push_back(StreamWalk("gcap_capture_join", "", BeginAndFork, Join)
                      .RecoversFrom({"cudaStreamIsCapturing"})
                      .WithoutALog()
                      .AlwaysThen<S>(Abort));
  walks.push_back(StreamWalk("gcap_capture_on_close", "", Begin,
                             [](S* s) {
                               return gcap_capture_on_close(
                                   s->capture, [](void*, bool) {}, nullptr);
                             })
                      .MakesNoCall()
                      .Then<S>(Abort));
  walks.push_back(StreamWalk("gcap_capture_retain", "", Begin,
                             [](S* s) {
                               return gcap_capture_retain(
                                   s->capture, [](void*) {}, /*bytes=*/nullptr, nullptr);
                             })
                      .MakesNoCall()
                      .Then<S>(Abort));
  walks.push_back(StreamWalk("gcap_capture_retain", "with bytes", Begin,
                             [](S* s) {
                               return gcap_capture_retain(
                                   s->capture, [](void*) {}, [](void*) -> size_t { return 1; }, nullptr);
                             })
                      .MakesNoCall()
                      .Then<S>(Abort));
  walks.push_back(StreamWalk("gcap_capture_write_events", "", Begin,
                             [](S* s) { return gcap_capture_write_events(s->capture, "/dev/null"); })
                      .MakesNoCall()
                      .Then<S>(Abort));
  return walks;
}

}  // namespace testing
}  // namespace gcap
