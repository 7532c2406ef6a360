// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// extra.h: a kernel's arguments in one buffer, as `extra` gives them: pairs of a key and a value, in any order.
#ifndef GCAP_SIM_DEVICE_EXTRA_H_
#define GCAP_SIM_DEVICE_EXTRA_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct gcap_sim_buffer {
  const char* bytes;
  size_t count;
} gcap_sim_buffer_t;

// The buffer that it names; false when it names none, or has a key that is none.
bool gcap_sim_extra_read(void* const* extra, gcap_sim_buffer_t* out);
// The same with a copy of the buffer, in one block of the caller's.
void** gcap_sim_extra_create(gcap_sim_buffer_t buffer);

#endif  // GCAP_SIM_DEVICE_EXTRA_H_
