// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device.h: the devices that there are.
#ifndef GCAP_SIM_DEVICE_DEVICE_H_
#define GCAP_SIM_DEVICE_DEVICE_H_

#include "sim/api/types.h"

int gcap_sim_device_count(void);
gcap_sim_stream_t* gcap_sim_legacy_stream(int device);

#endif  // GCAP_SIM_DEVICE_DEVICE_H_
