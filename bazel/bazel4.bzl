# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What Debian's bazel-bootstrap (4.2.3) lacks, made of local files: no network.

That Bazel has the C++ and shell rules built in, but BUILD files here load them from @rules_cc and @rules_shell, as
Bazel 9 demands. So each repository below only hands the built-in rule on. @rules_java and @remote_coverage_tools are
asked for by Bazel itself. GoogleTest and Google Benchmark come from the distribution's packages.

Used from WORKSPACE files only, ours and those of users on 4.2.3. A repository that the user declared first is kept.
"""

load("//bazel:cuda_repository.bzl", "cuda_repository")
load("//bazel:ort_repository.bzl", "ort_repository")

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_test",
]

# What Bazel's own tools load from @rules_cc//cc:defs.bzl.
_CC_DEFS = _CC_RULES + [
    "cc_proto_library",
    "cc_toolchain",
    "cc_toolchain_suite",
    "fdo_prefetch_hints",
    "fdo_profile",
    "objc_import",
    "objc_library",
]

# What Bazel's own tools load from @rules_java//java:defs.bzl.
_JAVA_DEFS = [
    "java_binary",
    "java_import",
    "java_library",
    "java_lite_proto_library",
    "java_package_configuration",
    "java_plugin",
    "java_proto_library",
    "java_runtime",
    "java_test",
    "java_toolchain",
]

_SHELL_RULES = [
    "sh_binary",
    "sh_library",
    "sh_test",
]

def _hand_on(names):
    """Text of a .bzl file that defines each name as the built-in rule of that name."""
    return "\n".join(["def {0}(**kwargs):\n    native.{0}(**kwargs)\n".format(name) for name in names])

_FIND_CC_TOOLCHAIN = """
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
def find_cc_toolchain(ctx):
    return find_cpp_toolchain(ctx)
def use_cc_toolchain(mandatory = False):
    return ["@bazel_tools//tools/cpp:toolchain_type"]
