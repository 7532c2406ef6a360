// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a program asks of ranges of managed memory: what it has said of them.
//
// The idea: an answer is of all pages of the range, so it is taken from the first one, and lost where another page
// differs. Sizes, values and errors are those of CUDA's documentation; no GPU was asked. Locking: the global mutex.
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/device/device.h"
#include "sim/memory/managed.h"

// What all pages have in common.
typedef struct common {
  bool is_begun;
  gcap_sim_page_advice_t page;
} common_t;

static void keep_place(struct cudaMemLocation* common, struct cudaMemLocation of_page) {
  const struct cudaMemLocation nowhere = {.type = cudaMemLocationTypeInvalid};
  if (common->type != of_page.type || common->id != of_page.id) *common = nowhere;
}

static void keep_common(const gcap_sim_page_advice_t* page, void* user) {
  common_t* common = user;
  if (!common->is_begun) common->page = *page;
  common->is_begun = true;
  common->page.is_read_mostly = common->page.is_read_mostly && page->is_read_mostly;
  common->page.is_accessed_by_host = common->page.is_accessed_by_host && page->is_accessed_by_host;
  common->page.accessed_by &= page->accessed_by;
  keep_place(&common->page.preferred, page->preferred);
  keep_place(&common->page.prefetched, page->prefetched);
}

static int device_of(struct cudaMemLocation location) {
  if (location.type == cudaMemLocationTypeInvalid) return cudaInvalidDeviceId;
  return location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;
}

// As many as there is room for, and cudaInvalidDeviceId in the rest.
static void list_accessed_by(const gcap_sim_page_advice_t* page, int32_t* ids, size_t room) {
  size_t count = 0;
  for (int i = 0; i < gcap_sim_device_count() && count < room; ++i) {
    if ((page->accessed_by >> i & 1) != 0) ids[count++] = i;
  }
  if (page->is_accessed_by_host && count < room) ids[count++] = cudaCpuDeviceId;
  while (count < room) ids[count++] = cudaInvalidDeviceId;
}

static int32_t value_of(const gcap_sim_page_advice_t* page, enum cudaMemRangeAttribute attribute) {
  switch (attribute) {
    case cudaMemRangeAttributeReadMostly: return page->is_read_mostly;
    case cudaMemRangeAttributePreferredLocation: return device_of(page->preferred);
    case cudaMemRangeAttributeLastPrefetchLocation: return device_of(page->prefetched);
    case cudaMemRangeAttributePreferredLocationType: return (int32_t)page->preferred.type;
    case cudaMemRangeAttributePreferredLocationId: return page->preferred.id;
    case cudaMemRangeAttributeLastPrefetchLocationType: return (int32_t)page->prefetched.type;
    default: return page->prefetched.id;
  }
}

static cudaError_t get(void* data, size_t bytes, enum cudaMemRangeAttribute attribute, const void* address,
                       size_t count) {
  const gcap_sim_allocation_t* allocation = gcap_sim_managed_find(address, count);
  if (data == NULL || allocation == NULL) return cudaErrorInvalidValue;
  if (attribute < cudaMemRangeAttributeReadMostly || attribute > cudaMemRangeAttributeLastPrefetchLocationId) {
    return cudaErrorInvalidValue;
  }
  const bool is_list = attribute == cudaMemRangeAttributeAccessedBy;
  const bool fits = is_list ? bytes > 0 && bytes % sizeof(int32_t) == 0 : bytes == sizeof(int32_t);
  if (!fits) return cudaErrorInvalidValue;
  common_t common = {0};
  gcap_sim_advice_each(allocation->advice, address, count, keep_common, &common);
  if (is_list) {
    list_accessed_by(&common.page, data, bytes / sizeof(int32_t));
    return cudaSuccess;
  }
  const int32_t value = value_of(&common.page, attribute);
  memcpy(data, &value, sizeof(value));
  return cudaSuccess;
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t dataSize, enum cudaMemRangeAttribute attribute,
                                     const void* devPtr, size_t count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemRangeGetAttribute);
  if (code == cudaSuccess) code = get(data, dataSize, attribute, devPtr, count);
  return gcap_sim_leave(code);
}

static cudaError_t get_all(void** data, const size_t* sizes, const enum cudaMemRangeAttribute* attributes, size_t num,
                           const void* address, size_t count) {
  if (data == NULL || sizes == NULL || attributes == NULL || num == 0) return cudaErrorInvalidValue;
  cudaError_t code = cudaSuccess;
  for (size_t i = 0; code == cudaSuccess && i < num; ++i) {
    code = get(data[i], sizes[i], attributes[i], address, count);
  }
  return code;
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* dataSizes, enum cudaMemRangeAttribute* attributes,
                                      size_t numAttributes, const void* devPtr, size_t count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemRangeGetAttributes);
  if (code == cudaSuccess) code = get_all(data, dataSizes, attributes, numAttributes, devPtr, count);
  return gcap_sim_leave(code);
}
