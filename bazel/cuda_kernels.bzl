# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""cuda_kernel_library: CUDA kernels with their CPU twins.

With the simulator the twins are compiled as C and register themselves before main; with a toolkit nvcc compiles the
kernels. Either way a kernel is the same C symbol: what callers give to cudaLaunchKernel is its address. With both
(--config=nvcc_on_sim) nvcc's objects define that symbol, and the twins are found by the kernel's name.

nvcc is started by its absolute path, since actions have no PATH of the user's; it takes the C++ toolchain's compiler
for the host part, and a folder of its own for temporary files, which it names by process id (sandboxed processes share
ids).
"""

load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//bazel:copts.bzl", "GCAP_COPTS")
load("//bazel:cuda_toolkit.bzl", "CudaToolkitInfo")
load("//bazel:settings.bzl", "BuildSettingInfo")

# A macro's labels are the caller's, unless they are made here.
_CUDA_HEADERS = str(Label("//:cuda_headers"))
_SIM = str(Label("//sim"))
_WITH_SIM = str(Label("//bazel:with_sim"))
_WITH_NVCC_ON_SIM = str(Label("//bazel:with_nvcc_on_sim"))

_NVCC_FLAGS = [
    "-c",
    "-x=cu",
    "-std=c++17",
    "-O3",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-Werror",
    "-Werror=all-warnings",
    # A sixth of the size; the driver unpacks what it loads.
    "-Xfatbin=-compress-all",
]

# $1 is where the output goes: its folder is the action's own and may hold the temporary files.
_COMPILE = """
set -eu
TMPDIR=$(mktemp -d "$PWD/$1.tmp.XXXXXX")
export TMPDIR
shift
trap 'rm -rf "$TMPDIR"' EXIT
"$@"
"""

def _arch_flags(label, archs):
    """-gencode flags: machine code for each capability and PTX for the highest, which later GPUs compile."""
    numbers = []
    for arch in archs.split(","):
        if not arch.isdigit():
            fail("%s is '%s': expected compute capabilities such as 80,90" % (label, archs))
        numbers.append(int(arch))
    flags = ["-gencode=arch=compute_{0},code=sm_{0}".format(number) for number in numbers]
    return flags + ["-gencode=arch=compute_{0},code=compute_{0}".format(max(numbers))]

def _include_flags(context):
    # nvcc knows no -iquote; the quoted folders are the workspace's root and that of the outputs.
    own = context.quote_includes.to_list() + context.includes.to_list()
    return ["-I" + folder for folder in own] + ["-isystem=" + folder for folder in context.system_includes.to_list()]

def _nvcc_objects_impl(ctx):
    toolkit = ctx.attr._toolkit[CudaToolkitInfo]
    compiler = find_cc_toolchain(ctx).compiler_executable
    arch_flags = _arch_flags(ctx.attr._archs.label, ctx.attr._archs[BuildSettingInfo].value)
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    objects = []
    for source in ctx.files.srcs:
        output = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename[:-len(".cu")]))
        arguments = ctx.actions.args()
        arguments.add(output)
        arguments.add(toolkit.root + "/bin/nvcc")
        arguments.add("-ccbin=" + compiler)
        arguments.add_all(_NVCC_FLAGS + arch_flags)
        for context in contexts:
            arguments.add_all(_include_flags(context))
        arguments.add(source)
        arguments.add("-o")
        arguments.add(output)
        ctx.actions.run_shell(
            arguments = [arguments],
            command = _COMPILE,
            inputs = depset(
                [source],
                transitive = [toolkit.compiler_files] + [context.headers for context in contexts],
            ),
            mnemonic = "Nvcc",
            outputs = [output],
            progress_message = "Compiling %s with nvcc" % source.short_path,
            use_default_shell_env = True,
        )
        objects.append(output)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "deps": attr.label_list(doc = "What the sources include.", providers = [CcInfo]),
        "srcs": attr.label_list(allow_files = [".cu"], doc = "One object each.", mandatory = True),
        "_archs": attr.label(default = "//bazel:cuda_archs"),
        # Where find_cc_toolchain looks with Bazel 4.2.3.
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_toolkit": attr.label(default = "@gcap_cuda//:toolkit", providers = [CudaToolkitInfo]),
    },
    doc = "Compiles .cu files to objects.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)

def cuda_kernel_library(name, srcs, twins, hdrs = [], deps = [], copts = GCAP_COPTS, visibility = None):
    """A cc_library of kernels: nvcc's objects with a toolkit, their CPU twins with the simulator.

    Args:
      name: the library; also the prefix of the targets that it is made of.
      srcs: .cu files.
      twins: .c files that register a twin of every kernel with gcap_sim.h.
      hdrs: headers with the kernels' declarations, for callers.
      deps: cc_library targets that sources, twins or headers include.
      copts: options of the compiler for the twins; by default gcap's own, for C11.
      visibility: as everywhere.
    """
    cc_library(
        name = name + "_headers",
        hdrs = hdrs,
        deps = deps + [_CUDA_HEADERS],
        visibility = ["//visibility:private"],
    )

    # nvcc brings NVIDIA's headers, which the simulator's must not hide.
    cc_library(
        name = name + "_nvcc_headers",
        hdrs = hdrs,
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = deps,
    )

    # Nobody refers to a twin's registration: only alwayslink brings it into the binary. Twins stand for a GPU in
    # everybody's tests: optimised also where the build is not, and their loops vectorised.
    cc_library(
        name = name + "_twins",
        srcs = twins,
        copts = copts + ["-O3"],
        local_defines = select({
            _WITH_NVCC_ON_SIM: ["GCAP_TWINS_BY_NAME"],
            "//conditions:default": [],
        }),
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = [":" + name + "_headers", _SIM],
        linkstatic = True,
        alwayslink = True,
    )
    _nvcc_objects(
        name = name + "_objects",
        srcs = srcs,
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = [":" + name + "_nvcc_headers"],
    )
    cc_library(
        name = name + "_kernels",
        srcs = [":" + name + "_objects"],
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = [":" + name + "_headers"],
        linkstatic = True,
        alwayslink = True,
    )
    cc_library(
        name = name,
        visibility = visibility,
        deps = [":" + name + "_headers"] + select({
            _WITH_NVCC_ON_SIM: [":" + name + "_kernels", ":" + name + "_twins"],
            _WITH_SIM: [":" + name + "_twins"],
            "//conditions:default": [":" + name + "_kernels"],
        }),
    )
