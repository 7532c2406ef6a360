// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Eager runs of the search. Each begins with the memory of before, and somebody listens to the calls of the work. No
// lock is held: the work and the callbacks may not return.

#include <stdlib.h>
#include <time.h>

#include "lib/graph/bisection.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/capture_gate.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/hash_bytes.h"
#include "lib/internal/synchronize.h"
#include "lib/internal/unwind.h"

// So long the search waits for the captures of other threads.
#define MOST_WAITS_FOR_CAPTURES 2000
#define WAIT_NS 1000000
#define HASH_CHUNK_BYTES ((size_t)1 << 16)

// --- The work -------------------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_wait_for_device(int device_id) {
  const struct timespec pause = {.tv_nsec = WAIT_NS};
  for (int i = 0; !gcap_capture_gate_try_close(); ++i) {
    if (i == MOST_WAITS_FOR_CAPTURES) {
      return GCAP_STATUS(GCAP_UNAVAILABLE, "other threads capture, and a wait for the device would break that");
    }
    nanosleep(&pause, NULL);
  }
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(device_id, &previous);
  if (status == NULL) {
    status = GCAP_CUDA(cudaDeviceSynchronize());
    status = gcap_status_join(status, gcap_thread_leave(device_id, &previous));
  }
  gcap_capture_gate_open();
  return status;
}

gcap_status_t gcap_bisect_wait_for_devices(const gcap_bisection_t* b) {
  gcap_status_t status = gcap_graph_wait_for_device(b->device_id);
  for (int device = 0; device < GCAP_BISECT_MAX_DEVICES; ++device) {
    if ((b->other_devices >> device & 1) != 0) status = gcap_status_join(status, gcap_graph_wait_for_device(device));
  }
  return status;
}

// What the begin and the end of a run call is none of the work's steps.
static void hear(void* user, size_t step, const char* operation, const char* file, int line, cudaStream_t stream) {
  (void)step;
  gcap_bisect_pass_t* pass = user;
  if (pass->status != NULL || !gcap_graph_is_in_eager_run()) return;
  if (pass->at_step != NULL) {
    pass->status = pass->at_step(pass, pass->num_steps);
  } else {
    pass->status = gcap_bisect_add_step(&pass->b->steps.eager, operation, file, line, stream);
  }
  ++pass->num_steps;
}

static void hear_block(void* user, void* address, size_t bytes, cudaStream_t stream) {
  gcap_bisect_pass_t* pass = user;
  if (pass->status != NULL || !gcap_graph_is_in_eager_run()) return;
  if (pass->at_step != NULL) {
    pass->status = gcap_bisect_note_given(pass, address, bytes, stream);
  } else if (!gcap_capture_steps_add_block(&pass->b->steps.eager, address, bytes)) {
    pass->status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu blocks of scratch",
                               pass->b->steps.eager.num_blocks + 1);
  }
}

static void observe_no_more(gcap_step_observer_t** before) { (void)gcap_observe_steps(*before); }

gcap_status_t gcap_bisect_issue(gcap_bisect_pass_t* pass) {
  const gcap_run_steps_t* run = pass->b->subject.run;
  pass->observer = (gcap_step_observer_t){.hear = hear, .user = pass};
  if (pass->at_step == NULL || pass->fill != GCAP_BISECT_NO_FILL) pass->observer.hear_block = hear_block;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  GCAP_AT_SCOPE_END(observe_no_more) gcap_step_observer_t* before = gcap_observe_steps(&pass->observer);
  (void)before;
  GCAP_AT_SCOPE_END(gcap_graph_tap_redirection_end) gcap_graph_tap_redirection_t redirection;
  gcap_graph_tap_redirection_begin(&redirection, pass->b->subject.taps);
  gcap_status_t status = run->work(run->self, &result);
  return gcap_status_join(status, pass->status);
}

gcap_status_t gcap_bisect_put_back(const gcap_bisection_t* b) {
  const gcap_bisect_subject_t* subject = &b->subject;
  const gcap_graph_verify_t* verify = subject->run->verified->verify;
  GCAP_RETURN_IF_ERROR(gcap_bisect_wait_for_devices(b));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_restore(subject->state, subject->before, subject->stream));
  if (verify->restore != NULL) {
    GCAP_RETURN_IF_ERROR(verify->restore(verify->user, subject->stream));
    GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("the search, behind a callback"));
  }
  return gcap_synchronize_stream(subject->stream);
}

// --- Which step writes what -----------------------------------------------------------------------------------------

