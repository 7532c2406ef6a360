// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scope_test.h: the fixture of tests that begin and end capture scopes.
#ifndef GCAP_TEST_CAPTURE_SCOPE_TEST_H_
#define GCAP_TEST_CAPTURE_SCOPE_TEST_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gcap/capture.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

class ScopeTest : public DeviceTest {
 protected:
  static constexpr uint32_t kDefaultCalls = 64;  // of a scope's ledger, as gcap/capture.h says

  static gcap_capture_t* Begin(cudaStream_t stream, uint32_t ledger_calls = kDefaultCalls,
                               gcap_capture_mode_t mode = GCAP_CAPTURE_THREAD_LOCAL) {
    const gcap_capture_options_t options = {sizeof(options), mode, ledger_calls};
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(stream, &options, &capture));
    return capture;
  }

  // Ends a scope, then the graph that came of it and what the graph retained.
  static Outcome End(gcap_capture_t* capture) {
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    gcap_retained_release(retained);
    return outcome;
  }
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CAPTURE_SCOPE_TEST_H_
