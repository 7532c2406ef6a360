// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// issue.h: issues the work of a run.
#ifndef GCAP_KIT_SESSION_ISSUE_H_
#define GCAP_KIT_SESSION_ISSUE_H_

#include "kit/session/steps.h"

// Issues all steps, those of holes by them, and frees the memory between them.
//   errors of the EPs' kernels, copies and scratch
gcap_status_t gcap_run_issue_steps(gcap_run_state_t* run) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_ISSUE_H_
