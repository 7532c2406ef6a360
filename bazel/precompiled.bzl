# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""A precompiled header of the C++ tests: most of the time that a test takes to compile is GoogleTest and the C++ library.

The compiler takes NAME.h.gch in place of NAME.h where both are in one folder and the options agree, else reads NAME.h.
So a mismatch costs time alone. Clang never takes the file.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _precompiled_header_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    infos = [dep[CcInfo] for dep in ctx.attr.deps]
    context = cc_common.merge_cc_infos(cc_infos = infos).compilation_context
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    # A test may have sources in C.
    lines = ["#ifdef __cplusplus"] + ["#include <%s>" % name for name in ctx.attr.includes] + ["#endif"]
    ctx.actions.write(header, "\n".join(lines) + "\n")
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        # Bazel compiles for programs so.
        use_pic = ctx.var["COMPILATION_MODE"] != "opt",
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ) + ["-x", "c++-header", "-c", header.path, "-o", precompiled.path],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [precompiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % header.short_path,
    )
    own = CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([header, precompiled])))
    return [cc_common.merge_cc_infos(cc_infos = [own] + infos)]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo], doc = "the libraries whose headers are included"),
        "includes": attr.string_list(doc = "the headers, as they stand between < and >"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = "Makes NAME.h, which includes the headers, and NAME.h.gch.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)
