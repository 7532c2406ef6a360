// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what other modules use of the contents module, and users do not see. The module has a room for each:
//
//     contents.h    the nodes of a graph and their arguments
//     compare.h     how two graphs differ
//     layout.h      how buffers lie to one another
//     relocation.h  which words of the arguments are pointers into a buffer or carry a value, and setting them in an
//                   executable
//     values.h      scalars that change, and which bytes carry one
//     left_behind.h what has an address in a buffer and does not move with the buffer
//     stand_ins.h   second addresses for buffers
//     audit.h       notes of whose memory the arguments point into, and a look whether it still is
//     driver.h      the few functions of the driver that all of this needs
#ifndef GCAP_LIB_CONTENTS_INNER_H_
#define GCAP_LIB_CONTENTS_INNER_H_

#include "lib/contents/audit.h"
#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/contents/driver.h"
#include "lib/contents/layout.h"
#include "lib/contents/left_behind.h"
#include "lib/contents/relocation.h"
#include "lib/contents/stand_ins.h"
#include "lib/contents/values.h"

#endif  // GCAP_LIB_CONTENTS_INNER_H_
