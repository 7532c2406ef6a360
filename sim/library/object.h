// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// object.h: handles and descriptors of the simulated libraries, told apart from destroyed and foreign ones.
#ifndef GCAP_SIM_LIBRARY_OBJECT_H_
#define GCAP_SIM_LIBRARY_OBJECT_H_

#include <stddef.h>
#include <stdint.h>

// What an object is. Its magic is the first 8 bytes of every live object of the kind.
typedef struct gcap_sim_object_kind {
  uint64_t magic;
  const char* name;  // "cublasLt matrix layout"; reports and gcap_sim_live use it
} gcap_sim_object_kind_t;

// Makes a zeroed object of `bytes` (at least 8) and counts it as live. NULL when out of memory.
void* gcap_sim_object_create(const gcap_sim_object_kind_t* kind, size_t bytes);

// Stops the program with a report that names `function` unless `object` is a live one of `kind`. `object` is not NULL:
// what NULL means is the caller's to say.
void gcap_sim_object_check(const gcap_sim_object_kind_t* kind, const void* object, const char* function);

// Takes a checked object out of use.
void gcap_sim_object_destroy(const gcap_sim_object_kind_t* kind, void* object);

// Prints "gcap sim: <function>: <message>" and stops the program. For what crashes, or is undefined, on a GPU, and for
// what the simulator does not model.
__attribute__((noreturn, format(printf, 2, 3))) void gcap_sim_stop(const char* function, const char* format, ...);

#endif  // GCAP_SIM_LIBRARY_OBJECT_H_
