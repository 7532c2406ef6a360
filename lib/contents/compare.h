// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// compare.h: how two graphs differ, field by field and word by word.
#ifndef GCAP_LIB_CONTENTS_COMPARE_H_
#define GCAP_LIB_CONTENTS_COMPARE_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/contents/inner.h"

// What a node is, beside its arguments.
typedef enum gcap_contents_field {
  GCAP_CONTENTS_TYPE = 0,
  GCAP_CONTENTS_GRAPH,
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

// How many bytes of a part, from `offset` on, are told as one value: up to 8, and no more than one member of a struct.
size_t gcap_contents_value_bytes(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                                 size_t offset);

// The place of a byte of a node's arguments, in words: "argument 2", "argument 2, byte 8", "the destination".
void gcap_contents_write_place(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                               size_t offset, char* text, size_t capacity);

#endif  // GCAP_LIB_CONTENTS_COMPARE_H_
