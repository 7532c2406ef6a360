// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// replays.h: runs and replays of a graph manager and of a runtime, a call each.
#ifndef GCAP_TEST_SUPPORT_REPLAYS_H_
#define GCAP_TEST_SUPPORT_REPLAYS_H_

#include "test/support/plain_runs.h"
#include "test/support/runs.h"

#endif  // GCAP_TEST_SUPPORT_REPLAYS_H_
