#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The recorder goes into any program, so it needs the C library alone, exports what the driver and NVTX call alone, and is
# never unloaded. Usage: links_test.sh LIBRARY
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
exported=$(nm -D --defined-only "$1" | sed 's/.* //' | sort | tr '\n' ' ')
if [ "$exported" != "InitializeInjection InitializeInjectionNvtx2 " ]; then
    echo "$1 exports: $exported; expected InitializeInjection and InitializeInjectionNvtx2 alone"
    exit 1
fi
readelf -d "$1" | grep -q NODELETE || {
    echo "$1 may be unloaded: expected the flag NODELETE"
    exit 1
}
echo "needs, exports and flags are as expected"
