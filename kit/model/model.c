// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The attributes of a node, by name and kind. Nodes have a handful of attributes, so a look-up walks the list.

#include "gcap/kit/model.h"

#include <string.h>

static const gcap_attribute_t* find(const gcap_node_t* node, const char* name) {
  const gcap_attributes_t* attributes = node->attributes;
  for (size_t i = 0; attributes != NULL && i < attributes->count; ++i) {
    if (strcmp(attributes->items[i].name, name) == 0) return &attributes->items[i];
  }
  return NULL;
}

static const gcap_attribute_t* find_kind(const gcap_node_t* node, const char* name, gcap_attribute_kind_t kind) {
  const gcap_attribute_t* attribute = find(node, name);
  return attribute != NULL && attribute->kind == kind ? attribute : NULL;
}

int64_t gcap_node_int(const gcap_node_t* node, const char* name, int64_t fallback) {
  const gcap_attribute_t* attribute = find_kind(node, name, GCAP_ATTRIBUTE_INT);
  return attribute != NULL ? attribute->i : fallback;
}

float gcap_node_float(const gcap_node_t* node, const char* name, float fallback) {
  const gcap_attribute_t* attribute = find_kind(node, name, GCAP_ATTRIBUTE_FLOAT);
  return attribute != NULL ? attribute->f : fallback;
}

const char* gcap_node_string(const gcap_node_t* node, const char* name, const char* fallback) {
  const gcap_attribute_t* attribute = find_kind(node, name, GCAP_ATTRIBUTE_STRING);
  return attribute != NULL ? attribute->string : fallback;
}

const int64_t* gcap_node_ints(const gcap_node_t* node, const char* name, size_t* out_count) {
  const gcap_attribute_t* attribute = find_kind(node, name, GCAP_ATTRIBUTE_INTS);
  *out_count = attribute != NULL ? attribute->count : 0;
  return attribute != NULL ? attribute->ints : NULL;
}

bool gcap_node_has(const gcap_node_t* node, const char* name) { return find(node, name) != NULL; }
