# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Build settings by hand: Debian's Bazel comes without skylib."""

BuildSettingInfo = provider(
    doc = "The value of a build setting.",
    fields = {"value": "what the flag says"},
)

def _setting_impl(ctx):
    return BuildSettingInfo(value = ctx.build_setting_value)

string_flag = rule(
    implementation = _setting_impl,
    build_setting = config.string(flag = True),
    doc = "A flag with a string value.",
)

bool_flag = rule(
    implementation = _setting_impl,
    build_setting = config.bool(flag = True),
    doc = "A flag that is true or false.",
)
