# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Compiler options of our own files. Other people's sources (GoogleTest, NVIDIA's headers) never get them."""

# POSIX threads, clock_gettime and the like need the feature macro: -std=c11 alone hides them.
GCAP_COPTS = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wmissing-prototypes",
    "-Wstrict-prototypes",
    "-D_GNU_SOURCE",
    # What is not marked GCAP_API is nobody else's; see include/gcap/api.h.
    "-fvisibility=hidden",
    # So that an exception out of a callback, or the cancellation of its thread, runs lib/internal/unwind.h.
    "-fexceptions",
]

# Tests and benchmarks. The language version comes from .bazelrc, since GoogleTest's sources need it too.
GCAP_CXXOPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]
