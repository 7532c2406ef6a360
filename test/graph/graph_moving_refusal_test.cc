// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Wrong buffers, and rehearsals that fail: all is named, and nothing changes.

#include <stdexcept>
#include <thread>

#include "test/graph/moving_test.h"

namespace gcap {
namespace testing {
namespace {}  // namespace
}  // namespace testing
}  // namespace gcap
