# shellcheck shell=bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# .ci/steps.sh: what .ci/run and .ci/weekly share; they read it. Steps, their times and their count; Bazel with a cache.
#
# A step prints its name and its time. One that fails does not stop the ones after it. `finish` prints what failed, all
# steps with their times, then "N passed, N failed": test cases, and one for each other step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Less, and a build dies half-way with a message that names no cause.
readonly DISK_MIB=8192
# Of a long log often the end alone is kept: what `finish` prints has about LAST_LINES, of which TOLD_LINES at most tell
# what failed, of one step STEP_LINES.
readonly LAST_LINES=60
readonly TOLD_LINES=40
readonly STEP_LINES=15

passed=0
failed=0
table=()
# What failed in the steps so far, a line each.
told=()

# die SENTENCE: for what nothing can be done about here.
die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

work=$(mktemp -d) || die "no temporary folder can be made in ${TMPDIR:-/tmp}"

# The process group of the step that runs.
running=

clean_up() {
    # An interrupted step's processes go first, lest one write into the folder that goes.
    [[ -z $running ]] || kill -TERM -- "-$running" 2>/dev/null || true
    timeout 60 ./bazelw shutdown >/dev/null 2>&1 || true
    # What a Bazel of another user id made is read-only.
    chmod -R u+w "$work" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'echo "$(basename "$0"): interrupted"; exit 130' INT TERM HUP

check_disk() {
    local mib
    mib=$(df --output=avail --block-size=1M "$work" | tail -n 1)
    ((mib >= DISK_MIB)) || die "$work has $((mib)) MiB left: expected $DISK_MIB MiB at least; set TMPDIR to another folder"
}

# share_cache: from now on each ./bazelw, here and in the tools, prints no progress and has one cache, so that nothing is
# compiled twice for two output folders. The cache ends with the run: no cache knows a system's headers, so what was
# compiled beside NVIDIA's would pass for what a bare machine compiles. The bare machine comes first. Compilers run without
# a sandbox, which takes a quarter of the time of a C file, but where GCAP_CI_STRATEGY is set to nothing: the sandbox shows
# a header of the same package that no dependency has.
share_cache() {
    local bazel=${BAZEL:-$(command -v bazelisk || command -v bazel)}
    cat >"$work/bazel" <<SCRIPT
#!/bin/sh
# $bazel, for the builds of one run of the checks.
case \$1 in
build | test | run)
    command=\$1
    shift
    exec "$bazel" "\$command" --disk_cache="$work/cache" --noshow_progress --color=no --curses=no \\
        \${GCAP_CI_STRATEGY---strategy=CppCompile=local --strategy=CppLink=local} "\$@"
    ;;
esac
exec "$bazel" "\$@"
SCRIPT
    chmod +x "$work/bazel"
    export BAZEL=$work/bazel
}

# install PACKAGE: the distribution's.
install() {
    local prefix=()
    [[ $(id -u) -eq 0 ]] || prefix=(sudo)
    echo "installing $1"
    "${prefix[@]}" apt-get update >/dev/null
    "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$1" >/dev/null
}

# ensure COMMAND PACKAGE: installs the package if the command is missing.
ensure() {
    command -v "$1" >/dev/null || install "$2"
}

# timed NAME COMMAND...: runs the command, says how long it took, and sets `code`. Not for use in a condition: there bash
# would ignore `set -e` inside the command.
timed() {
    local name=$1 start=$SECONDS
    shift
    echo "=== $name"
    # In the background, since bash hears of a signal only between commands, and waiting is none.
    set -m
    (
        trap - EXIT INT TERM HUP
        set +m
        "$@"
    ) &
    running=$!
    set +m
    code=0
    wait "$running" || code=$?
    running=
    echo "=== $name: exit code $code, $((SECONDS - start)) s"
    table+=("$(printf '%5d s  %-4s %s' "$((SECONDS - start))" "$( ((code == 0)) && echo ok || echo FAIL)" "$name")")
}

# step NAME COMMAND...: counts as one.
step() {
    timed "$@"
    if ((code == 0)); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# count GOOD BAD: adds to the totals what a step counted; one that failed without a count has failed once.
count() {
    local good=$1 bad=$2
    if ((bad == 0 && (code != 0 || good == 0))); then bad=1; fi
    passed=$((passed + good))
    failed=$((failed + bad))
}

# tell NAME: of the step that failed, the first lines of the standard input, for `finish`.
tell() {
    local lines
    mapfile -t lines < <(cut -c1-240)
    told+=("$1:" "${lines[@]:0:STEP_LINES}")
    ((${#lines[@]} <= STEP_LINES)) || told+=("  and $((${#lines[@]} - STEP_LINES)) lines more")
}

# test_step NAME COMMAND...: a `bazel test`, to which the place of its events is added; its test cases count. Sets `good`,
# `bad`, `skipped`, and `reports`, the files that it counted.
test_step() {
    local name=$1 events=$work/events.json
    shift
    : >"$events"
    timed "$name" "$@" --build_event_json_file="$events" --keep_going
    mapfile -t reports < <(grep -o 'file://[^"]*/test\.xml' "$events" | sed 's|file://||' | sort -u)
    read -r good bad skipped < <(awk -f tools/count_cases.awk /dev/null "${reports[@]}")
    echo "$name: $good cases passed, $bad failed, $skipped skipped"
    table[-1]+=": $good cases passed, $bad failed, $skipped skipped"
    ((code == 0)) || tell "$name" < <(awk -f tools/failed_cases.awk "$events")
    count "$good" "$bad"
}

# counted_step NAME COMMAND...: a step whose lines "N passed, N failed" count.
counted_step() {
    local name=$1 good bad
    shift
    timed "$name" counted "$@"
    read -r good bad < <(awk '/^[0-9]+ passed, [0-9]+ failed/ { good += $1; bad += $3 } END { print good + 0, bad + 0 }' \
        "$work/counted.log")
    ((code == 0)) || tell "$name" < <(sed -nE '/FAIL|[Ee]rror:|NOT CAUGHT|did not build|is no test|^mutate:/s/^/  /p' "$work/counted.log")
    count "$good" "$bad"
}

counted() {
    "$@" 2>&1 | tee "$work/counted.log"
}

# record NAME TEXT: puts a figure of the step before into docs/reliability.md, if that is asked for and the step went well.
record() {
    [[ -z ${GCAP_CI_RECORD:-} ]] || ((code != 0)) || tools/reliability --record "$@"
}

# finish: what failed, the table, and the line that counts.
finish() {
    local room=$((LAST_LINES - ${#table[@]} - 4))
    ((room <= TOLD_LINES)) || room=$TOLD_LINES
    ((room >= STEP_LINES)) || room=$STEP_LINES
    if ((${#told[@]} > 0)); then
        printf '%s\n' "=== what failed" "${told[@]:0:room}"
        ((${#told[@]} <= room)) || echo "and $((${#told[@]} - room)) lines more"
    fi
    printf '%s\n' "=== all steps, $SECONDS s" "${table[@]}"
    echo "$passed passed, $failed failed"
    ((failed == 0))
}
