# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Fuzz targets as ordinary tests, which any compiler builds: each input of the committed corpus is replayed once."""

load("@rules_cc//cc:cc_test.bzl", "cc_test")
load("//bazel:copts.bzl", "GCAP_COPTS", "GCAP_CXXOPTS")

def gcap_fuzz_test(name, deps = [], srcs = None, hdrs = [], **kwargs):
    """Replays corpus/<target>.pack on <target>_fuzz.c.

    Args:
      name: the target's name with "_fuzz_test" at its end.
      deps: the libraries under test.
      srcs: the sources, where they are not <target>_fuzz.c.
      hdrs: further headers of this package.
      **kwargs: as everywhere.
    """
    target = name[:-len("_fuzz_test")]
    srcs = [target + "_fuzz.c"] if srcs == None else srcs
    cc_test(
        name = name,
        size = "small",
        srcs = srcs + hdrs + ["input.h", "replay_main.c"],
        args = ["$(location corpus/%s.pack)" % target],
        copts = GCAP_CXXOPTS if srcs[0].endswith(".cc") else GCAP_COPTS,
        data = ["corpus/%s.pack" % target],
        tags = [
            "no-tsan",  # no target has two threads at work
            "sim-only",
        ],
        deps = deps + [":pack"],
        **kwargs
    )
