# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# embed.awk FILE...: prints the files as constants of C, each named after its file: page_css for page.css. To compile
# without Bazel, with -IDIR:
#   cd doctor/report && awk -f embed.awk page.html page.css page.js >DIR/doctor/report/page.inc

function close_text() { if (is_open) print ";" }

FNR == 1 {
    close_text()
    name = FILENAME
    sub(/.*\//, "", name)
    gsub(/[^A-Za-z0-9]/, "_", name)
    print "static const char " name "[] ="
    is_open = 1
}

{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\\&")
    gsub(/[?]/, "\\\\&")  # two of them begin a trigraph
    print "    \"" $0 "\\n\""
}

END { close_text() }
