// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One range holds the stand-ins of all buffers, with a gap before each, so that a pointer to the end of one buffer is
// none into the next. Nothing is ever written there.

#include "lib/contents/stand_ins.h"

#include "lib/contents/driver.h"
#include "lib/internal/cuda_guard.h"

// Address space is reserved in multiples of this, and begins at one. Measured on an H200.
#define GRANULE ((size_t)2 << 20)
#define GAP ((size_t)4096)

static uintptr_t round_up(uintptr_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// Whether the distance is that of one of the buffers, or none at all.
static bool is_taken(const gcap_moving_buffer_t* buffers, size_t count, uintptr_t distance) {
  if (distance == 0) return true;
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i].stand_in - buffers[i].address == distance) return true;
  }
  return false;
}

// Lays the stand-ins out from `base` on, and returns the end. Each next place shifts by twice the alignment, so a
// distance that is taken can be avoided.
static uintptr_t place(gcap_moving_buffer_t* buffers, size_t count, uintptr_t base) {
  uintptr_t end = base;
  for (size_t i = 0; i < count; ++i) {
    gcap_moving_buffer_t* buffer = &buffers[i];
    buffer->stand_in = round_up(end + GAP, 2 * buffer->alignment) + buffer->alignment;
    while (is_taken(buffers, i, buffer->stand_in - buffer->address)) buffer->stand_in += 2 * buffer->alignment;
    end = buffer->stand_in + buffer->bytes;
  }
  return end + GAP;
}

// Bytes that hold all stand-ins, wherever the range begins; 0: too many to be counted. Of any buffer at most `count`
// places are taken.
static size_t bytes_of(const gcap_moving_buffer_t* buffers, size_t count) {
  size_t bytes = GAP, more = 0;
  for (size_t i = 0; i < count; ++i) {
    if (__builtin_mul_overflow(buffers[i].alignment, 2 * count + 4, &more) ||
        __builtin_add_overflow(more, buffers[i].bytes, &more) || __builtin_add_overflow(more, GAP, &more) ||
        __builtin_add_overflow(bytes, more, &bytes)) {
      return 0;
    }
  }
  return bytes > SIZE_MAX - GRANULE ? 0 : round_up(bytes, GRANULE);
}

static gcap_status_t take_memory(gcap_stand_ins_t* stand_ins) {
  void* memory = NULL;
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&memory, stand_ins->bytes));
  stand_ins->base = (uintptr_t)memory;
  return status;
}

static gcap_status_t take_addresses(gcap_stand_ins_t* stand_ins) {
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  return GCAP_DRIVER("cuMemAddressReserve", driver.reserve(&stand_ins->base, stand_ins->bytes, 0, 0, 0));
}

gcap_status_t gcap_stand_ins_create(gcap_moving_buffer_t* buffers, size_t count, int device_id, bool is_memory,
                                    gcap_stand_ins_t* out_stand_ins) {
  *out_stand_ins = (gcap_stand_ins_t){.bytes = bytes_of(buffers, count), .is_memory = is_memory};
  if (out_stand_ins->bytes == 0) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "the %zu buffers of the graph are too large to be reserved together",
                       count);
  }
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = is_memory ? take_memory(out_stand_ins) : take_addresses(out_stand_ins);
  status = gcap_status_join(status, gcap_thread_leave(device_id, &previous));
  if (out_stand_ins->base != 0) place(buffers, count, out_stand_ins->base);
  if (status == NULL) return NULL;
  if (out_stand_ins->base != 0) status = gcap_status_join(status, gcap_stand_ins_destroy(out_stand_ins));
  return gcap_status_annotate(status, gcap_status_code(status), "no second addresses for the buffers of a graph");
}

static gcap_status_t give_back(gcap_stand_ins_t* stand_ins) {
  if (stand_ins->is_memory) return GCAP_CUDA(cudaFree((void*)stand_ins->base));
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  return GCAP_DRIVER("cuMemAddressFree", driver.unreserve(stand_ins->base, stand_ins->bytes));
}

gcap_status_t gcap_stand_ins_destroy(gcap_stand_ins_t* stand_ins) {
  if (stand_ins->base == 0) return NULL;
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = give_back(stand_ins);
  if (status == NULL) stand_ins->base = 0;  // gone, whatever becomes of the mode
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}
