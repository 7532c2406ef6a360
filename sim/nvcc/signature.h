// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// signature.h: what is known of a kernel's parameters.
#ifndef GCAP_SIM_NVCC_SIGNATURE_H_
#define GCAP_SIM_NVCC_SIGNATURE_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap_sim.h"
#include "sim/nvcc/fat_binary.h"

typedef enum gcap_sim_param_kind {
  GCAP_SIM_PARAM_VALUE,   // holds no address
  GCAP_SIM_PARAM_SOURCE,  // a pointer to const
  GCAP_SIM_PARAM_TARGET,  // a pointer to what the kernel may write
  GCAP_SIM_PARAM_WORDS    // each word may be an address
} gcap_sim_param_kind_t;

// The parameters of one kernel that nvcc compiled, and what it needs.
typedef struct gcap_sim_signature {
  char* text;        // "ns::k<float>(float*, int)"; the kernel's name where that says no more
  char* name;        // "ns::k<float>"
  bool known;        // are the parameters? Otherwise all below is 0
  bool reaches_all;  // the kernel may touch memory that no argument names: it takes a table of pointers, or a struct
                     // that cannot be looked into
  size_t count;
  size_t* bytes;    // of each; 0: not known
  size_t* offsets;  // of each from the first; NULL: not known
  gcap_sim_param_kind_t* kinds;
  gcap_sim_needs_t needs;
} gcap_sim_signature_t;

// The name as people write it: `ns::table`. A block of the caller's.
char* gcap_sim_plain_name(const char* registered);

// From the name under which the kernel was registered, and from its fat binary. Lives for ever.
gcap_sim_signature_t* gcap_sim_signature_create(const char* registered, const void* code);

// What a launch with these arguments is taken to touch, though nobody declared it: the first byte that each address
// points to. A pointer to const is read, another pointer is written; a word of a struct is read, if it is an address.
// Writes up to `capacity` entries and returns how many there are.
size_t gcap_sim_signature_accesses(const gcap_sim_signature_t* signature, void* const* args, gcap_sim_access_t* out,
                                   size_t capacity);
// Is the entry `index` of these a word that need not be an address?
bool gcap_sim_signature_is_word(const gcap_sim_signature_t* signature, size_t index);

#endif  // GCAP_SIM_NVCC_SIGNATURE_H_
