// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// unwind.h: for what must be undone also when a callback does not return, because a C++ exception leaves it or its
// thread is cancelled inside it.
#ifndef GCAP_LIB_INTERNAL_UNWIND_H_
#define GCAP_LIB_INTERNAL_UNWIND_H_

// Before a variable: `undo(&variable)` is called when the variable's scope is left, by a return or by unwinding. The
// latter needs -fexceptions, which //bazel:copts.bzl sets. `undo` must not throw.
#define GCAP_AT_SCOPE_END(undo) __attribute__((cleanup(undo)))

// The outcome of work that did not return.
#define GCAP_STATUS_OF_UNWINDING() \
  GCAP_STATUS(GCAP_UNAVAILABLE, "the work did not return: an exception left it, or its thread was cancelled")

#endif  // GCAP_LIB_INTERNAL_UNWIND_H_
