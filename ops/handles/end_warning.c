// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An engine has hundreds of library objects, and where one cannot be ended for want of a device, none can. One flag for
// all libraries and threads: an end that succeeds beside failing ones costs a warning more, and no failure goes untold
// that comes first. Nothing to lock.
#include "ops/handles/end_warning.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "gcap/log.h"

static atomic_bool has_failed;

void gcap_warn_of_end(gcap_status_t status) {
  const bool is_told = atomic_exchange_explicit(&has_failed, status != NULL, memory_order_relaxed);
  if (status != NULL && !is_told) {
    gcap_log(GCAP_LOG_WARNING, "%s; further ends that fail are not logged until one succeeds",
             gcap_status_message(status));
  }
  gcap_status_free(status);
}
