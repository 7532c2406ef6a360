// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a matmul, as the queued work runs it. op(A) is unpacked once into floats, k-major, so that the
// inner loop walks m contiguous sums: that is the fast order, and the same one whatever the layout. A few columns of
// the output are computed at a time, each in a lane of a vector, from a few rows of the unpacked matrix at a time; each
// sum still takes its products one after another, so the results are those of the plain loop. Sums are floats, as the
// compute types with 32F say; split-K adds its slices in order, so results do not depend on the schedule. Runs on the
// scheduler: touches only what the problem points to and its own heap.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cublaslt/internal.h"
#include "sim/library/element.h"

// One element of as many columns.
enum { kLanes = 4 };
typedef float lanes_t __attribute__((vector_size(kLanes * sizeof(float))));

// Rows of the unpacked matrix that are looked at together.
enum { kRows = 4 };

// Out of memory inside queued work has no caller to tell.
static float* allocate_floats(int64_t count) {
  float* floats = malloc(count > 0 ? (size_t)count * sizeof(*floats) : 1);
  if (floats == NULL) {
    gcap_sim_stop("cublasLtMatmul", "the host has no memory for %lld floats", (long long)count);
  }
  return floats;
}

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

// packed[l * m + i] = A[i, first + l]
static void pack_a(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, float* packed) {
  for (int64_t l = 0; l < depth; ++l) {
    for (int64_t i = 0; i < problem->m; ++i) {
      packed[l * problem->m + i] = load_input(problem, &problem->a, batch, i, first + l);
    }
  }
}

// The elements of B that the lanes multiply with; 0 for a column that is none, whose sums nobody looks at.
static lanes_t load_factors(const gcap_sim_lt_problem_t* problem, int64_t batch, int64_t row, int64_t column) {
  lanes_t factors = {0};
  for (int64_t lane = 0; lane < kLanes && column + lane < problem->n; ++lane) {
    factors[lane] = load_input(problem, &problem->b, batch, row, column + lane);
  }
  return factors;
}

static void add_row(const float* a, lanes_t factors, int64_t m, lanes_t* sums) {
  for (int64_t i = 0; i < m; ++i) {
    sums[i] += a[i] * factors;
  }
}

// The same for kRows rows, in their order.
static void add_rows(const float* a, const lanes_t* factors, int64_t m, lanes_t* sums) {
  const lanes_t first = factors[0], second = factors[1], third = factors[2], fourth = factors[3];
  for (int64_t i = 0; i < m; ++i) {
    lanes_t sum = sums[i];
    sum += a[i] * first;
    sum += a[m + i] * second;
    sum += a[2 * m + i] * third;
    sum += a[3 * m + i] * fourth;
    sums[i] = sum;
  }
}

// sums[i] = sum over l of packed[l, i] * B[first + l, column], and in the other lanes for the columns after it
static void multiply_columns(const gcap_sim_lt_problem_t* problem, const float* packed, int64_t batch, int64_t first,
                             int64_t depth, int64_t column, lanes_t* sums) {
  const int64_t m = problem->m;
  memset(sums, 0, (size_t)m * sizeof(*sums));
  int64_t l = 0;
  for (; l + kRows <= depth; l += kRows) {
    lanes_t factors[kRows];
    for (int64_t row = 0; row < kRows; ++row) {
      factors[row] = load_factors(problem, batch, first + l + row, column);
    }
    add_rows(packed + l * m, factors, m, sums);
  }
  for (; l < depth; ++l) {
    add_row(packed + l * m, load_factors(problem, batch, first + l, column), m, sums);
  }
}

static void take_lane(const lanes_t* sums, int64_t lane, int64_t m, float* out) {
  for (int64_t i = 0; i < m; ++i) {
    out[i] = sums[i][lane];
  }
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
  const int64_t m = problem->m;
  float* packed = allocate_floats(m * problem->k);
  lanes_t* lanes = (lanes_t*)allocate_floats(m * kLanes);
  float* sums = allocate_floats(m);
  for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
    pack_a(problem, batch, 0, problem->k, packed);
    for (int64_t column = 0; column < problem->n; ++column) {
      if (column % kLanes == 0) {
        multiply_columns(problem, packed, batch, 0, problem->k, column, lanes);
      }
      take_lane(lanes, column % kLanes, m, sums);
      finish_column(problem, batch, column, sums);
    }
  }
  free(sums);
  free(lanes);
  free(packed);
}

// The partial sums of one slice and batch entry: n columns of m floats.
static float* slice_of(const gcap_sim_lt_problem_t* problem, int64_t slice, int64_t batch) {
  return problem->partials + (slice * problem->batch_count + batch) * problem->m * problem->n;
}

void gcap_sim_lt_run_partials(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  const int64_t m = problem->m;
  float* packed = allocate_floats(m * problem->k);
  lanes_t* lanes = (lanes_t*)allocate_floats(m * kLanes);
  for (int64_t slice = 0; slice < problem->slices; ++slice) {
    const int64_t first = problem->k * slice / problem->slices;
    const int64_t depth = problem->k * (slice + 1) / problem->slices - first;
    for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
      pack_a(problem, batch, first, depth, packed);
      for (int64_t column = 0; column < problem->n; ++column) {
        if (column % kLanes == 0) {
          multiply_columns(problem, packed, batch, first, depth, column, lanes);
        }
        take_lane(lanes, column % kLanes, m, slice_of(problem, slice, batch) + column * m);
      }
    }
  }
  free(lanes);
  free(packed);
}

void gcap_sim_lt_run_reduction(void* payload) {
  const gcap_sim_lt_problem_t* problem = payload;
  float* sums = allocate_floats(problem->m);
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
