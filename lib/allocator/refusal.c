// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Refusals of allocators. The thread's hooks say whether the thread is capturing, without the driver, so there is
// nothing to lock.

#include "lib/allocator/refusal.h"

#include "gcap/log.h"
#include "lib/internal/forked.h"

gcap_status_t gcap_allocator_check_not_capturing(const char* operation) {
  if (!gcap_thread_captures()) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(operation));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s is refused while this thread captures: it would invalidate the capture. Get memory before "
                     "the capture begins, give it back after it ends",
                     operation);
}

gcap_status_t gcap_allocator_refuse_in_capture(bool reserved, size_t bytes, const char* source) {
  if (!gcap_thread_captures()) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(source));
  gcap_status_t status = GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "%s of %zu bytes (%s) is refused while this thread captures: it would invalidate the capture. Get memory before "
      "the capture begins",
      reserved ? "gcap_allocator_reserve" : "gcap_allocator_alloc", bytes, source);
  gcap_thread_capture_hooks->fail(status);
  return status;
}

void gcap_allocator_log_after_free(gcap_status_t status) {
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "after giving memory back: %s", gcap_status_message(status));
  gcap_status_free(status);
}
