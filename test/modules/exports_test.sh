#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# exports_test.sh OBJECT NAME...: the shared object exports just these names, beside those of the simulated CUDA.
# exports_test.sh OBJECT --headers HEADER...: it exports just the functions that the headers mark GCAP_API.
set -eu

object=$1
shift
if [ "${1:-}" = --headers ]; then
    shift
    # A function's name stands before the first parenthesis of its declaration, which may be on the next line.
    grep -hv '^#' "$@" | tr '\n' ' ' | grep -o 'GCAP_API [^;(]*(' | sed 's/.*[ *]\([a-z0-9_]*\)($/\1/'
else
    printf '%s\n' "$@"
fi | sort -u >"$TEST_TMPDIR/wanted"
# The linker defines three names of its own.
readelf --dyn-syms --wide "$object" |
    awk '($5 == "GLOBAL" || $5 == "WEAK") && $7 ~ /^[0-9]+$/ { print $8 }' |
    grep -Evx '(cuda|__cuda|cublas|cudnn)[A-Z].*|gcap_sim_.*|__bss_start|_edata|_end' | sort -u >"$TEST_TMPDIR/exported"
diff "$TEST_TMPDIR/wanted" "$TEST_TMPDIR/exported" || {
    echo "$object: < is wanted and not exported, > is exported and not wanted"
    exit 1
}
