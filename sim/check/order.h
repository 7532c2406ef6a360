// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// order.h: clocks that the checks themselves look at.
#ifndef GCAP_SIM_CHECK_ORDER_H_
#define GCAP_SIM_CHECK_ORDER_H_

#include "../cudart/core.h"
#include "clock.h"

gcap_sim_clock_t* gcap_sim_order_host(void);
// The stream, which is idle, does something at the call itself.
void gcap_sim_order_at_once(gcap_sim_stream_t* stream);

#endif  // GCAP_SIM_CHECK_ORDER_H_
