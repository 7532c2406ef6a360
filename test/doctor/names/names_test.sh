#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What gcap-doctor defines starts with gcap_doctor_, macros and enumerators with GCAP_DOCTOR_, so that no name of its own is
# one of the library's or of the simulator's. InitializeInjection is CUDA's name, InitializeInjectionNvtx2
# is NVTX's, and main the system's.
#   names_test.sh OBJECT... -- SOURCE...
# The sources are those of gcap-doctor and of all that it includes.
set -eu
export LC_ALL=C

status=0
fail() {
    echo "FAILED: $*"
    status=1
}

# What the objects define for other objects.
num_objects=0
while [ "$1" != -- ]; do
    nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' >"$TEST_TMPDIR/defined"
    if grep -Evx 'gcap_doctor_[a-z0-9_]+|InitializeInjection(Nvtx2)?|main' "$TEST_TMPDIR/defined"; then
        fail "$1 defines the names above: expected gcap_doctor_…"
    fi
    num_objects=$((num_objects + 1))
    cat "$TEST_TMPDIR/defined" >>"$TEST_TMPDIR/all"
    shift
done
shift
[ "$num_objects" -gt 50 ] || fail "there are $num_objects objects, expected more than 50"
[ "$(sort -u "$TEST_TMPDIR/all" | wc -l)" -gt 200 ] || fail "the objects are read wrongly: they define next to nothing"

# Names of types, macros and enumerators are in no object. So each word of a source that begins with gcap_ is gcap-doctor's
# own, or one of the two rooms that it uses: the rules, and the version.
words() {
    # Neither texts nor comments.
    sed -e 's|//.*||' -e 's/"[^"]*"//g' "$@" | grep -oE '\b(gcap|GCAP)_[A-Za-z0-9_]+' | sort -u
}
own='' others=''
for source in "$@"; do
    case $source in
    doctor/*) own="$own $source" ;;
    rules/*.h | include/gcap/version.h) others="$others $source" ;;
    esac
done
# shellcheck disable=SC2086  # one path a word
{
    words $own | grep -Ev '^(gcap_doctor|GCAP_DOCTOR)_' >"$TEST_TMPDIR/foreign"
    words $others >"$TEST_TMPDIR/given"
    # What headers define, whatever it is called.
    for source in $own; do
        case $source in
        *.h)
            sed -nE -e 's/^#define ([A-Za-z0-9_]+).*/\1/p' -e 's/^\} ([a-z0-9_]+);.*/\1/p' \
                -e 's/^(typedef )?(enum|struct|union) ([a-z0-9_]+) .*\{$/\3/p' "$source"
            ;;
        esac
    done | sort -u >"$TEST_TMPDIR/types"
}
[ "$(wc -l <"$TEST_TMPDIR/types")" -gt 100 ] || fail "the headers are read wrongly: they define next to nothing"
if comm -23 "$TEST_TMPDIR/foreign" "$TEST_TMPDIR/given" | grep .; then
    fail "the sources have the names above, which neither the rules nor the version give: expected gcap_doctor_… or GCAP_DOCTOR_…"
fi
if grep -Ev '^(gcap_doctor|GCAP_DOCTOR)_' "$TEST_TMPDIR/types"; then
    fail "the headers define the names above: expected gcap_doctor_… or GCAP_DOCTOR_…"
fi
exit $status
