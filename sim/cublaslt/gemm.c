// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a matmul, as the queued work runs it. op(A) and op(B) are unpacked into floats whatever their
// layout and type, multiplied (sim/library/multiply.h), and the sums finished column by column. Sums are floats, as the
// compute types with 32F say; each takes its products one after another, so the results are those of the plain loop.
// Split-K adds its slices in order, so results do not depend on the schedule. Runs on the scheduler: touches only what
// the problem points to and its own heap.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cublaslt/internal.h"
#include "sim/library/element.h"
#include "sim/library/multiply.h"

// For reports of what the host lacks.
static const char kName[] = "cublasLtMatmul";

static float load(const gcap_sim_lt_matrix_t* matrix, int64_t batch, int64_t row, int64_t col) {
  const int64_t index = batch * matrix->batch_stride + row * matrix->row_stride + col * matrix->col_stride;
  return gcap_sim_element_load(matrix->data, matrix->type, (ptrdiff_t)index);
}

static float load_input(const gcap_sim_lt_problem_t* problem, const gcap_sim_lt_matrix_t* matrix, int64_t batch,
                        int64_t row, int64_t col) {
  const float value = load(matrix, batch, row, col);
  switch (problem->input) {
    case GCAP_SIM_LT_INPUT_TF32: return gcap_sim_element_round_to_tf32(value);
    case GCAP_SIM_LT_INPUT_16F: return gcap_sim_element_round_to_16(CUDA_R_16F, value);
    case GCAP_SIM_LT_INPUT_16BF: return gcap_sim_element_round_to_16(CUDA_R_16BF, value);
    default: return value;
  }
}

// columns[l * m + i] = A[i, first + l]
static void unpack_a(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth,
                     float* columns) {
  for (int64_t l = 0; l < depth; ++l) {
    for (int64_t i = 0; i < problem->m; ++i) {
      *columns++ = load_input(problem, &problem->a, batch, i, first + l);
    }
  }
}

// rows[j * depth + l] = B[first + l, j]
static void unpack_b(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, float* rows) {
  for (int64_t j = 0; j < problem->n; ++j) {
    for (int64_t l = 0; l < depth; ++l) {
      *rows++ = load_input(problem, &problem->b, batch, first + l, j);
    }
  }
}

// sums[j * m + i] = the sum over l of A[i, first + l] * B[first + l, j]
static void multiply(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, float* sums) {
  float* columns = gcap_sim_allocate_floats(kName, depth * problem->m);
  float* rows = gcap_sim_allocate_floats(kName, problem->n * depth);
  unpack_a(problem, batch, first, depth, columns);
  unpack_b(problem, batch, first, depth, rows);
  gcap_sim_multiply(kName, rows, problem->n, depth, columns, problem->m, sums);
  free(rows);
  free(columns);
}

// The tanh form of GELU, as measured.
static float gelu(float value) {
  const float root_2_over_pi = 0.7978845608f;
  return 0.5f * value * (1.0f + tanhf(root_2_over_pi * (value + 0.044715f * value * value * value)));
}

// Element i of a column: activated, after its auxiliary output was written to `aux`, the column's start.
static float activate(const gcap_sim_lt_problem_t* problem, int64_t i, float value, unsigned char* aux) {
  switch (problem->activation) {
    case GCAP_SIM_LT_RELU:
      if (aux != NULL && value >= 0.0f) {
        aux[i / 8] = (unsigned char)(aux[i / 8] | 1u << i % 8);
      }
      return value < 0.0f ? 0.0f : value;
    case GCAP_SIM_LT_GELU:
      if (aux != NULL) {
        gcap_sim_element_store(aux, problem->d.type, (ptrdiff_t)i, value);
      }
      return gelu(value);
    default: return value;
  }
}

size_t gcap_sim_lt_aux_column_bytes(const gcap_sim_lt_problem_t* problem) {
  if (problem->activation == GCAP_SIM_LT_RELU) {
    return (size_t)((problem->m + 7) / 8);
  }
  return (size_t)problem->m * gcap_sim_element_bytes(problem->d.type);
}

// Where the auxiliary output of a column starts, cleared: NULL when there is none.
static unsigned char* begin_aux_column(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t column) {
  const gcap_sim_lt_aux_t* aux = &problem->aux;
  if (aux->data == NULL) {
    return NULL;
  }
  const int64_t element = batch * aux->batch_stride + column * aux->ld;
  const int64_t offset = problem->activation == GCAP_SIM_LT_RELU
                             ? element / 8
                             : element * (int64_t)gcap_sim_element_bytes(problem->d.type);
  return memset((char*)aux->data + offset, 0, gcap_sim_lt_aux_column_bytes(problem));
}

// One column of D from its sums: scale, add C and the bias, activate, round to D's type. D may be C.
static void finish_column(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t column, const float* sums) {
  const float alpha = problem->alpha != NULL ? *problem->alpha : problem->alpha_value;
  const float beta = problem->alpha != NULL ? *problem->beta : problem->beta_value;
  const gcap_sim_lt_matrix_t* d = &problem->d;
  unsigned char* aux = begin_aux_column(problem, batch, column);
  for (int64_t i = 0; i < problem->m; ++i) {
    float value = alpha * sums[i];
    if (problem->c.data != NULL && beta != 0.0f) {
      value += beta * load(&problem->c, batch, i, column);
    }
    if (problem->bias != NULL) {
      value += gcap_sim_element_load(problem->bias, d->type, (ptrdiff_t)(batch * problem->bias_batch_stride + i));
    }
    const int64_t index = batch * d->batch_stride + i * d->row_stride + column * d->col_stride;
    gcap_sim_element_store(d->data, d->type, (ptrdiff_t)index, activate(problem, i, value, aux));
  }
}

void gcap_sim_lt_run_whole(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  float* sums = gcap_sim_allocate_floats(kName, problem->m * problem->n);
  for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
    multiply(problem, batch, 0, problem->k, sums);
    for (int64_t column = 0; column < problem->n; ++column) {
      finish_column(problem, batch, column, sums + column * problem->m);
    }
  }
  free(sums);
}

// The partial sums of one slice and batch entry: n columns of m floats.
static float* slice_of(const gcap_sim_lt_problem_t* problem, int64_t slice, int64_t batch) {
  return problem->partials + (slice * problem->batch_count + batch) * problem->m * problem->n;
}

void gcap_sim_lt_run_partials(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  for (int64_t slice = 0; slice < problem->slices; ++slice) {
    const int64_t first = problem->k * slice / problem->slices;
    const int64_t depth = problem->k * (slice + 1) / problem->slices - first;
    for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
      multiply(problem, batch, first, depth, slice_of(problem, slice, batch));
    }
  }
}

void gcap_sim_lt_run_reduction(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  float* sums = gcap_sim_allocate_floats(kName, problem->m);
  for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
    for (int64_t column = 0; column < problem->n; ++column) {
      for (int64_t i = 0; i < problem->m; ++i) {
        sums[i] = 0.0f;
        for (int64_t slice = 0; slice < problem->slices; ++slice) {
          sums[i] += slice_of(problem, slice, batch)[column * problem->m + i];
        }
      }
      finish_column(problem, batch, column, sums);
    }
  }
  free(sums);
}
