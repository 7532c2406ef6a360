# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""@gcap_ort: ONNX Runtime for the tests of //ort. Nothing else needs it: //ort includes and links nothing of it.

1. GCAP_ORT_FETCH=pip: the oldest and the newest release that gcap knows, one of each minor version between, numpy and
   onnx, as wheels from the Python package index, installed once into the user's cache (200 MB download).
2. Else an `onnxruntime` that python3 imports, as the newest.

GCAP_ORT_ROOT, the root of an official release with include/ and lib/, adds its headers, which a test compares with our
declarations.

The repository has one file, runtimes.txt, of lines "NAME LIBRARY PYTHON PYTHONPATH" with the names `oldest` and
`newest`, and for the releases between their version. A test whose line is not there skips, and says why. So the file
is empty where there is nothing.
"""

_OLDEST = "1.26.0"
_NEWEST = "1.32.0"
_BETWEEN = ["1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1"]

# What the tests in Python import besides. numpy is the newest one for the machine's Python: it only compares numbers.
_MODULES = ["numpy", "onnx==1.22.0"]

# Part of the cache folder's name: change it with the versions above.
_ID = "1.22.0"

_PIP_TIMEOUT_S = 1800

# Built beside its final place and renamed last, so that an interrupted download is never taken for a whole one.
_INSTALL = """
set -eu
target=$1
python=$2
shift 2
[ ! -d "$target" ] || exit 0
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$work" "$@" >&2
[ -d "$target" ] || mv "$work" "$target"
"""

_FIND = """
import glob, os
try:
    import onnxruntime
    files = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so.*"))
    print(files[0] if files else "")
except ImportError:
    print("")
"""

def _install(ctx, python, folder, packages):
    done = ctx.execute(["sh", "-c", _INSTALL, "sh", folder, python] + packages, timeout = _PIP_TIMEOUT_S)
    if done.return_code != 0:
        fail("GCAP_ORT_FETCH is 'pip': pip could not install %s into %s (exit code %d):\n%s" %
             (" ".join(packages), folder, done.return_code, done.stderr))

def _fetch(ctx, python):
    environ = ctx.os.environ
    if not python or ctx.execute([python, "-m", "pip", "--version"]).return_code != 0:
        fail("GCAP_ORT_FETCH is 'pip': expected python3 with pip on PATH (Debian: apt-get install python3-pip)")
    cache = environ.get("XDG_CACHE_HOME", "") or (environ.get("HOME", "") and environ["HOME"] + "/.cache")
    if not cache:
        fail("GCAP_ORT_FETCH is 'pip': expected HOME or XDG_CACHE_HOME to be set, since the wheels are kept there")
    modules = "%s/gcap/ort-modules-%s" % (cache, _ID)
    ctx.report_progress("downloading ONNX Runtime (200 MB)")
    _install(ctx, python, modules, _MODULES)
    lines = []
    for name, version in [("oldest", _OLDEST), ("newest", _NEWEST)] + [(version, version) for version in _BETWEEN]:
        folder = "%s/gcap/ort-%s" % (cache, version)
        _install(ctx, python, folder, ["--no-deps", "onnxruntime==" + version])
        library = "%s/onnxruntime/capi/libonnxruntime.so.%s" % (folder, version)
        lines.append("%s %s %s %s:%s" % (name, library, python, folder, modules))
    return lines

def _find(ctx, python):
    found = ctx.execute([python, "-c", _FIND]).stdout.strip() if python else ""
    return ["newest %s %s -" % (found, python)] if found else []

def _python(ctx):
    """The interpreter itself: what stands for it on PATH may want a home folder, which a test does not have."""
    python = ctx.which("python3")
    return ctx.execute([python, "-c", "import sys; print(sys.executable)"]).stdout.strip() if python else None

def _ort_repository_impl(ctx):
    environ = ctx.os.environ
    python = _python(ctx)
    fetch = environ.get("GCAP_ORT_FETCH", "")
    if fetch not in ["", "pip"]:
        fail("GCAP_ORT_FETCH is '%s': expected 'pip' or nothing" % fetch)
    lines = _fetch(ctx, python) if fetch == "pip" else _find(ctx, python)
    ctx.file("runtimes.txt", "".join([line + "\n" for line in lines]))
    root = environ.get("GCAP_ORT_ROOT", "")
    if root:
        if not ctx.path(root).exists:
            fail("GCAP_ORT_ROOT is '%s': expected the root of a release, but there is no such folder" % root)
        for folder in ["include", "include/onnxruntime", "include/onnxruntime/core/session"]:
            if ctx.path("%s/%s/onnxruntime_c_api.h" % (root, folder)).exists:
                ctx.symlink(root + "/" + folder, "include")
                break
        for header in ["onnxruntime_c_api.h", "onnxruntime_ep_c_api.h"]:
            if not ctx.path("include/" + header).exists:
                fail("GCAP_ORT_ROOT is '%s': expected the root of a release, but it has no %s" % (root, header))
    ctx.file("BUILD.bazel", """# Written by @gcap//bazel:ort_repository.bzl.
load("@rules_cc//cc:cc_library.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

exports_files(["runtimes.txt"])

cc_library(
    name = "headers",
    hdrs = glob(["include/*.h"], allow_empty = True),
    defines = %s,
    includes = ["include"],
)
""" % repr(["GCAP_HAS_ORT_HEADERS"] if root else []))

ort_repository = repository_rule(
    implementation = _ort_repository_impl,
    configure = True,
    doc = "Makes ONNX Runtime available to tests as @gcap_ort (see the top of the file).",
    environ = ["GCAP_ORT_ROOT", "GCAP_ORT_FETCH", "XDG_CACHE_HOME", "HOME", "PATH"],
    # What it looks at is outside the workspace, so it looks again whenever a Bazel server starts.
    local = True,
)
