// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A shared library that a stock ONNX Runtime loads as an execution provider: the provider of examples/minimal_ep, told
// to ONNX Runtime. From Python:
//
//     import onnxruntime
//     onnxruntime.register_execution_provider_library("gcap", "libgcap_ort_plugin_ep.so")
//     devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "gcap"]
//     options = onnxruntime.SessionOptions()
//     options.add_provider_for_devices(devices[:1], {"enable_cuda_graph": "1"})
//     session = onnxruntime.InferenceSession("model.onnx", sess_options=options)
//
// docs/ort.md says the rest, and how to make one's own.

#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/kit/ort.h"

static gcap_status_t create_ep(void* user, const gcap_options_t* options, gcap_ep_t** out_ep) {
  (void)user;
  return minimal_ep_create(options, out_ep);
}

static const gcap_ort_plugin_t plugin = {
    .struct_size = sizeof(gcap_ort_plugin_t),
    .name = "gcap",
    .vendor = "the gcap authors",
    .version = "0.1.0",
    .create_ep = create_ep,
    .ops = gcap_ort_node_ops,
    .attributes = gcap_ort_node_attributes,
};

GCAP_ORT_DEFINE_PLUGIN(&plugin)
