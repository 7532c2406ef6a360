#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Fails when a constant, type or field that the simulator's headers declare is in none of the lists that the layout test
# compares. Usage: coverage_test.sh HEADER... -- LIST...
set -eu
export LC_ALL=C

# Prints what a header declares, one item a line: C name, S type, F field. Nested structs count by their own name.
declared() {
    awk '
        { sub(/\/\/.*/, "") }
        /^#define cuda[A-Za-z0-9_]+ / && $2 !~ /^(cudaStreamAttrID|cudaStreamAttrValue)$/ { print "C " $2 }
        /^#define CUDA[A-Z0-9_]* / && $2 !~ /VERSION/ { print "C " $2 }
        /^(typedef )?enum [A-Za-z0-9_]* ?\{/ { in_enum = 1; next }
        /^(typedef )?(struct|union) [A-Za-z0-9_]* ?\{/ { in_struct = 1; depth = 0; next }
        in_enum && /^\}/ { in_enum = 0; type_name(); next }
        in_struct && /^\}/ { in_struct = 0; type_name(); next }
        in_enum {
            if (match($0, /[A-Za-z_][A-Za-z0-9_]*/)) print "C " substr($0, RSTART, RLENGTH)
            next
        }
        in_struct && /\{$/ { depth++; next }
        in_struct && /^ *\} [a-zA-Z]/ { depth--; gsub(/[ };]/, ""); print "F " $0; next }
        in_struct && depth == 0 && /;$/ && !/constexpr/ {
            gsub(/\[[^\]]*\]/, "")
            gsub(/;/, "")
            n = split($0, parts, ",")
            for (i = 1; i <= n; i++) {
                m = split(parts[i], words, /[ *]+/)
                print "F " words[m]
            }
        }
        function type_name() {
            line = $0
            gsub(/[ };]/, "", line)
            if (line != "") print "S " line
        }
    ' "$@"
}

headers=""
while [ "$1" != "--" ]; do
    headers="$headers $1"
    shift
done
shift

# shellcheck disable=SC2086 # paths in a Bazel tree have no spaces
declared $headers | sort -u >"${TEST_TMPDIR:-/tmp}/declared"
# Each list item becomes the same form; a type in the list may be written with its struct or enum.
sed -n -e 's/^C(\(.*\))$/C \1/p' -e 's/^S(\(.*\))$/S \1/p' -e 's/^F(.*, \(.*\))$/F \1/p' "$@" |
    sed -e 's/^S enum /S /' -e 's/^S struct /S /' -e 's/^S union /S /' | sort -u >"${TEST_TMPDIR:-/tmp}/listed"

count=$(wc -l <"${TEST_TMPDIR:-/tmp}/declared")
if [ "$count" -lt 500 ]; then
    echo "only $count declarations found: the headers were not read as expected"
    exit 1
fi
missing=$(comm -23 "${TEST_TMPDIR:-/tmp}/declared" "${TEST_TMPDIR:-/tmp}/listed")
if [ -n "$missing" ]; then
    echo "declared by the simulator's headers and in no list of test/cuda_abi:"
    echo "$missing"
    exit 1
fi
echo "$count declarations are all listed"
