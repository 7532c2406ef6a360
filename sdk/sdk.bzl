# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""merged_archive: libraries as one plain archive, for programs that Bazel does not link."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _archives_of(libraries):
    """The archives of position-independent code that the libraries link, and the folder of the tree that each is of."""
    archives = {}
    for library in libraries:
        for linked in library[CcInfo].linking_context.linker_inputs.to_list():
            for each in linked.libraries:
                archives[each.pic_static_library or each.static_library] = linked.owner.package.split("/")[0]
    return archives

def _merged_archive_impl(ctx):
    archives = [
        archive
        for archive, folder in _archives_of(ctx.attr.libraries).items()
        if folder in ctx.attr.folders
    ]
    toolchain = find_cc_toolchain(ctx)
    output = ctx.actions.declare_file(ctx.attr.file)
    script = ["create " + output.path] + ["addlib " + archive.path for archive in archives] + ["save", "end"]
    ctx.actions.run_shell(
        arguments = [toolchain.ar_executable, "\n".join(script)],
        command = 'echo "$2" | "$1" -M',
        inputs = depset(archives, transitive = [toolchain.all_files]),
        mnemonic = "MergeArchives",
        outputs = [output],
    )
    return [DefaultInfo(files = depset([output]))]

merged_archive = rule(
    implementation = _merged_archive_impl,
    attrs = {
        "file": attr.string(doc = "Its name.", mandatory = True),
        "folders": attr.string_list(doc = "Of the tree: libraries elsewhere are left out.", mandatory = True),
        "libraries": attr.label_list(doc = "With all that they link.", mandatory = True, providers = [CcInfo]),
        # Where find_cc_toolchain looks with Bazel 4.2.3.
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = "One archive of what libraries link.",
    toolchains = use_cc_toolchain(),
)
