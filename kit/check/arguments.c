// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a check is refused for before anything runs. Memory on the device is looked at where its copies are made
// (lib/verify). Locking: none.

#include <inttypes.h>

#include "kit/check/checking.h"

static gcap_status_t refuse(const gcap_check_buffer_t* buffer, const char* list, size_t index, const char* why) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s %zu '%s' (%zu bytes at %p): %s", list, index,
                     buffer->name != NULL ? buffer->name : "", buffer->bytes, buffer->address, why);
}

static gcap_status_t check_buffer(const gcap_check_buffer_t* buffer, const char* list, size_t index, bool is_input) {
  const size_t element_bytes = gcap_dtype_bytes(buffer->type);
  if (buffer->address == NULL || buffer->bytes == 0)
    return refuse(buffer, list, index, "it has no address, or no bytes");
  if (element_bytes == 0) return refuse(buffer, list, index, "its type is none of gcap_dtype_t");
  if (buffer->bytes % element_bytes != 0) {
    return refuse(buffer, list, index, "its bytes are no multiple of an element's");
  }
  if (buffer->bytes > UINTPTR_MAX - (uintptr_t)buffer->address) {
    return refuse(buffer, list, index, "it goes beyond the end of the address space");
  }
  if (!(buffer->absolute >= 0.0) || !(buffer->relative >= 0.0)) {
    return refuse(buffer, list, index, "a tolerance is a number of at least 0");
  }
  if (is_input && buffer->in_place) {
    return refuse(buffer, list, index, "it is in_place, which an output is: list it there alone");
  }
  if (!is_input && buffer->on_host) {
    return refuse(buffer, list, index, "it is on_host, where no output is: copy it to pinned memory");
  }
  return NULL;
}

static gcap_status_t check_list(const gcap_check_buffer_t* buffers, size_t count, const char* list, bool is_input) {
  if (buffers == NULL && count != 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "there are %zu %ss, and their list is NULL", count, list);
  }
  for (size_t i = 0; i < count; ++i) GCAP_RETURN_IF_ERROR(check_buffer(&buffers[i], list, i, is_input));
  return NULL;
}

static const gcap_check_buffer_t* buffer_of(const gcap_check_t* check, size_t index) {
  return index < check->num_inputs ? &check->inputs[index] : &check->outputs[index - check->num_inputs];
}

static gcap_status_t check_overlaps(const gcap_check_t* check) {
  const size_t count = check->num_inputs + check->num_outputs;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = i + 1; k < count; ++k) {
      const gcap_check_buffer_t *a = buffer_of(check, i), *b = buffer_of(check, k);
      const uintptr_t at_a = (uintptr_t)a->address, at_b = (uintptr_t)b->address;
      if (at_a >= at_b + b->bytes || at_b >= at_a + a->bytes) continue;
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                         "the buffers '%s' (%zu bytes at %p) and '%s' (%zu bytes at %p) share bytes: list the memory "
                         "once, and as an output that is in_place if the operation reads and writes it",
                         a->name != NULL ? a->name : "", a->bytes, a->address, b->name != NULL ? b->name : "", b->bytes,
                         b->address);
    }
  }
  return NULL;
}

gcap_status_t gcap_checking_refuse(const gcap_check_t* check) {
  if (check->work == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the check has no work");
  if (check->num_outputs == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the check has no outputs, so nothing would be compared");
  }
  GCAP_RETURN_IF_ERROR(check_list(check->inputs, check->num_inputs, "input", /*is_input=*/true));
  GCAP_RETURN_IF_ERROR(check_list(check->outputs, check->num_outputs, "output", /*is_input=*/false));
  return check_overlaps(check);
}
