// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// observe.h: how a case is written. A case is a function that makes CUDA calls and tells an Observer what they
// answered; the harness compares that with the record, line by line, or prints it (--record).
//
//   OBSERVE("end.twice", EachMode()) {
//     ...
//     o.Call("second end", code, Format("status=%s", StatusName(stream)));
//   }
//
// Each block of a case (here one a mode) is one test. Cases clean up after themselves: they share one process, unless
// they ask for one of their own.
#ifndef GCAP_TEST_CONFORMANCE_OBSERVE_H_
#define GCAP_TEST_CONFORMANCE_OBSERVE_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace conformance {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The ways in which a case is run, and what it needs.
class Blocks {
 public:
  explicit Blocks(std::vector<std::string> prefixes) : prefixes_(std::move(prefixes)) {}

  // For what outlives a case: high marks, sticky errors, calls that may crash.
  Blocks InOwnProcess() &&;
  Blocks OnDevices(int count) &&;

  const std::vector<std::string>& prefixes() const { return prefixes_; }
  bool own_process() const { return own_process_; }
  int devices() const { return devices_; }

 private:
  std::vector<std::string> prefixes_;  // of the steps; "" for one block without a prefix
  bool own_process_ = false;
  int devices_ = 1;
};

Blocks Once();
Blocks EachMode();  // GLOBAL, THREAD_LOCAL, RELAXED
// The capturing thread ("self") and another one ("other"), in each mode, and on a blocking stream where asked for.
Blocks EachThreadAndMode();
Blocks EachThreadModeAndBlocking();

// Receives the observations of one run of one block.
// Thread:   from any thread, one at a time
class Observer {
 public:
  // `skipped`: probed steps that are not to be tried. With `live`, lines are printed at once, each probed step ahead of
  // its call as well, so that a call that does not return leaves its name.
  Observer(std::string case_name, std::string prefix, std::set<std::string> skipped, bool live);

  // A call's answer, its own state behind it.
  void Call(const std::string& step, cudaError_t code, const std::string& state = "");
  // What was seen without a call's code.
  void Note(const std::string& step, const std::string& state);
  // Makes the call, clears the last error, and tells of it only where it differs from the code. `state` is asked
  // afterwards. For calls that the real runtime might not survive.
  cudaError_t Probe(const std::string& step, const std::function<cudaError_t()>& call,
                    const std::function<std::string()>& state = nullptr);
  // The same in its parts: Enter says whether the call is to be tried, Leave tells what it answered and what the last
  // error was.
  bool Enter(const std::string& step);
  bool Enter(const char* step);
  void Leave(const std::string& step, cudaError_t code, cudaError_t last, std::string state);
  void Leave(const char* step, cudaError_t code, cudaError_t last, const char* state);

  const std::string& case_name() const { return case_name_; }
  const std::string& prefix() const { return prefix_; }
  // From the prefix.
  cudaStreamCaptureMode mode() const;
  bool on_other_thread() const;
  bool on_blocking_stream() const;

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::string FullStep(const std::string& step) const;
  void Emit(const std::string& step, const std::string& answer);

  std::string case_name_;
  std::string prefix_;
  std::set<std::string> skipped_;
  bool live_;
  std::vector<std::string> lines_;
};

// Sets up what a case needs and is not about; a failure is an observation that no record holds.
#define REQUIRE_CUDA(expression)                                                                   \
  do {                                                                                             \
    const cudaError_t required_code = (expression);                                                \
    if (required_code != cudaSuccess) {                                                            \
      (void)cudaGetLastError();                                                                    \
      o.Note("not observed", ::conformance::Format("%s answered %d", #expression, required_code)); \
    }                                                                                              \
  } while (false)

struct Case {
  std::string name;
  Blocks blocks;
  std::function<void(Observer&)> run;
};

// All registered cases, in no particular order.
std::vector<Case>& Cases();

struct Registration {
  Registration(std::string name, Blocks blocks, std::function<void(Observer&)> run) {
    Cases().push_back({std::move(name), std::move(blocks), std::move(run)});
  }
};

#define CONFORMANCE_JOIN_(a, b) a##b
#define CONFORMANCE_JOIN(a, b) CONFORMANCE_JOIN_(a, b)

#define OBSERVE(name, ...)                                                           \
  static void CONFORMANCE_JOIN(Observe, __LINE__)(::conformance::Observer & o);      \
  static const ::conformance::Registration CONFORMANCE_JOIN(registration, __LINE__)( \
      name, ::conformance::__VA_ARGS__, CONFORMANCE_JOIN(Observe, __LINE__));        \
  static void CONFORMANCE_JOIN(Observe, __LINE__)(::conformance::Observer & o)

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_OBSERVE_H_
