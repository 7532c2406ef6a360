// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Layouts, operation descriptors and preferences: named attributes in structs of a public size. One table for each says
// where an attribute lives and how many bytes it has. Values are not looked at here, as measured: a call that uses the
// descriptor judges them. An attribute of the real library that is missing in the table is not modelled, and using it
// stops the program rather than being forgotten. Descriptors are not locked, as the real ones.
#include <stddef.h>
#include <string.h>

#include "sim/cublaslt/internal.h"

const gcap_sim_object_kind_t gcap_sim_lt_layout_kind = {0x6c742d6c61796f75u, "cublasLt matrix layout"};
const gcap_sim_object_kind_t gcap_sim_lt_desc_kind = {0x6c742d6d6d646573u, "cublasLt matmul descriptor"};
const gcap_sim_object_kind_t gcap_sim_lt_preference_kind = {0x6c742d7072656665u, "cublasLt matmul preference"};

typedef struct attribute {
  int id;
  size_t offset;
  size_t bytes;
} attribute_t;

#define ATTRIBUTE(id, type, member) \
  { id, offsetof(type, member), sizeof(((type*)0)->member) }

static const attribute_t layout_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_TYPE, gcap_sim_lt_layout_t, type),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ORDER, gcap_sim_lt_layout_t, order),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ROWS, gcap_sim_lt_layout_t, rows),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_COLS, gcap_sim_lt_layout_t, cols),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_LD, gcap_sim_lt_layout_t, ld),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, gcap_sim_lt_layout_t, batch_count),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, gcap_sim_lt_layout_t, batch_stride),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, gcap_sim_lt_layout_t, plane_offset),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, gcap_sim_lt_layout_t, batch_mode),
};

static const attribute_t desc_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, gcap_sim_lt_desc_t, compute_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, gcap_sim_lt_desc_t, scale_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_POINTER_MODE, gcap_sim_lt_desc_t, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, gcap_sim_lt_desc_t, trans_a),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, gcap_sim_lt_desc_t, trans_b),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSC, gcap_sim_lt_desc_t, trans_c),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, gcap_sim_lt_desc_t, epilogue),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, gcap_sim_lt_desc_t, bias),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, gcap_sim_lt_desc_t, bias_batch_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, gcap_sim_lt_desc_t, bias_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, gcap_sim_lt_desc_t, sm_count_target),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, gcap_sim_lt_desc_t, aux),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gcap_sim_lt_desc_t, aux_ld),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, gcap_sim_lt_desc_t, aux_batch_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, gcap_sim_lt_desc_t, aux_type),
};

static const attribute_t preference_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_SEARCH_MODE, gcap_sim_lt_preference_t, search_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, gcap_sim_lt_preference_t, max_workspace_bytes),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, gcap_sim_lt_preference_t, reduction_mask),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, gcap_sim_lt_preference_t, min_alignment[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, gcap_sim_lt_preference_t, min_alignment[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, gcap_sim_lt_preference_t, min_alignment[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, gcap_sim_lt_preference_t, min_alignment[3]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, gcap_sim_lt_preference_t, max_waves),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_IMPL_MASK, gcap_sim_lt_preference_t, impl_mask),
};

// A kind of descriptor: its objects, its size in the public header and its attributes.
typedef struct descriptor_class {
  const gcap_sim_object_kind_t* kind;
  size_t bytes;
  const attribute_t* attributes;
  size_t num_attributes;
} descriptor_class_t;

#define CLASS(kind, type, attributes) \
  { kind, sizeof(type), attributes, sizeof(attributes) / sizeof(attributes[0]) }

static const descriptor_class_t layout_class =
    CLASS(&gcap_sim_lt_layout_kind, cublasLtMatrixLayoutOpaque_t, layout_attributes);
static const descriptor_class_t desc_class = CLASS(&gcap_sim_lt_desc_kind, cublasLtMatmulDescOpaque_t, desc_attributes);
static const descriptor_class_t preference_class =
    CLASS(&gcap_sim_lt_preference_kind, cublasLtMatmulPreferenceOpaque_t, preference_attributes);

// Every descriptor call starts so: counted, faults given, NULL refused, the rest known to be alive.
static cublasStatus_t enter(const char* function, const descriptor_class_t* class, const void* descriptor) {
  cublasStatus_t status = gcap_sim_lt_enter(function);
  if (status == CUBLAS_STATUS_SUCCESS && descriptor == NULL) {
    status = CUBLAS_STATUS_INVALID_VALUE;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    gcap_sim_object_check(class->kind, descriptor, function);
  }
  return status;
}

