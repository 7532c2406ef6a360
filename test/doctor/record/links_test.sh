#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The recorder goes into any program, so it needs the C library alone, exports what the driver, NVTX and doctor/python
# call alone, and is never unloaded. Usage: links_test.sh LIBRARY
set -eu

for needed in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
    case $needed in
    libc.so.* | libdl.so.* | libpthread.so.* | ld-linux*) ;;
    *)
        echo "$1 needs $needed: expected libc, libdl and libpthread alone"
        exit 1
        ;;
    esac
done
exported=$(nm -D --defined-only "$1" | sed 's/.* //' | LC_ALL=C sort | tr '\n' ' ')
expected="InitializeInjection InitializeInjectionNvtx2 gcap_doctor_block_freed gcap_doctor_block_made"
expected="$expected gcap_doctor_block_seen gcap_doctor_blocks_follow gcap_doctor_blocks_note "
if [ "$exported" != "$expected" ]; then
    echo "$1 exports: $exported; expected $expected"
    exit 1
fi
readelf -d "$1" | grep -q NODELETE || {
    echo "$1 may be unloaded: expected the flag NODELETE"
    exit 1
}
echo "needs, exports and flags are as expected"
