# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""library_sources: the C and C++ files of libraries and of all that they depend on, for tests that read them."""

_SourcesInfo = provider(fields = ["files"])

def _aspect_impl(target, ctx):
    own = []
    for attribute in ["srcs", "hdrs"]:
        own += getattr(ctx.rule.files, attribute, [])
    # A dependency may be a file, such as a script of the linker.
    dependencies = [each[_SourcesInfo].files for each in getattr(ctx.rule.attr, "deps", []) if _SourcesInfo in each]
    own = [file for file in own if file.is_source and file.extension in ["c", "h", "hpp", "inc", "cu"]]
    return [_SourcesInfo(files = depset(own, transitive = dependencies))]

_sources_aspect = aspect(
    implementation = _aspect_impl,
    attr_aspects = ["deps"],
)

def _library_sources_impl(ctx):
    files = depset(transitive = [library[_SourcesInfo].files for library in ctx.attr.libraries])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

library_sources = rule(
    implementation = _library_sources_impl,
    attrs = {"libraries": attr.label_list(mandatory = True, aspects = [_sources_aspect])},
    doc = "Reads deps, srcs and hdrs of the rules, so no package has to export its files.",
)
