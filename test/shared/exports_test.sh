#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The stand-ins are to a linker what NVIDIA's libraries are: each has its soname, its functions have the version of that
# name, and they are the functions that the simulator's headers declare, or a source lists as not declared, no more and
# no fewer. The core's exports are all names of the simulator's own.
#   exports_test.sh LIBRARY... -- HEADER_OR_SOURCE...
set -eu
export LC_ALL=C

fail() {
    echo "FAILED: $*"
    exit 1
}

# What NVIDIA's libraries of CUDA 13.0 and cuDNN 9 have: the soname, which is also the version of each function, and how
# the functions are called.
recorded='
libcudart.so.13 (__)?cuda[A-Z].*
libcublasLt.so.13 cublasLt[A-Z].*
libcublas.so.13 cublas([A-KM-Z]|L[a-su-z]).*
libcudnn.so.9 cudnn[A-Z].*'

names=
seen=0
while [ "$1" != -- ]; do
    library=$1
    file=$(basename "$library")
    shift
    nm -D --defined-only "$library" | awk '{ print $3 }' >"$TEST_TMPDIR/exports"
    if [ "$file" = libgcapsim_core.so ]; then
        ! grep -v '^gcap_sim_' "$TEST_TMPDIR/exports" || fail "the core exports these names, which are not its own"
        continue
    fi
    pattern=$(echo "$recorded" | awk -v file="$file" '$1 == file { print $2 }')
    [ -n "$pattern" ] || fail "nothing is recorded of $file"
    readelf -d "$library" | grep -q "soname: \[$file\]" || fail "the soname of $library is not $file"
    # nm lists the version itself too, without a version.
    sed "/^$file\$/d" "$TEST_TMPDIR/exports" >"$TEST_TMPDIR/functions"
    ! grep -Evx "$pattern@@$file" "$TEST_TMPDIR/functions" || fail "$file exports these, expected '$pattern@@$file'"
    names="$names $(sed 's/@.*//' "$TEST_TMPDIR/functions" | tr '\n' ' ')"
    seen=$((seen + 1))
done
shift
[ "$seen" -eq 4 ] || fail "there are $seen stand-ins, expected 4"
# shellcheck disable=SC2086  # one name a word
printf '%s\n' $names | sort >"$TEST_TMPDIR/exported"

# A function's name stands before the first parenthesis of its declaration, once the preprocessor has renamed it.
for header in "$@"; do
    case $header in
        *.c) sed -n 's/^NOT_DECLARED(\(.*\))$/\1(/p' "$header" ;;
        *) "$CC" -E -P -x c -I"$(dirname "$1")" "$header" ;;
    esac
done | tr '\n' ' ' | grep -oE '(__)?(cuda|cublas|cudnn)[A-Z][A-Za-z0-9_]*\(' | tr -d '(' | sort -u >"$TEST_TMPDIR/declared"
count=$(wc -l <"$TEST_TMPDIR/declared")
[ "$count" -gt 300 ] || fail "only $count functions found: the headers were not read as expected"
diff "$TEST_TMPDIR/declared" "$TEST_TMPDIR/exported" || fail "< is declared and not exported, > is exported and not declared"
echo "$count functions"
