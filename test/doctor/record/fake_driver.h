// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fake_driver.h: what the driver tells of graphs, without a driver. A handle points to what the test says the thing is.
#ifndef GCAP_TEST_DOCTOR_RECORD_FAKE_DRIVER_H_
#define GCAP_TEST_DOCTOR_RECORD_FAKE_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

enum { FAKE_DRIVER_MAX_PARAMS = 8 };

typedef struct fake_driver_function {
  const char* name;
  size_t num_params;
  size_t offsets[FAKE_DRIVER_MAX_PARAMS], sizes[FAKE_DRIVER_MAX_PARAMS];
} fake_driver_function_t;

// A node. Its id is first, as the fake CUPTI wants it.
typedef struct fake_driver_node {
  uint64_t id;
  int type;                  // CUgraphNodeType
  unsigned char about[256];  // the driver's description
  struct fake_driver_graph* child;
} fake_driver_node_t;

typedef struct fake_driver_graph {
  fake_driver_node_t** nodes;
  size_t count;
} fake_driver_graph_t;

#ifdef __cplusplus
extern "C" {
#endif
// A message of the driver's log of errors, given to who listens, on the calling thread. 0 if nobody does.
int fake_driver_log(int level, const char* message);
// How many calls the functions that tell of graphs had so far.
size_t fake_driver_num_calls(void);
#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_TEST_DOCTOR_RECORD_FAKE_DRIVER_H_
