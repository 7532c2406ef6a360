# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Names what failed, from the events of `bazel test`, one JSON object a line: each run of a test that did not pass, and
# from its log its failed cases, each with its first message. A case that has begun and not ended was the one in which
# the program ended. A log without cases has its last line told. Where a build failed, Bazel's own lines.

function say(text) {
    print substr("  " text, 1, 200)
}

# The first message of a case is the line "FILE:LINE: Failure" and what follows; of a program, a sanitizer's line.
function tell_log(path,    line, name, message, lines, last, told, report, summary) {
    while ((getline line < path) > 0) {
        if (line ~ /^[ \t]*$/) continue
        last = line
        if (line ~ /^\[ RUN      \] /) {
            name = substr(line, 14)
            message = ""
            lines = 0
        } else if (line ~ /^\[       OK \] / || line ~ /^\[  SKIPPED \] /) {
            name = ""
        } else if (line ~ /^\[  FAILED  \] / && name != "") {
            say(name ": " message)
            told++
            name = ""
        } else if (lines > 0 && lines < 4) {
            message = message " | " line
            lines++
        } else if (lines == 0 && name != "" && line ~ /: Failure$/) {
            message = line
            lines = 1
        }
        if (report == "" && line ~ /FAILED:|ERROR: |: ThreadSanitizer: |runtime error: |^terminate |Test timed out/)
            report = line
        if (summary == "" && line ~ /SUMMARY: /) summary = line
    }
    close(path)
    if (name != "") say(name ": the program ended in this case")
    if (report != "" && (name != "" || !told)) say(report)
    if (summary != "") say(summary)
    if (report summary name == "" && !told) say(last)
}

/^[{]"id":[{]"testResult":/ && !/"status":"PASSED"/ {
    match($0, /"label":"[^"]*"/)
    label = substr($0, RSTART + 9, RLENGTH - 10)
    match($0, /"status":"[^"]*"/)
    print label ": " substr($0, RSTART + 10, RLENGTH - 11)
    if (match($0, /file:\/\/[^"]*\/test\.log"/)) tell_log(substr($0, RSTART + 7, RLENGTH - 8))
}

# In a JSON text a line ends with \n, and a quotation mark is \".
/^[{]"id":[{]"progress":/ {
    count = split($0, lines, /\\n/)
    for (i = 1; i <= count; i++) {
        if (lines[i] ~ /(^|":")ERROR: /) {
            line = substr(lines[i], index(lines[i], "ERROR: "))
            gsub(/\\"/, "\"", line)
            say(line)
        }
    }
}
