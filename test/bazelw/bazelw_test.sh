#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# bazelw hands on arguments, standard input, output, exit code and signals, and after tests it counts on standard error
# what they left out, by reason, from the reports of this run alone.
#   bazelw_test.sh BAZELW
set -eu
bazelw=$PWD/$1
cd "$TEST_TMPDIR"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# equals NAME WANTED GOT
equals() {
    [ "$2" = "$3" ] || fail "$1 is '$3', expected '$2'"
}

# A Bazel whose tests have the reports of the folder reports/, and which ends with the code of its standard input.
cat >bazel <<'END'
#!/bin/sh
[ "$1" != --version ] || { echo "bazel 7.0.0" && exit; }
for argument; do
    case $argument in --build_event_json_file=*) events=${argument#*=} && continue ;; esac
    printf '<%s>' "$argument"
done
for report in "$PWD"/reports/* "$PWD"/reports/*; do
    echo '{"output":[{"uri":"file:///no/test.log"},{"name":"test.xml","uri":"file://'"$report"'/test.xml"}]}'
done >"${events:-/dev/null}"
read -r code
[ "$code" != wait ] || { trap 'kill "$!"; exit 8' TERM; sleep 1000 & touch waiting; wait; }
exit "$code"
END
chmod +x bazel
export BAZEL="$PWD/bazel"

# bazelw CODE ARGUMENT...: leaves what it prints in the files out and err, and its exit code in $code.
bazelw() {
    given=$1
    shift
    code=0
    echo "$given" | "$bazelw" "$@" >out 2>err || code=$?
    equals "the exit code of $*" "$given" "$code"
}

# skipped REASON: a case as GoogleTest reports it.
skipped() {
    echo '    <testcase name="Case" status="run" result="skipped">'
    echo "      <skipped message=\"test.cc:1&#x0A;$1\"><![CDATA[test.cc:1"
    echo "$1]]></skipped>"
}

mkdir -p reports/gtest reports/script reports/none old
skipped "no ONNX Runtime 'oldest': set GCAP_ORT_FETCH=pip" | tee old/test.xml >reports/gtest/test.xml
skipped "no CUDA device" >>reports/gtest/test.xml
skipped "needs two devices" >>reports/gtest/test.xml
echo "skipped: no ONNX Runtime 'newest': set GCAP_ORT_FETCH=pip" >reports/script/test.xml
echo '<testcase name="Case" status="run" result="completed"> skipped nothing' >reports/none/test.xml

bazelw 3 test "//a b" '*'
equals "what Bazel got" "<test><//a b><*>" "$(cat out)"
equals "what is said" "bazelw: left out: 2 cases for want of ONNX Runtime (GCAP_ORT_FETCH=pip), 1 for want of a GPU \
(--config=gpu), 1 for other reasons, which their logs name" "$(cat err)"

rm reports/gtest/test.xml
bazelw 0 test //...
equals "what is said of one" "bazelw: left out: 1 case for want of ONNX Runtime (GCAP_ORT_FETCH=pip)" "$(cat err)"

rm -r reports/script
bazelw 0 test //...
equals "what is said of none" "" "$(cat err)"

# Who asks for the events counts; other commands are Bazel's alone.
mkdir -p reports/gtest
cp old/test.xml reports/gtest
bazelw 4 test --build_event_json_file="$PWD/events" //...
equals "what is said of somebody's events" "" "$(cat err)"
[ -s events ] || fail "Bazel did not get the caller's file of events"
bazelw 5 run //test
equals "what Bazel got to run" "<run><//test>" "$(cat out)"

mkdir temporary
echo wait >input
TMPDIR=$PWD/temporary "$bazelw" test //... <input >out 2>err &
until [ -e waiting ]; do sleep 0.05; done
kill -TERM $!
code=0
wait $! || code=$?
equals "the exit code after a signal" 8 "$code"
equals "the temporary files left" "" "$(ls temporary)"
