// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One block: the node, its attributes, their numbers, and at last the texts, which need no alignment. The same function
// measures and copies, so that the two cannot disagree.

#include "kit/model/node_copy.h"

#include <stdlib.h>
#include <string.h>

typedef struct copied {
  gcap_node_t node;
  gcap_attributes_t attributes;
  gcap_attribute_t items[];
} copied_t;

// Where numbers and texts go. While it measures, `numbers` is NULL, and the places are counted alone.
typedef struct room {
  int64_t* numbers;
  char* texts;
  size_t num_numbers, text_bytes;
} room_t;

static const int64_t* put_numbers(room_t* room, const int64_t* numbers, size_t count) {
  int64_t* place = room->numbers != NULL ? room->numbers + room->num_numbers : NULL;
  room->num_numbers += count;
  if (place != NULL && count > 0) memcpy(place, numbers, count * sizeof(*numbers));
  return place;
}

static const char* put_text(room_t* room, const char* text) {
  const size_t bytes = strlen(text) + 1;
  char* place = room->numbers != NULL ? room->texts + room->text_bytes : NULL;
  room->text_bytes += bytes;
  if (place != NULL) memcpy(place, text, bytes);
  return place;
}

static gcap_attribute_t put_attribute(room_t* room, const gcap_attribute_t* attribute) {
  gcap_attribute_t copy = *attribute;
  copy.name = put_text(room, attribute->name);
  if (attribute->kind == GCAP_ATTRIBUTE_INTS && attribute->ints != NULL) {
    copy.ints = put_numbers(room, attribute->ints, attribute->count);
  }
  if (attribute->kind == GCAP_ATTRIBUTE_STRING && attribute->string != NULL) {
    copy.string = put_text(room, attribute->string);
  }
  return copy;
}

gcap_status_t gcap_node_copy(const gcap_node_t* node, const char* op_type, gcap_node_t** out_node) {
  const gcap_attributes_t none = {0};
  const gcap_attributes_t* given = node->attributes != NULL ? node->attributes : &none;
  room_t size = {0};
  put_text(&size, node->name);
  for (size_t i = 0; i < given->count; ++i) put_attribute(&size, &given->items[i]);
  const size_t fixed_bytes = sizeof(copied_t) + given->count * sizeof(gcap_attribute_t);
  const size_t number_bytes = size.num_numbers * sizeof(int64_t);
  *out_node = NULL;
  copied_t* copy = malloc(fixed_bytes + number_bytes + size.text_bytes);
  if (copy == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", node->name);
  room_t room = {.numbers = (int64_t*)((char*)copy + fixed_bytes), .texts = (char*)copy + fixed_bytes + number_bytes};
  copy->node = (gcap_node_t){.op_type = op_type,
                             .name = put_text(&room, node->name),
                             .num_inputs = node->num_inputs,
                             .num_outputs = node->num_outputs,
                             .attributes = &copy->attributes};
  for (size_t i = 0; i < given->count; ++i) copy->items[i] = put_attribute(&room, &given->items[i]);
  copy->attributes = (gcap_attributes_t){.items = copy->items, .count = given->count};
  *out_node = &copy->node;
  return NULL;
}
