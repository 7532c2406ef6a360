// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// external_callbacks.h: an application's allocator, as the external adapter's tests need it: it writes down its calls
// and misbehaves on request. The callbacks have no user pointer, so its state is global.
#ifndef GCAP_TEST_EXTERNAL_EXTERNAL_CALLBACKS_H_
#define GCAP_TEST_EXTERNAL_EXTERNAL_CALLBACKS_H_

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gcap/external_allocator.h"

namespace gcap {
namespace testing {

struct Application {
  std::vector<std::string> calls;
  std::vector<int> devices;        // current in each call
  size_t num_blocks = 0;           // handed out, not freed
  void* next_answer = nullptr;     // what the next alloc returns instead of new memory; forgotten then
  bool is_empty = false;           // alloc returns NULL
  std::function<void()> on_alloc;  // runs inside alloc

  void Note(const std::string& call) {
    calls.push_back(call);
    int device = -1;
    (void)cudaGetDevice(&device);
    devices.push_back(device);
  }
  std::vector<std::string> TakeCalls() { return std::exchange(calls, {}); }
};

inline Application application;

inline void* ExternalAlloc(size_t bytes) {
  application.Note("alloc " + std::to_string(bytes));
  if (application.on_alloc) application.on_alloc();
  if (application.is_empty) return nullptr;
  if (application.next_answer != nullptr) return std::exchange(application.next_answer, nullptr);
  ++application.num_blocks;
  return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
}

inline void ExternalFree(void* ptr) {
  application.Note("free");
  --application.num_blocks;
  std::free(ptr);
}

inline void ExternalEmptyCache() { application.Note("empty_cache"); }

inline gcap_external_allocator_options_t ExternalOptions(int device_id) {
  gcap_external_allocator_options_t options = {};
  options.device_id = device_id;
  options.alloc = ExternalAlloc;
  options.free = ExternalFree;
  options.empty_cache = ExternalEmptyCache;
  return options;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_EXTERNAL_EXTERNAL_CALLBACKS_H_
