#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Programs that know of CUDA alone run on the stand-ins, and are told what the simulator's checks find.
#   programs_test.sh expect.sh program.c dlopen_host.c HEADER LIBRARY...
set -eu

# shellcheck source=test/shared/expect.sh
. "$PWD/$1"
program=$2
host=$3
include=$(dirname "$4")
libraries=$(dirname "$5")
built=$TEST_TMPDIR

strict="-std=c11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -I$include"
# shellcheck disable=SC2086  # one flag a word
"$CC" $strict "$program" -o "$built/program" -L"$libraries" -l:libcudart.so.13 -l:libcublas.so.13 -l:libcublasLt.so.13 \
    -l:libcudnn.so.9
program_runs "$built/program"

# Preloaded, they are found by their sonames, whatever the folders in which the loader would look.
preloaded=
for library in libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libcudnn.so.9; do
    preloaded="$preloaded $PWD/$libraries/$library"
done
LD_PRELOAD=$preloaded "$built/program" 2>"$err" || fail "the program fails with the libraries preloaded"

# shellcheck disable=SC2086
"$CC" $strict "$host" -o "$built/dlopen_host" -ldl -lpthread
run 0 "$built/dlopen_host"
reports '^gcap sim: leak of 1 of the kind "event"'

# The runtime alone needs no other stand-in.
mkdir "$built/alone"
cp "$libraries/libcudart.so.13" "$libraries/libgcapsim_core.so" "$built/alone"
cat >"$built/alone.c" <<'END'
#include <cuda_runtime_api.h>
int main(void) { return cudaDeviceSynchronize(); }
END
# shellcheck disable=SC2086
"$CC" $strict "$built/alone.c" -o "$built/alone.out" -L"$built/alone" -l:libcudart.so.13
LD_LIBRARY_PATH=$built/alone "$built/alone.out" 2>"$err" || fail "a program that needs the runtime alone fails"
