// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels that an EP on a device must have for ONNX Runtime's sake: MemcpyFromHost and MemcpyToHost, which the runtime
// puts between nodes on the CPU and nodes on the EP, and Shape, which would otherwise be on the CPU and have its input
// copied there. A model with copies is never captured: the runtime refuses it.
//
// Locking: none. A kernel is only read once it is made.

#include "ort/host_kernels.h"

#include <stdlib.h>
#include <string.h>
#include "ort/data_transfer.h"
#include "ort/run.h"

// In the runtime's hands. `abi` is first.
typedef struct host_kernel {
  gcap_ort_kernel_impl_t abi;
  gcap_ort_session_ep_t* ep;
  // `run` is the one that the kernel is computed for; NULL: none.
  gcap_status_t (*compute)(const struct host_kernel* kernel, gcap_ort_kernel_context_t* context,
                           const gcap_ort_run_t* run);
  int64_t start, end;  // of Shape
} host_kernel_t;

static void release(gcap_ort_kernel_impl_t* self) { free(self); }

// The copy comes after what the run has issued. What goes to the host is read there next, so it is waited for; what
// comes from pageable memory is done with that memory on return.
static gcap_status_t copy_in_run(gcap_ort_session_ep_t* ep, gcap_copy_t* copy, const gcap_ort_run_t* run) {
  copy->stream = run->resources.stream;
  GCAP_RETURN_IF_ERROR(gcap_runtime_copy_tensors(ep->runtime, copy, 1));
  return copy->src_memory.kind == GCAP_MEMORY_HOST ? NULL : gcap_stream_synchronize(copy->stream);
}

static gcap_status_t copy(const host_kernel_t* kernel, gcap_ort_kernel_context_t* context, const gcap_ort_run_t* run) {
  gcap_ort_session_ep_t* ep = kernel->ep;
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
  return run != NULL ? copy_in_run(ep, &one, run) : gcap_runtime_copy_tensors(ep->runtime, &one, 1);
}

static int64_t clamped(int64_t axis, int64_t rank) {
  if (axis < 0) axis += rank;
  return axis < 0 ? 0 : axis > rank ? rank : axis;
}

static gcap_status_t write_shape(const host_kernel_t* kernel, gcap_ort_kernel_context_t* context,
                                 const gcap_ort_run_t* run) {
  (void)run;
  const gcap_ort_host_t* host = &kernel->ep->factory->host;
  const gcap_ort_value_t* of = NULL;
  gcap_ort_value_t* to = NULL;
  gcap_ort_element_type_t type = GCAP_ORT_UNDEFINED;
  const int64_t* shape = NULL;
  size_t rank = 0;
  void* data = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelContext_GetInput(context, 0, &of)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorElementTypeAndShapeDataReference(of, &type, &shape, &rank)));
  const int64_t start = clamped(kernel->start, (int64_t)rank), end = clamped(kernel->end, (int64_t)rank);
  const int64_t count = end > start ? end - start : 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelContext_GetOutput(context, 0, &count, 1, &to)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorMutableData(to, &data)));
  if (count > 0) memcpy(data, shape + start, (size_t)count * sizeof(*shape));
  return NULL;
}

static gcap_ort_status_t* compute(gcap_ort_kernel_impl_t* self, gcap_ort_kernel_context_t* context) {
  const host_kernel_t* kernel = (host_kernel_t*)self;
  gcap_ort_run_t* run = NULL;
  gcap_status_t status = gcap_ort_run_of_kernel(kernel->ep, context, &run);
  if (status == NULL) status = kernel->compute(kernel, context, run);
  gcap_ort_run_note_failure(run, status);
  return gcap_ort_give(&kernel->ep->factory->host, status);
}

static gcap_status_t create_kernel(const gcap_ort_factory_t* factory, const gcap_ort_kernel_info_t* info,
                                   host_kernel_t** out_kernel) {
  const gcap_ort_ep_t* ep = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(&factory->host, KernelInfo_GetEp(info, &ep)));
  host_kernel_t* kernel = calloc(1, sizeof(*kernel));
  if (kernel == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a kernel on the host");
  kernel->abi =
      (gcap_ort_kernel_impl_t){.ort_version_supported = factory->host.version, .Compute = compute, .Release = release};
  kernel->ep = (gcap_ort_session_ep_t*)ep;
  kernel->compute = copy;
  *out_kernel = kernel;
  return NULL;
}

