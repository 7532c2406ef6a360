// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// hot.h: functions that a replay calls. The linker puts them side by side: in the time between two replays the
// processor has forgotten the code, and finds a few lines of one page sooner than the same lines of ten.
#ifndef GCAP_LIB_INTERNAL_HOT_H_
#define GCAP_LIB_INTERNAL_HOT_H_

#define GCAP_HOT __attribute__((hot))

#endif  // GCAP_LIB_INTERNAL_HOT_H_
