#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Fails when a constant, type or field that the simulator's headers declare is in none of the lists that the layout test
# compares. Usage: coverage_test.sh HEADER... -- LIST...
set -eu
export LC_ALL=C

# Prints what headers declare, one item a line: C name, S type, F type.field. A struct within a struct counts by the
# name of its member, and by those of its own when it has none.
declared() {
    awk '
        function words_of(line) {
            gsub(/[{};]/, "", line)
            return split(line, word, " ")
        }
        { sub(/ *\/\/.*/, "") }
        /^#ifdef __cplusplus/ { in_cxx = 1 }
        /^#(endif|else)/ { in_cxx = 0 }
        in_cxx { next }
        /^#define cuda[A-Za-z0-9_]+ / && $2 !~ /^(cudaStreamAttr|cudaKernelNodeAttr)(ID|Value)$/ { print "C " $2 }
        /^typedef enum .*\}/ {
            count = split($0, part, /[{},;]/)
            print "S " word[words_of(part[count - 1])]
            for (i = 2; i < count - 1; i++) if (words_of(part[i]) > 0) print "C " word[1]
            next
        }
        /^(typedef )?(enum|struct|union)( [A-Za-z0-9_]+)? \{$/ {
            kind = /enum/ ? "enum" : "struct"
            type = word[words_of($0)]
            fields = depth = 0
            next
        }
        kind != "" && /^\}/ {
            if (words_of($0) > 0) type = word[1]
            print "S " type
            for (i = 1; i <= fields; i++) print "F " type "." field[i]
            kind = ""
            next
        }
        kind == "enum" { if (match($0, /[A-Za-z_][A-Za-z0-9_]*/)) print "C " substr($0, RSTART, RLENGTH) }
        kind == "struct" && /\{$/ { if (depth++ == 0) outer = fields; next }
        kind == "struct" && /^ *\} [a-zA-Z]/ { if (--depth == 0) fields = outer; words_of($0); field[++fields] = word[1]; next }
        kind == "struct" && /^ *\};$/ { depth--; next }
        kind == "struct" && /;$/ {
            gsub(/\[[^\]]*\]/, "")
            count = split($0, part, ",")
            for (i = 1; i <= count; i++) {
                gsub(/\*/, " ", part[i])
                field[++fields] = word[words_of(part[i])]
            }
        }
    ' "$@"
}

headers=""
while [ "$1" != "--" ]; do
    headers="$headers $1"
    shift
done
shift

work=${TEST_TMPDIR:-$(mktemp -d)}
# shellcheck disable=SC2086 # paths in a Bazel tree have no spaces
declared $headers | sort -u >"$work/declared"
# The lists' items in the same form.
sed -n -e 's/^\([CSF]\)(enum /\1(/' -e 's/^\([CSF]\)(struct /\1(/' -e 's/^\([CSF]\)(union /\1(/' \
    -e 's/^C(\(.*\))$/C \1/p' -e 's/^S(\(.*\))$/S \1/p' -e 's/^F(\(.*\), \(.*\))$/F \1.\2/p' "$@" |
    sort -u >"$work/listed"

count=$(wc -l <"$work/declared")
if [ "$count" -lt 500 ]; then
    echo "only $count declarations found: the headers were not read as expected"
    exit 1
fi
missing=$(comm -23 "$work/declared" "$work/listed")
if [ -n "$missing" ]; then
    echo "declared by the simulator's headers and in no list of test/cuda_abi:"
    echo "$missing"
    exit 1
fi
echo "$count declarations are all listed"
