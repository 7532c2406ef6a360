// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// log.h: gcap's log through ONNX Runtime's logger.
#ifndef GCAP_ORT_LOG_H_
#define GCAP_ORT_LOG_H_

#include "ort/host.h"

// Sends gcap's messages to the runtime's logger, as far as the logger's level lets them through. The log is the
// library's: the last call counts. `host` and `logger` stay valid until gcap_ort_log_end.
void gcap_ort_log_begin(const gcap_ort_host_t* host, const gcap_ort_logger_t* logger);
// Back to standard error.
void gcap_ort_log_end(void);

#endif  // GCAP_ORT_LOG_H_
