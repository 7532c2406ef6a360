#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# rows.awk refuses what it cannot pair, so that no declaration is left out of the comparison.
#   rows_test.sh ROWS
set -eu
rows=$PWD/$1
failed=0
cd "$TEST_TMPDIR"

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

cat >pairs.txt <<'PAIRS'
alone MY_VERSION
alone my_slot_t
type my_thing Thing
enum my_color Color
value MY_RED kRed
struct my_table Table  # with a comment
PAIRS
cat >ours.h <<'HEADER'
#ifndef OURS_H_
#define OURS_H_
#include <stdint.h>
#define MY_VERSION 1u
typedef void (*my_slot_t)(void);
typedef struct my_thing my_thing_t;  // a thing
typedef enum my_color {
  MY_RED = -1,
} my_color_t;
// The table.
typedef struct my_table {
  uint32_t version;
  my_slot_t gap_1[2];
  uint32_t (*Ask)(my_thing_t* thing,
                  int number);  // 3, since 7
} my_table_t;
#endif
HEADER

run() { awk -v types=types.inc -f "$rows" "$1" "$2" >rows.inc 2>refused; }

run pairs.txt ours.h || fail "what is right is refused: $(cat refused)"
cat >expected <<'ROWS'
GCAP_ABI_TYPE(my_thing, Thing)
GCAP_ABI_TYPE(my_color, Color)
GCAP_ABI_TYPE(my_table, Table)
GCAP_ABI_ENUM(my_color, Color)
GCAP_ABI_VALUE(MY_RED, kRed)
GCAP_ABI_MEMBER(my_table, Table, version, -1, 0)
GCAP_ABI_GAP(my_table, gap_1, 1)
GCAP_ABI_MEMBER(my_table, Table, Ask, 3, 7)
GCAP_ABI_END(my_table, Table, false)
ROWS
cat types.inc rows.inc | diff expected - || fail "these are not the lines of ours.h"

# refused WHAT FILE EDIT: with the edit of sed, of pairs.txt or ours.h, the script says WHAT.
refused() {
  cp pairs.txt edited_pairs.txt
  cp ours.h edited_ours.h
  sed "$3" "$2" >"edited_$2"
  cmp -s "$2" "edited_$2" && fail "'$3' changes nothing"
  if run edited_pairs.txt edited_ours.h; then fail "'$3' is not refused"; fi
  grep -qF "$1" refused || fail "'$3': '$1' is not said, but: $(cat refused)"
}

refused "edited_ours.h:6: my_thing is declared, but the list of pairs has no 'type my_thing'" pairs.txt '/my_thing/d'
refused "no 'struct my_table'" pairs.txt '/my_table/d'
refused "no 'enum my_color'" pairs.txt '/my_color/d'
refused "no 'value MY_RED'" pairs.txt '/MY_RED/d'
refused "no 'alone MY_VERSION'" pairs.txt '/MY_VERSION/d'
refused "no 'function my_slot_t'" pairs.txt '/my_slot_t/d'
refused "no 'value MY_BLUE'" ours.h 's/MY_RED = -1,/&\n  MY_BLUE,/'
refused "no 'struct my_new'" ours.h 's/^#endif/struct my_new {\n  int (*Do)(void);  \/\/ 0\n};\n&/'
refused "no 'function my_new_t'" ours.h 's/^#endif/typedef int (*my_new_t)(void);\n&/'
refused "my_old of edited_pairs.txt is not declared" pairs.txt 's/^type.*/&\ntype my_old Old/'
refused "my_thing is listed twice" pairs.txt 's/^type.*/&\n&/'
refused "'type my_thing' is no pair" pairs.txt 's/ Thing//'
refused "my_table.Ask does not say its slot" ours.h 's/3, since 7/since 7/'
refused "'int count;' in my_table is not understood" ours.h 's/uint32_t version;/int count;/'
refused "'MY_RED = 1 << 2,' in my_color is not understood" ours.h 's/= -1/= 1 << 2/'
refused "'extern int my_count;' is not understood" ours.h 's/^#endif/extern int my_count;\n&/'
refused "'#if MY' is not understood" ours.h 's/^#ifndef.*/#if MY/'
refused "the end comes within 'struct my_table'" ours.h '/my_table_t;/d'
exit $failed
