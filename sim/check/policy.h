// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// policy.h: what each check does when it finds something, and what is not to be told.
#ifndef GCAP_SIM_CHECK_POLICY_H_
#define GCAP_SIM_CHECK_POLICY_H_

#include <stdbool.h>

#include "gcap_sim.h"

gcap_sim_action_t gcap_sim_check_action(gcap_sim_check_kind_t kind);
// Is there a check on that looks at accesses?
bool gcap_sim_check_looks(void);

// All checks but those that are off or warn record, until `on` is false again.
void gcap_sim_check_record_all(bool on);

// Is the report to be dropped? `matches` tells whether a name is in it.
bool gcap_sim_check_suppressed(gcap_sim_check_kind_t kind, bool (*matches)(const char* name));

#endif  // GCAP_SIM_CHECK_POLICY_H_