static cublasStatus_t create(const char* function, const descriptor_class_t* class, void** out) {
  cublasStatus_t status = gcap_sim_lt_enter(function);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (out == NULL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *out = gcap_sim_object_create(class->kind, class->bytes);
  return *out != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

// NULL is fine, as measured.
static cublasStatus_t destroy(const char* function, const descriptor_class_t* class, void* descriptor) {
  cublasStatus_t status = gcap_sim_lt_enter(function);
  if (status == CUBLAS_STATUS_SUCCESS && descriptor != NULL) {
    gcap_sim_object_check(class->kind, descriptor, function);
    gcap_sim_object_destroy(class->kind, descriptor);
  }
  return status;
}

// Attributes of an operation descriptor that the real library has: measured on 13.1.
static int is_known_desc_attribute(int id) {
  return (id >= CUBLASLT_MATMUL_DESC_COMPUTE_TYPE && id <= 8) || (id >= 10 && id <= 26) || (id >= 31 && id <= 38);
}

// NULL for one that does not exist. The tables of layouts and preferences are complete.
static const attribute_t* find_attribute(const char* function, const descriptor_class_t* class, int id) {
  for (size_t i = 0; i < class->num_attributes; ++i) {
    if (class->attributes[i].id == id) {
      return &class->attributes[i];
    }
  }
  if (class->kind == &gcap_sim_lt_desc_kind && is_known_desc_attribute(id)) {
    gcap_sim_stop(function, "attribute %d of a %s is not modelled", id, class->kind->name);
  }
  return NULL;
}

static cublasStatus_t set(const char* function, const descriptor_class_t* class, void* descriptor, int id,
                          const void* buf, size_t bytes) {
  cublasStatus_t status = enter(function, class, descriptor);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const attribute_t* attribute = find_attribute(function, class, id);
  if (attribute == NULL || buf == NULL || bytes != attribute->bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  memcpy((char*)descriptor + attribute->offset, buf, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// A size of 0 asks how many bytes the attribute has.
static cublasStatus_t get(const char* function, const descriptor_class_t* class, const void* descriptor, int id,
                          void* buf, size_t bytes, size_t* written) {
  cublasStatus_t status = enter(function, class, descriptor);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const attribute_t* attribute = find_attribute(function, class, id);
  if (attribute == NULL || (bytes == 0 ? written == NULL : buf == NULL || bytes != attribute->bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (bytes != 0) {
    memcpy(buf, (const char*)descriptor + attribute->offset, bytes);
  }
  if (written != NULL) {
    *written = attribute->bytes;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  void* object = NULL;
  cublasStatus_t status = create(__func__, &layout_class, matLayout != NULL ? &object : NULL);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_lt_layout_t* layout = object;
  layout->type = (uint32_t)type;
  layout->rows = rows;
  layout->cols = cols;
  layout->ld = ld;
  layout->batch_count = 1;
  *matLayout = object;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  return destroy(__func__, &layout_class, matLayout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
                                                const void* buf, size_t sizeInBytes) {
  return set(__func__, &layout_class, matLayout, (int)attr, buf, sizeInBytes);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
                                                void* buf, size_t sizeInBytes, size_t* sizeWritten) {
  return get(__func__, &layout_class, matLayout, (int)attr, buf, sizeInBytes, sizeWritten);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc, cublasComputeType_t computeType,
                                        cudaDataType_t scaleType) {
  void* object = NULL;
  cublasStatus_t status = create(__func__, &desc_class, matmulDesc != NULL ? &object : NULL);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_lt_desc_t* desc = object;
  desc->compute_type = (int32_t)computeType;
  desc->scale_type = (int32_t)scaleType;
  desc->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  desc->bias_type = -1;
  desc->aux_type = -1;
  *matmulDesc = object;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  return destroy(__func__, &desc_class, matmulDesc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
                                              const void* buf, size_t sizeInBytes) {
  return set(__func__, &desc_class, matmulDesc, (int)attr, buf, sizeInBytes);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
                                              void* buf, size_t sizeInBytes, size_t* sizeWritten) {
  return get(__func__, &desc_class, matmulDesc, (int)attr, buf, sizeInBytes, sizeWritten);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref) {
  void* object = NULL;
  cublasStatus_t status = create(__func__, &preference_class, pref != NULL ? &object : NULL);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_lt_preference_t* preference = object;
  preference->impl_mask = UINT64_MAX;
  preference->reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  for (size_t i = 0; i < 4; ++i) {
    preference->min_alignment[i] = 256;
  }
  *pref = object;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  return destroy(__func__, &preference_class, pref);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr, const void* buf,
                                                    size_t sizeInBytes) {
  return set(__func__, &preference_class, pref, (int)attr, buf, sizeInBytes);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr, void* buf,
                                                    size_t sizeInBytes, size_t* sizeWritten) {
  return get(__func__, &preference_class, pref, (int)attr, buf, sizeInBytes, sizeWritten);
}
