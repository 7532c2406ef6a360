// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_calls.h: what a program calls of the CUDA runtime and driver on a GPU, counted by CUPTI: every call, whoever
// made it. CUPTI is NVIDIA's, comes with every toolkit, and is opened at run time, so that a test builds without it.
#ifndef GCAP_TEST_SUPPORT_DRIVER_CALLS_H_
#define GCAP_TEST_SUPPORT_DRIVER_CALLS_H_

#include <map>
#include <memory>
#include <string>

namespace gcap {
namespace testing {

class DriverCalls {
 public:
  // Begins to count. NULL: it cannot; `*out_reason` says why.
  static std::unique_ptr<DriverCalls> Begin(std::string* out_reason);
  ~DriverCalls();
  DriverCalls(const DriverCalls&) = delete;
  DriverCalls& operator=(const DriverCalls&) = delete;

  // Since Begin, or since the last Take: the calls by name. Runtime and driver functions both have their name.
  std::map<std::string, int> Take();

 private:
  DriverCalls() = default;
  void* library_ = nullptr;
  void* subscriber_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_DRIVER_CALLS_H_
