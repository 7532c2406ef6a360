// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// theirs.h: what ours.h is compared with, as of version 7.
#ifndef GCAP_TEST_ORT_ABI_MADE_UP_THEIRS_H_
#define GCAP_TEST_ORT_ABI_MADE_UP_THEIRS_H_

#include <stddef.h>
#include <stdint.h>

typedef struct Thing Thing;

typedef enum Color { kRed, kGreen, kBlue = 3 } Color;

typedef int (*Callback)(Thing* object);
typedef float (*OtherCallback)(Thing* object);

typedef struct Right {
  uint32_t version;
  Thing* (*First)(const Right* object, Color color, Callback callback) noexcept;
  int (*Second)(int number);
} Right;

typedef struct Table {
  int (*Zero)(void);
  int (*One)(void);
  int (*Moved)(void);
  int (*Three)(void);
  int (*Counted)(Thing* object);
  int (*Typed)(Thing* object);
  int (*Six)(void);
  int (*Early)(void);
  int (*Misnumbered)(void);
} Table;

typedef struct Short {
  int (*Only)(void);
  int (*Next)(void);
} Short;

typedef struct Wide {
  uint64_t size;
} Wide;

#endif  // GCAP_TEST_ORT_ABI_MADE_UP_THEIRS_H_
