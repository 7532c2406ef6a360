// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An EP is its kernels. What every provider needs (streams, scratch, warm-up, capture, replay, copies) its runtime
// does: the ops table below names the runtime, and says which nodes the EP runs and how their kernels are made. Each
// kernel (kernels.c) plans its node once, when the session is created, and afterwards only issues work, so it is as
// legal inside a capture as outside.

#include "examples/minimal_ep/minimal_ep.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "examples/minimal_ep/kernels.h"

typedef struct minimal_ep {
  gcap_runtime_t* runtime;
  kernel_libraries_t libraries;  // for planning; runs use the handles attached to their stream
} minimal_ep_t;

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  return kernel_supports(model, node);
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  minimal_ep_t* ep = self;
  return kernel_create(&ep->libraries, model, node, out_kernel);
}

// Streams, with the handles attached to them, go with the runtime; the planning handles after it. A runtime that
// refuses is whole, and so is the EP.
static gcap_status_t destroy(void* self) {
  minimal_ep_t* ep = self;
  gcap_status_t status = gcap_runtime_destroy(ep->runtime);
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  status = gcap_status_join(status, kernel_libraries_deinit(&ep->libraries));
  free(ep);
  return gcap_status_annotate(status, GCAP_LEAKED, "the EP is gone");
}

gcap_status_t minimal_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep, gcap_runtime_t** out_runtime) {
  *out_ep = NULL;
  *out_runtime = NULL;
  minimal_ep_t* ep = calloc(1, sizeof(*ep));
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an EP");
  gcap_status_t status = gcap_runtime_create(options, &ep->runtime);
  if (status == NULL) status = kernel_libraries_init(options->device_id, &ep->libraries);
  if (status != NULL) return gcap_status_join(status, destroy(ep));
  const gcap_ep_ops_t ops = {
      .struct_version = GCAP_EP_OPS_VERSION,
      .struct_bytes = sizeof(gcap_ep_ops_t),
      .name = "minimal",
      .self = ep,
      .supports = supports,
      .create_kernel = create_kernel,
      .destroy = destroy,
      .runtime = ep->runtime,
  };
  status = gcap_ep_create(&ops, out_ep);
  if (status != NULL) return gcap_status_join(status, destroy(ep));
  *out_runtime = ep->runtime;
  return NULL;
}
