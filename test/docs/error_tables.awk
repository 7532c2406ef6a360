# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Reads status.h and then a header: each public function that returns a status has, in the comment above it, a table of
# its errors, or a line "errors of" another function. A table is what a person lines up and a formatter does not:
#
#   //   CODE             when it comes; what does not fit
#   //                    is on lines that begin in the same column
#   //   others           as another function
#
# Prints what is wrong, one a line.

FNR == 1 { file++ }

# The codes of status.h.
file == 1 {
  if (match($0, /^  GCAP_[A-Z_]+/)) codes[substr($0, 8, RLENGTH - 7)] = 1
  next
}

/^\/\// { comment[++lines] = $0; next }

/^GCAP_API gcap_status_t/ { check($3); lines = 0; next }

{ lines = 0 }

function wrong(name, line, what) { print name ": " what ": " line }

# The column in which the text of a row begins; 0 if the line is no row.
function column_of_row(line) {
  if (!match(line, /^\/\/   ([A-Z][A-Z_]+(, [A-Z][A-Z_]+)*|others)  +/)) return 0
  return RLENGTH + 1
}

# A code within a text, with the gap behind it that only a row has.
function holds_row(text, code) {
  for (code in codes) if (text ~ "(^|[^A-Z_])" code "  ") return 1
  return 0
}

function check_codes(name, line, list, count, i) {
  sub(/^\/\/ +/, "", line)
  sub(/  .*/, "", line)
  if (line == "others") return
  count = split(line, list, ", ")
  for (i = 1; i <= count; ++i) {
    if (!(list[i] in codes)) wrong(name, list[i], "is no code of status.h")
    if ((name, list[i]) in seen) wrong(name, list[i], "is listed twice")
    seen[name, list[i]] = 1
  }
}

function check(name, i, line, column, of_table, listed) {
  sub(/\(.*/, "", name)
  for (i = 1; i <= lines; ++i) {
    line = comment[i]
    column = column_of_row(line)
    if (column > 0) {
      listed = 1
      check_codes(name, line)
      if (of_table > 0 && column != of_table) wrong(name, line, "is not in the column of its table")
      of_table = column
    } else if (line ~ /^\/\/   errors of [a-z]/) {
      listed = 1
    } else if (line ~ /^\/\/   / && of_table > 0) {
      match(line, /^\/\/ +/)
      if (RLENGTH + 1 != of_table) wrong(name, line, "is neither a row nor in the column of its table")
    } else {
      of_table = 0
    }
    if (holds_row(column > 0 ? substr(line, column) : line ~ /^\/\/ [^ ]/ ? line : "")) {
      wrong(name, line, "holds a row that a formatter moved")
    }
  }
  if (!listed) print name " lists no errors"
}
