// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// peer.h: which device reaches whose memory.
#ifndef GCAP_SIM_DEVICE_PEER_H_
#define GCAP_SIM_DEVICE_PEER_H_

#include <stdbool.h>

// May work of the device reach memory of the peer?
bool gcap_sim_peer_enabled(int device, int peer);
// Forgets what the device's peers may do.
void gcap_sim_peer_reset(int device);

#endif  // GCAP_SIM_DEVICE_PEER_H_
