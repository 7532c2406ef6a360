// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Arguments in one buffer. Stateless.
#include "sim/device/extra.h"

#include <stdint.h>
#include <string.h>

#include "sim/base/heap.h"

// The driver's CU_LAUNCH_PARAM_END, ..._BUFFER_POINTER and ..._BUFFER_SIZE.
enum { kEnd = 0, kBuffer = 1, kBytes = 2 };
enum { kWords = 5 };  // two pairs and the end

bool gcap_sim_extra_read(void* const* extra, gcap_sim_buffer_t* out) {
  const size_t* count = NULL;
  *out = (gcap_sim_buffer_t){0};
  for (; (uintptr_t)extra[0] != kEnd; extra += 2) {
    switch ((uintptr_t)extra[0]) {
      case kBuffer: out->bytes = extra[1]; break;
      case kBytes: count = extra[1]; break;
      default: return false;
    }
  }
  if (out->bytes == NULL || count == NULL) return false;
  out->count = *count;
  return true;
}

// Measured: the size comes first.
void** gcap_sim_extra_create(gcap_sim_buffer_t buffer) {
  const size_t alignment = _Alignof(max_align_t);
  const size_t head = (kWords * sizeof(void*) + sizeof(size_t) + alignment - 1) / alignment * alignment;
  char* block = gcap_sim_calloc(1, head + buffer.count);
  void** words = (void**)block;
  size_t* count = (size_t*)(words + kWords);
  *count = buffer.count;
  memcpy(block + head, buffer.bytes, buffer.count);
  words[0] = (void*)(uintptr_t)kBytes;
  words[1] = count;
  words[2] = (void*)(uintptr_t)kBuffer;
  words[3] = block + head;
  return words;
}
