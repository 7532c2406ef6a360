// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// names.h: how reports call kernels, functions, frames, threads and codes.
#ifndef GCAP_DOCTOR_REPORT_NAMES_H_
#define GCAP_DOCTOR_REPORT_NAMES_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/analyse/diagnosis.h"

#ifdef __cplusplus
extern "C" {
#endif

// A mangled or demangled C++ name without its types: "at::native::reduce_kernel". Other names stay as they are.
const char* gcap_doctor_name_function(gcap_doctor_heap_t* heap, const char* symbol);
// The same for a kernel, with the first names of its template arguments, which tell PyTorch's kernels apart:
// "at::native::vectorized_elementwise_kernel<BinaryFunctor<MulFunctor>>".
const char* gcap_doctor_name_kernel(gcap_doctor_heap_t* heap, const char* kernel);

// "serve.py:12 in body", "at::native::nonzero (libtorch_cuda.so)"; a frame of GCAP_DOCTOR_NONE is "".
const char* gcap_doctor_name_frame(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording, uint32_t frame);

// "step > attention": the texts of a range and of those around it, outermost first; "" for GCAP_DOCTOR_NONE.
const char* gcap_doctor_name_label(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording, uint32_t range);

// The frame that reports name first of a call: that of gcap_doctor_recording_user_frame, else of
// gcap_doctor_recording_c_frame. GCAP_DOCTOR_NONE where neither is known, and for a call of GCAP_DOCTOR_NONE.
uint32_t gcap_doctor_name_place(const gcap_doctor_recording_t* recording, uint32_t call);
// The finding's remedy, else its rule's; NULL for none.
const char* gcap_doctor_name_remedy(const gcap_doctor_finding_t* finding);
// Why no call was recorded, in the recorder's words: nothing is known to be healthy. NULL where calls were recorded, or
// nothing is said.
const char* gcap_doctor_name_unrecorded(const gcap_doctor_recording_t* recording);

// The runtime's function where there is one, else the driver's.
const char* gcap_doctor_name_call(const char* function);
// "900 cudaErrorStreamCaptureUnsupported".
const char* gcap_doctor_name_result(gcap_doctor_heap_t* heap, int result);
// "'python3'", "thread 7123"; "an unknown thread" for GCAP_DOCTOR_NONE.
const char* gcap_doctor_name_thread(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording,
                                    uint32_t thread);
// "stream 2 (nonblocking)"; "" for GCAP_DOCTOR_NONE.
const char* gcap_doctor_name_stream(gcap_doctor_heap_t* heap, const gcap_doctor_recording_t* recording,
                                    uint32_t stream);
// "graph id 3": what the program calls the work of a capture; NULL if it does not.
const char* gcap_doctor_name_work(const gcap_doctor_recording_t* recording, const gcap_doctor_captured_t* capture);
// "docs/rules/r11.md".
const char* gcap_doctor_name_page(gcap_doctor_heap_t* heap, const gcap_rule_t* rule);

const char* gcap_doctor_name_mode(gcap_doctor_event_mode_t mode);
const char* gcap_doctor_name_outcome(gcap_doctor_capture_outcome_t outcome);
const char* gcap_doctor_name_severity(gcap_doctor_severity_t severity);
const char* gcap_doctor_name_host(gcap_doctor_event_host_t host);

// "12.3 us": three digits, in ns, us, ms or s.
const char* gcap_doctor_name_ns(gcap_doctor_heap_t* heap, uint64_t ns);
// "1 capture", "2 captures".
const char* gcap_doctor_name_count(gcap_doctor_heap_t* heap, uint64_t count, const char* noun);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_NAMES_H_
