// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which thread may do what beside whose capture: the mode of a capture against the mode of a thread.
#include <cstring>

#include "test/conformance/frame.h"

namespace conformance {

namespace {

constexpr int kModes = 3;

// Exchanges the thread's mode for `mode` and returns the one before; by way of bytes, since either may be no mode.
int Exchange(int mode, cudaError_t* code) {
  cudaStreamCaptureMode value;
  static_assert(sizeof(value) == sizeof(mode), "the mode is an int");
  std::memcpy(&value, &mode, sizeof(value));
  *code = cudaThreadExchangeStreamCaptureMode(&value);
  std::memcpy(&mode, &value, sizeof(value));
  return mode;
}

void ObserveExchange(Observer& o, const std::string& step, int mode) {
  cudaError_t code;
  const int old = Exchange(mode, &code);
  o.Call(step, code, Format("old=%s", ModeName(old)));
}

void ExchangeInCapture(Streams& f, int mode) {
  Observer& o = f.o;
  const std::string name = ModeName(mode);
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, static_cast<cudaStreamCaptureMode>(mode)));
  ObserveExchange(o, name + " first exchange inside a capture", cudaStreamCaptureModeRelaxed);
  ObserveExchange(o, name + " restore", cudaStreamCaptureModeThreadLocal);
  ObserveEnd(o, name + " end with another thread mode than at begin", f.s);
  ObserveExchange(o, name + " mode left after the end", cudaStreamCaptureModeGlobal);
}

// A mode that is none stays until the next exchange, which the first capture here makes.
OBSERVE("mode.exchange", Once()) {
  Streams f(o);
  cudaError_t code;
  for (int mode : {cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal,
                   cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeGlobal}) {
    const int old = Exchange(mode, &code);
    o.Call("exchange", code, Format("new=%s old=%s", ModeName(mode), ModeName(old)));
  }
  const int old = Exchange(99, &code);
  o.Call("exchange invalid", code, Format("value after=%d", old));
  for (int mode = 0; mode < kModes; ++mode) ExchangeInCapture(f, mode);
}

Blocks EachPair(const char* format) {
  std::vector<std::string> prefixes;
  for (int a = 0; a < kModes; ++a) {
    for (int b = 0; b < kModes; ++b) {
      std::string prefix = format;
      prefix.replace(prefix.rfind('B'), 1, ModeName(b));
      prefix.replace(prefix.find('A'), 1, ModeName(a));
      prefixes.push_back(prefix);
    }
  }
  return Blocks(std::move(prefixes));
}

// The two modes of a prefix that EachPair made: its second and its last word.
int FirstMode(const Observer& o) {
  const size_t start = o.prefix().find(' ') + 1;
  const std::string word = o.prefix().substr(start, o.prefix().find(' ', start) - start);
  int mode = 0;
  while (word != ModeName(mode)) ++mode;
  return mode;
}

int SecondMode(const Observer& o) { return o.mode(); }

void ObserveMalloc(Observer& o, const std::string& step, cudaStream_t stream) {
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, kBytes);
  o.Call(step, code, "status=" + Status(stream));
  // A thread of relaxed mode may free beside any capture.
  cudaError_t exchanged;
  const int old = Exchange(cudaStreamCaptureModeRelaxed, &exchanged);
  if (memory != nullptr) REQUIRE_CUDA(cudaFree(memory));
  Exchange(old, &exchanged);
}

OBSERVE("mode.exchange_matrix", Blocks(EachPair("capture A thread B"))) {
  Streams f(o);
  const auto capture_mode = static_cast<cudaStreamCaptureMode>(FirstMode(o));
  f.Begin(capture_mode);
  OnThread([&] {
    cudaError_t code;
    Exchange(SecondMode(o), &code);
    o.Call("other thread: exchange", code);
    ObserveMalloc(o, "other thread: cudaMalloc", f.s);
  });
  ObserveEnd(o, "end", f.s);
  (void)cudaGetLastError();
  f.Begin(capture_mode);
  cudaError_t code;
  const int old = Exchange(SecondMode(o), &code);
  ObserveMalloc(o, "own thread: cudaMalloc", f.s);
  ObserveEnd(o, "end own", f.s);
  Exchange(old, &code);
}

OBSERVE("mode.two_threads", Blocks(EachPair("main A other B"))) {
  Streams f(o);
  f.Begin(static_cast<cudaStreamCaptureMode>(FirstMode(o)));
  OnThread([&] {
    const cudaError_t begin = cudaStreamBeginCapture(f.s2, static_cast<cudaStreamCaptureMode>(SecondMode(o)));
    o.Call("other thread: begin its own", begin, "status=" + Status(f.s2));
    REQUIRE_CUDA(cudaMemsetAsync(f.memory2, 2, kBytes, f.s2));
    ObserveMalloc(o, "other thread: cudaMalloc", f.s2);
    ObserveEnd(o, "other thread: end", f.s2);
  });
  ObserveEnd(o, "main: end", f.s);
}

}  // namespace

}  // namespace conformance
