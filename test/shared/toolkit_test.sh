#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Programs that are linked with NVIDIA's libraries, one of them compiled by nvcc, run on the stand-ins, which have no
# function and no version that NVIDIA's libraries have not.
#   toolkit_test.sh expect.sh PROGRAM KERNEL_PROGRAM preloaded_twin.c gcap_sim.h LIBRARY...
set -eu
export LC_ALL=C

# shellcheck source=test/shared/expect.sh
. "$PWD/$1"
program=$2
kernel_program=$3
twin=$4
include=$(dirname "$5")
shift 5
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

# A kernel without a twin stops the program, or is skipped: then the checks find what they do, and the values are wrong.
run 134 "$kernel_program"
grep -q 'engine::scale' "$err" || fail "the kernel is not named"
export GCAP_SIM_MISSING_TWIN=skip
run 2 "$kernel_program"
! grep -q '^gcap sim: \(race\|leak\)' "$err" || fail "a right program is told of a mistake"
run 134 "$kernel_program" race
grep -q '^gcap sim: race on' "$err" || fail "expected a race"
grep -q 'kernel `engine::scale' "$err" || fail "the race is not with the kernel"
unset GCAP_SIM_MISSING_TWIN

# A preloaded library brings the twin.
"$CC" -std=c11 -Wall -Wextra -Werror -shared -fPIC "$twin" -I"$include" -L"$libraries" -lgcapsim_core \
    -o "$TEST_TMPDIR/libtwin.so"
run 0 env LD_PRELOAD="$TEST_TMPDIR/libtwin.so" "$kernel_program"
[ ! -s "$err" ] || fail "a right program is told of something"

# What the simulator does not have is told by name: of the runtime by the simulator, of another library by the loader.
# calls FUNCTION LIBRARY: $TEST_TMPDIR/missing calls the function of NVIDIA's library.
calls() {
    echo "void $1(void); int main(void) { $1(); return 0; }" >"$TEST_TMPDIR/missing.c"
    "$CC" -Wl,-z,lazy "$TEST_TMPDIR/missing.c" -o "$TEST_TMPDIR/missing" "$(nvidias "$2")" \
        -Wl,-rpath-link,"$(dirname "$(nvidias libcublasLt.so.13)")"
}
calls cudaGetChannelDesc libcudart.so.13
run 134 "$TEST_TMPDIR/missing"
grep -q 'cudaGetChannelDesc is not modelled' "$err" || fail "the simulator does not name it"
calls cublasCgemm_v2 libcublas.so.13
run 127 "$TEST_TMPDIR/missing"
grep -q 'undefined symbol: cublasCgemm_v2, version libcublas.so.13' "$err" || fail "the loader does not name it"
