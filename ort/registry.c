// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The operators of a plugin as ONNX Runtime's kernel registry. No type is constrained here: gcap_ep_supports says which
// nodes the EP runs, and a node that the EP does not claim never comes to a kernel.
//
// Locking: none. The registry is made with the factory, and only read afterwards.

#include "ort/registry.h"

#include <stdlib.h>
#include "ort/host_kernels.h"
#include "ort/kernel.h"

static gcap_status_t describe(const gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                              gcap_ort_kernel_def_builder_t* builder) {
  const gcap_ort_host_t* host = &factory->host;
  const int last = op->last == GCAP_ORT_ANY_LATER_OPSET ? GCAP_ORT_NO_LAST_VERSION : op->last;
  const char* domain = op->domain != NULL ? op->domain : "";
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetOperatorType(builder, op->op_type)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetDomain(builder, domain)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetSinceVersion(builder, op->first, last)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetExecutionProvider(builder, factory->plugin->name)));
  for (size_t i = 0; i < 32; ++i) {
    if ((op->host_inputs >> i & 1) == 0) continue;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetInputMemType(builder, i, GCAP_ORT_MEM_CPU_INPUT)));
  }
  return NULL;
}

static gcap_status_t add(const gcap_ort_factory_t* factory, gcap_ort_registered_op_t* state) {
  const gcap_ort_host_t* host = &factory->host;
  gcap_ort_kernel_def_builder_t* builder = NULL;
  gcap_ort_kernel_def_t* def = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, CreateKernelDefBuilder(&builder)));
  gcap_status_t status = describe(factory, state->op, builder);
  if (status == NULL) status = GCAP_ORT_EP_CALL(host, KernelDefBuilder_Build(builder, &def));
  if (status == NULL) {
    status = GCAP_ORT_EP_CALL(host, KernelRegistry_AddKernel(factory->registry, def, gcap_ort_create_kernel, state));
  }
  if (def != NULL) host->ep_api->ReleaseKernelDef(def);
  host->ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

gcap_status_t gcap_ort_registry_open(gcap_ort_factory_t* factory) {
  const gcap_ort_op_t* ops = factory->plugin->ops;
  size_t count = 0;
  while (ops[count].op_type != NULL) ++count;
  factory->registered = calloc(count + 1, sizeof(*factory->registered));
  if (factory->registered == NULL)
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu operators", count);
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(&factory->host, CreateKernelRegistry(&factory->registry)));
  for (size_t i = 0; i < count; ++i) {
    factory->registered[i] = (gcap_ort_registered_op_t){factory, &ops[i]};
    GCAP_RETURN_IF_ERROR(add(factory, &factory->registered[i]));
  }
  return gcap_ort_register_host_kernels(factory);
}

void gcap_ort_registry_close(gcap_ort_factory_t* factory) {
  if (factory->registry != NULL) factory->host.ep_api->ReleaseKernelRegistry(factory->registry);
  free(factory->registered);
}
