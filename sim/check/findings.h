// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// findings.h: what each check says.
#ifndef GCAP_SIM_CHECK_FINDINGS_H_
#define GCAP_SIM_CHECK_FINDINGS_H_

#include "sim/check/shadow.h"

// A range of memory that a piece of work touches.
typedef struct gcap_sim_touch {
  gcap_sim_site_t* site;
  uintptr_t address;
  size_t bytes;
  bool is_write;
} gcap_sim_touch_t;

void gcap_sim_found_race(const gcap_sim_touch_t* touch, const gcap_sim_segment_t* segment,
                         const gcap_sim_epoch_t* earlier, const char* earlier_verb);
// The work that allocates the memory has not even run.
void gcap_sim_found_early_use(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory);
void gcap_sim_found_use_after_free(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory);
// The free (`touch`) is not ordered with an access.
void gcap_sim_found_unordered_free(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory,
                                   const gcap_sim_epoch_t* access, const char* access_verb);
// Memory is handed out while earlier work on its bytes may still run.
void gcap_sim_found_unordered_reuse(const gcap_sim_touch_t* touch, const gcap_sim_segment_t* segment,
                                    const gcap_sim_epoch_t* earlier, const char* earlier_verb);
void gcap_sim_found_baked_pointer(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory);
// Memory of the program's own, freed by a call of free or realloc that was made there.
void gcap_sim_found_freed_host_memory(const gcap_sim_touch_t* touch, bool registered, const gcap_sim_stack_t* freed_at);
// The call under way frees memory that was freed, and is refused.
void gcap_sim_found_second_free(const gcap_sim_memory_t* memory);
// `reader` read bytes that nobody wrote.
void gcap_sim_found_uninitialized(const gcap_sim_site_t* reader, const gcap_sim_memory_t* memory, uintptr_t begin,
                                  uintptr_t end);
void gcap_sim_found_out_of_bounds(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory);
void gcap_sim_found_unreachable(const gcap_sim_touch_t* touch);
void gcap_sim_found_overlap(const gcap_sim_memory_t* memory, const gcap_sim_memory_t* other);

#endif  // GCAP_SIM_CHECK_FINDINGS_H_
