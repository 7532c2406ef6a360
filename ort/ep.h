// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: the EP of one session.
#ifndef GCAP_ORT_EP_H_
#define GCAP_ORT_EP_H_

#include "ort/objects.h"

// OrtEpFactory.CreateEp and ReleaseEp.
gcap_ort_status_t* gcap_ort_create_ep(gcap_ort_ep_factory_t* self, const gcap_ort_hardware_device_t* const* hardware,
                                      const gcap_ort_key_values_t* const* metadata, size_t num_devices,
                                      const gcap_ort_session_options_t* options, const gcap_ort_logger_t* logger,
                                      gcap_ort_ep_t** out_ep);
void gcap_ort_release_ep(gcap_ort_ep_factory_t* self, gcap_ort_ep_t* ep);

#endif  // GCAP_ORT_EP_H_
