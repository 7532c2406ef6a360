# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# one_unit.awk FILE...: prints the C++ sources as one, whose lines still bear the names and numbers of their own files.
# So a header beside a source is included by its whole path, as everywhere.
# Helpers of the same name stay apart: each file's anonymous namespaces are put into a namespace named after the file.
# With `-v whole=NAME` the whole of its namespace NAME is put there: so the file may define nothing that another declares.

FNR == 1 {
    printf "#line 1 \"%s\"\n", FILENAME
    file = FILENAME
    sub(/.*\//, "", file)
    gsub(/[^A-Za-z0-9]/, "_", file)
}

whole != "" && $0 == "namespace " whole " {" {
    print $0 " inline namespace in_" file " {"
    next
}

whole != "" && $0 == "}  // namespace " whole {
    print "} }"
    next
}

whole == "" && $0 == "namespace {" {
    print "inline namespace in_" file " { namespace {"
    next
}

whole == "" && $0 == "}  // namespace" {
    print "} }"
    next
}

{ print }
