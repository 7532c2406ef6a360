# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Rules that @gcap_cuda's BUILD file is made of."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

CudaToolkitInfo = provider(
    doc = "A CUDA toolkit found by cuda_repository.",
    fields = {
        "compiler_files": "depset of nvcc and the programs it starts: a change of theirs compiles kernels again",
        "root": "absolute path of the toolkit",
    },
)

def _cuda_toolkit_impl(ctx):
    return [CudaToolkitInfo(
        compiler_files = depset(ctx.files.compiler_files),
        root = ctx.attr.root,
    )]

cuda_toolkit = rule(
    implementation = _cuda_toolkit_impl,
    attrs = {
        "compiler_files": attr.label_list(allow_files = True, doc = "nvcc and the programs it starts."),
        "root": attr.string(mandatory = True, doc = "Absolute path of the toolkit."),
    },
    doc = "Says where a toolkit is.",
    provides = [CudaToolkitInfo],
)

def _missing_impl(ctx):
    fail("\n\n%s\n" % ctx.attr.message)

# Claims every provider, so that whoever depends on it fails with its message and not for want of a provider.
missing = rule(
    implementation = _missing_impl,
    attrs = {"message": attr.string(mandatory = True, doc = "What to tell the user.")},
    doc = "Stands for something that this machine lacks: fails when, and only when, a build needs it.",
    provides = [CcInfo, CudaToolkitInfo],
)