static gcap_status_t hash_memory(const gcap_bisect_subject_t* subject, const void* address, size_t bytes,
                                 unsigned char* chunk, uint64_t* out_hash) {
  uint64_t hash = GCAP_HASH_OF_NOTHING;
  for (size_t at = 0; at < bytes; at += HASH_CHUNK_BYTES) {
    const size_t now = bytes - at < HASH_CHUNK_BYTES ? bytes - at : HASH_CHUNK_BYTES;
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(chunk, (const char*)address + at, now, cudaMemcpyDefault, subject->stream)));
    GCAP_RETURN_IF_ERROR(gcap_synchronize_stream(subject->stream));
    hash = gcap_hash_bytes(hash, chunk, now);
  }
  *out_hash = hash;
  return NULL;
}

static gcap_status_t note_change(gcap_bisect_pass_t* pass, size_t step, size_t index, const void* address,
                                 size_t bytes) {
  uint64_t hash = 0;
  GCAP_RETURN_IF_ERROR(hash_memory(&pass->b->subject, address, bytes, pass->chunk, &hash));
  *gcap_bisect_writes(pass->b, step, index) = hash != pass->hashes[index];
  pass->hashes[index] = hash;
  return NULL;
}

// Scratch that the work has not any more is changed by nobody that matters.
static gcap_status_t note_changes_of_scratch(gcap_bisect_pass_t* pass, size_t step) {
  const gcap_bisection_t* b = pass->b;
  for (size_t i = 0; i < pass->num_given && i < b->steps.eager.num_blocks; ++i) {
    const gcap_bisect_given_t* given = &pass->given[i];
    bool has = false;
    GCAP_RETURN_IF_ERROR(gcap_bisect_has_given(pass, i, &has));
    if (!has) continue;
    GCAP_RETURN_IF_ERROR(note_change(pass, step, b->subject.num_buffers + i, given->address, given->bytes));
  }
  return NULL;
}

static gcap_status_t hash_at_step(gcap_bisect_pass_t* pass, size_t step) {
  const gcap_bisection_t* b = pass->b;
  if (step >= b->steps.eager.count) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_wait_for_devices(b));
  for (size_t i = 0; i < b->subject.num_buffers; ++i) {
    const gcap_verify_block_t* block = &b->subject.blocks[i];
    GCAP_RETURN_IF_ERROR(note_change(pass, step, i, block->address, block->bytes));
  }
  return note_changes_of_scratch(pass, step);
}

// The work was handed scratch, which is filled: what it has now is no change.
static uint64_t hash_of_fill(int fill, size_t bytes) {
  uint64_t hash = GCAP_HASH_OF_NOTHING;
  const unsigned char byte = (unsigned char)fill;
  for (size_t i = 0; i < bytes; ++i) hash = gcap_hash_bytes(hash, &byte, 1);
  return hash;
}

static void free_hashes(gcap_bisect_pass_t* pass) {
  free(pass->hashes);
  free(pass->chunk);
  gcap_bisect_pass_end(pass);
}

gcap_status_t gcap_bisect_note_writes(gcap_bisection_t* b) {
  if (b->writes != NULL) return NULL;
  const gcap_capture_steps_t* eager = &b->steps.eager;
  const size_t buffers = b->subject.num_buffers, row = buffers + eager->num_blocks;
  GCAP_AT_SCOPE_END(free_hashes) gcap_bisect_pass_t pass = {.b = b, .at_step = hash_at_step, .fill = GCAP_BISECT_FILL};
  pass.hashes = calloc(row + 1, sizeof(*pass.hashes));
  pass.chunk = malloc(HASH_CHUNK_BYTES);
  b->writes = calloc(eager->count * row + 1, sizeof(*b->writes));
  if (pass.hashes == NULL || pass.chunk == NULL || b->writes == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note what %zu steps write", eager->count);
  }
  GCAP_RETURN_IF_ERROR(gcap_bisect_put_back(b));
  for (size_t i = 0; i < buffers; ++i) {
    const gcap_verify_block_t* block = &b->subject.blocks[i];
    GCAP_RETURN_IF_ERROR(hash_memory(&b->subject, block->address, block->bytes, pass.chunk, &pass.hashes[i]));
  }
  for (size_t i = 0; i < eager->num_blocks; ++i) {
    pass.hashes[buffers + i] = hash_of_fill(GCAP_BISECT_FILL, eager->blocks[i].bytes);
  }
  return gcap_bisect_issue(&pass);
}
