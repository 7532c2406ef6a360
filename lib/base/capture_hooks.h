// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_hooks.h: what the modules below the capture scope must know of it, without depending on it.
//
// The capture module alone sets the hooks. Readers are gcap_status_make, which reports failures to the scope's latch;
// GCAP_CUDA, which reports calls to who hears of them; whoever skips or refuses what is illegal in a capture without
// asking the driver (lib/internal/capture_check.h); and modules that give the scope, or its graph, something to end.
#ifndef GCAP_LIB_BASE_CAPTURE_HOOKS_H_
#define GCAP_LIB_BASE_CAPTURE_HOOKS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gcap_status;  // gcap_status_t points to it; status.c stands on this file

// Calls `visit` with each piece of device memory that a retained entry keeps. `visit` calls nothing of gcap.
typedef void (*gcap_retained_list_t)(void* user, void (*visit)(void* context, void* address, size_t bytes),
                                     void* context);

// What the scope that this thread has open wants to hear of.
typedef struct gcap_capture_hooks {
  // Sets the latch. Called by itself for every status made on this thread whose code means that device work was lost.
  void (*fail)(struct gcap_status* cause);
  // gcap_capture_retain_memory and gcap_capture_on_close of the scope.
  struct gcap_status* (*retain)(void (*release)(void* user), size_t (*bytes)(void* user), gcap_retained_list_t list,
                                void* user);
  struct gcap_status* (*on_close)(void (*close)(void* user, bool committed), void* user);
  // Whether the stream is in the scope's capture: its origin is, and a forked stream as long as the capture is intact.
  //   CUDA_ERROR  the runtime does not say
  struct gcap_status* (*captures)(cudaStream_t stream, bool* out_captures);
  // What gcap_capture_set_work said of the scope; 0: nothing.
  uint64_t (*work)(bool* out_is_rehearsal);
} gcap_capture_hooks_t;

// A thread-local variable without a constructor, in C and in C++ alike.
#define GCAP_THREAD_LOCAL __thread

// NULL unless this thread has a scope open.
extern GCAP_THREAD_LOCAL const gcap_capture_hooks_t* gcap_thread_capture_hooks;

// Notes an operation after it was done, and what it answered, as far as that is known (else cudaSuccess). `operation`
// is copied. `stream` may be NULL: the call does not say.
typedef void (*gcap_note_fn)(const char* operation, cudaError_t answer, cudaStream_t stream, const char* file,
                             int line);

// Who hears of this thread's calls: the ledger or the steps of its scope, or the observer of an eager run
// (lib/capture/steps.h); NULL: nobody.
extern GCAP_THREAD_LOCAL gcap_note_fn gcap_thread_note;

static inline void gcap_note(const char* operation, cudaError_t answer, cudaStream_t stream, const char* file,
                             int line) {
  if (gcap_thread_note != NULL) gcap_thread_note(operation, answer, stream, file, line);
}

static inline bool gcap_thread_captures(void) { return gcap_thread_capture_hooks != NULL; }

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_BASE_CAPTURE_HOOKS_H_
