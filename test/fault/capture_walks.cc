// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over gcap/capture.h.

#include "test/fault/stream_scene.h"

namespace gcap {
namespace testing {
namespace {

using S = StreamScene;

void Close(void*, bool) {}
void Release(void*) {}
size_t Bytes(void*) { return 1; }

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

// A call in an open scope that asks nothing of CUDA.
Walk Quiet(const char* function, gcap_status_t (*act)(S*), const char* variant = "") {
  return WalkOf<S>(function, act, Begin, variant).MakesNoCall().Then<S>(Abort);
}

// The ledger asks after each call whether the capture goes on; where it gets no answer, the next call or the end does.
Walk Noted(const char* function, gcap_status_t (*act)(S*), void (*prepare)(S*)) {
  return WalkOf<S>(function, act, prepare).RecoversFrom({"cudaStreamIsCapturing"}).WithoutALog().AlwaysThen<S>(Abort);
}

}  // namespace

std::vector<Walk> CaptureWalks() {
  return {
      WalkOf<S>(CALL(gcap_capture_begin, s->Handle(), nullptr, &s->capture)).Then<S>(Abort),
      WalkOf<S>("gcap_capture_end", End, BeginAndIssue),
      WalkOf<S>("gcap_capture_end", End, BeginForkAndJoin, "after a fork"),
      Noted("gcap_capture_fork", Fork, Begin),
      Noted("gcap_capture_join", Join, BeginAndFork),
      Quiet(CALL(gcap_capture_on_close, s->capture, Close, nullptr)),
      Quiet(CALL(gcap_capture_retain, s->capture, Release, /*bytes=*/nullptr, nullptr)),
      Quiet(CALL(gcap_capture_retain, s->capture, Release, Bytes, nullptr), "with bytes"),
      Quiet(CALL(gcap_capture_write_events, s->capture, "/dev/null")),
  };
}

}  // namespace testing
}  // namespace gcap
