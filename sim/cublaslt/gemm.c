// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a matmul, as the queued work runs it. op(A) and op(B) are unpacked into numbers of the compute type
// whatever their layout and type, multiplied (sim/library/multiply.h), and the sums finished column by column. Sums are
// of the compute type too; each takes its products one after another, so the results are those of the plain loop.
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

static double load(const gcap_sim_lt_matrix_t* matrix, int64_t batch, int64_t row, int64_t col) {
  const int64_t index = batch * matrix->batch_stride + row * matrix->row_stride + col * matrix->col_stride;
  return gcap_sim_element_load(matrix->data, matrix->type, (ptrdiff_t)index);
}

static double load_input(const gcap_sim_lt_problem_t* problem, const gcap_sim_lt_matrix_t* matrix, int64_t batch,
                         int64_t row, int64_t col) {
  const double value = load(matrix, batch, row, col);
  switch (problem->input) {
    case GCAP_SIM_LT_INPUT_TF32: return gcap_sim_element_round_to_tf32((float)value);
    case GCAP_SIM_LT_INPUT_16F: return gcap_sim_element_round_to_16(CUDA_R_16F, (float)value);
    case GCAP_SIM_LT_INPUT_16BF: return gcap_sim_element_round_to_16(CUDA_R_16BF, (float)value);
    default: return value;
  }
}

// columns[l * m + i] = A[i, first + l]
static void unpack_a(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, void* columns) {
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  ptrdiff_t at = 0;
  for (int64_t l = 0; l < depth; ++l) {
    for (int64_t i = 0; i < problem->m; ++i) {
      gcap_sim_element_store(columns, type, at++, load_input(problem, &problem->a, batch, i, first + l));
    }
  }
}

// rows[j * depth + l] = B[first + l, j]
static void unpack_b(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, void* rows) {
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  ptrdiff_t at = 0;
  for (int64_t j = 0; j < problem->n; ++j) {
    for (int64_t l = 0; l < depth; ++l) {
      gcap_sim_element_store(rows, type, at++, load_input(problem, &problem->b, batch, first + l, j));
    }
  }
}

// sums[j * m + i] = the sum over l of A[i, first + l] * B[first + l, j]
static void multiply(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, void* sums) {
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  void* columns = gcap_sim_allocate_numbers(kName, type, depth * problem->m);
  void* rows = gcap_sim_allocate_numbers(kName, type, problem->n * depth);
  unpack_a(problem, batch, first, depth, columns);
  unpack_b(problem, batch, first, depth, rows);
  gcap_sim_multiply(kName, type, rows, problem->n, depth, columns, problem->m, sums);
  free(rows);
  free(columns);
}

// The tanh form of GELU, as measured.
static double gelu(double value) {
  const double root_2_over_pi = 0.79788456080286536;
  return 0.5 * value * (1.0 + tanh(root_2_over_pi * (value + 0.044715 * value * value * value)));
}

// Element i of a column: activated, after its auxiliary output was written to `aux`, the column's start.
static double activate(const gcap_sim_lt_problem_t* problem, int64_t i, double value, unsigned char* aux) {
  switch (problem->activation) {
    case GCAP_SIM_LT_RELU:
      if (aux != NULL && value >= 0.0) {
        aux[i / 8] = (unsigned char)(aux[i / 8] | 1u << i % 8);
      }
      return value < 0.0 ? 0.0 : value;
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

// One column of D from its sums, which start at index `first`: scale, add C and the bias, activate, round to D's type.
// D may be C.
static void finish_column(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t column, const void* sums,
                          int64_t first) {
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  const int on_device = problem->alpha != NULL;
  const double alpha = on_device ? gcap_sim_element_load(problem->alpha, type, 0) : problem->alpha_value;
  const double beta = on_device ? gcap_sim_element_load(problem->beta, type, 0) : problem->beta_value;
  const gcap_sim_lt_matrix_t* d = &problem->d;
  unsigned char* aux = begin_aux_column(problem, batch, column);
  for (int64_t i = 0; i < problem->m; ++i) {
    double value = gcap_sim_element_round(type, alpha * gcap_sim_element_load(sums, type, (ptrdiff_t)(first + i)));
    if (problem->c.data != NULL && beta != 0.0) {
      const double addend = gcap_sim_element_round(type, beta * load(&problem->c, batch, i, column));
      value = gcap_sim_element_round(type, value + addend);
    }
    if (problem->bias != NULL) {
      const ptrdiff_t at = (ptrdiff_t)(batch * problem->bias_batch_stride + i);
      value = gcap_sim_element_round(type, value + gcap_sim_element_load(problem->bias, d->type, at));
    }
    const int64_t index = batch * d->batch_stride + i * d->row_stride + column * d->col_stride;
    gcap_sim_element_store(d->data, d->type, (ptrdiff_t)index, activate(problem, i, value, aux));
  }
}

void gcap_sim_lt_run_whole(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  void* sums = gcap_sim_allocate_numbers(kName, gcap_sim_lt_compute_type(problem), problem->m * problem->n);
  for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
    multiply(problem, batch, 0, problem->k, sums);
    for (int64_t column = 0; column < problem->n; ++column) {
      finish_column(problem, batch, column, sums, column * problem->m);
    }
  }
  free(sums);
}

// Where the partial sums of one slice and batch entry start: n columns of m numbers.
static int64_t slice_start(const gcap_sim_lt_problem_t* problem, int64_t slice, int64_t batch) {
  return (slice * problem->batch_count + batch) * problem->m * problem->n;
}

void gcap_sim_lt_run_partials(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  for (int64_t slice = 0; slice < problem->slices; ++slice) {
    const int64_t first = problem->k * slice / problem->slices;
    const int64_t depth = problem->k * (slice + 1) / problem->slices - first;
    for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
      void* sums = gcap_sim_element_at(problem->partials, type, slice_start(problem, slice, batch));
      multiply(problem, batch, first, depth, sums);
    }
  }
}

// The sum of all slices at element `index` of a batch entry.
static double reduce(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t index) {
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  double sum = 0.0;
  for (int64_t slice = 0; slice < problem->slices; ++slice) {
    const int64_t at = slice_start(problem, slice, batch) + index;
    sum = gcap_sim_element_round(type, sum + gcap_sim_element_load(problem->partials, type, (ptrdiff_t)at));
  }
  return sum;
}

void gcap_sim_lt_run_reduction(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  void* sums = gcap_sim_allocate_numbers(kName, type, problem->m);
  for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
    for (int64_t column = 0; column < problem->n; ++column) {
      for (int64_t i = 0; i < problem->m; ++i) {
        gcap_sim_element_store(sums, type, (ptrdiff_t)i, reduce(problem, batch, column * problem->m + i));
      }
      finish_column(problem, batch, column, sums, 0);
    }
  }
  free(sums);
}
