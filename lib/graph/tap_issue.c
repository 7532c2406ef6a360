// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The work of a run makes a tap. In a capture the memory is the graph's: the scope retains it, and the run's list,
// which the scope leads to as to the guards, names it. The memory of a rehearsal is that of the captures behind it:
// another address would be one that differs between captures of the same work, which no graph may have that moves. In
// an eager run the copy goes to whom the run names.
//
// Locking: none. The list is the run's, and so the thread's that issues the work.

#include <stdio.h>
#include <string.h>

#include "gcap/capture.h"
#include "lib/base/capture_hooks.h"
#include "lib/capture/inner.h"
#include "lib/graph/guards.h"
#include "lib/graph/inner.h"
#include "lib/graph/taps.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/grow.h"

static _Thread_local gcap_graph_tap_redirection_t* redirected;

void gcap_graph_tap_redirection_begin(gcap_graph_tap_redirection_t* redirection, const gcap_graph_tap_list_t* list) {
  *redirection = (gcap_graph_tap_redirection_t){.list = list, .outer = redirected};
  redirected = redirection;
}

void gcap_graph_tap_redirection_end(gcap_graph_tap_redirection_t* redirection) { redirected = redirection->outer; }

static gcap_status_t check(const char* label, const void* address, size_t bytes) {
  if (label == NULL || address == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_graph_tap_issue: %s is NULL", label == NULL ? "label" : "address");
  }
  if (label[0] == '\0' || strnlen(label, GCAP_GRAPH_NAME_BYTES) == GCAP_GRAPH_NAME_BYTES) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a tap has the label '%s', allowed are 1 to %d bytes", label,
                       GCAP_GRAPH_NAME_BYTES - 1);
  }
  return bytes != 0 ? NULL : GCAP_STATUS(GCAP_INVALID_ARGUMENT, "tap '%s' is of 0 bytes at %p", label, address);
}

// The same call wherever it goes to, so that a capture and an eager run make the same step.
static gcap_status_t copy(void* to, const void* address, size_t bytes, cudaStream_t stream) {
  return GCAP_CUDA(cudaMemcpyAsync(to, address, bytes, cudaMemcpyDefault, stream));
}

// --- In a capture ---------------------------------------------------------------------------------------------------

// The memory of the tap that comes next: that of a rehearsal, or new memory.
static gcap_status_t find_block(const gcap_capture_t* capture, const gcap_graph_tap_list_t* list,
                                const gcap_graph_made_tap_t* made, gcap_graph_tap_block_t** out_block) {
  const gcap_graph_tap_list_t* rehearsed = list->rehearsed;
  if (rehearsed != NULL && list->count < rehearsed->count) {
    const gcap_graph_made_tap_t* earlier = &rehearsed->items[list->count];
    if (earlier->bytes == made->bytes && strcmp(earlier->label, made->label) == 0) {
      *out_block = earlier->block;
      gcap_graph_tap_block_retain(*out_block);
      return NULL;
    }
  }
  return gcap_graph_tap_block_create(gcap_capture_device(capture), made->bytes, out_block);
}

static gcap_status_t retain(gcap_capture_t* capture, gcap_graph_tap_block_t* block) {
  gcap_graph_tap_block_retain(block);
  gcap_status_t status = gcap_capture_retain(capture, gcap_graph_tap_block_release, gcap_graph_tap_block_bytes, block);
  if (status != NULL) gcap_graph_tap_block_release(block);
  return status;
}

static gcap_status_t add(gcap_capture_t* capture, gcap_graph_tap_list_t* list, gcap_graph_made_tap_t made) {
  if (!gcap_grow(&list->items, &list->room, list->count + 1, sizeof(*list->items))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for tap '%s'", made.label);
  }
  GCAP_RETURN_IF_ERROR(find_block(capture, list, &made, &made.block));
  made.memory = gcap_graph_tap_block_memory(made.block);
  list->items[list->count++] = made;
  return retain(capture, made.block);
}

static gcap_status_t capture_tap(gcap_capture_t* capture, cudaStream_t stream, const char* label, const void* address,
                                 size_t bytes) {
  gcap_graph_stated_list_t* stated = gcap_capture_owner(capture);
  if (stated == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "tap '%s' is made in a capture that is no run of a graph manager",
                       label);
  }
  bool is_inside = false;
  GCAP_RETURN_IF_ERROR(gcap_thread_capture_hooks->captures(stream, &is_inside));
  if (!is_inside) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "tap '%s' is made on stream %p, which is not in the capture: fork the stream before", label,
                       (void*)stream);
  }
  gcap_graph_made_tap_t made = {.bytes = bytes};
  snprintf(made.label, sizeof(made.label), "%s", label);
  GCAP_RETURN_IF_ERROR(add(capture, &stated->taps, made));
  return copy(stated->taps.items[stated->taps.count - 1].memory, address, bytes, stream);
}

// --- In an eager run ------------------------------------------------------------------------------------------------

// The memory of the graph's next tap with the label and the bytes; NULL: it has none.
static void* find_redirected(const char* label, size_t bytes) {
  for (size_t i = redirected->next; i < redirected->list->count; ++i) {
    const gcap_graph_made_tap_t* made = &redirected->list->items[i];
    if (made->bytes != bytes || strcmp(made->label, label) != 0) continue;
    redirected->next = i + 1;
    return made->memory;
  }
  return NULL;
}

static gcap_status_t copy_eagerly(void* to, const void* address, size_t bytes, cudaStream_t stream, const char* label) {
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "tap '%s' in an eager run", label));
  return copy(to, address, bytes, stream);
}

static gcap_status_t tap_eagerly(cudaStream_t stream, const char* label, const void* address, size_t bytes) {
  if (redirected != NULL) {
    void* memory = find_redirected(label, bytes);
    return memory != NULL ? copy_eagerly(memory, address, bytes, stream, label) : NULL;
  }
  const gcap_graph_work_call_t* call = gcap_graph_innermost_work();
  gcap_status_t status = NULL;
  for (size_t i = 0; call != NULL && status == NULL && i < call->num_taps; ++i) {
    gcap_graph_tap_t* tap = &call->taps[i];
    if (strcmp(tap->label, label) != 0) continue;
    tap->tapped_bytes = bytes;
    const size_t told = bytes < tap->bytes ? bytes : tap->bytes;
    if (told != 0) status = copy_eagerly(tap->data, address, told, stream, label);
  }
  return status;
}

gcap_status_t gcap_graph_tap_issue(cudaStream_t stream, const char* label, const void* address, size_t bytes) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_capture_t* capture = gcap_capture_current();
  gcap_status_t status = check(label, address, bytes);
  if (status == NULL) status = gcap_graph_refuse_in_hole(__func__);
  if (status == NULL) status = gcap_graph_refuse_in_guard(__func__);
  if (status == NULL) {
    status = capture != NULL ? capture_tap(capture, stream, label, address, bytes)
                             : tap_eagerly(stream, label, address, bytes);
  }
  if (status != NULL && capture != NULL) gcap_capture_fail_once(capture, status);
  return status;
}
