// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cupti_find.h: CUPTI, wherever it is installed.
#ifndef GCAP_DOCTOR_RECORD_CUPTI_FIND_H_
#define GCAP_DOCTOR_RECORD_CUPTI_FIND_H_

#include <stdbool.h>

#include "doctor/record/cupti_abi.h"

#pragma GCC visibility push(hidden)

// CUPTI's functions, by their names without "cupti". Those that a CUPTI may lack are NULL then.
typedef struct gcap_doctor_cupti {
  void* library;
  uint32_t version;
  int (*GetVersion)(uint32_t* version);
  int (*Subscribe)(gcap_doctor_cupti_subscriber_t** out_subscriber, gcap_doctor_cupti_callback_t callback, void* user);
  int (*EnableCallback)(uint32_t enable, gcap_doctor_cupti_subscriber_t* subscriber, int32_t domain, uint32_t id);
  int (*GetGraphNodeId)(void* node, uint64_t* out_id);
  int (*GetGraphExecId)(void* exec, uint32_t* out_id);          // may be NULL
  int (*GetResultString)(int result, const char** out_string);  // may be NULL
  // All or none of these.
  int (*ActivityRegisterCallbacks)(gcap_doctor_cupti_buffer_wanted_t wanted, gcap_doctor_cupti_buffer_filled_t filled);
  int (*ActivityEnable)(int32_t kind);
  int (*ActivityFlushAll)(uint32_t flags);
  int (*ActivityGetNextRecord)(uint8_t* buffer, size_t valid, void** record);
} gcap_doctor_cupti_t;

// Loads CUPTI: `path` if it is not NULL, else the first one found. False, after a note that says why, if there is none
// that will do.
bool gcap_doctor_cupti_find(const char* path, gcap_doctor_cupti_t* out_cupti);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_CUPTI_FIND_H_
