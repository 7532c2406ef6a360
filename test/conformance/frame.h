// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// frame.h: what many cases look at: a stream's state, the end of a capture, and what is left after it.
#ifndef GCAP_TEST_CONFORMANCE_FRAME_H_
#define GCAP_TEST_CONFORMANCE_FRAME_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

#include "test/conformance/observe.h"

namespace conformance {

constexpr size_t kBytes = 4096;

// GLOBAL, THREAD_LOCAL, RELAXED; OTHER for what is no mode.
const char* ModeName(int mode);
// NONE, ACTIVE, INVALIDATED, by cudaStreamIsCapturing.
std::string Status(cudaStream_t stream);
// The last error, which stays.
int Peek();
// "memset,kernel", in the order of cudaGraphGetNodes; "-" for a graph without nodes.
std::string NodeTypes(cudaGraph_t graph);
size_t CountNodes(cudaGraph_t graph);
size_t CountEdges(cudaGraph_t graph);
const char* SetOrNull(const void* pointer);

// Calls cudaStreamEndCapture and observes the stream before, the graph, and the stream after it. The graph goes to
// `*out`, or is destroyed.
cudaError_t ObserveEnd(Observer& o, const std::string& step, cudaStream_t stream, cudaGraph_t* out = nullptr);

// What a capture left behind: the last error, read twice; the stream; eager work on it; a new capture. `memory` holds
// kBytes on the device. The mode is that of the new capture.
void ObserveAfter(Observer& o, const std::string& step, cudaStream_t stream, char* memory,
                  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal);

// Runs the function on a thread of its own, to its end.
void OnThread(const std::function<void()>& function);
// On a thread of its own where the block asks for "other".
void OnActor(const Observer& o, const std::function<void()>& function);

// Holds back a stream: work behind it stays pending until it is opened.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  cudaError_t Hold(cudaStream_t stream);
  void Open();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// A host function that does nothing.
void Nothing(void* data);

// Two streams, two events and device memory, made and destroyed around a case.
struct Streams {
  explicit Streams(Observer& observer, unsigned int flags = cudaStreamNonBlocking);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  Observer& o;
  cudaStream_t s = nullptr;
  cudaStream_t s2 = nullptr;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  char* memory = nullptr;   // kBytes
  char* memory2 = nullptr;  // kBytes

  cudaError_t Fill(cudaStream_t stream) { return cudaMemsetAsync(memory, 1, kBytes, stream); }
  // Begins a capture on s with a node in it.
  void Begin(cudaStreamCaptureMode mode);
  // Makes s2 part of the capture on s.
  void Fork();
};

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_FRAME_H_
