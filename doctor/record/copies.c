// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a call copies, out of its arguments. Of a pointer that may be of the host or of a device nothing is asked of the
// driver: it is the host's if it is known to be pinned, or on the thread's stack. Locking: none.
#include "doctor/record/copies.h"

#include <string.h>

#include "doctor/record/cupti_abi.h"
#include "doctor/record/pinned.h"

typedef struct side {
  int32_t type;      // CUmemorytype; 0 for a pointer that may be any
  const void* host;  // if the type is the host
} side_t;

static bool read_argument(const gcap_doctor_driver_call_t* call, const void* arguments,
                          gcap_doctor_driver_argument_t kind, void* out) {
  if (call->at[kind] == 0) return false;
  memcpy(out, (const char*)arguments + call->at[kind] - 1, 8);
  return true;
}

static const char* name_of_copy(int32_t from, int32_t to) {
  const bool from_host = from == GCAP_DOCTOR_CUDA_MEMORY_HOST, to_host = to == GCAP_DOCTOR_CUDA_MEMORY_HOST;
  const bool from_device = from == GCAP_DOCTOR_CUDA_MEMORY_DEVICE || from == GCAP_DOCTOR_CUDA_MEMORY_ARRAY;
  const bool to_device = to == GCAP_DOCTOR_CUDA_MEMORY_DEVICE || to == GCAP_DOCTOR_CUDA_MEMORY_ARRAY;
  if (from_host && to_device) return "htod";
  if (from_device && to_host) return "dtoh";
  if (from_device && to_device) return "dtod";
  return from_host && to_host ? "htoh" : "default";
}

static void set(gcap_doctor_copy_t* copy, side_t from, side_t to) {
  copy->kind = name_of_copy(from.type, to.type);
  // The source counts first: a graph that was captured reads it again at each replay.
  copy->host = to.type == GCAP_DOCTOR_CUDA_MEMORY_HOST ? to.host : NULL;
  if (from.type == GCAP_DOCTOR_CUDA_MEMORY_HOST) copy->host = from.host;
}

static side_t read_side(const char* description, size_t type_at, size_t host_at) {
  side_t side;
  memcpy(&side.type, description + type_at, sizeof(side.type));
  memcpy(&side.host, description + host_at, sizeof(side.host));
  return side;
}

static void read_2d(const char* description, gcap_doctor_copy_t* copy) {
  size_t sizes[2];
  memcpy(sizes, description + GCAP_DOCTOR_CUDA_COPY_2D_WIDTH, sizeof(sizes));
  copy->bytes = sizes[0] * sizes[1];
  copy->has_bytes = true;
  set(copy, read_side(description, GCAP_DOCTOR_CUDA_COPY_2D_FROM_TYPE, GCAP_DOCTOR_CUDA_COPY_2D_FROM_HOST),
      read_side(description, GCAP_DOCTOR_CUDA_COPY_2D_TO_TYPE, GCAP_DOCTOR_CUDA_COPY_2D_TO_HOST));
}

static void read_3d(const char* description, gcap_doctor_copy_t* copy) {
  size_t sizes[3];
  memcpy(sizes, description + GCAP_DOCTOR_CUDA_COPY_3D_WIDTH, sizeof(sizes));
  copy->bytes = sizes[0] * sizes[1] * sizes[2];
  copy->has_bytes = true;
  set(copy, read_side(description, GCAP_DOCTOR_CUDA_COPY_3D_FROM_TYPE, GCAP_DOCTOR_CUDA_COPY_3D_FROM_HOST),
      read_side(description, GCAP_DOCTOR_CUDA_COPY_3D_TO_TYPE, GCAP_DOCTOR_CUDA_COPY_3D_TO_HOST));
}

static void read_sides(const gcap_doctor_driver_call_t* call, const void* arguments, gcap_doctor_copy_t* copy) {
  side_t from = {0}, to = {0};
  const void* device;
  bool is_copy = false;
  if (read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_HOST_FROM, &from.host))
    from.type = GCAP_DOCTOR_CUDA_MEMORY_HOST;
  if (read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_HOST_TO, &to.host)) to.type = GCAP_DOCTOR_CUDA_MEMORY_HOST;
  if (read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_DEVICE_FROM, &device))
    from.type = GCAP_DOCTOR_CUDA_MEMORY_DEVICE;
  if (read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_DEVICE_TO, &device)) to.type = GCAP_DOCTOR_CUDA_MEMORY_DEVICE;
  is_copy |= read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_ANY_FROM, &copy->any[0]);
  is_copy |= read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_ANY_TO, &copy->any[1]);
  if (is_copy || (from.type != 0 && to.type != 0)) set(copy, from, to);
}

void gcap_doctor_copy_of_call(const gcap_doctor_driver_call_t* call, const void* arguments,
                              gcap_doctor_copy_t* out_copy) {
  static const struct {
    uint8_t kind, scale;
  } sizes[] = {{GCAP_DOCTOR_ARGUMENT_BYTES, 1}, {GCAP_DOCTOR_ARGUMENT_COUNT_2, 2}, {GCAP_DOCTOR_ARGUMENT_COUNT_4, 4}};
  memset(out_copy, 0, sizeof(*out_copy));
  if (arguments == NULL) return;
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    uint64_t count;
    if (!read_argument(call, arguments, sizes[i].kind, &count)) continue;
    out_copy->bytes = count * sizes[i].scale;
    out_copy->has_bytes = true;
  }
  const char* description = NULL;
  if (read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_COPY_2D, &description) && description != NULL) {
    read_2d(description, out_copy);
  } else if (read_argument(call, arguments, GCAP_DOCTOR_ARGUMENT_COPY_3D, &description) && description != NULL) {
    read_3d(description, out_copy);
  } else {
    read_sides(call, arguments, out_copy);
  }
}

static const char* known_host(gcap_doctor_thread_t* thread, const void* address) {
  if (gcap_doctor_pinned_has(address)) return "pinned";
  return gcap_doctor_thread_has_on_stack(thread, address) ? "stack" : NULL;
}

const char* gcap_doctor_copy_host(gcap_doctor_thread_t* thread, const gcap_doctor_copy_t* copy) {
  if (copy->host != NULL) {
    const char* known = known_host(thread, copy->host);
    return known != NULL ? known : "pageable";
  }
  for (size_t i = 0; i < 2; ++i) {
    const char* known = copy->any[i] != NULL ? known_host(thread, copy->any[i]) : NULL;
    if (known != NULL) return known;
  }
  return NULL;
}
