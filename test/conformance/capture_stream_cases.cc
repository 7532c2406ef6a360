// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// During a capture: synchronisation, queries, events, waits, streams, host functions.
#include "test/conformance/capture_frame.h"

namespace conformance {

namespace {

const std::vector<CaptureRow> kSynchronisation = {
    {"cudaStreamSynchronize_other", [](CaptureFrame& f) { return cudaStreamSynchronize(f.s2); }, true},
    {"cudaStreamSynchronize_otherblocking", [](CaptureFrame& f) { return cudaStreamSynchronize(f.sb); }, true},
    {"cudaStreamSynchronize_perthread", [](CaptureFrame&) { return cudaStreamSynchronize(cudaStreamPerThread); }, true},
    {"cudaStreamQuery_other", [](CaptureFrame& f) { return cudaStreamQuery(f.s2); }, true},
    {"cudaStreamQuery_otherblocking", [](CaptureFrame& f) { return cudaStreamQuery(f.sb); }, true},
    {"cudaStreamQuery_legacy", [](CaptureFrame&) { return cudaStreamQuery(cudaStreamLegacy); }, true},
    {"sync_joined",
     [](CaptureFrame& f) {
       f.Fork();
       return cudaStreamSynchronize(f.s2);
     }},
};
const CaptureCases synchronisation("cap.", kSynchronisation);

cudaError_t DestroyEvent(cudaEvent_t* event) {
  const cudaError_t code = cudaEventDestroy(*event);
  *event = nullptr;
  return code;
}

const std::vector<CaptureRow> kEvents = {
    {"cudaEventQuery_captured", [](CaptureFrame& f) { return cudaEventQuery(f.captured); }},
    {"cudaEventQuery_pre", [](CaptureFrame& f) { return cudaEventQuery(f.before); }},
    {"cudaEventQuery_never", [](CaptureFrame& f) { return cudaEventQuery(f.never); }},
    {"cudaEventSynchronize_captured", [](CaptureFrame& f) { return cudaEventSynchronize(f.captured); }},
    {"cudaEventSynchronize_pre", [](CaptureFrame& f) { return cudaEventSynchronize(f.before); }},
    {"cudaEventSynchronize_never", [](CaptureFrame& f) { return cudaEventSynchronize(f.never); }},
    {"cudaEventElapsedTime_captured",
     [](CaptureFrame& f) {
       float ms;
       return cudaEventElapsedTime(&ms, f.captured, f.captured);
     }},
    {"cudaEventRecord_capturing", [](CaptureFrame& f) { return cudaEventRecord(f.never, f.s); }},
    {"cudaEventRecord_captured_on_other", [](CaptureFrame& f) { return cudaEventRecord(f.captured, f.s2); }},
    {"cudaEventRecordExternal_capturing",
     [](CaptureFrame& f) { return cudaEventRecordWithFlags(f.never, f.s, cudaEventRecordExternal); }},
    {"cudaEventRecordExternal_capturedevent",
     [](CaptureFrame& f) { return cudaEventRecordWithFlags(f.captured, f.s, cudaEventRecordExternal); }},
    {"cudaEventRecordExternal_other",
     [](CaptureFrame& f) { return cudaEventRecordWithFlags(f.never, f.s2, cudaEventRecordExternal); }},
    {"cudaEventRecordWithFlags_badflag", [](CaptureFrame& f) { return cudaEventRecordWithFlags(f.never, f.s, 8); }},
    {"cudaEventRecordExternal_then_query",
     [](CaptureFrame& f) {
       const cudaError_t code = cudaEventRecordWithFlags(f.never, f.s, cudaEventRecordExternal);
       return code == cudaSuccess ? cudaEventQuery(f.never) : code;
     }},
    {"cudaEventCreateWithFlags",
     [](CaptureFrame& f) {
       Observer& o = f.o;
       cudaEvent_t event = nullptr;
       const cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
       f.cleanup.push_back([&o, event] { REQUIRE_CUDA(cudaEventDestroy(event)); });
       return code;
     }},
    {"cudaEventDestroy_pre", [](CaptureFrame& f) { return DestroyEvent(&f.before); }},
    {"cudaEventDestroy_captured", [](CaptureFrame& f) { return DestroyEvent(&f.captured); }},
    {"cudaEventDestroy_externalnode",
     [](CaptureFrame& f) {
       const cudaError_t code = cudaEventRecordWithFlags(f.never, f.s, cudaEventRecordExternal);
       return code == cudaSuccess ? DestroyEvent(&f.never) : code;
     }},
};
const CaptureCases events("cap.", kEvents);

// Another capture, whose event the first one waits for.
cudaError_t Merge(CaptureFrame& f) {
  Observer& o = f.o;
  o.Call("other begin", cudaStreamBeginCapture(f.s2, f.mode));
  o.Call("other record", cudaEventRecord(f.never, f.s2));
  f.after_end = [&f, &o] { ObserveEnd(o, "end s2", f.s2); };
  return cudaStreamWaitEvent(f.s, f.never, 0);
}

const std::vector<CaptureRow> kWaits = {
    {"cudaStreamWaitEvent_never", [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s, f.never, 0); }},
    {"cudaStreamWaitEvent_pre_external",
     [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s, f.before, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_never_external",
     [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s, f.never, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_captured_external",
     [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s, f.captured, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_join", [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s2, f.captured, 0); }, true},
    {"cudaStreamWaitEvent_join_external",
     [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s2, f.captured, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_join_blocking", [](CaptureFrame& f) { return cudaStreamWaitEvent(f.sb, f.captured, 0); }},
    {"cudaStreamWaitEvent_join_legacy",
     [](CaptureFrame& f) { return cudaStreamWaitEvent(cudaStreamLegacy, f.captured, 0); }, true},
    {"cudaStreamWaitEvent_join_perthread",
     [](CaptureFrame& f) { return cudaStreamWaitEvent(cudaStreamPerThread, f.captured, 0); }},
    {"fork_nowork_join",
     [](CaptureFrame& f) {
       f.Fork();
       const cudaError_t code = cudaEventRecord(f.never, f.s2);
       return code == cudaSuccess ? cudaStreamWaitEvent(f.s, f.never, 0) : code;
     }},
    {"cudaStreamWaitEvent_merge", Merge},
};
const CaptureCases waits("cap.", kWaits);

cudaError_t KeepStream(CaptureFrame& f, cudaError_t code, cudaStream_t stream) {
  Observer& o = f.o;
  f.cleanup.push_back([&o, stream] { REQUIRE_CUDA(cudaStreamDestroy(stream)); });
  return code;
}

const std::vector<CaptureRow> kStreams = {
    {"cudaStreamCreate",
     [](CaptureFrame& f) {
       cudaStream_t stream = nullptr;
       const cudaError_t code = cudaStreamCreate(&stream);
       return KeepStream(f, code, stream);
     },
     true},
    {"cudaStreamCreateWithFlags",
     [](CaptureFrame& f) {
       cudaStream_t stream = nullptr;
       const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
       return KeepStream(f, code, stream);
     }},
    {"cudaStreamGetFlags",
     [](CaptureFrame& f) {
       unsigned int flags;
       return cudaStreamGetFlags(f.s, &flags);
     }},
    {"cudaStreamGetId",
     [](CaptureFrame& f) {
       unsigned long long id;
       return cudaStreamGetId(f.s, &id);
     }},
    {"cudaStreamGetDevice",
     [](CaptureFrame& f) {
       int device;
       return cudaStreamGetDevice(f.s, &device);
     }},
    {"cudaStreamSetAttribute",
     [](CaptureFrame& f) {
       cudaStreamAttrValue value = {};
       return cudaStreamSetAttribute(f.s, cudaStreamAttributePriority, &value);
     }},
    {"cudaStreamIsCapturing_perthread",
     [](CaptureFrame&) {
       cudaStreamCaptureStatus status;
       return cudaStreamIsCapturing(cudaStreamPerThread, &status);
     },
     true},
    {"cudaStreamIsCapturing_other",
     [](CaptureFrame& f) {
       cudaStreamCaptureStatus status;
       return cudaStreamIsCapturing(f.s2, &status);
     },
     true},
    {"cudaStreamGetCaptureInfo_legacy",
     [](CaptureFrame& f) {
       cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
       unsigned long long id = 0;
       const cudaError_t code = cudaStreamGetCaptureInfo(cudaStreamLegacy, &status, &id);
       f.o.Note("info", Format("status=%d id=%s", static_cast<int>(status), id == 0 ? "zero" : "set"));
       return code;
     },
     true},
    {"cudaStreamGetCaptureInfo_other",
     [](CaptureFrame& f) {
       cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
       unsigned long long id = 77;
       const cudaGraph_t untouched = reinterpret_cast<cudaGraph_t>(&id);
       cudaGraph_t graph = untouched;
       size_t dependencies = 99;
       const cudaError_t code = cudaStreamGetCaptureInfo(f.s2, &status, &id, &graph, nullptr, nullptr, &dependencies);
       f.o.Note("info",
                Format("status=%d id=%s graph=%s deps=%zu", static_cast<int>(status),
                       id == 77 ? "untouched" : "changed", graph == untouched ? "untouched" : "changed", dependencies));
       return code;
     }},
};
const CaptureCases streams("cap.", kStreams);

const std::vector<CaptureRow> kHostFunctions = {
    {"cudaLaunchHostFunc_other", [](CaptureFrame& f) { return cudaLaunchHostFunc(f.s2, Nothing, nullptr); }},
    {"cudaLaunchHostFunc_legacy", [](CaptureFrame&) { return cudaLaunchHostFunc(cudaStreamLegacy, Nothing, nullptr); },
     true},
    {"cudaLaunchHostFunc_nullfn", [](CaptureFrame& f) { return cudaLaunchHostFunc(f.s, nullptr, nullptr); }},
};
const CaptureCases host_functions("cap.", kHostFunctions);

}  // namespace

}  // namespace conformance
