// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// io_binding_internal.h: an IO binding as its two sources see it.
#ifndef GCAP_KIT_SESSION_IO_BINDING_INTERNAL_H_
#define GCAP_KIT_SESSION_IO_BINDING_INTERNAL_H_

#include <stdatomic.h>

#include "gcap/kit/io_binding.h"
#include "kit/session/staging.h"

// One input or output.
typedef struct gcap_io_slot {
  bool is_bound;
  gcap_tensor_t tensor;  // the caller's
  gcap_memory_t memory;
  gcap_staging_t* staging;  // NULL: the tensor is used as it is
  gcap_staging_t* blocks;   // of all sizes that were staged and that are still in use
} gcap_io_slot_t;

struct gcap_io_binding {
  gcap_session_t* session;
  atomic_bool is_used;     // by a call that has not returned
  bool was_staged;         // once a tensor was
  gcap_io_slot_t* slots;   // the inputs, then the outputs, in the model's order
  gcap_tensor_t* tensors;  // the same as a run takes them: those that are staged with the address of their staging
  gcap_hold_t** holds;     // room for one of each
  int num_inputs, num_slots;
};

// The calling function may use the binding, until gcap_io_binding_leave.
//   FAILED_PRECONDITION  another one does, or this is a forked child
gcap_status_t gcap_io_binding_enter(gcap_io_binding_t* binding, const char* function) GCAP_NODISCARD;
void gcap_io_binding_leave(gcap_io_binding_t** entered);

static inline bool gcap_io_binding_is_input(const gcap_io_binding_t* binding, int slot) {
  return slot < binding->num_inputs;
}
static inline const char* gcap_io_binding_role(const gcap_io_binding_t* binding, int slot) {
  return gcap_io_binding_is_input(binding, slot) ? "input" : "output";
}
// The value, an index in the model's.
int gcap_io_binding_value(const gcap_io_binding_t* binding, int slot);
const char* gcap_io_binding_name(const gcap_io_binding_t* binding, int slot);

#endif  // GCAP_KIT_SESSION_IO_BINDING_INTERNAL_H_
