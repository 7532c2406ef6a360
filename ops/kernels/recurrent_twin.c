// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the steps of recurrent networks: the same functions, element by element. All of an operand counts as
// read, though a step reads the rows of its time alone, and all of Y as written: which rows are, the lengths say, which
// are on the device.
#include "ops/kernels/recurrent_kernels.h"
#include "ops/kernels/twin.h"

static void add(gcap_twin_accesses_t* list, const void* address, int64_t elements, size_t bytes, bool is_write) {
  if (address != NULL) gcap_twin_access(list, address, (size_t)elements * bytes, is_write);
}

static size_t list_accesses(const gcap_recurrent_params_t* p, size_t bytes, bool reads_state, bool writes_state,
                            gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const int64_t of_units = p->directions * p->units;
  add(&list, p->inputs, p->elements * p->steps * p->gates, sizeof(float), false);
  add(&list, p->recurrent, p->elements * p->recurrent_gates, sizeof(float), false);
  add(&list, p->candidate, p->elements, sizeof(float), false);
  add(&list, p->bias, 2 * p->gates * of_units, bytes, false);
  add(&list, p->peephole, 3 * of_units, bytes, false);
  add(&list, p->lengths, p->batch, sizeof(int32_t), false);
  add(&list, p->initial_h, p->elements, bytes, false);
  add(&list, p->initial_c, p->elements, bytes, false);
  if (reads_state) add(&list, p->hidden, p->elements, bytes, false);
  if (reads_state) add(&list, p->cell, p->elements, sizeof(float), false);
  if (writes_state) add(&list, p->hidden, p->elements, bytes, true);
  if (writes_state) add(&list, p->cell, p->elements, sizeof(float), true);
  add(&list, p->reset, p->elements, bytes, true);
  add(&list, p->y, p->elements * p->steps, bytes, true);
  add(&list, p->y_h, p->elements, bytes, true);
  add(&list, p->y_c, p->elements, bytes, true);
  return list.count;
}

#define DEFINE_TWIN(name, T, reads, writes)                                                  \
  GCAP_TWIN_HANDLE(gcap_kernel_recurrent_##name##_##T, gcap_recurrent_params_t)              \
  static void run_##name##_##T(const gcap_sim_launch_t* launch, void* const* args) {         \
    (void)launch;                                                                            \
    const gcap_recurrent_params_t* p = args[0];                                              \
    for (int64_t i = 0; i < p->elements; ++i) gcap_recurrent_##name##_##T(p, i);             \
  }                                                                                          \
  static size_t accesses_##name##_##T(const gcap_sim_launch_t* launch, void* const* args,    \
                                      gcap_sim_access_t* out_items, size_t capacity) {       \
    (void)launch;                                                                            \
    return list_accesses(args[0], sizeof(gcap_##T##_t), reads, writes, out_items, capacity); \
  }
GCAP_RECURRENT_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(name, T, reads, writes)                                                                \
  gcap_twin_register((const void*)gcap_kernel_recurrent_##name##_##T, "gcap_kernel_recurrent_" #name "_" #T, \
                     &params_bytes, run_##name##_##T, accesses_##name##_##T);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_recurrent_params_t);
  GCAP_RECURRENT_KERNELS(REGISTER_TWIN)
}
