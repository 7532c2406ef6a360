// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pinned.h: the ranges of the host's memory that the driver knows: allocated by it, registered with it, or managed.
#ifndef GCAP_DOCTOR_RECORD_PINNED_H_
#define GCAP_DOCTOR_RECORD_PINNED_H_

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

// All thread-safe.
void gcap_doctor_pinned_add(const void* address, size_t bytes);
// The range that begins at `address`, if there is one.
void gcap_doctor_pinned_remove(const void* address);
bool gcap_doctor_pinned_has(const void* address);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_PINNED_H_
