// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ort.h: an EP of gcap as a plugin EP of ONNX Runtime: a shared library that a stock ONNX Runtime loads, runs, captures
// and replays. docs/ort.md says how to make one.
#ifndef GCAP_KIT_ORT_H_
#define GCAP_KIT_ORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/kit/ep.h"
#include "gcap/kit/model.h"
#include "gcap/options.h"

#ifdef __cplusplus
extern "C" {
#endif

// The `last` of an operator whose newest version has the semantics of the kernel too.
#define GCAP_ORT_ANY_LATER_OPSET 0

// An operator that the EP has kernels for. Which of its nodes the EP runs, gcap_ep_supports says: types, ranks,
// attributes. Where ONNX Runtime knows no rank, the EP has to support the node at each, and gcap_ep_infer_shapes has to
// refuse outputs of another rank than the inputs give.
typedef struct gcap_ort_op {
  const char* op_type;  // "Conv"
  const char* domain;   // NULL: ONNX's own. Of another one the EP's nodes have "<domain>.<op_type>" as op_type
  // The versions of the operator, both included, whose semantics are those of the kernels: numbers of opsets, as ONNX's
  // page on the operator lists them. `last` may be GCAP_ORT_ANY_LATER_OPSET.
  int first;
  int last;
  // Bit i: ONNX Runtime gives input i in host memory, as gcap_ep_input_place says GCAP_INPUT_IN_HOST_MEMORY.
  uint32_t host_inputs;
  // Optional: the op_type of the EP's nodes of these versions, where they mean another operator than later ones, as
  // "Softmax-1" does.
  const char* as;
} gcap_ort_op_t;

// An attribute that kernels read. A FLOAT may be a tensor of one element in the model, as the value of ConstantOfShape
// is; if the tensor is of integers or bools, the EP gets an INT.
typedef struct gcap_ort_attribute {
  const char* name;
  gcap_attribute_kind_t kind;
} gcap_ort_attribute_t;

// Plugin: what ONNX Runtime is told of an EP, and how the EP is made. A constant of the shared library.
// Thread:   ONNX Runtime calls `create_ep` on any thread.
// Capture:  `create_ep` is called while a session is made, never by a run. Runs are captured, and the EP's kernels
//           compute in them (gcap_kernel_t).
// Lifetime: all that it points to stays valid until the library is unloaded.
typedef struct gcap_ort_plugin {
  size_t struct_size;   // sizeof(gcap_ort_plugin_t)
  const char* name;     // of the EP, for applications and in the keys of options: "ep.<name>.enable_cuda_graph"
  const char* vendor;   // "Example Ltd."
  const char* version;  // of the plugin, as semver.org has it: "1.0.0"
  void* user;           // passed to create_ep
  // Makes the EP of one session, on the device `options->device_id`. The EP works on device memory. ONNX Runtime's
  // session options for this EP are in `options`.
  gcap_status_t (*create_ep)(void* user, const gcap_options_t* options, gcap_ep_t** out_ep);
  const gcap_ort_op_t* ops;  // after the last one an op_type of NULL
  // Of all operators together; after the last one a name of NULL. A node that has an attribute which is not listed, or
  // is of another kind, is left to other EPs.
  const gcap_ort_attribute_t* attributes;
} gcap_ort_plugin_t;

// The table and the attributes for an EP whose kernels are those of gcap/kit/ops/nodes.h. Link //ort:nodes.
extern const gcap_ort_op_t gcap_ort_node_ops[];
extern const gcap_ort_attribute_t gcap_ort_node_attributes[];

// What the two functions that ONNX Runtime looks for in a plugin call; see GCAP_ORT_DEFINE_PLUGIN. The pointers are of
// ONNX Runtime's types: `api_base` is an OrtApiBase, `logger` an OrtLogger, each factory an OrtEpFactory, and the
// result an OrtStatus, NULL for success.
//   ORT_NOT_IMPLEMENTED   the runtime is older than 1.26
//   ORT_INVALID_ARGUMENT  `plugin` lacks something; the message names it
//   ORT_EP_FAIL           no host memory; or CUDA does not say which devices there are
void* gcap_ort_create_factories(const gcap_ort_plugin_t* plugin, const void* api_base, const void* logger,
                                void** out_factories, size_t max_factories, size_t* out_num_factories);
void* gcap_ort_release_factory(void* factory);

// Defines CreateEpFactories and ReleaseEpFactory, for one plugin in a shared library. They are all that the library
// exports if the rest is compiled with -fvisibility=hidden.
#define GCAP_ORT_DEFINE_PLUGIN(plugin)                                                                              \
  __attribute__((visibility("default"))) void* CreateEpFactories(const char* registration, const void* api_base,    \
                                                                 const void* logger, void** out_factories,          \
                                                                 size_t max_factories, size_t* out_num_factories);  \
  void* CreateEpFactories(const char* registration, const void* api_base, const void* logger, void** out_factories, \
                          size_t max_factories, size_t* out_num_factories) {                                        \
    (void)registration;                                                                                             \
    return gcap_ort_create_factories((plugin), api_base, logger, out_factories, max_factories, out_num_factories);  \
  }                                                                                                                 \
  __attribute__((visibility("default"))) void* ReleaseEpFactory(void* factory);                                     \
  void* ReleaseEpFactory(void* factory) { return gcap_ort_release_factory(factory); }

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_ORT_H_