static gcap_ort_status_t* create_memcpy(void* state, const gcap_ort_kernel_info_t* info,
                                        gcap_ort_kernel_impl_t** out_kernel) {
  const gcap_ort_factory_t* factory = state;
  host_kernel_t* kernel = NULL;
  gcap_status_t status = create_kernel(factory, info, &kernel);
  *out_kernel = kernel != NULL ? &kernel->abi : NULL;
  return gcap_ort_give(&factory->host, status);
}

static int64_t read_int(const gcap_ort_host_t* host, const gcap_ort_kernel_info_t* info, const char* name,
                        int64_t fallback) {
  int64_t value = fallback;
  gcap_ort_status_t* absent = host->api->KernelInfoGetAttribute_int64(info, name, &value);
  if (absent == NULL) return value;
  host->api->ReleaseStatus(absent);
  return fallback;
}

static gcap_ort_status_t* create_shape(void* state, const gcap_ort_kernel_info_t* info,
                                       gcap_ort_kernel_impl_t** out_kernel) {
  const gcap_ort_factory_t* factory = state;
  host_kernel_t* kernel = NULL;
  gcap_status_t status = create_kernel(factory, info, &kernel);
  *out_kernel = kernel != NULL ? &kernel->abi : NULL;
  if (status != NULL) return gcap_ort_give(&factory->host, status);
  kernel->compute = write_shape;
  kernel->start = read_int(&factory->host, info, "start", 0);
  kernel->end = read_int(&factory->host, info, "end", INT64_MAX);
  return NULL;
}

// --- Registration ---------------------------------------------------------------------------------------------------

typedef struct host_op {
  const char* op_type;
  int last_version;
  bool input_on_host;
  bool output_on_host;
  gcap_ort_kernel_create_t create;
} host_op_t;

static const host_op_t ops[] = {
    {"MemcpyFromHost", 1, true, false, create_memcpy},
    {"MemcpyToHost", 1, false, true, create_memcpy},
    {"Shape", GCAP_ORT_NO_LAST_VERSION, false, true, create_shape},
};

static gcap_status_t describe(const gcap_ort_factory_t* factory, const host_op_t* op,
                              gcap_ort_kernel_def_builder_t* builder) {
  const gcap_ort_host_t* host = &factory->host;
  const char* name = factory->plugin->name;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetOperatorType(builder, op->op_type)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetDomain(builder, "")));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetSinceVersion(builder, 1, op->last_version)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetExecutionProvider(builder, name)));
  if (op->input_on_host) {
    GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetInputMemType(builder, 0, GCAP_ORT_MEM_CPU_INPUT)));
  }
  if (!op->output_on_host) return NULL;
  return GCAP_ORT_EP_CALL(host, KernelDefBuilder_SetOutputMemType(builder, 0, GCAP_ORT_MEM_CPU_OUTPUT));
}

static gcap_status_t add(gcap_ort_factory_t* factory, const host_op_t* op) {
  const gcap_ort_host_t* host = &factory->host;
  gcap_ort_kernel_def_builder_t* builder = NULL;
  gcap_ort_kernel_def_t* def = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, CreateKernelDefBuilder(&builder)));
  gcap_status_t status = describe(factory, op, builder);
  if (status == NULL) status = GCAP_ORT_EP_CALL(host, KernelDefBuilder_Build(builder, &def));
  if (status == NULL) {
    status = GCAP_ORT_EP_CALL(host, KernelRegistry_AddKernel(factory->registry, def, op->create, factory));
  }
  if (def != NULL) host->ep_api->ReleaseKernelDef(def);
  host->ep_api->ReleaseKernelDefBuilder(builder);
  return status;
}

gcap_status_t gcap_ort_register_host_kernels(gcap_ort_factory_t* factory) {
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) GCAP_RETURN_IF_ERROR(add(factory, &ops[i]));
  return NULL;
}
