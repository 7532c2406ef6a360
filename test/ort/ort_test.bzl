# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Tests with a real ONNX Runtime: each with the oldest and with the newest that gcap knows."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//bazel:testing.bzl", "gcap_cc_test")

# The releases between the oldest and the newest one.
_BETWEEN = [
    "1.27.0",
    "1.28.0",
    "1.29.0",
    "1.30.0",
    "1.31.1",
]

def gcap_ort_tests(names, deps, tags = [], **kwargs):
    """GoogleTest programs that load ONNX Runtime and the test's plugin.

    Args:
      names: the tests; name_oldest and name_newest are compiled of name.cc.
      deps: the libraries that they need.
      tags: more tags.
      **kwargs: as in gcap_cc_test.
    """
    for name in names:
        for runtime in ["oldest", "newest"]:
            gcap_cc_test(
                name = "%s_%s" % (name, runtime),
                srcs = [name + ".cc"],
                # The plugin has the CUDA runtime; the test has none.
                alone = True,
                bare = True,
                data = [
                    ":libtest_plugin.so",
                    "@gcap_ort//:runtimes.txt",
                ],
                env = {
                    "GCAP_SIM_DEVICES": "2",
                    "GCAP_ORT_RUNTIME": runtime,
                    "GCAP_ORT_RUNTIMES": "$(location @gcap_ort//:runtimes.txt)",
                    "GCAP_ORT_TEST_PLUGIN": "$(location :libtest_plugin.so)",
                },
                sim_only = True,
                tags = tags,
                deps = deps,
                **kwargs
            )

def gcap_ort_versions_tests(names):
    """Runs tests of gcap_ort_tests with each release between the oldest and the newest.

    Args:
      names: as in gcap_ort_tests.
    """
    programs = [":%s_newest" % name for name in names]
    for version in _BETWEEN:
        sh_test(
            name = "versions_test_" + version,
            size = "small",
            srcs = ["versions_test.sh"],
            args = [version] + ["$(location %s)" % program for program in programs],
            data = programs + [
                ":libtest_plugin.so",
                "@gcap_ort//:runtimes.txt",
            ],
            env = {
                "GCAP_SIM_DEVICES": "2",
                "GCAP_ORT_RUNTIMES": "$(location @gcap_ort//:runtimes.txt)",
                "GCAP_ORT_TEST_PLUGIN": "$(location :libtest_plugin.so)",
            },
            tags = [
                "no-sanitizer",
                "sim-only",
            ],
        )
