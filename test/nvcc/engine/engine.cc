// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The engine. All errors are kept to the end, as engines do that check once a step.
#include "test/nvcc/engine/engine.h"

#include <cstring>
#include <initializer_list>
#include <thread>

#include "test/nvcc/engine/kernels.h"

namespace engine {

Engine::Engine(Mistake mistake) : mistake_(mistake) {}

Engine::~Engine() { Free(); }

bool Engine::Did(cudaError_t code) {
  good_ = good_ && code == cudaSuccess;
  return code == cudaSuccess;
}

bool Engine::Allocate() {
  const unsigned main_flags = mistake_ == Mistake::kLegacyStream ? cudaStreamDefault : cudaStreamNonBlocking;
  Did(cudaStreamCreateWithFlags(&main_, main_flags));
  for (cudaStream_t* stream : {&copies_, &side_}) Did(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  for (cudaEvent_t* event : {&uploaded_, &forked_, &joined_}) {
    Did(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  for (float** buffer : {&weights_, &x_, &y_, &q_, &k_, &v_, &cache_}) {
    Did(cudaMalloc(reinterpret_cast<void**>(buffer), kBytes));
  }
  for (int** buffer : {&tokens_, &token_}) Did(cudaMalloc(reinterpret_cast<void**>(buffer), kBytes));
  Did(cudaMalloc(reinterpret_cast<void**>(&rows_), kBytes));
  return Did(cudaMallocHost(reinterpret_cast<void**>(&staging_), kBytes));
}

// Weights and the table of pointers, once.
bool Engine::Upload() {
  float weights[kCount] = {};
  const float* rows[] = {x_, y_};
  Did(cudaMemcpyAsync(weights_, weights, kBytes, cudaMemcpyHostToDevice, copies_));
  Did(cudaMemcpyAsync(rows_, rows, sizeof(rows), cudaMemcpyHostToDevice, copies_));
  Did(cudaMemsetAsync(cache_, 0, kBytes, copies_));
  memset(staging_, 0, kBytes);
  return Did(cudaStreamSynchronize(copies_));
}

void Engine::MistakeInCapture() {
  void* memory = nullptr;
  switch (mistake_) {
    case Mistake::kMallocInCapture: Did(cudaMalloc(&memory, kBytes)); break;
    case Mistake::kSyncInCapture: Did(cudaStreamSynchronize(main_)); break;
    case Mistake::kDeviceSyncInCapture: Did(cudaDeviceSynchronize()); break;
    case Mistake::kLegacyStream:
    case Mistake::kLegacyStreamUnseen:
      Rotate(nullptr, x_, kCount);
      Did(cudaGetLastError());
      break;
    case Mistake::kCopyBeside: Did(cudaMemcpyAsync(y_, x_, kBytes, cudaMemcpyDeviceToDevice, copies_)); break;
    case Mistake::kQueryByOtherThread: std::thread([this] { Did(cudaEventQuery(uploaded_)); }).join(); break;
    case Mistake::kTemporaryNeverFreed: Did(cudaMallocAsync(&memory, kBytes, main_)); break;
    default: break;
  }
}

// On the second stream: the new keys go into the cache.
void Engine::Branch() {
  Did(cudaEventRecord(forked_, main_));
  Did(cudaStreamWaitEvent(side_, forked_, 0));
  Rotate(side_, k_, kCount);
  Append(side_, cache_, k_, kCount);
  Did(cudaEventRecord(joined_, side_));
}

void Engine::Step() {
  Did(cudaMemcpyAsync(tokens_, staging_, kBytes, cudaMemcpyHostToDevice, main_));
  Embed(main_, tokens_, weights_, x_, kCount);
  MistakeInCapture();
  LayerNorm(main_, x_, weights_, y_, kCount);
  Split(main_, y_, q_, k_, v_, kCount);
  Branch();
  if (mistake_ != Mistake::kJoinTooLate && mistake_ != Mistake::kForkNotJoined) {
    Did(cudaStreamWaitEvent(main_, joined_, 0));
  }
  // With the join too late, the kernel reads what the second stream writes.
  Project(main_, cache_, weights_, y_, kCount);
  Attend(main_, {q_, cache_, x_, kCount, 0.5f});
  if (mistake_ == Mistake::kJoinTooLate) Did(cudaStreamWaitEvent(main_, joined_, 0));
  Add(main_, x_, y_, v_, kCount);
  Activate(main_, v_, kCount);
  Scale(main_, v_, 0.5f, kCount);
  Gather(main_, rows_, q_, kCount);
  ArgMax(main_, q_, token_, kCount);
}

bool Engine::Capture() {
  const bool global = mistake_ == Mistake::kQueryByOtherThread;
  Did(cudaStreamBeginCapture(main_, global ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal));
  Step();
  Did(cudaGetLastError());
  if (!Did(cudaStreamEndCapture(main_, &graph_))) return false;
  return Did(cudaGraphInstantiate(&exec_, graph_, 0));
}

void Engine::MistakeAfterCapture() {
  if (mistake_ == Mistake::kStagingFreed) {
    Did(cudaFreeHost(staging_));
    staging_ = nullptr;
  }
  if (mistake_ == Mistake::kBufferFreed) {
    Did(cudaFree(x_));
    Did(cudaMalloc(reinterpret_cast<void**>(&x_), kBytes));  // as a rule at the same address
  }
  if (mistake_ == Mistake::kFreedTwice) {
    void* memory = nullptr;
    Did(cudaMalloc(&memory, kBytes));
    Did(cudaFree(memory));
    Did(cudaFree(memory));
  }
}

bool Engine::Run(int replays) {
  if (!Allocate() || !Upload() || !Capture()) return false;
  MistakeAfterCapture();
  for (int i = 0; i < replays; ++i) {
    if (mistake_ == Mistake::kInputNotWaitedFor) {  // new weights, while the graph may read them
      Did(cudaMemsetAsync(weights_, 0, kBytes, copies_));
    }
    Did(cudaGraphLaunch(exec_, main_));
  }
  int token = -1;
  Did(cudaMemcpyAsync(&token, token_, sizeof(token), cudaMemcpyDeviceToHost, main_));
  Did(cudaStreamSynchronize(main_));
  Did(cudaDeviceSynchronize());
  return good_;
}

// After a mistake some of it fails, and there is nobody to tell.
void Engine::Free() {
  cudaDeviceSynchronize();
  if (mistake_ != Mistake::kGraphKept) {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
  }
  for (void* buffer :
       {static_cast<void*>(weights_), static_cast<void*>(x_), static_cast<void*>(y_), static_cast<void*>(q_),
        static_cast<void*>(k_), static_cast<void*>(v_), static_cast<void*>(cache_), static_cast<void*>(tokens_),
        static_cast<void*>(token_), static_cast<void*>(rows_)}) {
    cudaFree(buffer);
  }
  cudaFreeHost(staging_);
  for (cudaEvent_t event : {uploaded_, forked_, joined_}) cudaEventDestroy(event);
  for (cudaStream_t stream : {copies_, main_, side_}) cudaStreamDestroy(stream);
  cudaGetLastError();
}

}  // namespace engine
