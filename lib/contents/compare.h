// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// compare.h: how two graphs differ, field by field and word by word.
#ifndef GCAP_LIB_CONTENTS_COMPARE_H_
#define GCAP_LIB_CONTENTS_COMPARE_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/graph_contents.h"
#include "lib/contents/contents.h"

// What a node is, beside its arguments.
typedef enum gcap_contents_field {
  GCAP_CONTENTS_TYPE = 0,
  GCAP_CONTENTS_PARENT,
  GCAP_CONTENTS_DEPENDENCIES,
  GCAP_CONTENTS_FUNCTION,
  GCAP_CONTENTS_GRID,
  GCAP_CONTENTS_BLOCK,
  GCAP_CONTENTS_SHARED_BYTES,
  // Attributes of launches, which an update may leave as they were; see gcap_contents_check_update.
  GCAP_CONTENTS_KNOWN,
  GCAP_CONTENTS_CLUSTER,
  GCAP_CONTENTS_COOPERATIVE,
  GCAP_CONTENTS_PRIORITY,
  GCAP_CONTENTS_SYNC_DOMAIN,
  GCAP_CONTENTS_NUM_FIELDS
} gcap_contents_field_t;

// The value of a field in two nodes, as text.
typedef struct gcap_contents_change {
  const char* field;  // "cluster dimension"
  char before[128], after[128];
} gcap_contents_change_t;

// Whether the field of the nodes `index` differs; then `out_change` says how. Attributes that the driver does not tell
// of one of the nodes differ. Dependencies are known of contents with arguments.
bool gcap_contents_differ(gcap_contents_field_t field, const gcap_contents_t* before, const gcap_contents_t* after,
                          size_t index, gcap_contents_change_t* out_change);

// NULL if cudaGraphExecUpdate from `before` to `after` does what it says, or the driver will refuse it. Else CUDA_ERROR
// with the node and the attribute, in words that follow "could not be updated in place".
//
// Measured on an H200 (driver 580.159.04, CUDA 13.0): after an update to a kernel node with other clusters the old
// clusters are in force, and with another function the old or the new ones, as the program was built. Priorities and
// memory synchronization domains are answered with success too, and nothing tells whether they are in force. So what
// the new graph wants is compared with what the executable was made of, and where that differs there is no update.
gcap_status_t gcap_contents_check_update(const gcap_contents_t* before, const gcap_contents_t* after);

// How many bytes of a part, from `offset` on, are told as one value: up to 8, and no more than one member of a struct.
size_t gcap_contents_value_bytes(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                                 size_t offset);
// As gcap_graph_diff, of contents that have arguments. The graph of `before` may be gone, and its kernels too.
size_t gcap_contents_diff(const gcap_contents_t* before, const gcap_contents_t* after,
                          gcap_graph_difference_fn on_difference, void* user);

// The place of a byte of a node's arguments, in words: "argument 2", "argument 2, byte 8", "the destination".
void gcap_contents_write_place(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                               size_t offset, char* text, size_t capacity);

#endif  // GCAP_LIB_CONTENTS_COMPARE_H_
