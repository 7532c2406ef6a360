#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# pack.sh CC OUTPUT FILE...: the tarball of //:sdk: what sdk/install.cmake installs, of files that Bazel made. The same
# files give the same bytes.
set -euo pipefail
cc=$1
output=$2
shift 2

work=$(mktemp -d "$PWD/sdk.XXXXXX")
trap 'rm -rf "$work"' EXIT
version_h=$(printf '%s\n' "$@" | grep 'include/gcap/version\.h$')
part() {
    sed -n "s/^#define GCAP_VERSION_$1 \([0-9]*\)$/\1/p" "$version_h"
}
version=$(part MAJOR).$(part MINOR).$(part PATCH)
# As in CMakeLists.txt.
if (($(part MAJOR) == 0)); then soversion=0.$(part MINOR); else soversion=$(part MAJOR); fi
root=$work/gcap-$version

# put FILE PATH: a copy, readable by all.
put() {
    install -D --mode=644 "$1" "$root/$2"
}

# fill TEMPLATE PATH: as configure_file.
fill() {
    sed -e "s/@GCAP_VERSION@/$version/g" -e 's|@GCAP_INCLUDE@|../include|g' "$1" >"$work/filled"
    put "$work/filled" "$2"
}

have() {
    printf '%s\n' "$@" | grep "/libgcap_ops_$kind\.a$" >/dev/null
}

# put_program FILE PATH
put_program() {
    install -D --mode=755 "$1" "$root/$2"
}

for file in "$@"; do
    name=${file##*/}
    case $file in
    */libgcap_shared_objects.a)
        mkdir -p "$root/lib"
        "$cc" -shared -Wl,-soname,"libgcap.so.$soversion" -Wl,--whole-archive "$file" -Wl,--no-whole-archive \
            -pthread -lm -ldl -o "$root/lib/libgcap.so.$version"
        ln -s "libgcap.so.$version" "$root/lib/libgcap.so.$soversion"
        ln -s "libgcap.so.$soversion" "$root/lib/libgcap.so"
        ;;
    */libgcap_doctor.so) put_program "$file" "lib/$name" ;;
    */gcap-doctor) put_program "$file" "bin/$name" ;;
    doctor/python/*) put "$file" "share/gcap/doctor/python/$name" ;;
    docs/rules/*) put "$file" "share/gcap/doctor/rules/$name" ;;
    *.a) put "$file" "lib/$name" ;;
    include/*) put "$file" "$file" ;;
    sim/README.md | sim/shared/*) put "$file" "share/gcap/$file" ;;
    sim/include/*) put "$file" "include/gcap-sim/$name" ;;
    *.cmake.in) fill "$file" "lib/cmake/gcap/${name%.in}" ;;
    *.cmake) put "$file" "lib/cmake/gcap/$name" ;;
    *gcap-ops-*.pc.in)
        kind=${name#gcap-ops-}
        kind=${kind%.pc.in}
        if have "$@"; then fill "$file" "lib/pkgconfig/${name%.in}"; fi
        ;;
    *.pc.in) fill "$file" "lib/pkgconfig/${name%.in}" ;;
    LICENSE) put "$file" share/licenses/gcap/LICENSE ;;
    *) echo "pack.sh: no place for $file" && exit 1 ;;
    esac
done
tar --create --directory="$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime=@0 \
    "gcap-$version" | gzip --no-name >"$output"
