// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ids.h: ids of a file as indices: a recorder's are small and dense, a damaged file's may be anything.
#ifndef GCAP_DOCTOR_ANALYSE_IDS_H_
#define GCAP_DOCTOR_ANALYSE_IDS_H_

#include <stddef.h>
#include <stdint.h>

// Sorted, each once.
typedef struct gcap_doctor_ids {
  uint32_t* items;
  size_t count, capacity;
} gcap_doctor_ids_t;

// Before gcap_doctor_ids_finish, in any order; GCAP_DOCTOR_NONE is left out.
void gcap_doctor_ids_add(gcap_doctor_ids_t* ids, uint32_t id);
void gcap_doctor_ids_finish(gcap_doctor_ids_t* ids);
void gcap_doctor_ids_deinit(gcap_doctor_ids_t* ids);

// The place of an id; GCAP_DOCTOR_NONE if it was not added.
uint32_t gcap_doctor_ids_find(const gcap_doctor_ids_t* ids, uint32_t id);

#endif  // GCAP_DOCTOR_ANALYSE_IDS_H_
