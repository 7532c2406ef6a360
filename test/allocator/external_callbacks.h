// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// external_callbacks.h: an application's allocator, as the external adapter's tests need it: it writes down its calls
// and misbehaves on request. The callbacks have no user pointer, so its state is global.
#ifndef GCAP_TEST_ALLOCATOR_EXTERNAL_CALLBACKS_H_
#define GCAP_TEST_ALLOCATOR_EXTERNAL_CALLBACKS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
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
  std::vector<int> devices;     // current in each call
  size_t num_blocks = 0;        // handed out, not freed
  void* next_answer = nullptr;  // what the next alloc returns instead of new memory; forgotten then
  std::vector<void*> answers;   // those returned; nothing is freed when they come back
  bool is_empty = false;        // alloc returns NULL
  std::function<void()> on_alloc, on_free, on_empty_cache;  // run inside, as copies: they may replace themselves

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
  if (const auto hook = application.on_alloc) hook();
  if (application.is_empty) return nullptr;
  if (application.next_answer != nullptr) {
    application.answers.push_back(application.next_answer);
    return std::exchange(application.next_answer, nullptr);
  }
  ++application.num_blocks;
  return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
}

inline void ExternalFree(void* ptr) {
  application.Note("free");
  if (const auto hook = application.on_free) hook();
  std::vector<void*>& answers = application.answers;
  const auto answer = std::find(answers.begin(), answers.end(), ptr);
  if (answer != answers.end()) {
    answers.erase(answer);
    return;
  }
  --application.num_blocks;
  std::free(ptr);
}

inline void ExternalEmptyCache() {
  application.Note("empty_cache");
  if (const auto hook = application.on_empty_cache) hook();
}

inline gcap_external_allocator_options_t ExternalOptions(int device_id) {
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.device_id = device_id;
  options.alloc = ExternalAlloc;
  options.free = ExternalFree;
  options.empty_cache = ExternalEmptyCache;
  return options;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_ALLOCATOR_EXTERNAL_CALLBACKS_H_
