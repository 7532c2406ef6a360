# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Reads headers: a table in a comment is lines behind "//   " without a line between them, the first of which has gaps of
# two spaces or more. What stands behind such a gap begins a column, and in all lines columns begin where the first line
# has one, or behind its last one; a line that begins in the first column has a second one. A formatter that broke a
# line, or joined two, moves them.
#
# Prints what is wrong, one a line.

FNR == 1 { columns = 0 }

!/^\/\/   / { columns = 0; next }

{
  count = split_line($0)
  if (columns == 0) {
    columns = count
    is_table = count > 1
    first = starts[1]
    split("", allowed)
    for (i = 1; i <= count; ++i) allow(starts[i])
    next
  }
  if (!is_table) next
  for (i = 1; i <= count; ++i) {
    if (starts[i] > last) allow(starts[i])
    if (!(starts[i] in allowed)) wrong("column " starts[i] " is none of the table's")
  }
  if (count == 1 && starts[1] == first) wrong("a row of one column")
  if (length($0) > 120) wrong("is longer than 120")  # clang-format leaves tables alone, so it does not say so
}

function allow(column) { allowed[column] = 1; last = column }

function wrong(what) { print FILENAME ":" FNR ": " what ": " $0 }

# Fills in the columns in which parts of the line begin, and returns how many there are.
function split_line(line, at, parts) {
  at = 3
  parts = 0
  line = substr(line, 3)
  while (match(line, /^ +/) || parts == 0) {
    at += RLENGTH
    line = substr(line, RLENGTH + 1)
    if (line == "") break
    starts[++parts] = at
    if (!match(line, /  /)) break
    at += RSTART - 1
    line = substr(line, RSTART)
  }
  return parts
}
