// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// During a capture, where the first record is silent: graphs and user objects.
#include "test/conformance/during_frame.h"

namespace conformance {

namespace {

const std::vector<DuringRow> kRows = {
    {"cudaGraphAddMemsetNode_other",
     [](DuringFrame& f) {
       const auto p = f.r.Fill(1);
       return cudaGraphAddMemsetNode(&f.out.node, f.other, nullptr, 0, &p);
     }},
    {"cudaGraphAddEmptyNode_capturing_graph",
     [](DuringFrame& f) { return cudaGraphAddEmptyNode(&f.out.node, f.capturing(), nullptr, 0); }},
    {"cudaGraphGetNodes_capturing_graph",
     [](DuringFrame& f) { return cudaGraphGetNodes(f.capturing(), nullptr, &f.out.size); }},
    {"cudaGraphClone_capturing_graph", [](DuringFrame& f) { return cudaGraphClone(&f.out.graph, f.capturing()); }},
    {"cudaGraphRetainUserObject_capturing_graph",
     [](DuringFrame& f) { return cudaGraphRetainUserObject(f.capturing(), f.object, 1, 0); }},
    {"cudaGraphDestroyNode_capturing_graph",
     [](DuringFrame& f) {
       size_t c = 1;
       cudaError_t code = cudaGraphGetNodes(f.capturing(), &f.out.node, &c);
       return code != cudaSuccess ? code : cudaGraphDestroyNode(f.out.node);
     }},
    {"cudaGraphExecUpdate_other", [](DuringFrame& f) { return cudaGraphExecUpdate(f.exec, f.other, &f.out.update); }},
    {"cudaGraphExecKernelNodeSetParams",
     [](DuringFrame& f) {
       const auto p = f.r.Kernel();
       return cudaGraphExecKernelNodeSetParams(f.exec, f.kernel, &p);
     }},
    {"cudaGraphExecMemsetNodeSetParams",
     [](DuringFrame& f) {
       const auto p = f.r.Fill(3);
       return cudaGraphExecMemsetNodeSetParams(f.exec, f.fill, &p);
     }},
    {"cudaGraphNodeSetEnabled", [](DuringFrame& f) { return cudaGraphNodeSetEnabled(f.exec, f.fill, 1); }},
    {"cudaGraphExecGetFlags", [](DuringFrame& f) { return cudaGraphExecGetFlags(f.exec, &f.out.wide); }},
    {"cudaGraphInstantiateWithParams_other",
     [](DuringFrame& f) {
       cudaGraphInstantiateParams p = {};
       return cudaGraphInstantiateWithParams(&f.out.exec, f.other, &p);
     }},
    {"cudaGraphInstantiate_NULL", [](DuringFrame& f) { return cudaGraphInstantiate(&f.out.exec, nullptr, 0); }},
    {"cudaGraphLaunch_other", [](DuringFrame& f) { return cudaGraphLaunch(f.exec, f.r.s2); }},
    {"cudaGraphLaunch_legacy", [](DuringFrame& f) { return cudaGraphLaunch(f.exec, nullptr); }, DuringRow::kLegacy},
    {"cudaGraphUpload_other", [](DuringFrame& f) { return cudaGraphUpload(f.exec, f.r.s2); }},
    {"cudaGraphLaunch_NULL_capturing", [](DuringFrame& f) { return cudaGraphLaunch(nullptr, f.s); }},
    {"cudaGraphExecDestroy_NULL", [](DuringFrame&) { return cudaGraphExecDestroy(nullptr); }},
    {"cudaUserObjectCreate",
     [](DuringFrame& f) {
       return cudaUserObjectCreate(&f.out.object, nullptr, Nothing, 1, cudaUserObjectNoDestructorSync);
     }},
};

const DuringCases kCases(kRows);

}  // namespace

}  // namespace conformance
