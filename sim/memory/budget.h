// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// budget.h: how much memory a device has.
#ifndef GCAP_SIM_MEMORY_BUDGET_H_
#define GCAP_SIM_MEMORY_BUDGET_H_

#include <stdbool.h>
#include <stddef.h>

size_t gcap_sim_budget_total(int device);
size_t gcap_sim_budget_free(int device);
// Takes device memory, from what pools hold unused if it must; false when there is not enough.
bool gcap_sim_budget_take(int device, size_t bytes);
void gcap_sim_budget_give_back(int device, size_t bytes);

#endif  // GCAP_SIM_MEMORY_BUDGET_H_
