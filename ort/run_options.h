// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_options.h: what ONNX Runtime lets a plugin see of the options of a run.
#ifndef GCAP_ORT_RUN_OPTIONS_H_
#define GCAP_ORT_RUN_OPTIONS_H_

#include "gcap/kit/run_options.h"
#include "ort/host.h"

// Reads the options of a run that is no replay. `captures`: graphs are on. `capture_in_run` is true by default.
//   INVALID_ARGUMENT  a value that the key does not allow; or an option that cannot be kept: user_compute_stream, and
//                     of a run of which a graph shall come, check_bindings and bindings
gcap_status_t gcap_ort_run_options_read(const gcap_ort_host_t* host, const gcap_ort_run_options_t* from, bool captures,
                                        gcap_run_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_ORT_RUN_OPTIONS_H_
