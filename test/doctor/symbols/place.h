// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// place.h: a return address whose function, file and lines are known.
#ifndef GCAP_TEST_DOCTOR_SYMBOLS_PLACE_H_
#define GCAP_TEST_DOCTOR_SYMBOLS_PLACE_H_

#ifdef __cplusplus
extern "C" {
#endif

// The return address of a call in the static function `outer_place`, in which `inlined_place` is inlined, which makes
// the call; and the lines of both calls.
extern const int gcap_test_inlined_line, gcap_test_outer_line;
void* gcap_test_place(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_TEST_DOCTOR_SYMBOLS_PLACE_H_
