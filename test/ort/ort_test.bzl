# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Tests with a real ONNX Runtime: each with the oldest and with the newest that gcap knows."""

load("//bazel:testing.bzl", "gcap_cc_test")

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
