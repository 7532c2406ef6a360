// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// contents.h: the arguments of a graph's nodes, as they were read once. What compares graphs, moves them or audits them
// reads this, and asks the driver nothing more.
#ifndef GCAP_LIB_CONTENTS_CONTENTS_H_
#define GCAP_LIB_CONTENTS_CONTENTS_H_

#include <cuda_runtime_api.h>
#include <string.h>

#include "lib/contents/inner.h"

static inline unsigned char* gcap_contents_bytes_of(const gcap_contents_t* contents, const gcap_contents_node_t* node) {
  return contents->bytes + node->begin;
}
static inline const gcap_contents_part_t* gcap_contents_parts_of(const gcap_contents_t* contents,
                                                                 const gcap_contents_node_t* node) {
  return contents->parts + node->first_part;
}
// What a memcpy node with arguments copies. The bytes end with the last member, and the struct may go on.
static inline struct cudaMemcpy3DParms gcap_contents_copy_of(const gcap_contents_t* contents,
                                                             const gcap_contents_node_t* node) {
  struct cudaMemcpy3DParms copy;
  memset(&copy, 0, sizeof(copy));
  memcpy(&copy, gcap_contents_bytes_of(contents, node), node->bytes);
  return copy;
}

// The name of the node's kernel while its module is loaded; "" where the driver tells none, or it is no kernel.
const char* gcap_contents_kernel_name(const gcap_contents_node_t* node);

#endif  // GCAP_LIB_CONTENTS_CONTENTS_H_
