// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check_end.h: whether a set of contexts could end now, for lib/runtime, which ends more than the contexts and must
// know before it ends anything.
#ifndef GCAP_LIB_CONTEXT_CHECK_END_H_
#define GCAP_LIB_CONTEXT_CHECK_END_H_

#include "gcap/thread_context.h"

// The refusal that gcap_thread_contexts_destroy would answer now; NULL: it would end the set. Changes nothing.
//   FAILED_PRECONDITION  as gcap_thread_contexts_destroy
gcap_status_t gcap_thread_contexts_check_end(gcap_thread_contexts_t* contexts) GCAP_NODISCARD;

#endif  // GCAP_LIB_CONTEXT_CHECK_END_H_
