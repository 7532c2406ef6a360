# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Makes C++ of record files: their lines as one table of strings, so that a program needs no file at run time.

BEGIN {
    print "#include \"test/conformance/record.h\""
    print "namespace conformance {"
    print "const char* const kRecordText[] = {"
}

{ print "R\"record(" $0 ")record\"," }

END {
    print "nullptr,"
    print "};"
    print "}  // namespace conformance"
}
