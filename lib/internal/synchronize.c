// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The wait for a raw stream: looked up in the table of streams, and handed to the wrapper that is found. No lock is
// held while it waits.

#include "lib/internal/synchronize.h"

#include "lib/internal/cuda_guard.h"
#include "lib/internal/stream_table.h"

gcap_status_t gcap_synchronize_stream(cudaStream_t stream) {
  gcap_stream_wait_t wait = NULL;
  void* wrapper = gcap_stream_table_find_only(stream, &wait);
  return wrapper != NULL ? wait(wrapper) : gcap_relaxed_synchronize(stream);
}
