# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""wheel: a folder with one wheel, whose name has what only its making tells: a version, a machine, a C library."""

def _wheel_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add(ctx.file.maker)
    arguments.add("--version-of", ctx.file.version_of)
    arguments.add("--out", folder.path)
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run_shell(
        arguments = [arguments],
        # -I: nothing of the user's Python; -B: nothing is written beside the sources.
        command = 'python3 -I -B "$@" >/dev/null',
        inputs = ctx.files.srcs + [ctx.file.maker, ctx.file.version_of],
        mnemonic = "Wheel",
        outputs = [folder],
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles([folder]))]

wheel = rule(
    implementation = _wheel_impl,
    attrs = {
        "maker": attr.label(allow_single_file = True, mandatory = True),
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "version_of": attr.label(allow_single_file = True, mandatory = True),
    },
    doc = "Runs make_wheel.py.",
)
