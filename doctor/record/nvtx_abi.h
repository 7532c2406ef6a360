// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// nvtx_abi.h: what is used of the interface between NVTX, version 2 and 3, and a tool: a program's NVTX loads the
// library that NVTX_INJECTION64_PATH names at its first call, and has its InitializeInjectionNvtx2 put functions into
// its tables.
#ifndef GCAP_DOCTOR_RECORD_NVTX_ABI_H_
#define GCAP_DOCTOR_RECORD_NVTX_ABI_H_

#include <stddef.h>
#include <stdint.h>

enum {
  GCAP_DOCTOR_NVTX_CALLBACKS = 1,  // the export table
};

// Modules.
enum {
  GCAP_DOCTOR_NVTX_CORE = 1,
  GCAP_DOCTOR_NVTX_CORE2 = 5,
};

// Places in the module's table.
enum {
  GCAP_DOCTOR_NVTX_PUSH_EX = 8,
  GCAP_DOCTOR_NVTX_PUSH_A = 9,
  GCAP_DOCTOR_NVTX_PUSH_W = 10,
  GCAP_DOCTOR_NVTX_POP = 11,
};
enum {
  GCAP_DOCTOR_NVTX_DOMAIN_PUSH_EX = 4,
  GCAP_DOCTOR_NVTX_DOMAIN_POP = 5,
  GCAP_DOCTOR_NVTX_REGISTER_A = 10,
  GCAP_DOCTOR_NVTX_REGISTER_W = 11,
};

enum {
  GCAP_DOCTOR_NVTX_MESSAGE_A = 1,
  GCAP_DOCTOR_NVTX_MESSAGE_W = 2,
  GCAP_DOCTOR_NVTX_MESSAGE_REGISTERED = 3,
};

// What a range is given. Later versions append.
typedef struct gcap_doctor_nvtx_attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t colour_type;
  uint32_t colour;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;
} gcap_doctor_nvtx_attributes_t;

typedef void (*gcap_doctor_nvtx_function_t)(void);

typedef struct gcap_doctor_nvtx_callbacks {
  size_t struct_size;
  // An array of places of functions, of which the first one is unused; 0 if there is no such module.
  int (*GetModuleFunctionTable)(int module, gcap_doctor_nvtx_function_t*** out_table, unsigned* out_size);
} gcap_doctor_nvtx_callbacks_t;

typedef const void* (*gcap_doctor_nvtx_get_table_t)(uint32_t table);

#endif  // GCAP_DOCTOR_RECORD_NVTX_ABI_H_
