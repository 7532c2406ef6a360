// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: a session's options for the EP.
#ifndef GCAP_ORT_OPTIONS_H_
#define GCAP_ORT_OPTIONS_H_

#include "ort/objects.h"

// Reads what the session options say for the plugin's EP on `device`.
gcap_status_t gcap_ort_options_read(const gcap_ort_factory_t* factory, const gcap_ort_device_t* device,
                                    const gcap_ort_session_options_t* session,
                                    gcap_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_ORT_OPTIONS_H_
