# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""@gcap_cuda: the CUDA toolkit of this machine, or one made of NVIDIA's wheels.

Looked for in this order; the first that is set or there decides:

1. GCAP_CUDA_ROOT, the root of a toolkit.
2. GCAP_CUDA_FETCH=pip: wheels from the Python package index, installed once into the user's cache (0.9 GB download).
   They are under NVIDIA's licence and never become part of gcap.
3. CUDA_HOME, then CUDA_PATH.
4. /usr/local/cuda.

A variable that points to no toolkit is an error, not a reason to look further. With none of these the repository still
exists: its targets fail with a sentence when a build needs them. Builds with the simulator never do, and never come
here.

cuDNN may be in the toolkit's root, in the folder `cudnn` beside it (as the wheels have it) or under /usr (as NVIDIA's
Debian packages have it).
"""

_DEFAULT_ROOT = "/usr/local/cuda"

# One set of versions that work together. They are installed by one call: a second one would skip existing folders.
_WHEELS = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-cupti==13.0.85",
    "nvidia-nvtx==13.0.85",
    "nvidia-cublas==13.1.0.3",
    "nvidia-cudnn-cu13==9.19.0.56",
]

# Part of the cache folder's name: change it with the versions above.
_WHEELS_ID = "13.0.96-cudnn9.19.0.56"

_PIP_TIMEOUT_S = 3600

_LIBRARY_FOLDERS = [
    "lib64",
    "lib",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
]

_NOTHING_FOUND = """This target needs a CUDA toolkit, and none was found. Do one of these, then build again:
  - set GCAP_CUDA_ROOT (or CUDA_HOME, or CUDA_PATH) to the root of a toolkit;
  - install a toolkit in %s;
  - set GCAP_CUDA_FETCH=pip to download one (0.9 GB, under NVIDIA's licence) through python3's pip.
Without --config=cuda nothing needs a toolkit: the simulator is used.""" % _DEFAULT_ROOT

def _find_file(ctx, root, names):
    """The first of `names` in one of the root's library folders, as a path, or None."""
    for folder in _LIBRARY_FOLDERS:
        for name in names:
            candidate = ctx.path("%s/%s/%s" % (root, folder, name))
            if candidate.exists:
                return candidate
    return None

def _check_root(ctx, variable, root):
    for name in ["bin/nvcc", "include/cuda_runtime_api.h"]:
        if not ctx.path(root + "/" + name).exists:
            fail("%s is '%s': expected the root of a CUDA toolkit, but '%s/%s' is not there" %
                 (variable, root, root, name))
    if not _find_file(ctx, root, ["libcudart_static.a"]):
        fail("%s is '%s': expected the root of a CUDA toolkit, but libcudart_static.a is in none of its folders %s" %
             (variable, root, ", ".join(_LIBRARY_FOLDERS)))

def _cache_folder(ctx):
    environ = ctx.os.environ
    if environ.get("XDG_CACHE_HOME", ""):
        return environ["XDG_CACHE_HOME"] + "/gcap"
    if environ.get("HOME", ""):
        return environ["HOME"] + "/.cache/gcap"
    fail("GCAP_CUDA_FETCH is 'pip': expected HOME or XDG_CACHE_HOME to be set, since the toolkit is kept there")

def _fetch_with_pip(ctx):
    """Installs the wheels, unless an earlier build did, and returns the toolkit's root."""
    folder = "%s/cuda-%s" % (_cache_folder(ctx), _WHEELS_ID)
    root = folder + "/nvidia/cu13"
    if ctx.path(folder).exists:
        return root
    python = ctx.which("python3")
    if not python or ctx.execute([python, "-m", "pip", "--version"]).return_code != 0:
        fail("GCAP_CUDA_FETCH is 'pip': expected python3 with pip on PATH (Debian: apt-get install python3-pip)")
    ctx.report_progress("downloading a CUDA toolkit (0.9 GB)")

    # Built beside its final place and renamed last, so that an interrupted download is never taken for a toolkit.
    # The wheels lack two things that a toolkit has: the folder lib64 and library names without a version.
    script = """
set -eu
mkdir -p "$(dirname "$1")"
work=$(mktemp -d "$1.XXXXXX")
trap 'rm -rf "$work"' EXIT
python=$2
target=$1
shift 2
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$work" "$@" >&2
ln -s lib "$work/nvidia/cu13/lib64"
for library in "$work"/nvidia/*/lib/lib*.so.*; do
    plain=${library%%.so.*}.so
    [ -e "$plain" ] || ln -s "${library##*/}" "$plain"
done
# NOTE: another build may have been quicker; its result is as good.
[ -d "$target" ] || mv "$work" "$target"
"""
    done = ctx.execute(["sh", "-c", script, "sh", folder, python] + _WHEELS, timeout = _PIP_TIMEOUT_S)
    if done.return_code != 0:
        fail("GCAP_CUDA_FETCH is 'pip': pip could not install NVIDIA's wheels into %s (exit code %d):\n%s" %
             (folder, done.return_code, done.stderr))
    return root

def _find_root(ctx):
    """The toolkit's root, checked, or None."""
    environ = ctx.os.environ
    root = environ.get("GCAP_CUDA_ROOT", "")
    if root:
        _check_root(ctx, "GCAP_CUDA_ROOT", root)
        return root
    fetch = environ.get("GCAP_CUDA_FETCH", "")
    if fetch == "pip":
        root = _fetch_with_pip(ctx)
        _check_root(ctx, "The toolkit made for GCAP_CUDA_FETCH=pip", root)
        return root
    if fetch:
        fail("GCAP_CUDA_FETCH is '%s': expected 'pip' or nothing" % fetch)
    for variable in ["CUDA_HOME", "CUDA_PATH"]:
        root = environ.get(variable, "")
        if root:
            _check_root(ctx, variable, root)
            return root
    if ctx.path(_DEFAULT_ROOT + "/bin/nvcc").exists:
        _check_root(ctx, "The toolkit found", _DEFAULT_ROOT)
        return _DEFAULT_ROOT
    return None

def _cudnn_places(root):
    """Pairs of an include folder and the root of the library folders that go with it."""
    beside = root.rpartition("/")[0] + "/cudnn"
    return [
        (root + "/include", root),
        (beside + "/include", beside),
        ("/usr/include", "/usr"),
    ]

def _missing_target(name, message):
    return "missing(name = %r, message = %r)\n" % (name, message)

def _library_target(name, library, headers):
    """A shared library, linked by its versioned name; the binary remembers its folder unless told not to."""
    folder = str(library.dirname)
    return """cc_library(
    name = {name},
    linkopts = [{search}, {link}] + select({{
        "@gcap//bazel:with_cuda_rpath": [{rpath}],
        "//conditions:default": [],
    }}),
    deps = [{headers}],
)
""".format(
        name = repr(name),
        headers = repr(headers),
        link = repr("-l:" + library.basename),
        rpath = repr("-Wl,-rpath," + folder),
        search = repr("-L" + folder),
    )

def _cublas_targets(ctx, root, name, stem, header):
    """cuBLAS or cuBLASLt; the first needs the second, which stands in the same folder."""
    library = _find_file(ctx, root, [stem + ".so.13", stem + ".so.12", stem + ".so"])
    if not library or not ctx.path(root + "/include/" + header).exists:
        message = ("This target needs %s: expected include/%s and %s.so in the CUDA toolkit at '%s'" %
                   (stem[len("lib"):], header, stem, root))
        return _missing_target(name + "_headers", message) + _missing_target(name, message)
    return ('alias(name = "%s_headers", actual = ":headers")\n' % name +
            _library_target(name, library, ":%s_headers" % name))

def _cudart_shared_target(ctx, root):
    library = _find_file(ctx, root, ["libcudart.so.13", "libcudart.so.12", "libcudart.so"])
    if library:
        return _library_target("cudart_shared", library, ":headers")
    return _missing_target("cudart_shared", "This target needs the shared CUDA runtime: expected libcudart.so in the " +
                                            "CUDA toolkit at '%s'" % root)

def _cudnn_targets(ctx, root):
    for include, library_root in _cudnn_places(root):
        library = _find_file(ctx, library_root, ["libcudnn.so.9", "libcudnn.so"])
        if library and ctx.path(include + "/cudnn.h").exists:
            # Header by header: under /usr the folder holds the whole system.
            for header in ctx.path(include).readdir():
                if header.basename.startswith("cudnn"):
                    ctx.symlink(header, "cudnn_include/" + header.basename)
            return """cc_library(
    name = "cudnn_headers",
    hdrs = glob(["cudnn_include/*.h"]),
    includes = ["cudnn_include"],
    deps = [":headers"],
)
""" + _library_target("cudnn", library, ":cudnn_headers")
    message = ("This target needs cuDNN: expected cudnn.h and libcudnn.so under one of %s" %
               ", ".join(["'%s'" % library_root for _, library_root in _cudnn_places(root)]))
    return _missing_target("cudnn_headers", message) + _missing_target("cudnn", message)

_BUILD_HEAD = """# Written by @gcap//bazel:cuda_repository.bzl.
load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("@gcap//bazel:cuda_toolkit.bzl", "cuda_toolkit", "missing")

package(default_visibility = ["//visibility:public"])

"""

# cuda_fp16.h, which cublasLt.h includes, wants nv/target out of cccl.
_TOOLKIT_TARGETS = """cuda_toolkit(
    name = "toolkit",
    compiler_files = glob(["bin/nvcc", "bin/ptxas", "bin/fatbinary", "nvvm/bin/cicc"]),
    root = {root},
)

cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**", "include/cccl/nv/**"]),
    includes = ["include", "include/cccl"],
)

# Options, not a file in srcs: options come last on the linker's line, so the order of a target's deps is of no matter.
# Never -lcuda: the static runtime opens the driver itself, so a binary starts on a machine without one.
cc_library(
    name = "cudart",
    linkopts = [{search}, "-l:libcudart_static.a", "-ldl", "-lpthread", "-lrt"],
    deps = [":headers"],
)

"""

def _cuda_repository_impl(ctx):
    root = _find_root(ctx)
    if not root:
        names = ["toolkit", "headers", "cudart", "cudart_shared", "cublas_headers", "cublas", "cublaslt_headers", "cublaslt", "cudnn_headers", "cudnn"]
        ctx.file("BUILD.bazel", _BUILD_HEAD + "\n".join([_missing_target(name, _NOTHING_FOUND) for name in names]))
        return
    root = str(ctx.path(root))
    for folder in ["bin", "include", "nvvm"]:
        if ctx.path(root + "/" + folder).exists:
            ctx.symlink(root + "/" + folder, folder)
    cudart = _find_file(ctx, root, ["libcudart_static.a"])
    toolkit_targets = _TOOLKIT_TARGETS.format(root = repr(root), search = repr("-L%s" % cudart.dirname))
    ctx.file(
        "BUILD.bazel",
        _BUILD_HEAD + toolkit_targets + _cudart_shared_target(ctx, root) +
        _cublas_targets(ctx, root, "cublas", "libcublas", "cublas_v2.h") +
        _cublas_targets(ctx, root, "cublaslt", "libcublasLt", "cublasLt.h") + _cudnn_targets(ctx, root),
    )

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    configure = True,
    doc = "Makes the CUDA toolkit available as @gcap_cuda (see the top of the file).",
    environ = ["GCAP_CUDA_ROOT", "GCAP_CUDA_FETCH", "CUDA_HOME", "CUDA_PATH", "XDG_CACHE_HOME", "HOME", "PATH"],
    # What it looks at is outside the workspace, so it looks again whenever a Bazel server starts.
    local = True,
)
