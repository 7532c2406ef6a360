#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# browser_test.sh WRITE_SAMPLE BROWSER_PY BROWSER_JS: the page in a real browser, without a window: what it shows, what
# its script does, that no other script runs, and that pixels are there, in light and dark, at 1280 pixels and at 400.
# It skips, and says so, where there is no Chromium; with GCAP_REQUIRE_BROWSER=1 that is a failure.
#
# BROWSER_JS is put at a page's end and leaves what it saw in the page; so what is asserted is what a reader has.
set -euo pipefail

write=$1
check=$2
probe=$3

browser=
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        browser=$name
        break
    fi
done
if [[ -z $browser ]]; then
    [[ ${GCAP_REQUIRE_BROWSER:-0} = 0 ]] || { echo "no chromium, chromium-browser or google-chrome is installed" && exit 1; }
    echo "skipped: no chromium, chromium-browser or google-chrome is installed"
    exit 0
fi

export HOME=$TEST_TMPDIR PYTHONDONTWRITEBYTECODE=1
mkdir -p "$TEST_TMPDIR/pages"

# browse PAGE WIDTH SCHEME ARGUMENT...: SCHEME is 0 for dark, 1 for light.
browse() {
    local page=$1 width=$2 scheme=$3
    shift 3
    timeout 600 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --no-first-run --user-data-dir="$TEST_TMPDIR/profile" --window-size="$width,900" \
        --blink-settings=preferredColorScheme="$scheme" "$@" "file://$page" 2>"$TEST_TMPDIR/said" || {
        cat "$TEST_TMPDIR/said"
        exit 1
    }
}

probe_hash=$(python3 -c 'import base64, hashlib, sys
print(base64.b64encode(hashlib.sha256(sys.stdin.buffer.read()).digest()).decode())' <"$probe")
for sample in broken healthy hostile small large; do
    page=$TEST_TMPDIR/pages/$sample.html
    "$write" "$sample" html >"$page"
    # One script that the policy names, as the page's own, and one as an attacker's would be.
    probed=$TEST_TMPDIR/pages/$sample.probed.html
    {
        sed "s|script-src |&'sha256-$probe_hash' |; /<\/body>/,\$d" "$page"
        echo '<script>document.title = "injected"</script>'
        printf '<script>'
        cat "$probe"
        printf '</script>\n</body>\n</html>\n'
    } >"$probed"
    browse "$probed" 400 1 --dump-dom >"$TEST_TMPDIR/pages/$sample.400.dom"
done
browse "$TEST_TMPDIR/pages/small.probed.html" 1280 1 --dump-dom >"$TEST_TMPDIR/pages/small.1280.dom"
for look in "1280 1 light" "400 1 light" "1280 0 dark"; do
    read -r width scheme name <<<"$look"
    browse "$TEST_TMPDIR/pages/broken.html" "$width" "$scheme" \
        --screenshot="$TEST_TMPDIR/pages/broken.$width.$name.png" >/dev/null
done
if [[ -n ${TEST_UNDECLARED_OUTPUTS_DIR:-} ]]; then cp "$TEST_TMPDIR"/pages/*.png "$TEST_UNDECLARED_OUTPUTS_DIR"; fi
python3 "$check" "$TEST_TMPDIR/pages"
