// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Observations that many cases share, in the words of the record.
#include "test/conformance/frame.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace conformance {

const char* ModeName(int mode) {
  switch (mode) {
    case cudaStreamCaptureModeGlobal: return "GLOBAL";
    case cudaStreamCaptureModeThreadLocal: return "THREAD_LOCAL";
    case cudaStreamCaptureModeRelaxed: return "RELAXED";
    default: return "OTHER";
  }
}

std::string Status(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code = cudaStreamIsCapturing(stream, &status);
  if (code != cudaSuccess) return Format("unknown(%d)", static_cast<int>(code));
  switch (status) {
    case cudaStreamCaptureStatusNone: return "NONE";
    case cudaStreamCaptureStatusActive: return "ACTIVE";
    case cudaStreamCaptureStatusInvalidated: return "INVALIDATED";
  }
  return Format("unknown status %d", static_cast<int>(status));
}

int Peek() { return static_cast<int>(cudaPeekAtLastError()); }

namespace {

std::vector<cudaGraphNode_t> Nodes(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> nodes(CountNodes(graph));
  size_t count = nodes.size();
  if (count > 0) (void)cudaGraphGetNodes(graph, nodes.data(), &count);
  return nodes;
}

const char* TypeName(cudaGraphNode_t node) {
  cudaGraphNodeType type = cudaGraphNodeTypeCount;
  (void)cudaGraphNodeGetType(node, &type);
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "child";
    case cudaGraphNodeTypeEmpty: return "empty";
    case cudaGraphNodeTypeWaitEvent: return "wait";
    case cudaGraphNodeTypeEventRecord: return "record";
    case cudaGraphNodeTypeMemAlloc: return "alloc";
    case cudaGraphNodeTypeMemFree: return "free";
    default: return "other";
  }
}

}  // namespace

std::string NodeTypes(cudaGraph_t graph) {
  std::string types;
  for (cudaGraphNode_t node : Nodes(graph)) types += (types.empty() ? "" : ",") + std::string(TypeName(node));
  return types.empty() ? "-" : types;
}

size_t CountNodes(cudaGraph_t graph) {
  size_t count = 0;
  (void)cudaGraphGetNodes(graph, nullptr, &count);
  return count;
}

size_t CountEdges(cudaGraph_t graph) {
  size_t count = 0;
  (void)cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count);
  return count;
}

const char* SetOrNull(const void* pointer) { return pointer == nullptr ? "NULL" : "set"; }

cudaError_t ObserveEnd(Observer& o, const std::string& step, cudaStream_t stream, cudaGraph_t* out) {
  const std::string before = Status(stream);
  cudaGraph_t graph = nullptr;
  const cudaError_t code = cudaStreamEndCapture(stream, &graph);
  const int peek = Peek();
  std::string shape = "graph=NULL nodes=-1 edges=-1 types=-";
  if (graph != nullptr) {
    shape = Format("graph=set nodes=%zu edges=%zu types=%s", CountNodes(graph), CountEdges(graph),
                   NodeTypes(graph).c_str());
  }
  o.Call(step, code,
         Format("before=%s %s status=%s peek=%d", before.c_str(), shape.c_str(), Status(stream).c_str(), peek));
  if (out != nullptr) {
    *out = graph;
  } else if (graph != nullptr) {
    REQUIRE_CUDA(cudaGraphDestroy(graph));
  }
  return code;
}

void ObserveAfter(Observer& o, const std::string& step, cudaStream_t stream, char* memory, cudaStreamCaptureMode mode) {
  const int last = cudaGetLastError();
  const int last2 = cudaGetLastError();
  const std::string status = Status(stream);
  const int eager = cudaMemsetAsync(memory, 3, kBytes, stream);
  const int synchronized = cudaStreamSynchronize(stream);
  const int begin = cudaStreamBeginCapture(stream, mode);
  const int work = cudaMemsetAsync(memory, 4, kBytes, stream);
  cudaGraph_t graph = nullptr;
  const int end = cudaStreamEndCapture(stream, &graph);
  const int nodes = graph == nullptr ? -1 : static_cast<int>(CountNodes(graph));
  o.Note(step, Format("last=%d last2=%d status=%s eager=%d/%d recapture=%d/%d/%d nodes=%d", last, last2, status.c_str(),
                      eager, synchronized, begin, work, end, nodes));
  if (graph != nullptr) REQUIRE_CUDA(cudaGraphDestroy(graph));
  (void)cudaGetLastError();
}

void OnThread(const std::function<void()>& function) { std::thread(function).join(); }

void OnActor(const Observer& o, const std::function<void()>& function) {
  if (o.on_other_thread()) {
    OnThread(function);
  } else {
    function();
  }
}

struct Gate::State {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
};

Gate::Gate() : state_(std::make_shared<State>()) {}

Gate::~Gate() { Open(); }

// The host function owns a share: it may run after the gate is gone.
cudaError_t Gate::Hold(cudaStream_t stream) {
  auto* share = new std::shared_ptr<State>(state_);
  const auto wait = [](void* data) {
    const std::unique_ptr<std::shared_ptr<State>> share(static_cast<std::shared_ptr<State>*>(data));
    State& state = **share;
    std::unique_lock<std::mutex> lock(state.mutex);
    state.opened.wait(lock, [&state] { return state.open; });
  };
  const cudaError_t code = cudaLaunchHostFunc(stream, wait, share);
  if (code != cudaSuccess) delete share;
  return code;
}

void Gate::Open() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->open = true;
  state_->opened.notify_all();
}

void Nothing(void* data) { (void)data; }

Streams::Streams(Observer& observer, unsigned int flags) : o(observer) {
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, flags));
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
  REQUIRE_CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  REQUIRE_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), kBytes));
  REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory2), kBytes));
  REQUIRE_CUDA(cudaMemset(memory, 0, kBytes));
  REQUIRE_CUDA(cudaMemset(memory2, 0, kBytes));
  REQUIRE_CUDA(cudaDeviceSynchronize());
}

Streams::~Streams() {
  (void)cudaGetLastError();
  for (cudaStream_t stream : {s, s2}) {
    if (stream == nullptr) continue;
    REQUIRE_CUDA(cudaStreamSynchronize(stream));
    REQUIRE_CUDA(cudaStreamDestroy(stream));
  }
  for (cudaEvent_t event : {fork, join}) {
    if (event != nullptr) REQUIRE_CUDA(cudaEventDestroy(event));
  }
  REQUIRE_CUDA(cudaFree(memory));
  REQUIRE_CUDA(cudaFree(memory2));
}

void Streams::Begin(cudaStreamCaptureMode mode) {
  REQUIRE_CUDA(cudaStreamBeginCapture(s, mode));
  REQUIRE_CUDA(Fill(s));
}

void Streams::Fork() {
  REQUIRE_CUDA(cudaEventRecord(fork, s));
  REQUIRE_CUDA(cudaStreamWaitEvent(s2, fork, 0));
}

}  // namespace conformance
