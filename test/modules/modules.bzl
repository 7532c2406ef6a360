# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""module_tests: what each module links, checked twice."""

load("@rules_cc//cc:cc_test.bzl", "cc_test")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//bazel:copts.bzl", "GCAP_COPTS")

def _whole_module_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    inputs = []
    for linked in ctx.attr.module[CcInfo].linking_context.linker_inputs.to_list():
        whole = [
            cc_common.create_library_to_link(
                actions = ctx.actions,
                alwayslink = True,
                cc_toolchain = toolchain,
                feature_configuration = features,
                pic_static_library = library.pic_static_library,
                static_library = library.static_library,
            )
            for library in linked.libraries
        ]
        inputs.append(cc_common.create_linker_input(
            libraries = depset(whole),
            owner = linked.owner,
            user_link_flags = depset(linked.user_link_flags),
        ))
    return [CcInfo(linking_context = cc_common.create_linking_context(linker_inputs = depset(inputs)))]

_whole_module = rule(
    implementation = _whole_module_impl,
    attrs = {
        "module": attr.label(mandatory = True, providers = [CcInfo]),
        # Where find_cc_toolchain looks with Bazel 4.2.3.
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = "A library and all that it links, every object of it: whatever one refers to must then be there.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)

def _linked_packages_impl(ctx):
    packages = {}
    for linked in ctx.attr.module[CcInfo].linking_context.linker_inputs.to_list():
        if linked.libraries:
            packages[linked.owner.package] = True
    output = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(output, "".join([package + "\n" for package in sorted(packages)]))
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

_linked_packages = rule(
    implementation = _linked_packages_impl,
    attrs = {"module": attr.label(mandatory = True, providers = [CcInfo])},
    doc = "The packages whose objects a library links, one a line.",
)

def _archives_impl(ctx):
    archives = []
    for library in ctx.attr.libraries:
        for linked in library[CcInfo].linking_context.linker_inputs.to_list():
            if linked.owner.package.split("/")[0] not in ["kit", "lib", "ops", "rules"]:
                continue
            archives += [each.pic_static_library or each.static_library for each in linked.libraries]
    files = depset(archives)
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

archives = rule(
    implementation = _archives_impl,
    attrs = {"libraries": attr.label_list(mandatory = True, providers = [CcInfo])},
    doc = "gcap's own archives among those that the libraries link.",
)

def _module_tests(package, allowed):
    name = package.rpartition("/")[2]
    _whole_module(
        name = name + "_whole",
        module = "//" + package,
        testonly = True,
    )
    cc_test(
        name = name + "_links_alone_test",
        size = "small",
        srcs = ["main.c"],
        copts = GCAP_COPTS,
        # tools/gpu_pack leaves it out: on a GPU it shows nothing more; nor does a sanitizer.
        tags = ["no-gpu-pack", "no-sanitizer"],
        deps = [":" + name + "_whole", "//:cuda_runtime"],
    )
    _linked_packages(
        name = name + "_linked",
        module = "//" + package,
        testonly = True,
    )
    sh_test(
        name = name + "_dependencies_test",
        size = "small",
        srcs = ["dependencies_test.sh"],
        args = ["$(rootpath :%s_linked)" % name, package] + allowed,
        data = [":%s_linked" % name],
        tags = ["no-sanitizer"],
    )

def _table_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".txt")
    rows = ["%s: %s\n" % (package, " ".join(sorted(allowed))) for package, allowed in ctx.attr.modules.items()]
    ctx.actions.write(output, "".join(rows))
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

_table = rule(
    implementation = _table_impl,
    attrs = {"modules": attr.string_list_dict(mandatory = True)},
    doc = "The rows as text, a module a line, for the test that compares documents with them.",
)

def module_tests(modules):
    """Tests that each module links alone, and with nothing but what its row allows.

    Also makes the target `table`: the rows as text.

    Args:
      modules: package of each module to the packages that it may depend on, those without dependencies first.
    """
    closures = {}
    for package, dependencies in modules.items():
        closure = {}
        for dependency in dependencies:
            if dependency.startswith("kit/") and not package.startswith("kit/"):
                fail("%s is of the core, and names %s, which is of the kit" % (package, dependency))
            if dependency not in closures:
                fail("%s names %s, which has no row above it" % (package, dependency))
            closure[dependency] = True
            for below in closures[dependency]:
                closure[below] = True
        closures[package] = closure.keys()
        _module_tests(package, closures[package])
    _table(
        name = "table",
        modules = modules,
        visibility = ["//test/docs:__pkg__"],
    )
