#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Every folder of lib and kit, and ort, can be read from the bottom up: no file needs, by an #include or by a call, one
# that needs it in turn. A source and its header count as one file.   circles_test.sh ARCHIVE-OR-SOURCE...
set -eu

edges=$TEST_TMPDIR/edges
: >"$edges"

# calls ARCHIVE: "user used" for each pair of its objects of which one refers to what the other defines. Bazel names an
# object after its source: run.pic.o.
calls() {
    # A folder's archive is lib/graph/libgraph.a.
    folder=$(dirname "$1" | sed -E 's#.*/((lib|kit)/.*|ort$)#\1#')
    nm -A -g "$1" | sed 's/.*:\([^:]*\)\.o:[0-9a-f ]*\([A-Za-z]\) \(.*\)/\1 \2 \3/; s/^\([^ ]*\)\.pic /\1 /' |
        awk -v folder="$folder/" '
            $2 != "U" { defined[$3] = $1; next }
            { used[$1 " " $3] = 1 }
            END {
                for (pair in used) {
                    split(pair, part, " ")
                    if (part[2] in defined && defined[part[2]] != part[1]) print folder part[1], folder defined[part[2]]
                }
            }'
}

# includes SOURCE: "user used" for each header of lib, kit or ort that it includes.
includes() {
    user=${1%.*}
    sed -nE 's#^\#include "((lib|kit|ort)/.*)\.h"#\1#p' "$1" | while read -r used; do
        [ "$used" = "$user" ] || echo "$user $used"
    done
}

for file in "$@"; do
    case $file in
        *.a) calls "$file" ;;
        lib/*.c | lib/*.h | kit/*.c | kit/*.h | ort/*.c | ort/*.h) includes "$file" ;;
    esac
done | sort -u >"$edges"

[ "$(wc -l <"$edges")" -gt 100 ] || { echo "only $(wc -l <"$edges") pairs were found: read wrongly" && exit 1; }
# tsort names the files of each circle on standard error.
if ! tsort "$edges" >/dev/null 2>"$TEST_TMPDIR/circles"; then
    cat "$TEST_TMPDIR/circles"
    exit 1
fi
