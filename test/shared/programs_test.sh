#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Programs that know of CUDA alone run on the stand-ins, and are told what the simulator's checks find.
#   programs_test.sh program.c dlopen_host.c HEADER LIBRARY...
set -eu

program=$1
host=$2
include=$(dirname "$3")
libraries=$(dirname "$4")
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
built=$TEST_TMPDIR
err=$TEST_TMPDIR/err

fail() {
    echo "FAILED: $*"
    cat "$err"
    exit 1
}

# run WANTED COMMAND...: expects the exit code, and leaves what it prints as errors in $err.
run() {
    wanted=$1
    shift
    code=0
    LD_LIBRARY_PATH=$PWD/$libraries "$@" 2>"$err" || code=$?
    [ "$code" -eq "$wanted" ] || fail "the exit code of '$*' is $code, expected $wanted"
}

# reports PATTERN: just one report was printed, and it has the pattern.
reports() {
    [ "$(grep -c '^gcap sim: ' "$err")" -eq 1 ] || fail "expected one report"
    grep -q "$1" "$err" || fail "expected '$1'"
    # In stacks there are the program's functions alone: those of the simulator are told by their libraries or files.
    ! grep -E '^ +at (gcap_sim_|[^ ]* \([^/]|.*lib(cu|gcapsim))' "$err" || fail "a stack has a function of the simulator"
}

strict="-std=c11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -I$include"
# shellcheck disable=SC2086  # one flag a word
cc $strict "$program" -o "$built/program" -L"$libraries" -l:libcudart.so.13 -l:libcublas.so.13 -l:libcublasLt.so.13 \
    -l:libcudnn.so.9
! nm -D "$built/program" | grep gcap_sim || fail "the program has names of the simulator"

run 0 "$built/program"
[ ! -s "$err" ] || fail "a right program is told of something"

run 134 "$built/program" race
reports '^gcap sim: race on 64 bytes'
grep -q 'at capture (.*program.c:' "$err" || fail "the report does not name the function that captured"

# What goes in the program's exit handlers and destructors is no leak.
run 0 "$built/program" leak
reports '^gcap sim: leak of 1 of the kind "event"'
grep -q 'at forget_one_event' "$err" || fail "the report does not name the function that made the event"
# The environment is how such a program is controlled.
GCAP_SIM_CHECKS=leak=off run 0 "$built/program" leak
[ ! -s "$err" ] || fail "a check that is off reports"

# Preloaded, they are found by their sonames, whatever the folders in which the loader would look.
preloaded=
for library in libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libcudnn.so.9; do
    preloaded="$preloaded $PWD/$libraries/$library"
done
LD_PRELOAD=$preloaded "$built/program" 2>"$err" || fail "the program fails with the libraries preloaded"

# shellcheck disable=SC2086
cc $strict "$host" -o "$built/dlopen_host" -ldl -lpthread
run 0 "$built/dlopen_host"
reports '^gcap sim: leak of 1 of the kind "event"'

# The runtime alone needs no other stand-in, and no folder but its own.
mkdir "$built/alone"
cp "$libraries/libcudart.so.13" "$libraries/libgcapsim_core.so" "$built/alone"
cat >"$built/alone.c" <<'END'
#include <cuda_runtime_api.h>
int main(void) { return cudaDeviceSynchronize(); }
END
# shellcheck disable=SC2086
cc $strict "$built/alone.c" -o "$built/alone.out" -L"$built/alone" -l:libcudart.so.13
LD_LIBRARY_PATH=$built/alone "$built/alone.out" || fail "a program that needs the runtime alone fails"
