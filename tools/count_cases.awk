# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Counts the test cases in JUnit XML files as GoogleTest and Bazel write them, one element a line. Prints
# "PASSED FAILED SKIPPED". A case that was disabled counts as skipped.

/<testcase / {
    cases++
    counted = 0
    if (/ result="(skipped|suppressed)"/ || / status="notrun"/) {
        skipped++
        counted = 1
    }
}

(/<failure/ || /<error[ >]/) && !counted {
    failed++
    counted = 1
}

END { printf "%d %d %d\n", cases - failed - skipped, failed, skipped }
