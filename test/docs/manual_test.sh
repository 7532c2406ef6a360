#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The simulator's manual as its reader meets it: its commands make the archive and the program, the report is the one
# that it shows, each of its C programs compiles without a warning and succeeds, with that archive and with Bazel's.
# The reader's cc is the build's compiler, $CC.
#   manual_test.sh README.md libgcapsim.a gcap_sim.h extract_block.awk
set -eu
archive=$PWD/$1
manual=$PWD/$2
sources=$(dirname "$(dirname "$PWD/$3")")
extract=$PWD/$4

# Programs that the reader runs, and files that belong to the first of them.
programs="explore turns leak annotate fault variable"
parts="my_ep.h my_ep.c my_kernels_twin.c my_test.c"
# One that a command of the manual makes, and a library.
watcher="pageable"
preloaded="controls"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# block LANGUAGE [TITLE]
block() {
  awk -v language="$1" -v title="${2:-}" -f "$extract" "$manual"
}

mkdir "$TEST_TMPDIR/reader"
cd "$TEST_TMPDIR/reader"
ln -s "$sources" sim
[ ! -d "$sources/../rules" ] || ln -s "$sources/../rules" rules
for part in $parts "$watcher.c" "$preloaded.c"; do
  block c "// $part" >"$part"
  [ -s "$part" ] || fail "the manual has no C block that begins with '// $part'"
done
block sh >commands.sh
grep -q '^ar rcs libgcapsim.a' commands.sh || fail "the manual does not say how to make libgcapsim.a"
mkdir bin
ln -s "$CC" bin/cc
PATH=$PWD/bin:$PATH
sh -e commands.sh

# Addresses, ids and folders differ from run to run.
normalise() {
  sed -e 's/0x[0-9a-f]\{1,\}/0x…/g' -e 's|(/[^ )]*/|(|g' "$1"
}
block text >report
grep -q race report || fail "the manual shows no report of a race"
! ./my_test >out 2>&1 || fail "my_test reports nothing"
normalise report >expected
grep -v '^Aborted' out >reported || true
normalise reported >got
diff -u expected got || fail "the report differs from the manual's"

block c '// my_ep.c, repaired' >my_ep.c
[ -s my_ep.c ] || fail "the manual has no C block that begins with '// my_ep.c, repaired'"
sh -e commands.sh
./my_test >out 2>&1 || fail "the repaired my_test fails: $(cat out)"
[ ! -s out ] || fail "the repaired my_test prints: $(cat out)"

"./$watcher" >out 2>&1 || fail "$watcher fails: $(cat out)"

# The second cudaMalloc fails under the library, which the manual preloads.
cat >two_allocations.c <<'END'
#include <cuda_runtime_api.h>
int main(void) {
  void* memory[2];
  return cudaMalloc(&memory[0], 1) != cudaSuccess || cudaMalloc(&memory[1], 1) != cudaErrorMemoryAllocation ||
         cudaFree(memory[0]) != cudaSuccess;
}
END
"$CC" -std=c11 two_allocations.c -Isim/include -Lstand_ins -l:libcudart.so.13 -o two_allocations
LD_PRELOAD=$PWD/lib$preloaded.so LD_LIBRARY_PATH=$PWD/stand_ins ./two_allocations >out 2>&1 ||
  fail "a program with lib$preloaded.so fails: $(cat out)"

for program in $programs; do
  block c "// $program.c" >"$program.c"
  [ -s "$program.c" ] || fail "the manual has no C block that begins with '// $program.c'"
done
# shellcheck disable=SC2086  # one name a word
set -- $parts $watcher $preloaded $programs
blocks=$(grep -c '^```c$' "$manual")
[ "$blocks" -eq $(($# + 1)) ] || fail "the manual has $blocks C blocks, this test knows $# and a repaired one"

strict="-std=c11 -Wall -Wextra -Werror"
for program in $programs; do
  for library in libgcapsim.a "$archive"; do
    # shellcheck disable=SC2086  # one flag a word
    "$CC" $strict -g "$program.c" -Isim/include "$library" -lpthread -lm -o "$program"
    "./$program" >out 2>&1 || fail "$program with $library fails: $(cat out)"
  done
done
# Unless the manual's file is linked, free and realloc stay the C library's.
# shellcheck disable=SC2086
"$CC" $strict -g "$watcher.c" -Isim/include libgcapsim.a -lpthread -lm -o "$watcher"
! "./$watcher" >out 2>&1 || fail "$watcher needs no watch_free.c"
# shellcheck disable=SC2086
"$CC" $strict -fsyntax-only my_ep.c my_kernels_twin.c my_test.c -Isim/include

block cpp '// twins.cc' >twins.cc
[ -s twins.cc ] || fail "the manual has no C++ block that begins with '// twins.cc'"
"$CC" -std=c++17 -Wall -Wextra -Werror -fsyntax-only twins.cc -Isim/include
