// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// advice.h: what a program has said of the pages of managed memory. Guarded by the global mutex.
#ifndef GCAP_SIM_MEMORY_ADVICE_H_
#define GCAP_SIM_MEMORY_ADVICE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

// Of one page. All zeros: nothing was said.
typedef struct gcap_sim_page_advice {
  bool is_read_mostly;
  bool is_accessed_by_host;
  uint32_t accessed_by;  // bit i: device i
  struct cudaMemLocation preferred;
  struct cudaMemLocation prefetched;
} gcap_sim_page_advice_t;

// Of an allocation; NULL: nothing was said. For free().
typedef struct gcap_sim_advice gcap_sim_advice_t;

// Changes what is known of each page that shares bytes with the range.
void gcap_sim_advice_change(gcap_sim_advice_t** advice, const void* address, size_t bytes,
                            void (*change)(gcap_sim_page_advice_t* page, const void* user), const void* user);
// Calls visit for what is known of each of these pages, once for neighbours that are alike.
void gcap_sim_advice_each(const gcap_sim_advice_t* advice, const void* address, size_t bytes,
                          void (*visit)(const gcap_sim_page_advice_t* page, void* user), void* user);

#endif  // GCAP_SIM_MEMORY_ADVICE_H_
