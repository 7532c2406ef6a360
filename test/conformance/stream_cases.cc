// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a stream tells of itself.
#include "test/conformance/rig.h"

#include <set>

namespace conformance {

OBSERVE("stream.priority_flags_ids", Once()) {
  int least = 9, greatest = 9;
  const cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  o.Call("range", code, Format("least=%d greatest=%d", least, greatest));
  for (const int asked : {0, -1, -5, -100, 1, 100}) {
    cudaStream_t s = nullptr;
    int priority = 99;
    unsigned flags = 99;
    const cudaError_t created = cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, asked);
    REQUIRE_CUDA(cudaStreamGetPriority(s, &priority));
    REQUIRE_CUDA(cudaStreamGetFlags(s, &flags));
    o.Call("create", created, Format("asked=%d priority=%d flags=%u", asked, priority, flags));
    REQUIRE_CUDA(cudaStreamDestroy(s));
  }
  cudaStream_t blocking, nonblocking;
  REQUIRE_CUDA(cudaStreamCreate(&blocking));
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&nonblocking, cudaStreamNonBlocking));
  auto tell = [&](const char* what, cudaStream_t s) {
    unsigned flags = 99;
    int priority = 99, device = 99;
    unsigned long long id = 0;
    const cudaError_t codes[] = {cudaStreamGetFlags(s, &flags), cudaStreamGetPriority(s, &priority),
                                 cudaStreamGetDevice(s, &device), cudaStreamGetId(s, &id)};
    o.Note(what, Format("codes=%d/%d/%d/%d flags=%u priority=%d device=%d", codes[0], codes[1], codes[2], codes[3],
                        flags, priority, device));
    return id;
  };
  const std::set<unsigned long long> ids = {tell("blocking", blocking), tell("nonblocking", nonblocking),
                                            tell("legacy", cudaStreamLegacy), tell("per-thread", cudaStreamPerThread)};
  unsigned long long of_null = 0, of_legacy = 1;
  REQUIRE_CUDA(cudaStreamGetId(nullptr, &of_null));
  REQUIRE_CUDA(cudaStreamGetId(cudaStreamLegacy, &of_legacy));
  o.Note("ids", Format("distinct=%d legacy_is_null=%d", ids.size() == 4, of_null == of_legacy));
  REQUIRE_CUDA(cudaStreamDestroy(blocking));
  REQUIRE_CUDA(cudaStreamDestroy(nonblocking));
}

}  // namespace conformance