"""

def _rules_cc_files():
    files = {
        "cc/BUILD": "",
        "cc/common/BUILD": "",
        "cc/common/builtin.bzl": "builtin_cc_common = cc_common\nbuiltin_cc_info = CcInfo\n",
        "cc/common/cc_common.bzl": "load(\":builtin.bzl\", \"builtin_cc_common\")\ncc_common = builtin_cc_common\n",
        "cc/common/cc_info.bzl": "load(\":builtin.bzl\", \"builtin_cc_info\")\nCcInfo = builtin_cc_info\n",
        "cc/defs.bzl": _hand_on(_CC_DEFS),
        "cc/find_cc_toolchain.bzl": _FIND_CC_TOOLCHAIN,
    }
    for rule_name in _CC_RULES:
        files["cc/%s.bzl" % rule_name] = _hand_on([rule_name])
    return files

def _rules_shell_files():
    files = {"shell/BUILD": ""}
    for rule_name in _SHELL_RULES:
        files["shell/%s.bzl" % rule_name] = _hand_on([rule_name])
    return files

# Every test depends on these two labels; only `bazel coverage` would run them.
_COVERAGE_BUILD = """
sh_binary(name = "coverage_report_generator", srcs = ["unused.sh"], visibility = ["//visibility:public"])
sh_binary(name = "lcov_merger", srcs = ["unused.sh"], visibility = ["//visibility:public"])
"""

# GoogleTest without GoogleMock, which no test uses, and as one source: a quarter of the time to compile.
_GOOGLETEST_BUILD = """
load("@rules_cc//cc:cc_library.bzl", "cc_library")
cc_library(
    name = "gtest",
    srcs = ["googletest/src/gtest-all.cc"],
    hdrs = glob(["googletest/include/gtest/**/*.h"]),
    includes = ["googletest", "googletest/include"],
    linkopts = ["-pthread"],
    textual_hdrs = glob(["googletest/src/*"], exclude = ["googletest/src/gtest_main.cc"]),
    visibility = ["//visibility:public"],
)
cc_library(
    name = "gtest_main",
    srcs = ["googletest/src/gtest_main.cc"],
    visibility = ["//visibility:public"],
    deps = [":gtest"],
)
"""

# Debian ships the library only as a shared object; tools/gpu_pack carries it along.
_BENCHMARK_BUILD = """
load("@rules_cc//cc:cc_library.bzl", "cc_library")
cc_library(
    name = "benchmark",
    hdrs = glob(["include/benchmark/*.h"]),
    includes = ["include"],
    linkopts = ["-lbenchmark", "-pthread"],
    visibility = ["//visibility:public"],
)
cc_library(
    name = "benchmark_main",
    linkopts = ["-lbenchmark_main"],
    visibility = ["//visibility:public"],
    deps = [":benchmark"],
)
"""

def _files_repository_impl(ctx):
    ctx.file("WORKSPACE", "")
    for path, text in ctx.attr.files.items():
        ctx.file(path, text, executable = path.endswith(".sh"))

_files_repository = repository_rule(
    implementation = _files_repository_impl,
    attrs = {"files": attr.string_dict(doc = "Path to text.")},
    doc = "A repository written out of the texts in its attribute.",
)

def _system_package_repository_impl(ctx):
    root = ctx.os.environ.get(ctx.attr.root_variable, "") or ctx.attr.root
    for folder in ctx.attr.folders:
        source = ctx.path(root + "/" + folder)
        if not source.exists:
            fail("%s is not there: install the package with `apt-get install %s`, or set %s to its root" %
                 (source, ctx.attr.debian_package, ctx.attr.root_variable))
        ctx.symlink(source, folder)
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD.bazel", ctx.attr.build)

_system_package_repository = repository_rule(
    implementation = _system_package_repository_impl,
    attrs = {
        "build": attr.string(doc = "Text of its BUILD.bazel."),
        "debian_package": attr.string(doc = "The package that installs it."),
        "folders": attr.string_list(doc = "What to take in from the root."),
        "root": attr.string(doc = "Where the package puts it."),
        "root_variable": attr.string(doc = "Environment variable that names another root."),
    },
    # `environ` must be constant, so both variables are listed.
    environ = ["GCAP_GOOGLETEST_ROOT", "GCAP_BENCHMARK_ROOT"],
    local = True,
    doc = "A library that the distribution's package manager installed.",
)

def gcap_bazel4_repositories():
    """Declares every repository that gcap, its tests and its benchmarks need under Bazel 4.2.3."""
    declared = native.existing_rules()
    texts = {
        "remote_coverage_tools": {"BUILD": _COVERAGE_BUILD, "unused.sh": "#!/bin/sh\nexit 0\n"},
        "rules_cc": _rules_cc_files(),
        "rules_java": {"java/BUILD": "", "java/defs.bzl": _hand_on(_JAVA_DEFS)},
        "rules_shell": _rules_shell_files(),
    }
    for name, files in texts.items():
        if name not in declared:
            _files_repository(name = name, files = files)
    if "googletest" not in declared:
        _system_package_repository(
            name = "googletest",
            build = _GOOGLETEST_BUILD,
            debian_package = "libgtest-dev",
            folders = ["googletest"],
            root = "/usr/src/googletest",
            root_variable = "GCAP_GOOGLETEST_ROOT",
        )
    if "google_benchmark" not in declared:
        _system_package_repository(
            name = "google_benchmark",
            build = _BENCHMARK_BUILD,
            debian_package = "libbenchmark-dev",
            folders = ["include/benchmark"],
            root = "/usr",
            root_variable = "GCAP_BENCHMARK_ROOT",
        )
    if "gcap_cuda" not in declared:
        cuda_repository(name = "gcap_cuda")
    if "gcap_ort" not in declared:
        ort_repository(name = "gcap_ort")
