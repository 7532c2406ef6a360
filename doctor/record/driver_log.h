// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_log.h: what the driver says of calls that fail, in its own log of errors.
#ifndef GCAP_DOCTOR_RECORD_DRIVER_LOG_H_
#define GCAP_DOCTOR_RECORD_DRIVER_LOG_H_

#pragma GCC visibility push(hidden)

// Finds the driver's functions, once, before there are callbacks. A driver older than CUDA 12.9 has none.
void gcap_doctor_driver_log_start(void);
// From now on the log is recorded. The driver is initialised: in the callback of the first begin of a capture, and
// later ones do nothing. Thread-safe.
void gcap_doctor_driver_log_listen(void);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_DRIVER_LOG_H_
