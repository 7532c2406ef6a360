// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scratch_allocator.h: gcap's scratch behind the functions of PyTorch's pluggable allocator
// (torch.cuda.memory.CUDAPluggableAllocator), which finds them by name in a shared library; with those for
// torch.cuda.graph, whose captures then keep a reservation of the scratch. No header of PyTorch is needed.
#ifndef GCAP_EXAMPLES_PYTORCH_EXTENSION_SCRATCH_ALLOCATOR_H_
#define GCAP_EXAMPLES_PYTORCH_EXTENSION_SCRATCH_ALLOCATOR_H_

#include <cuda_runtime_api.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

using GcapTorchPool = std::pair<unsigned long long, unsigned long long>;  // PyTorch's MempoolId_t

struct GcapTorchStats {
  uint64_t in_use_bytes, held_bytes, num_allocs, num_extensions;
};

extern "C" {

// Memory in the order of `stream`. Throws a gcap::error, whose text lists what is held, when there is none.
__attribute__((visibility("default"))) void* gcap_torch_alloc(ssize_t size, int device, cudaStream_t stream);
__attribute__((visibility("default"))) void gcap_torch_free(void* ptr, ssize_t size, int device, cudaStream_t stream);

// Another stream uses the memory too: the free comes after its work so far.
__attribute__((visibility("default"))) void gcap_torch_record_stream(void* ptr, cudaStream_t stream);

// The stream of the calling thread on `device`, which is PyTorch's to say. Must be set before the first capture.
__attribute__((visibility("default"))) void gcap_torch_set_current_stream(cudaStream_t (*current)(int device));

// Around a capture of torch.cuda.graph, on the capture's stream: begin before it, end after it, release for each begin
// when the graph is gone. Graphs that share a pool share a reservation, and so replay on one stream.
__attribute__((visibility("default"))) void gcap_torch_begin_pool(int device, GcapTorchPool pool,
                                                                  std::function<bool(cudaStream_t)> filter);
__attribute__((visibility("default"))) void gcap_torch_end_pool(int device, GcapTorchPool pool);
__attribute__((visibility("default"))) void gcap_torch_release_pool(int device, GcapTorchPool pool);

__attribute__((visibility("default"))) void gcap_torch_get_stats(int device, GcapTorchStats* out_stats);
// What torch.cuda.memory_summary says of PyTorch's allocator, as gcap_scratch_describe: also which tensors live.
__attribute__((visibility("default"))) int gcap_torch_describe(int device, char* out_text, size_t text_bytes);
// Waits for the streams, and gives what is idle back to the driver. Not during a capture.
__attribute__((visibility("default"))) void gcap_torch_trim(int device);
}

#endif  // GCAP_EXAMPLES_PYTORCH_EXTENSION_SCRATCH_ALLOCATOR_H_
