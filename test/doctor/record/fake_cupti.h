// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fake_cupti.h: how a test drives the fake CUPTI. It is a shared library, so that the recorder finds and loads it as it
// does the real one.
#ifndef GCAP_TEST_DOCTOR_RECORD_FAKE_CUPTI_H_
#define GCAP_TEST_DOCTOR_RECORD_FAKE_CUPTI_H_

#include <stdint.h>

#include "doctor/record/cupti_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// The beginning and the end of a driver's call, as callbacks, where they are enabled. The number of the call goes with
// both. `result` is what the call returns.
uint32_t fake_cupti_enter(uint32_t callback, const char* function, const void* arguments);
void fake_cupti_exit(uint32_t callback, const char* function, const void* arguments, uint32_t correlation, int result,
                     const char* symbol);
// Both.
void fake_cupti_call(uint32_t callback, const char* function, const void* arguments, int result);
// A callback for a resource, where it is enabled.
void fake_cupti_stream(uint32_t callback, void* stream);
void fake_cupti_graph(uint32_t callback, const gcap_doctor_cupti_graph_t* data);

// How many of the driver's callbacks are enabled.
uint32_t fake_cupti_enabled(void);
int fake_cupti_is_enabled(uint32_t callback);
// Called once, within the next change of a callback.
void fake_cupti_at_change(void (*hook)(void));
// Hands over what records there are, as CUPTI's thread does now and then.
void fake_cupti_flush(void);
// A record of activity, handed over at the next flush.
void fake_cupti_record(int32_t kind, uint32_t graph, uint64_t node, uint32_t correlation, uint64_t start_ns,
                       uint64_t end_ns);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_TEST_DOCTOR_RECORD_FAKE_CUPTI_H_
