// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// function.h: the functions of the API by name, with their counters (api.c). Guarded by the global mutex.
#ifndef GCAP_SIM_API_FUNCTION_H_
#define GCAP_SIM_API_FUNCTION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gcap_sim_class {
  GCAP_SIM_PURE,
  GCAP_SIM_FREE,
  GCAP_SIM_UNSAFE,
  GCAP_SIM_FORBIDDEN,
  GCAP_SIM_CONTEXT
} gcap_sim_class_t;

// A function of the runtime, or of a library simulated on top of it. Lives for ever.
typedef struct gcap_sim_function {
  const char* name;
  gcap_sim_class_t class;
  bool is_driver;
  uint64_t calls;
  size_t faults;  // armed for it by name
} gcap_sim_function_t;

// The function of that name. One that is not of the runtime is made when it is first asked for, with a copy of the
// name, because the functions of libraries are in no table.
gcap_sim_function_t* gcap_sim_function_named(const char* name);

#endif  // GCAP_SIM_API_FUNCTION_H_
