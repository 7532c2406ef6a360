#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The C block of the README is the example program, from its first include on. Also runs the program.
#   readme_example_test.sh README.md capture_replay.c capture_replay
set -eu
readme=$1
source=$2
program=$3

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" > "$TEST_TMPDIR/readme.c"
awk '/^#include/ { begun = 1 } begun' "$source" > "$TEST_TMPDIR/example.c"
if ! diff -u "$TEST_TMPDIR/example.c" "$TEST_TMPDIR/readme.c"; then
  echo "README.md's C block differs from $source: copy the program from its first #include on." >&2
  exit 1
fi

"$program" > "$TEST_TMPDIR/out"
cat > "$TEST_TMPDIR/expected" <<'END'
run 0: issued, memory holds 42
run 1: issued, memory holds 42
run 2: issued, memory holds 42
run 3: replayed, memory holds 42
run 4: replayed, memory holds 42
END
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
