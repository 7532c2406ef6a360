// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_log.h: the driver's log of errors. Guarded by the global mutex.
#ifndef GCAP_SIM_API_DRIVER_LOG_H_
#define GCAP_SIM_API_DRIVER_LOG_H_

// The call under way of this thread answers that a capture refused it: tells those who registered.
void gcap_sim_driver_log_tell(void);

#endif  // GCAP_SIM_API_DRIVER_LOG_H_
