// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Observations in the form of the record, and the register of cases.
#include "test/conformance/observe.h"

#include <cstdarg>
#include <cstdio>

#include "test/conformance/record.h"

namespace conformance {

namespace {

const char* const kModes[] = {"GLOBAL", "THREAD_LOCAL", "RELAXED"};

Blocks Product(const std::vector<std::string>& who) {
  std::vector<std::string> prefixes;
  for (const std::string& one : who) {
    for (const char* mode : kModes) prefixes.push_back(one + " " + mode);
  }
  return Blocks(std::move(prefixes));
}

bool StartsWith(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

}  // namespace

std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, again)), '\0');
  va_end(again);
  std::vsnprintf(&text[0], text.size() + 1, format, arguments);
  va_end(arguments);
  return text;
}

Blocks Blocks::InOwnProcess() && {
  own_process_ = true;
  return std::move(*this);
}

Blocks Blocks::OnDevices(int count) && {
  devices_ = count;
  return std::move(*this);
}

Blocks Once() { return Blocks({""}); }

Blocks EachMode() { return Blocks({std::begin(kModes), std::end(kModes)}); }

Blocks EachThreadAndMode() { return Product({"self", "other"}); }

Blocks EachThreadModeAndBlocking() { return Product({"self", "other", "blocking"}); }

Observer::Observer(std::string case_name, std::string prefix, std::set<std::string> skipped, bool live)
    : case_name_(std::move(case_name)), prefix_(std::move(prefix)), skipped_(std::move(skipped)), live_(live) {}

void Observer::Emit(const std::string& step, const std::string& answer) {
  lines_.push_back(ToText({case_name_, FullStep(step), answer}));
  if (live_) {
    std::printf("%s\n", lines_.back().c_str());
    std::fflush(stdout);
  }
}

std::string Observer::FullStep(const std::string& step) const {
  std::string full = prefix_.empty() ? step : prefix_ + " " + step;
  for (char& c : full) {
    if (c == '|') c = '+';  // the bar separates fields
  }
  return full;
}

void Observer::Call(const std::string& step, cudaError_t code, const std::string& state) {
  Emit(step, Format("%d | %s%s%s", static_cast<int>(code), cudaGetErrorName(code), state.empty() ? "" : " | ",
                    state.c_str()));
}

void Observer::Note(const std::string& step, const std::string& state) { Emit(step, "- | - | " + state); }

cudaError_t Observer::Probe(const std::string& step, const std::function<cudaError_t()>& call,
                            const std::function<std::string()>& state) {
  if (!Enter(step)) return cudaErrorUnknown;
  const cudaError_t code = call();
  const cudaError_t last = cudaGetLastError();
  Leave(step, code, last, state ? state() : "");
  return code;
}

bool Observer::Enter(const std::string& step) {
  if (skipped_.count(FullStep(step)) != 0) {
    Emit(step, kCrash);
    return false;
  }
  if (live_) {
    std::printf("@%s\n", FullStep(step).c_str());
    std::fflush(stdout);
  }
  return true;
}

bool Observer::Enter(const char* step) { return Enter(std::string(step)); }

void Observer::Leave(const std::string& step, cudaError_t code, cudaError_t last, std::string state) {
  if (last != code) state += Format("%slast=%d", state.empty() ? "" : " ", static_cast<int>(last));
  Call(step, code, state);
}

void Observer::Leave(const char* step, cudaError_t code, cudaError_t last, const char* state) {
  Leave(std::string(step), code, last, std::string(state));
}

cudaStreamCaptureMode Observer::mode() const {
  int mode = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string name = kModes[i];
    if (prefix_.size() >= name.size() && prefix_.compare(prefix_.size() - name.size(), name.size(), name) == 0)
      mode = i;
  }
  return static_cast<cudaStreamCaptureMode>(mode);
}

bool Observer::on_other_thread() const { return StartsWith(prefix_, "other "); }

bool Observer::on_blocking_stream() const { return StartsWith(prefix_, "blocking "); }

std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

}  // namespace conformance
