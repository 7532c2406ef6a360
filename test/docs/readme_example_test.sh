#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The C block of the README is the example program, from its first include on. Also runs the program.
#   readme_example_test.sh capture_replay README.md capture_replay.c extract_block.awk
set -eu
program=$1
readme=$2
source=$3
extract=$4

awk -v language=c -f "$extract" "$readme" > "$TEST_TMPDIR/readme.c"
awk '/^#include/ { begun = 1 } begun' "$source" > "$TEST_TMPDIR/example.c"
if ! diff -u "$TEST_TMPDIR/example.c" "$TEST_TMPDIR/readme.c"; then
  echo "README.md's C block differs from $source: copy the program from its first #include on." >&2
  exit 1
fi

"$program" > "$TEST_TMPDIR/out"
cat > "$TEST_TMPDIR/expected" <<'END'
run 1: memory holds 42, graph 0 is WARMING, launched 0 times
run 2: memory holds 42, graph 0 is WARMING, launched 0 times
run 3: memory holds 42, graph 0 is CAPTURED, launched 1 times
run 4: memory holds 42, graph 0 is CAPTURED, launched 2 times
run 5: memory holds 42, graph 0 is CAPTURED, launched 3 times
END
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
