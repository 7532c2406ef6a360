// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The hooks of the calling thread's capture scope, and who hears of its calls. Words of a thread, so there is nothing
// to lock.

#include "lib/base/capture_hooks.h"

GCAP_THREAD_LOCAL const gcap_capture_hooks_t* gcap_thread_capture_hooks;
GCAP_THREAD_LOCAL gcap_note_fn gcap_thread_note;
