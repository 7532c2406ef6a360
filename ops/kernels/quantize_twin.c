// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels that quantize and dequantize: the same function, element by element.
#include "ops/kernels/quantize_kernels.h"
#include "ops/kernels/twin.h"

// The scales are as many as the last element's is behind the first one, and one.
static size_t list_accesses(const gcap_quantize_params_t* p, size_t in_bytes, size_t out_bytes, size_t zero_point_bytes,
                            gcap_sim_access_t* out_items, size_t capacity) {
  const size_t scales = (size_t)gcap_scale_index(p, p->count - 1) + 1;
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)p->count * in_bytes, false);
  gcap_twin_access(&list, p->scale, scales * (p->scale_type == GCAP_SCALE_F32 ? 4 : 2), false);
  if (p->zero_point != NULL) gcap_twin_access(&list, p->zero_point, scales * zero_point_bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->count * out_bytes, true);
  return list.count;
}

#define DEFINE_TWIN(function, in, out, zero_point_type)                                                              \
  GCAP_TWIN_HANDLE(gcap_kernel_##function##_##in##_##out, gcap_quantize_params_t)                                    \
  static void run_##function##_##in##_##out(const gcap_sim_launch_t* launch, void* const* args) {                    \
    (void)launch;                                                                                                    \
    const gcap_quantize_params_t* p = args[0];                                                                       \
    for (int64_t i = 0; i < p->count; ++i) ((gcap_##out##_t*)p->y)[i] = gcap_##function##_##in##_##out(p, i);        \
  }                                                                                                                  \
  static size_t accesses_##function##_##in##_##out(const gcap_sim_launch_t* launch, void* const* args,               \
                                                   gcap_sim_access_t* out_items, size_t capacity) {                  \
    (void)launch;                                                                                                    \
    return list_accesses(args[0], sizeof(gcap_##in##_t), sizeof(gcap_##out##_t), sizeof(gcap_##zero_point_type##_t), \
                         out_items, capacity);                                                                       \
  }
#define DEFINE_QUANTIZE(in, out, low, high) DEFINE_TWIN(quantize, in, out, out)
#define DEFINE_DEQUANTIZE(in, out) DEFINE_TWIN(dequantize, in, out, in)
GCAP_QUANTIZE_KERNELS(DEFINE_QUANTIZE)
GCAP_DEQUANTIZE_KERNELS(DEFINE_DEQUANTIZE)

GCAP_TWIN_HANDLE(gcap_kernel_quantization_range, gcap_quantization_range_params_t)
static void run_range(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  gcap_quantization_range(args[0]);
}
static size_t accesses_range(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out_items,
                             size_t capacity) {
  (void)launch;
  const gcap_quantization_range_params_t* p = args[0];
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->extremes, 2 * sizeof(float), false);
  gcap_twin_access(&list, p->scale, sizeof(float), true);
  gcap_twin_access(&list, p->zero_point, 1, true);
  return list.count;
}

#define REGISTER_TWIN(function, in, out)                                                                            \
  gcap_twin_register((const void*)gcap_kernel_##function##_##in##_##out, "gcap_kernel_" #function "_" #in "_" #out, \
                     &params_bytes, run_##function##_##in##_##out, accesses_##function##_##in##_##out);
#define REGISTER_QUANTIZE(in, out, low, high) REGISTER_TWIN(quantize, in, out)
#define REGISTER_DEQUANTIZE(in, out) REGISTER_TWIN(dequantize, in, out)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_quantize_params_t);
  static const size_t range_bytes = sizeof(gcap_quantization_range_params_t);
  gcap_twin_register((const void*)gcap_kernel_quantization_range, "gcap_kernel_quantization_range", &range_bytes,
                     run_range, accesses_range);
  GCAP_QUANTIZE_KERNELS(REGISTER_QUANTIZE)
  GCAP_DEQUANTIZE_KERNELS(REGISTER_DEQUANTIZE)
}
