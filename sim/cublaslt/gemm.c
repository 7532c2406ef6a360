// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a matmul, as the queued work runs it. op(A) is unpacked once into floats, k-major, so that the
// inner loop walks m contiguous sums for each element of B: that is the fast order, and the same one whatever the
// layout. Sums are floats, as the compute types with 32F say; split-K adds its slices in order, so results do not
// depend on the schedule. Runs on the scheduler: touches only what the problem points to and its own heap.
#include <stdlib.h>

#include "sim/cublaslt/element.h"
#include "sim/cublaslt/internal.h"

// Out of memory inside queued work has no caller to tell.
static float* allocate_floats(int64_t count) {
  float* floats = malloc(count > 0 ? (size_t)count * sizeof *floats : 1);
  if (floats == NULL) {
    sim_stop("cublasLtMatmul", "the host has no memory for %lld floats", (long long)count);
  }
  return floats;
}

static float load(const sim_lt_matrix_t* matrix, int64_t batch, int64_t row, int64_t col) {
  const int64_t index = batch * matrix->batch_stride + row * matrix->row_stride + col * matrix->col_stride;
  return sim_lt_element_load(matrix->data, matrix->type, (ptrdiff_t)index);
}

static float load_input(const sim_lt_problem_t* problem, const sim_lt_matrix_t* matrix, int64_t batch, int64_t row,
                        int64_t col) {
  const float value = load(matrix, batch, row, col);
  return problem->round_inputs_to_tf32 ? sim_lt_round_to_tf32(value) : value;
}

// packed[l * m + i] = A[i, first + l]
static void pack_a(const sim_lt_problem_t* problem, int64_t batch, int64_t first, int64_t depth, float* packed) {
  for (int64_t l = 0; l < depth; ++l) {
    for (int64_t i = 0; i < problem->m; ++i) {
      packed[l * problem->m + i] = load_input(problem, &problem->a, batch, i, first + l);
    }
  }
}

// sums[i] = sum over l of packed[l, i] * B[first + l, column]
static void multiply_column(const sim_lt_problem_t* problem, const float* packed, int64_t batch, int64_t first,
                            int64_t depth, int64_t column, float* sums) {
  const int64_t m = problem->m;
  for (int64_t i = 0; i < m; ++i) {
    sums[i] = 0.0f;
  }
  for (int64_t l = 0; l < depth; ++l) {
    const float factor = load_input(problem, &problem->b, batch, first + l, column);
    const float* a = packed + l * m;
    for (int64_t i = 0; i < m; ++i) {
      sums[i] += a[i] * factor;
    }
  }
}

// One column of D from its sums: scale, add C and the bias, rectify, round to D's type. D may be C.
static void finish_column(const sim_lt_problem_t* problem, int64_t batch, int64_t column, const float* sums) {
  const float alpha = problem->alpha != NULL ? *problem->alpha : problem->alpha_value;
  const float beta = problem->alpha != NULL ? *problem->beta : problem->beta_value;
  const sim_lt_matrix_t* d = &problem->d;
  for (int64_t i = 0; i < problem->m; ++i) {
    float value = alpha * sums[i];
    if (problem->c.data != NULL && beta != 0.0f) {
      value += beta * load(&problem->c, batch, i, column);
    }
    if (problem->bias != NULL) {
      const int64_t at = batch * problem->bias_batch_stride + i;
      value += sim_lt_element_load(problem->bias, problem->bias_type, (ptrdiff_t)at);
    }
    if (problem->relu && value < 0.0f) {
      value = 0.0f;
    }
    const int64_t index = batch * d->batch_stride + i * d->row_stride + column * d->col_stride;
    sim_lt_element_store(d->data, d->type, (ptrdiff_t)index, value);
  }
}

void sim_lt_run_whole(void* payload) {
  const sim_lt_problem_t* problem = payload;
  float* packed = allocate_floats(problem->m * problem->k);
  float* sums = allocate_floats(problem->m);
  for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
    pack_a(problem, batch, 0, problem->k, packed);
    for (int64_t column = 0; column < problem->n; ++column) {
      multiply_column(problem, packed, batch, 0, problem->k, column, sums);
      finish_column(problem, batch, column, sums);
    }
  }
  free(sums);
  free(packed);
}

// The partial sums of one slice and batch entry: n columns of m floats.
static float* slice_of(const sim_lt_problem_t* problem, int64_t slice, int64_t batch) {
  return problem->partials + (slice * problem->batch_count + batch) * problem->m * problem->n;
}

void sim_lt_run_partials(void* payload) {
  const sim_lt_problem_t* problem = payload;
  float* packed = allocate_floats(problem->m * problem->k);
  for (int64_t slice = 0; slice < problem->slices; ++slice) {
    const int64_t first = problem->k * slice / problem->slices;
    const int64_t depth = problem->k * (slice + 1) / problem->slices - first;
    for (int64_t batch = 0; batch < problem->batch_count; ++batch) {
      pack_a(problem, batch, first, depth, packed);
      for (int64_t column = 0; column < problem->n; ++column) {
        float* sums = slice_of(problem, slice, batch) + column * problem->m;
        multiply_column(problem, packed, batch, first, depth, column, sums);
      }
    }
  }
  free(packed);
}

void sim_lt_run_reduction(void* payload) {
  const sim_lt_problem_t* problem = payload;
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
