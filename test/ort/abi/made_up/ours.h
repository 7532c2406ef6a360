// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ours.h: declarations in the form of ort/abi, some of which are not those of theirs.h.
#ifndef GCAP_TEST_ORT_ABI_MADE_UP_OURS_H_
#define GCAP_TEST_ORT_ABI_MADE_UP_OURS_H_

#include <stddef.h>
#include <stdint.h>

#define MY_NEWEST_VERSION 9u

typedef void (*my_slot_t)(void);
typedef struct my_thing my_thing_t;
typedef struct my_right my_right_t;

typedef enum my_color {
  MY_RED = 0,
  MY_GREEN,
  MY_BLUE = 2,
} my_color_t;

typedef int (*my_callback_t)(my_thing_t* thing);
typedef int (*my_other_callback_t)(my_thing_t* thing);

// As theirs.
struct my_right {
  uint32_t version;
  my_thing_t* (*First)(const my_right_t* self, my_color_t color, my_callback_t callback);  // 1
  my_slot_t Second;                                                                        // 2
  void (*Later)(my_thing_t* thing);                                                        // 3, since 8
};

typedef struct my_table {
  my_slot_t gap_0[1];
  int (*Moved)(void);  // 1
  my_slot_t gap_2[2];
  int (*Counted)(my_thing_t* thing,
                 int count);              // 4
  int (*Typed)(const my_thing_t* thing);  // 5
  int (*Lost)(void);                      // 6
  int (*Early)(void);                     // 7, since 8
  int (*Misnumbered)(void);               // 9
} my_table_t;

typedef struct my_short {
  int (*Only)(void);  // 0
} my_short_t;

typedef struct my_wide {
  uint32_t size;
} my_wide_t;

#endif  // GCAP_TEST_ORT_ABI_MADE_UP_OURS_H_
