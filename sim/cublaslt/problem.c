// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Descriptors checked into a problem: what a call computes, before its data pointers are known. Setting attributes
// checks nothing, so all of the real library's judgement is here, with its codes as measured on 13.1: 7 for what
// contradicts itself, 15 for what no kernel does. What a kernel of a GPU does and the simulator does not stops the
// program. Stateless: descriptors are read during the call and not kept.
#include "sim/cublaslt/internal.h"
#include "sim/library/element.h"

// The four layouts of a call, alive and not NULL.
typedef struct layouts {
  const gcap_sim_lt_layout_t* a;
  const gcap_sim_lt_layout_t* b;
  const gcap_sim_lt_layout_t* c;
  const gcap_sim_lt_layout_t* d;
} layouts_t;

static const gcap_sim_lt_desc_t* check_desc(const char* function, cublasLtMatmulDesc_t desc) {
  if (desc == NULL) {
    gcap_sim_stop(function, "the operation descriptor is NULL, which crashes the real library");
  }
  gcap_sim_object_check(&gcap_sim_lt_desc_kind, desc, function);
  return (const gcap_sim_lt_desc_t*)desc;
}

// C may have no layout: it is D's then.
static cublasStatus_t check_layouts(const char* function, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, layouts_t* out) {
  const void* given[] = {a, b, c != NULL ? c : d, d};
  for (size_t i = 0; i < 4; ++i) {
    if (given[i] == NULL) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    gcap_sim_object_check(&gcap_sim_lt_layout_kind, given[i], function);
  }
  *out = (layouts_t){given[0], given[1], given[2], given[3]};
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_compute_type(const char* function, const gcap_sim_lt_desc_t* desc,
                                         gcap_sim_lt_problem_t* out) {
  switch (desc->compute_type) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC: out->input = GCAP_SIM_LT_INPUT_EXACT; return CUBLAS_STATUS_SUCCESS;
    case CUBLAS_COMPUTE_32F_FAST_TF32: out->input = GCAP_SIM_LT_INPUT_TF32; return CUBLAS_STATUS_SUCCESS;
    case CUBLAS_COMPUTE_32F_FAST_16F: out->input = GCAP_SIM_LT_INPUT_16F; return CUBLAS_STATUS_SUCCESS;
    case CUBLAS_COMPUTE_32F_FAST_16BF: out->input = GCAP_SIM_LT_INPUT_16BF; return CUBLAS_STATUS_SUCCESS;
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      gcap_sim_stop(function, "compute type %d is not modelled", desc->compute_type);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// What a modelled compute type calculates in.
static cudaDataType compute_type_of(const gcap_sim_lt_desc_t* desc) {
  const int is_double = desc->compute_type == CUBLAS_COMPUTE_64F || desc->compute_type == CUBLAS_COMPUTE_64F_PEDANTIC;
  return is_double ? CUDA_R_64F : CUDA_R_32F;
}

// Whether kernels that read `in` can write `out`: the same type, or floats but from doubles; from floats anything, if
// they may be rounded on the way.
static int is_output_of(cudaDataType in, cudaDataType out, gcap_sim_lt_input_t input) {
  return out == in || (out == CUDA_R_32F && in != CUDA_R_64F) || (in == CUDA_R_32F && input != GCAP_SIM_LT_INPUT_EXACT);
}

// Measured: kernels are looked for by the types of A, of D and of the computation; then B must have the type of A, C
// that of D, and the scalars that of the computation.
static cublasStatus_t check_types(const char* function, const gcap_sim_lt_desc_t* desc, const layouts_t* layouts,
                                  gcap_sim_lt_input_t input) {
  const uint32_t types[] = {layouts->a->type, layouts->b->type, layouts->c->type, layouts->d->type};
  const int has_a = gcap_sim_element_bytes((cudaDataType)types[0]) != 0;
  const int has_b = gcap_sim_element_bytes((cudaDataType)types[1]) != 0;
  if (has_a != has_b) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (size_t i = 0; i < 4; ++i) {
    if (gcap_sim_element_bytes((cudaDataType)types[i]) == 0) {
      gcap_sim_stop(function, "matrix type %u is not modelled", types[i]);
    }
  }
  const cudaDataType compute = compute_type_of(desc);
  if (compute != gcap_sim_element_compute_type((cudaDataType)types[0]) ||
      !is_output_of((cudaDataType)types[0], (cudaDataType)types[3], input)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const int agree = types[0] == types[1] && types[2] == types[3] && desc->scale_type == (int32_t)compute;
  return agree ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t check_orders(const char* function, const layouts_t* layouts) {
  const gcap_sim_lt_layout_t* all[] = {layouts->a, layouts->b, layouts->c, layouts->d};
  for (size_t i = 0; i < 4; ++i) {
    if (all[i]->order != CUBLASLT_ORDER_COL && all[i]->order != CUBLASLT_ORDER_ROW) {
      return CUBLAS_STATUS_NOT_SUPPORTED;  // the tiled orders are for integers
    }
    if (all[i]->batch_mode != CUBLASLT_BATCH_MODE_STRIDED || all[i]->plane_offset != 0) {
      gcap_sim_stop(function, "pointer-array batches and planar complex matrices are not modelled");
    }
  }
  return layouts->c->order == layouts->d->order ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// Real numbers have no conjugate: CONJG is N and C is T, as measured.
static int is_transposed(const char* function, int32_t operation) {
  if (operation < CUBLAS_OP_N || operation > CUBLAS_OP_CONJG) {
    gcap_sim_stop(function, "%d is no cublasOperation_t", operation);
  }
  return operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

// Turns a layout and a transpose into a matrix; op(A) of `rows` x `cols`.
static cublasStatus_t make_matrix(const gcap_sim_lt_layout_t* layout, int swap, gcap_sim_lt_matrix_t* out,
                                  int64_t* rows, int64_t* cols) {
  const int by_column = layout->order == CUBLASLT_ORDER_COL;
  const uint64_t line = by_column ? layout->rows : layout->cols;
  if (layout->ld < 0 || (uint64_t)layout->ld < line) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (layout->rows > INT32_MAX || layout->cols > INT32_MAX) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const int64_t row_stride = by_column ? 1 : layout->ld;
  const int64_t col_stride = by_column ? layout->ld : 1;
  *rows = (int64_t)(swap ? layout->cols : layout->rows);
  *cols = (int64_t)(swap ? layout->rows : layout->cols);
  out->type = (cudaDataType)layout->type;
  out->row_stride = swap ? col_stride : row_stride;
  out->col_stride = swap ? row_stride : col_stride;
  out->batch_stride = layout->batch_stride;
  return CUBLAS_STATUS_SUCCESS;
}

// Measured: a count of zero or less is one.
static int32_t batches_of(const gcap_sim_lt_layout_t* layout) {
  return layout->batch_count < 1 ? 1 : layout->batch_count;
}

static cublasStatus_t check_shapes(const char* function, const gcap_sim_lt_desc_t* desc, const layouts_t* layouts,
                                   gcap_sim_lt_problem_t* out) {
  const gcap_sim_lt_layout_t* all[] = {layouts->a, layouts->b, layouts->c, layouts->d};
  const int32_t operations[] = {desc->trans_a, desc->trans_b, desc->trans_c, CUBLAS_OP_N};
  gcap_sim_lt_matrix_t* matrices[] = {&out->a, &out->b, &out->c, &out->d};
  int64_t rows[4];
  int64_t cols[4];
  int same_batches = 1;
  for (size_t i = 0; i < 4; ++i) {
    const int swap = is_transposed(function, operations[i]);
    const cublasStatus_t status = make_matrix(all[i], swap, matrices[i], &rows[i], &cols[i]);
    if (status != CUBLAS_STATUS_SUCCESS) {
      return status;
    }
    same_batches = same_batches && batches_of(all[i]) == batches_of(layouts->d);
  }
  if (desc->trans_c != CUBLAS_OP_N) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const int match =
      cols[0] == rows[1] && rows[0] == rows[3] && cols[1] == cols[3] && rows[2] == rows[3] && cols[2] == cols[3];
  if (!match || !same_batches) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  out->m = rows[3];
  out->n = cols[3];
  out->k = cols[0];
  out->batch_count = batches_of(layouts->d);
  return CUBLAS_STATUS_SUCCESS;
}

// The bias has D's type, and row-major outputs take none. That it is missing is found when the call runs.
static cublasStatus_t check_bias(const gcap_sim_lt_desc_t* desc, const layouts_t* layouts, gcap_sim_lt_problem_t* out) {
  if (layouts->d->order == CUBLASLT_ORDER_ROW) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const size_t bytes = gcap_sim_element_bytes(out->d.type);
  if ((desc->bias_type != -1 && (uint32_t)desc->bias_type != layouts->d->type) || (uintptr_t)desc->bias % bytes != 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  out->bias = desc->bias;
  out->bias_batch_stride = desc->bias_batch_stride;
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_aux(const char* function, const gcap_sim_lt_desc_t* desc, const layouts_t* layouts,
                                gcap_sim_lt_problem_t* out) {
  if (layouts->d->order == CUBLASLT_ORDER_ROW) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (desc->aux_type != -1 && (uint32_t)desc->aux_type != layouts->d->type) {
    gcap_sim_stop(function, "an auxiliary output of another type than D's (%d) is not modelled", desc->aux_type);
  }
  const int64_t unit = out->activation == GCAP_SIM_LT_RELU ? 128 : 1;  // bits of a mask come in words of 128
  if (desc->aux != NULL && (desc->aux_ld < out->m || desc->aux_ld < unit || desc->aux_ld % unit != 0)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  out->aux = (gcap_sim_lt_aux_t){desc->aux, desc->aux_ld, desc->aux_batch_stride};
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_epilogue(const char* function, const gcap_sim_lt_desc_t* desc, const layouts_t* layouts,
                                     gcap_sim_lt_problem_t* out) {
  switch (desc->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS: break;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS: out->activation = GCAP_SIM_LT_RELU; break;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: out->activation = GCAP_SIM_LT_GELU; break;
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB: gcap_sim_stop(function, "epilogue %u is not modelled", desc->epilogue);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if ((desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
    status = check_bias(desc, layouts, out);
  }
  if (status == CUBLAS_STATUS_SUCCESS && (desc->epilogue & GCAP_SIM_LT_EPILOGUE_AUX) != 0) {
    status = check_aux(function, desc, layouts, out);
  }
  return status;
}

// Vectors of scalars are for other types than the modelled ones.
static cublasStatus_t check_pointer_mode(const gcap_sim_lt_desc_t* desc) {
  switch (desc->pointer_mode) {
    case CUBLASLT_POINTER_MODE_HOST:
    case CUBLASLT_POINTER_MODE_DEVICE: return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_POINTER_MODE_DEVICE_VECTOR:
    case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO:
    case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST: return CUBLAS_STATUS_NOT_SUPPORTED;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t gcap_sim_lt_make_problem(const char* function, cublasLtMatmulDesc_t desc_handle,
                                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                        cublasLtMatrixLayout_t d, gcap_sim_lt_problem_t* out) {
  *out = (gcap_sim_lt_problem_t){.slices = 1};
  layouts_t layouts;
  const gcap_sim_lt_desc_t* desc = check_desc(function, desc_handle);
  cublasStatus_t status = check_layouts(function, a, b, c, d, &layouts);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_pointer_mode(desc);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_compute_type(function, desc, out);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_types(function, desc, &layouts, out->input);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_orders(function, &layouts);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_shapes(function, desc, &layouts, out);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_epilogue(function, desc, &layouts, out);
  }
  return status;
}
