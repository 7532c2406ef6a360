// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit_read.h: the words among the arguments of a graph's nodes that may be addresses.
#ifndef GCAP_DOCTOR_RECORD_AUDIT_READ_H_
#define GCAP_DOCTOR_RECORD_AUDIT_READ_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/record/cupti_find.h"

#pragma GCC visibility push(hidden)

typedef enum gcap_doctor_audit_use {
  GCAP_DOCTOR_AUDIT_ARGUMENT = 0,  // a kernel's argument that is eight bytes
  GCAP_DOCTOR_AUDIT_WORD,          // a word of a larger argument: it may be no address
  GCAP_DOCTOR_AUDIT_COPY_FROM,
  GCAP_DOCTOR_AUDIT_COPY_TO,
  GCAP_DOCTOR_AUDIT_MEMSET,
} gcap_doctor_audit_use_t;

typedef struct gcap_doctor_audit_word {
  uint64_t value;
  uint32_t node;  // index into `nodes`
  uint16_t argument, offset;
  uint16_t bytes;  // of the argument
  uint8_t use;
  bool is_host;  // the driver says that the address is one of the host
} gcap_doctor_audit_word_t;

typedef struct gcap_doctor_audit_node {
  void* handle;
  uint64_t id;         // CUPTI's
  const char* kernel;  // for ever; NULL for none, or where the driver does not tell
  uint32_t inner;      // nodes of its child graph, at any depth: those behind it
  bool is_off;         // does not run
} gcap_doctor_audit_node_t;

// What was read. Zeroed is empty.
typedef struct gcap_doctor_audit_read {
  gcap_doctor_audit_node_t* nodes;
  gcap_doctor_audit_word_t* words;
  size_t num_nodes, node_capacity, num_words, word_capacity;
  uint64_t allocated_bytes;  // of the allocation nodes
  uint64_t untold;           // kernels whose arguments the driver did not tell
  uint64_t low, high;        // words of kernels outside of [low, high) are left out
} gcap_doctor_audit_read_t;

// Finds the driver's functions, once. False, after a note, where the driver has none that tell of arguments.
bool gcap_doctor_audit_read_start(const gcap_doctor_cupti_t* cupti);

// Adds the nodes of a graph, and those of its child graphs.
// Thread:  any; legal in a callback of CUPTI.
void gcap_doctor_audit_read_graph(gcap_doctor_audit_read_t* read, void* graph);
// Adds a node with the content that a description gives it. NULL for a description leaves that out.
void gcap_doctor_audit_read_kernel(gcap_doctor_audit_read_t* read, void* node, const void* description);
void gcap_doctor_audit_read_copy(gcap_doctor_audit_read_t* read, void* node, const void* description);
void gcap_doctor_audit_read_memset(gcap_doctor_audit_read_t* read, void* node, const void* description);
void gcap_doctor_audit_read_free(gcap_doctor_audit_read_t* read);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_AUDIT_READ_H_
