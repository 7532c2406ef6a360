# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Prints the code blocks of a Markdown file: those of a language whose first line is `title`, or all of them when there
# is no title.
#   awk -v language=c -v title="// my_ep.c" -f extract_block.awk README.md

$0 == "```" language { inside = 1; first = 1; next }
$0 == "```" { inside = wanted = 0 }
inside && first { wanted = title == "" || $0 == title; first = 0 }
wanted
