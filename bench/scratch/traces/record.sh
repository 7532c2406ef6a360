#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Records the traces of this folder from examples/minimal_ep/digits. Streams and blocks get small numbers, so that the
# same run gives the same file.
#   record.sh DIGITS OUT_FOLDER
set -eu
[ $# -eq 2 ] || { echo "usage: record.sh DIGITS OUT_FOLDER" >&2; exit 2; }
program=$1
folder=$2
raw=$(mktemp)
trap 'rm -f "$raw"' EXIT

# record NAME FLAG...: ends the trace at the first moment after 1,000 lines at which nothing is live; runs repeat.
record() {
  name=$1
  shift
  "$program" --json --no-graph --trace-file "$raw" "$@" >/dev/null
  {
    echo "# digits --no-graph $*"
    awk '
      function small(table, key) { if (!(key in table)) table[key] = ++count[table["name"]]; return table[key] }
      BEGIN { blocks["name"] = "block"; streams["name"] = "stream" }
      $1 == "a" { print "a", small(blocks, $2), $3, $4 == 0 ? 0 : small(streams, $4); ++live }
      $1 == "f" { print "f", small(blocks, $2); --live }
      $1 != "a" && $1 != "f" { print "record.sh: a line that is no allocation and no free: " $0 > "/dev/stderr"; exit 1 }
      NR >= 1000 && live == 0 { exit 0 }' "$raw"
  } >"$folder/$name.trace"
  echo "$folder/$name.trace: $(wc -l <"$folder/$name.trace") lines"
}

record digits_batch1 --batch 1 --runs 1
record digits_batch32 --batch 32 --runs 60
record digits_batch128 --batch 128 --runs 60
record digits_batch32_threads4 --batch 32 --runs 20 --threads 4
