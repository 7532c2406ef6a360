// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// submit.h: the one internal way into the simulator's core for the libraries simulated on top of it (cuBLAS, cuBLASLt,
// cuDNN).
//
// A library call enters, validates its arguments, and submits one or more pieces of work to a stream. The core queues
// the work, or records it as a graph node while the stream captures; the library cannot tell and must not care.
#ifndef GCAP_SIM_API_SUBMIT_H_
#define GCAP_SIM_API_SUBMIT_H_

#include <stddef.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"

// What a call means to an open capture (see the rule table): FREE is legal always; UNSAFE is refused with
// cudaErrorStreamCaptureUnsupported and invalidates, unless the thread's interaction mode allows it.
typedef enum gcap_sim_call_class { GCAP_SIM_CALL_FREE, GCAP_SIM_CALL_UNSAFE } gcap_sim_call_class_t;

// Counts and logs the call, then returns an injected fault, or the capture error that `call_class` earns, or success.
// Holds no lock on return.
cudaError_t gcap_sim_library_call(const char* function, gcap_sim_call_class_t call_class);

// What an unsafe call earns, for one that is entered already: the capture error, or success. Counts nothing.
cudaError_t gcap_sim_library_gate_unsafe(const char* function);

// Marks every open capture as invalid, of whatever thread and mode, as a silent killer does (measured: cublasLtDestroy
// answers success and invalidates them all).
void gcap_sim_invalidate_captures(const char* function);

// Marks the captures of other threads as invalid that an unsafe call of this one disturbs: the global ones. True when
// there were any.
int gcap_sim_invalidate_captures_of_others(const char* function);

// Marks the capture that `stream` is in as invalid, in whatever mode; nothing when it captures not.
void gcap_sim_invalidate_stream(cudaStream_t stream, const char* function);

// The calling thread's device, and that of a stream (NULL and the special handles: the calling thread's).
int gcap_sim_current_device(void);
int gcap_sim_stream_device(cudaStream_t stream);

// True when the stream takes part in a capture that is invalid.
int gcap_sim_stream_is_invalidated(cudaStream_t stream);

// Keeps count of a library's handles for gcap_sim_live, and where they were made for reports of leaks.
void gcap_sim_handle_made(const char* kind, const void* object);
void gcap_sim_handle_gone(const char* kind, const void* object);

// Ranges of memory, which grow as they are added; zero-initialise. `items` is a block of the heap.
typedef struct gcap_sim_access_list {
  gcap_sim_access_t* items;
  size_t count;
  size_t capacity;
  int out_of_memory;
} gcap_sim_access_list_t;

// A kernel of a library: to the driver it has one parameter, the payload, a struct of scalars and of addresses. Equal
// calls have equal payloads, but for the addresses that they are given: no padding, and no address of the host's.
typedef struct gcap_sim_library_kernel {
  const char* name;            // shown in reports and graph dumps, e.g. "cublasLtMatmul"; lives for ever
  void (*run)(void* payload);  // runs once a launch, on the scheduler; may run again when a graph replays it
  // Adds what a run over the payload reads and writes. A payload may be one that a caller has put together.
  void (*describe)(const void* payload, gcap_sim_access_list_t* list);
  size_t payload_bytes;
  int takes_buffer;  // the driver tells the parameter through `extra`, not through `kernelParams`
} gcap_sim_library_kernel_t;

// A piece of device work.
typedef struct gcap_sim_work {
  gcap_sim_library_kernel_t kernel;
  const void* payload;                // copied at submission
  const gcap_sim_access_t* accesses;  // as the kernel describes them; copied at submission
  size_t num_accesses;
} gcap_sim_work_t;

// An address among the accesses that belongs to another device than the stream's, which has no access to it; NULL when
// there is none. Memory of pools is not looked at: they have an access list of their own.
const void* gcap_sim_find_unreachable(cudaStream_t stream, const gcap_sim_access_t* accesses, size_t count);

// Queues `work` on `stream` (or adds it to the stream's capture as a kernel node).
cudaError_t gcap_sim_submit(cudaStream_t stream, const gcap_sim_work_t* work);

// Takes memory in the order of `stream`, as cudaMallocAsync does, and gives it back; in the stream's capture each is a
// node. A library's own: no call is counted, and no other capture disturbed.
cudaError_t gcap_sim_library_allocate(void** out, size_t bytes, cudaStream_t stream);
cudaError_t gcap_sim_library_free(void* address, cudaStream_t stream);

// Sets `height` rows of `width` bytes, `pitch` bytes apart, to zero in the order of `stream`; one memset node in a
// capture.
cudaError_t gcap_sim_library_clear(void* address, size_t pitch, size_t width, size_t height, cudaStream_t stream);

// True when [p, p + bytes) lies inside one live device allocation of the simulator.
int gcap_sim_is_device_range(const void* p, size_t bytes);

#endif  // GCAP_SIM_API_SUBMIT_H_
