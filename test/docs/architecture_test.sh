#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What docs/architecture.md says of the tree is so: the module table has the rows that //test/modules enforces, the table
# of gcap-doctor has each folder of doctor/ with C in it, and which other ones that folder's files include, the rules
# that comments cite exist, the files that it cites too, the table of locks has every mutex of the library and no other,
# and the glossary has every type that a public header introduces.
#   architecture_test.sh architecture.md table.txt
# The sources lie below the current folder.
set -eu
page=$1
modules=$2
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# section TITLE: the lines of one section of the page.
section() {
  awk -v title="## $1" '/^## / { inside = $0 == title } inside' "$page"
}

# table TITLE: the rows of a section's table, without head and rule, as "cell|cell|…".
table() {
  section "$1" | awk '/^\|/ && ++line > 2' | sed -e 's/^| *//' -e 's/ *|$//' -e 's/ *| */|/g'
}

# compare WHAT EXPECTED GOT: two files of sorted lines.
compare() {
  diff -u "$2" "$3" >&2 || fail "$1: '-' is the tree, '+' is the page"
}

sources() {
  find -L lib kit ops ort include -name '*.[ch]' | sort
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
tmp=$TEST_TMPDIR
[ "$(sources | grep -c '^lib/')" -gt 50 ] || fail "there are no sources to read"

# Modules: "name storey: dependencies", as enforced.
sed -E -e 's#^lib/([a-z_]+)#\1 core#' -e 's#^kit/([a-z_]+)#\1 kit#' -e 's#^rules#rules none#' -e 's#(lib|kit)/##g' \
  -e 's/: $/: nothing/' "$modules" | sort >"$tmp/modules.tree"
table Modules | awk -F'|' '
  $1 == "ops" || $1 == "ort" || $1 == "sim" { next }
  { gsub(",", "", $5); print $1 " " $2 ": " $5 }' | sort >"$tmp/modules.page"
compare "the module table" "$tmp/modules.tree" "$tmp/modules.page"

# gcap-doctor: "folder: folders", in the order of the alphabet.
for folder in $(find -L doctor -name '*.c' | sed 's|/[^/]*$||' | sort -u); do
  grep -hoE '^#include "(doctor/[a-z_]+|rules)/' "$folder"/*.[ch] | sed -e 's|.*"||' -e 's|/$||' | grep -vx "$folder" |
    sed 's|^doctor/||' | sort -u | paste -sd, - | sed -e "s|^|$folder: |" -e 's|: $|: nothing|'
done | sort >"$tmp/doctor.tree"
table gcap-doctor | awk -F'|' '{ gsub(", ", ",", $3); print $1 ": " $3 }' | sort >"$tmp/doctor.page"
[ "$(wc -l <"$tmp/doctor.tree")" -ge 6 ] || fail "there are no sources of gcap-doctor to read"
compare "the table of gcap-doctor" "$tmp/doctor.tree" "$tmp/doctor.page"

# Rules: a citation may be broken over two lines of a comment.
section "Rules that hold everywhere" | sed -n 's/^\([0-9]\{1,\}\)\. .*/\1/p' >"$tmp/rules"
for source in $(sources); do
  sed -e 's|^ *// *||' "$source" | tr '\n' ' ' | grep -oE 'rule [0-9]+ of (docs/architecture\.md|the architecture)' |
    while read -r _ number _ where _; do
      echo "$number $where $source"
    done
done >"$tmp/citations"
[ -s "$tmp/citations" ] || fail "no source cites a rule"
while read -r number where source; do
  [ "$where" = docs/architecture.md ] || fail "$source: write 'rule $number of docs/architecture.md'"
  grep -qx "$number" "$tmp/rules" || fail "$source cites rule $number, which does not exist"
done <"$tmp/citations"

# Files that the page cites by their whole path.
grep -oE '(lib|kit/[a-z_]+|ops|ort|include)/[a-z_/]+\.[ch]\b' "$page" | sort -u >"$tmp/cited"
while read -r cited; do
  [ -e "$cited" ] || fail "the page cites $cited, which does not exist"
done <"$tmp/cited"

# Locks, as "module name".
for source in $(sources | grep -v '^include/'); do
  module=$(echo "$source" | sed -E -e 's#^(lib|kit)/##' -e 's#/.*##')
  sed -n 's/.*pthread_mutex_t \([a-z_]*\)\( =.*\)\{0,1\};.*/\1/p' "$source" | sed "s/^/$module /"
done | sort -u >"$tmp/locks.tree"
table "Order of locks" | awk -F'|' '{
  n = split($2, modules, ", *")
  while (match($3, /`[a-z_]+`/)) {
    for (i = 1; i <= n; ++i) print modules[i] " " substr($3, RSTART + 1, RLENGTH - 2)
    $3 = substr($3, RSTART + RLENGTH)
  }
}' | sort -u >"$tmp/locks.page"
compare "the table of locks" "$tmp/locks.tree" "$tmp/locks.page"

# Types: a comment that begins "// Noun: " and has a line "// Thread:".
table Glossary | sed -e 's/|.*//' -e 's/(s)//' | tr ',' '\n' | sed 's/^ *//' | tr '[:upper:]' '[:lower:]' >"$tmp/glossary"
for header in $(find -L include/gcap include/gcap/kit -maxdepth 1 -name '*.h' | sort); do
  awk '
    !/^\/\// { noun = "" }
    /^\/\/ [A-Z][A-Za-z ]*: / && noun == "" { noun = $0; sub(/^\/\/ /, "", noun); sub(/: .*/, "", noun) }
    /^\/\/ Thread:/ && noun != "" && noun != "Thread" { print noun }' "$header" |
    tr '[:upper:]' '[:lower:]' | sed 's/s$//'
done | sort -u >"$tmp/nouns"
[ "$(wc -l <"$tmp/nouns")" -gt 10 ] || fail "the headers introduce no types"
while read -r noun; do
  grep -qx -e "$noun" -e "${noun}s" "$tmp/glossary" || fail "the glossary lacks '$noun', a type of a public header"
done <"$tmp/nouns"

exit $failed
