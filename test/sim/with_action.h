// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// with_action.h: an action of the simulator's checks for as long as a scope lasts.
#ifndef GCAP_TEST_SIM_WITH_ACTION_H_
#define GCAP_TEST_SIM_WITH_ACTION_H_

#include "gcap_sim.h"

namespace gcap_test {

// For tests that do on purpose what a check stops. Afterwards it does again what it does by default.
class WithAction {
 public:
  WithAction(gcap_sim_check_kind_t kind, gcap_sim_action_t action) : kind_(kind) { gcap_sim_set_action(kind, action); }
  ~WithAction() { gcap_sim_set_action(kind_, GCAP_SIM_ACTION_DEFAULT); }
  WithAction(const WithAction&) = delete;
  WithAction& operator=(const WithAction&) = delete;

 private:
  gcap_sim_check_kind_t kind_;
};

}  // namespace gcap_test

#endif  // GCAP_TEST_SIM_WITH_ACTION_H_
