# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# test_names.awk FILE...: prints the names of the GoogleTest cases in C++ sources, as "Suite.Case", a line each.

/^(TYPED_)?TEST(_F|_P)?\(/ {
    name = $0
    while (name !~ /\)/ && (getline line) > 0) name = name line
    sub(/^[^(]*\( */, "", name)
    sub(/ *\).*/, "", name)
    sub(/ *, */, ".", name)
    print name
}
