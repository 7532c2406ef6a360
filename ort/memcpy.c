// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// MemcpyFromHost and MemcpyToHost, which ONNX Runtime puts between nodes on the CPU and nodes on the EP. A model with
// such nodes is never captured: ONNX Runtime refuses it.

#include <stdlib.h>

#include "ort/ep.h"

// In the runtime's hands. `abi` is first.
typedef struct memcpy_kernel {
  gcap_ort_kernel_impl_t abi;
  gcap_ort_session_ep_t* ep;
} memcpy_kernel_t;

static void release(gcap_ort_kernel_impl_t* self) { free(self); }

static gcap_status_t copy(gcap_ort_session_ep_t* ep, gcap_ort_kernel_context_t* context) {
  const gcap_ort_host_t* host = &ep->factory->host;
  const gcap_ort_value_t* from = NULL;
  gcap_ort_value_t* to = NULL;
  gcap_ort_element_type_t type = GCAP_ORT_UNDEFINED;
  const int64_t* shape = NULL;
  size_t rank = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelContext_GetInput(context, 0, &from)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorElementTypeAndShapeDataReference(from, &type, &shape, &rank)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelContext_GetOutput(context, 0, shape, rank, &to)));
  gcap_tensor_t src, dst;
  gcap_copy_t one = {.src = &src, .dst = &dst};
  GCAP_RETURN_IF_ERROR(gcap_ort_describe_bytes(ep->factory, from, &src, &one.src_memory));
  GCAP_RETURN_IF_ERROR(gcap_ort_describe_bytes(ep->factory, to, &dst, &one.dst_memory));
  if (src.shape[0] == 0) return NULL;
  // What goes to the host is read there next. What comes from pageable memory is done with it on return.
  const gcap_ort_run_t* run = gcap_ort_run_current(ep);
  if (run != NULL && one.src_memory.kind == GCAP_MEMORY_HOST) one.stream = run->resources.stream;
  return gcap_ep_copy_tensor(ep->ep, &one);
}

static gcap_ort_status_t* compute(gcap_ort_kernel_impl_t* self, gcap_ort_kernel_context_t* context) {
  gcap_ort_session_ep_t* ep = ((memcpy_kernel_t*)self)->ep;
  gcap_status_t status = copy(ep, context);
  gcap_ort_run_note_failure(gcap_ort_run_current(ep), status);
  return gcap_ort_give(&ep->factory->host, status);
}

static gcap_status_t create_kernel(const gcap_ort_factory_t* factory, const gcap_ort_kernel_info_t* info,
                                   gcap_ort_kernel_impl_t** out_kernel) {
  const gcap_ort_ep_t* ep = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(&factory->host, KernelInfo_GetEp(info, &ep)));
  memcpy_kernel_t* kernel = calloc(1, sizeof(*kernel));
  if (kernel == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a copy between nodes");
  kernel->abi =
      (gcap_ort_kernel_impl_t){.ort_version_supported = factory->host.version, .Compute = compute, .Release = release};
  kernel->ep = (gcap_ort_session_ep_t*)ep;
  *out_kernel = &kernel->abi;
  return NULL;
}

static gcap_ort_status_t* create(void* state, const gcap_ort_kernel_info_t* info, gcap_ort_kernel_impl_t** out_kernel) {
  const gcap_ort_factory_t* factory = state;
  *out_kernel = NULL;
  return gcap_ort_give(&factory->host, create_kernel(factory, info, out_kernel));
}

static gcap_status_t describe(const gcap_ort_factory_t* factory, const char* op_type, bool from_host,
                              gcap_ort_kernel_def_builder_t* builder) {
  const gcap_ort_host_t* host = &factory->host;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetOperatorType(builder, op_type)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetDomain(builder, "")));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetSinceVersion(builder, 1, 1)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetExecutionProvider(builder, factory->plugin->name)));
  if (from_host) {
    return GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetInputMemType(builder, 0, GCAP_ORT_MEM_CPU_INPUT));
  }
  return GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetOutputMemType(builder, 0, GCAP_ORT_MEM_CPU_OUTPUT));
}

static gcap_status_t add(gcap_ort_factory_t* factory, const char* op_type, bool from_host) {
  const gcap_ort_host_t* host = &factory->host;
  gcap_ort_kernel_def_builder_t* builder = NULL;
  gcap_ort_kernel_def_t* def = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, CreateKernelDefBuilder(&builder)));
  gcap_status_t status = describe(factory, op_type, from_host, builder);
  if (status == NULL) status = GCAP_ORT_EP_CALL(host, KernelDefBuilder_Build(builder, &def));
  if (status == NULL) {
    status = GCAP_ORT_EP_CALL(host, KernelRegistry_AddKernel(factory->registry, def, create, factory));
  }
  if (def != NULL) host->ep_api->ReleaseKernelDef(def);
  host->ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

gcap_status_t gcap_ort_register_memcpy(gcap_ort_factory_t* factory) {
  GCAP_RETURN_IF_ERROR(add(factory, "MemcpyFromHost", /*from_host=*/true));
  return add(factory, "MemcpyToHost", /*from_host=*/false);
}
