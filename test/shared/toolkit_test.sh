#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A program that a toolkit's linker linked with NVIDIA's libraries runs on the stand-ins, which have no function and no
# version that NVIDIA's libraries have not.
#   toolkit_test.sh expect.sh PROGRAM LIBRARY...
set -eu
export LC_ALL=C

# shellcheck source=test/shared/expect.sh
. "$PWD/$1"
program=$2
shift 2
libraries=$(dirname "$1")
ldd "$program" >"$TEST_TMPDIR/loaded"

# exports FILE: its functions with their versions, sorted.
exports() {
    nm -D --defined-only "$1" | awk '{ print $3 }' | grep @ | sort
}

# nvidias NAME: the path of NVIDIA's library.
nvidias() {
    awk -v name="$1" '$1 == name { print $3 }' "$TEST_TMPDIR/loaded"
}

for library in "$@"; do
    name=$(basename "$library")
    [ "$name" != libgcapsim_core.so ] || continue
    nvidias=$(nvidias "$name")
    [ -e "$nvidias" ] || fail "the program is not linked with $name: $(cat "$TEST_TMPDIR/loaded")"
    exports "$library" >"$TEST_TMPDIR/ours"
    exports "$nvidias" >"$TEST_TMPDIR/theirs"
    [ -s "$TEST_TMPDIR/ours" ] || fail "$name exports nothing"
    comm -23 "$TEST_TMPDIR/ours" "$TEST_TMPDIR/theirs" >"$TEST_TMPDIR/invented"
    [ ! -s "$TEST_TMPDIR/invented" ] || fail "$nvidias has none of these of ours: $(cat "$TEST_TMPDIR/invented")"
done

program_runs "$program"

# What the simulator has not is told by name.
cat >"$TEST_TMPDIR/missing.c" <<'END'
int cudaGetChannelDesc(void* description, const void* array);
int main(void) { return cudaGetChannelDesc(0, 0); }
END
cc -Wl,-z,lazy "$TEST_TMPDIR/missing.c" -o "$TEST_TMPDIR/missing" "$(nvidias libcudart.so.13)"
run 127 "$TEST_TMPDIR/missing"
grep -q 'undefined symbol: cudaGetChannelDesc, version libcudart.so.13' "$err" || fail "the loader does not name it"
