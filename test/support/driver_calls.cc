// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// CUPTI's callbacks run inside each call, on the thread that makes it; so the counts have a lock. What is declared here
// is the part of cupti_callbacks.h that is used; CUPTI keeps it compatible within a major version.

#include "test/support/driver_calls.h"

#include <dlfcn.h>

#include <cstdint>
#include <mutex>

namespace gcap {
namespace testing {

namespace {

constexpr char kLibrary[] = "libcupti.so.13";
constexpr int kDriverApi = 1, kRuntimeApi = 2;  // CUPTI_CB_DOMAIN_…
constexpr int kEnter = 0;                       // CUPTI_API_ENTER

// The beginning of CUpti_CallbackData.
struct CallbackData {
  int site;
  const char* function_name;
};

using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);
using Subscribe = int (*)(void** out_subscriber, Callback callback, void* user);
using EnableDomain = int (*)(uint32_t enable, void* subscriber, int domain);
using Unsubscribe = int (*)(void* subscriber);

std::mutex mutex;
std::map<std::string, int> counts;

void OnCall(void*, int, uint32_t, const void* data) {
  const CallbackData* call = static_cast<const CallbackData*>(data);
  if (call->site != kEnter) return;
  std::lock_guard<std::mutex> lock(mutex);
  ++counts[call->function_name];
}

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::unique_ptr<DriverCalls> DriverCalls::Begin(std::string* out_reason) {
  std::unique_ptr<DriverCalls> calls(new DriverCalls);
  calls->library_ = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (calls->library_ == nullptr) {
    *out_reason = std::string(kLibrary) + " cannot be opened: " + dlerror();
    return nullptr;
  }
  int result = Find<Subscribe>(calls->library_, "cuptiSubscribe")(&calls->subscriber_, OnCall, nullptr);
  const EnableDomain enable = Find<EnableDomain>(calls->library_, "cuptiEnableDomain");
  if (result == 0) result = enable(1, calls->subscriber_, kRuntimeApi);
  if (result == 0) result = enable(1, calls->subscriber_, kDriverApi);
  if (result == 0) return calls;
  *out_reason = "CUPTI answers " + std::to_string(result) + "; is there a GPU, and no other tool?";
  return nullptr;
}

DriverCalls::~DriverCalls() {
  if (subscriber_ != nullptr) Find<Unsubscribe>(library_, "cuptiUnsubscribe")(subscriber_);
  if (library_ != nullptr) dlclose(library_);
}

std::map<std::string, int> DriverCalls::Take() {
  std::lock_guard<std::mutex> lock(mutex);
  std::map<std::string, int> taken;
  taken.swap(counts);
  return taken;
}

}  // namespace testing
}  // namespace gcap
