// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "test/base/run_trace.h"

#include "lib/base/thread_state.h"

uint64_t ThreadInitialisations(void) { return gcap_thread_run_trace.initialisations; }
