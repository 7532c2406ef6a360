# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The one shape of a test: what every test of gcap has in common is said here, and a BUILD file says the rest.

A test `name` is compiled of name.cc, and is linked with the CUDA runtime of the build (//:cuda_runtime), with
//test/support and with GoogleTest's main. It is small, and starts no thread, unless its BUILD file says more.
"""

load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("@rules_cc//cc:cc_test.bzl", "cc_test")
load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//bazel:copts.bzl", "GCAP_CXXOPTS")

_GTEST_MAIN = [
    "//test/support:precompiled",
    "@googletest//:gtest_main",
]
_PRECOMPILED = [
    "-include",
    "test/support/precompiled.h",
]

# A test that is merged with others of its package. //... takes the merged program; who works on the test names the test.
_ONE_BY_ONE = [
    "manual",
    "one-by-one",
]

def gcap_cc_test(
        name,
        srcs = None,
        deps = [],
        alone = False,
        bare = False,
        copts = [],
        sim_only = False,
        size = "small",
        tags = [],
        threads = False,
        **kwargs):
    """A GoogleTest program.

    Args:
      name: the test; its source is name + ".cc".
      srcs: the sources, where there are others.
      deps: the libraries that it tests, and helpers beyond //test/support.
      alone: it needs a process of its own, so it is not merged with others.
      bare: nothing is linked but `deps` and GoogleTest.
      copts: more options of the compiler.
      sim_only: only the simulator can run it; it may make calls fail, so it has //test/support:sim too.
      size: as everywhere.
      tags: more tags.
      threads: it starts threads, so it runs under tsan too.
      **kwargs: as everywhere.
    """
    if not bare:
        deps = deps + ["//:cuda_runtime", "//test/support"]
    if sim_only and not bare:
        deps = deps + ["//test/support:sim"]
    cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        copts = GCAP_CXXOPTS + _PRECOMPILED + copts,
        tags = tags + ([] if alone else _ONE_BY_ONE) + ([] if threads else ["no-tsan"]) + (["sim-only"] if sim_only else []),
        deps = deps + _GTEST_MAIN,
        **kwargs
    )

def gcap_cc_tests(names, hdrs = [], **kwargs):
    """Several tests that differ in their one source alone.

    Args:
      names: the tests.
      hdrs: headers of this package that the sources include.
      **kwargs: as in gcap_cc_test.
    """
    for name in names:
        gcap_cc_test(name = name, srcs = [name + ".cc"] + hdrs, **kwargs)

# What merged tests have in common, beyond their tags.
_SHARED = ["args", "copts", "data", "env", "linkopts", "shard_count", "size"]

def _class_of(rule):
    """What tests must have in common to be merged: how they run, and how they are compiled and linked."""
    heap_fails = len([label for label in rule["deps"] if label.endswith(":heap_failure")]) > 0
    return str([rule.get(field) for field in _SHARED] + [sorted(rule["tags"]), heap_fails])

def _merged_test(name, rules):
    """One program of all these tests."""
    sources = depset(transitive = [depset(rule["srcs"]) for rule in rules]).to_list()
    units = [source for source in sources if source.endswith("_test.cc")]
    native.genrule(
        name = name + "_unit",
        testonly = True,
        srcs = units,
        outs = [name + ".cc"],
        cmd = "awk -f $(location //bazel:one_unit.awk) $(SRCS) > $@",
        tags = ["manual"],
        tools = ["//bazel:one_unit.awk"],
    )
    cc_test(
        name = name,
        srcs = [name + ".cc"] + [source for source in sources if source not in units],
        tags = [tag for tag in rules[0]["tags"] if tag not in _ONE_BY_ONE],
        deps = depset(transitive = [depset(rule["deps"]) for rule in rules]).to_list(),
        **{field: rules[0][field] for field in _SHARED if rules[0].get(field, -1) != -1}
    )

def gcap_test_names(name = "names"):
    """Lists the package's tests in name.txt: "//package:test", and "Suite.Case" for each of its cases, a line each.

    A page that names tests is compared with the lists. A source that is in no test is in no list. Call it last, unless
    the package calls gcap_merged_tests, which calls it.

    Args:
      name: the list.
    """
    rules = [rule for rule in native.existing_rules().values() if rule["kind"] in ["cc_test", "sh_test"]]
    labels = ["//%s:%s" % (native.package_name(), rule["name"]) for rule in rules]
    sources = depset(transitive = [depset(rule["srcs"]) for rule in rules]).to_list()
    sources = [source for source in sources if source.endswith(".cc")]
    native.genrule(
        name = name,
        testonly = True,
        srcs = sources,
        outs = [name + ".txt"],
        # Without sources, awk reads nothing.
        cmd = "{ printf '%%s\\n' %s && awk -f $(location //bazel:test_names.awk) $(SRCS) /dev/null; } > $@" %
              " ".join(labels),
        tools = ["//bazel:test_names.awk"],
        visibility = ["//test/docs:__pkg__"],
    )

def gcap_merged_tests(name):
    """Merges the package's tests of each kind into one program. Call it last.

    A test's time to compile is mostly GoogleTest's and the C++ library's headers. So where every test is to run, many
    sources are compiled as one: a third of the time. Who works on one test names it, and has it alone.

    Args:
      name: merged tests are called name_1, name_2, ...
    """
    gcap_test_names()
    classes = {}
    for rule in native.existing_rules().values():
        if rule["kind"] == "cc_test" and "one-by-one" in rule["tags"]:
            key = _class_of(rule)
            classes[key] = classes.get(key, []) + [rule]
    numbers = {}
    for key, rules in classes.items():
        numbers[key] = len(numbers) + 1
        _merged_test("%s_%d" % (name, numbers[key]), rules)

def gcap_test_library(name, hdrs = None, deps = [], bare = False, **kwargs):
    """What several tests share.

    Args:
      name: the library; its header is name + ".h".
      hdrs: the headers, where there are others.
      deps: the libraries that it includes beyond //test/support.
      bare: it needs no //test/support.
      **kwargs: as everywhere.
    """
    cc_library(
        name = name,
        testonly = True,
        hdrs = [name + ".h"] if hdrs == None else hdrs,
        copts = GCAP_CXXOPTS + _PRECOMPILED,
        deps = deps + ["//test/support:precompiled"] + ([] if bare else ["//test/support"]),
        **kwargs
    )

def gcap_cc_bench(name, deps, size = "small", tags = [], args = ["--benchmark_min_time=0.001"], **kwargs):
    """A Google Benchmark program, which the test suite runs once, as shortly as it can.

    Args:
      name: the benchmark; its source is name + ".cc".
      deps: the libraries that it measures; with //:cuda_runtime or //sim.
      size: as everywhere.
      tags: more tags.
      args: as everywhere; of a benchmark that has a main of its own.
      **kwargs: as everywhere.
    """
    cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"],
        args = args,
        copts = GCAP_CXXOPTS,
        tags = tags + ["benchmark"],
        deps = deps + ["@google_benchmark//:benchmark"],
        **kwargs
    )

def gcap_program_test(name, program, args = [], data = [], size = "small", tags = [], **kwargs):
    """A shell script that runs a program as its user does. It runs on the simulator alone: the program needs a device.

    Args:
      name: the test; its source is name + ".sh".
      program: the program; the script's first argument is its path.
      args: more arguments of the script.
      data: more files that the script reads.
      size: as everywhere.
      tags: more tags.
      **kwargs: as everywhere.
    """
    sh_test(
        name = name,
        size = size,
        args = ["$(location %s)" % program] + args,
        data = [program] + data,
        tags = tags + ["sim-only"],
        **dict({"srcs": [name + ".sh"]}, **kwargs)
    )
