// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels on the simulator: their CPU twins compute the whole grid, and list the bytes that they touch. A row's
// position and pages lie in device memory. The simulator calls `accesses` right before `run`, so the twins read them
// there, and the lists are exact: a step that reads another sequence's page is a race or a read of what nobody wrote.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "examples/decoder/kernels.h"
#include "gcap_sim.h"

#define EPSILON 1e-5f

typedef struct list {
  gcap_sim_access_t* out;
  size_t capacity, count;
} list_t;

static void add(list_t* list, const void* address, size_t bytes, bool is_write) {
  if (list->count < list->capacity) list->out[list->count] = (gcap_sim_access_t){address, bytes, is_write};
  ++list->count;
}

static void add_rows(list_t* list, const decoder_values_t* values, uint32_t rows) {
  for (uint32_t r = 0; r < rows; ++r) add(list, values->rows[r], sizeof(*values->rows[r]), false);
}

// --- embed ----------------------------------------------------------------------------------------------------------

static void embed_run(const gcap_sim_launch_t* launch, void* const* args) {
  const embed_params_t* p = args[0];
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const decoder_row_t* row = p->values.rows[r];
    for (uint32_t i = 0; i < launch->block.x; ++i) {
      float* x = &p->x[r * DECODER_WIDTH + i];
      *x = row->position < 0 ? 0 : p->table[decoder_token(row, p->chosen) * DECODER_WIDTH + (int32_t)i];
    }
  }
}

static void embed_list(const gcap_sim_launch_t* launch, const embed_params_t* p, list_t* list) {
  add_rows(list, &p->values, launch->grid.x);
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const decoder_row_t* row = p->values.rows[r];
    if (row->position < 0) continue;
    if (row->token < 0) add(list, &p->chosen[row->slot], sizeof(*p->chosen), false);
    add(list, p->table + decoder_token(row, p->chosen) * DECODER_WIDTH, DECODER_WIDTH * sizeof(float), false);
  }
  add(list, p->x, launch->grid.x * DECODER_WIDTH * sizeof(float), true);
}

// --- norm -----------------------------------------------------------------------------------------------------------

static void norm_run(const gcap_sim_launch_t* launch, void* const* args) {
  const norm_params_t* p = args[0];
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const float* x = p->x + r * DECODER_WIDTH;
    float sum = 0;
    for (uint32_t i = 0; i < launch->block.x; ++i) sum += x[i] * x[i];
    const float size = sqrtf(sum / DECODER_WIDTH + EPSILON);
    for (uint32_t i = 0; i < launch->block.x; ++i) p->y[r * DECODER_WIDTH + i] = x[i] / size * p->scale[i];
  }
}

static void norm_list(const gcap_sim_launch_t* launch, const norm_params_t* p, list_t* list) {
  const size_t row_bytes = DECODER_WIDTH * sizeof(float);
  add(list, p->x, launch->grid.x * row_bytes, false);
  add(list, p->scale, row_bytes, false);
  add(list, p->y, launch->grid.x * row_bytes, true);
}

// --- rotate ---------------------------------------------------------------------------------------------------------

static void rotate_run(const gcap_sim_launch_t* launch, void* const* args) {
  const rotate_params_t* p = args[0];
  const int32_t half = DECODER_HEAD_WIDTH / 2;
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const decoder_row_t* row = p->values.rows[r];
    if (row->position < 0) continue;
    float* qkv = p->qkv + r * 3 * DECODER_WIDTH;
    for (int32_t i = 0; i < DECODER_WIDTH; ++i) {  // the pairs of all heads of the query, then of the key
      const int32_t pair = i % half;
      decoder_rotate(qkv + i / half * DECODER_HEAD_WIDTH + pair, pair, row->position);
    }
    decoder_page_t* page = &p->pages[decoder_page_of(p->values.pages[r], row->position)];
    const int32_t at = row->position % DECODER_PAGE_TOKENS;
    for (uint32_t i = 0; i < launch->block.x; ++i) {
      page->keys[p->layer][at][i] = qkv[DECODER_WIDTH + i];
      page->values[p->layer][at][i] = qkv[2 * DECODER_WIDTH + i];
    }
  }
}

static void rotate_list(const gcap_sim_launch_t* launch, const rotate_params_t* p, list_t* list) {
  const size_t row_bytes = DECODER_WIDTH * sizeof(float);
  add_rows(list, &p->values, launch->grid.x);
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const decoder_row_t* row = p->values.rows[r];
    if (row->position < 0) continue;
    float* qkv = p->qkv + r * 3 * DECODER_WIDTH;
    add(list, qkv, 3 * row_bytes, false);
    add(list, qkv, 2 * row_bytes, true);
    add(list, p->values.pages[r], sizeof(*p->values.pages[r]), false);
    const decoder_page_t* page = &p->pages[decoder_page_of(p->values.pages[r], row->position)];
    const int32_t at = row->position % DECODER_PAGE_TOKENS;
    add(list, page->keys[p->layer][at], row_bytes, true);
    add(list, page->values[p->layer][at], row_bytes, true);
  }
}

// --- attend ---------------------------------------------------------------------------------------------------------

static void attend_head(const attend_params_t* p, uint32_t r, uint32_t head) {
  const decoder_row_t* row = p->values.rows[r];
  const uint32_t first = head * DECODER_HEAD_WIDTH;
  const float* query = p->qkv + r * 3 * DECODER_WIDTH + first;
  float weights[DECODER_MAX_POSITIONS], largest = -INFINITY, sum = 0;
  for (int32_t t = 0; t <= row->position; ++t) {
    const decoder_page_t* page = &p->pages[decoder_page_of(p->values.pages[r], t)];
    const float* key = &page->keys[p->layer][t % DECODER_PAGE_TOKENS][first];
    float score = 0;
    for (int32_t i = 0; i < DECODER_HEAD_WIDTH; ++i) score += query[i] * key[i];
    weights[t] = score / sqrtf(DECODER_HEAD_WIDTH);
    largest = fmaxf(largest, weights[t]);
  }
  for (int32_t t = 0; t <= row->position; ++t) sum += weights[t] = expf(weights[t] - largest);
  for (int32_t i = 0; i < DECODER_HEAD_WIDTH; ++i) {
    float y = 0;
    for (int32_t t = 0; t <= row->position; ++t) {
      const decoder_page_t* page = &p->pages[decoder_page_of(p->values.pages[r], t)];
      y += weights[t] * page->values[p->layer][t % DECODER_PAGE_TOKENS][first + (uint32_t)i];
    }
    p->y[r * DECODER_WIDTH + first + (uint32_t)i] = row->position >= 0 ? y / sum : 0;
  }
}

static void attend_run(const gcap_sim_launch_t* launch, void* const* args) {
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    for (uint32_t head = 0; head < launch->grid.y; ++head) attend_head(args[0], r, head);
  }
}

static void attend_list(const gcap_sim_launch_t* launch, const attend_params_t* p, list_t* list) {
  const size_t row_bytes = DECODER_WIDTH * sizeof(float);
  add_rows(list, &p->values, launch->grid.x);
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const decoder_row_t* row = p->values.rows[r];
    if (row->position >= 0) {
      add(list, p->qkv + r * 3 * DECODER_WIDTH, row_bytes, false);
      add(list, p->values.pages[r], sizeof(*p->values.pages[r]), false);
    }
    for (int32_t t = 0; t <= row->position; t += DECODER_PAGE_TOKENS) {
      const int32_t left = row->position + 1 - t;
      const size_t bytes = (size_t)(left < DECODER_PAGE_TOKENS ? left : DECODER_PAGE_TOKENS) * row_bytes;
      const decoder_page_t* page = &p->pages[decoder_page_of(p->values.pages[r], t)];
      add(list, page->keys[p->layer], bytes, false);
      add(list, page->values[p->layer], bytes, false);
    }
  }
  add(list, p->y, launch->grid.x * row_bytes, true);
}

// --- gate -----------------------------------------------------------------------------------------------------------

static void gate_run(const gcap_sim_launch_t* launch, void* const* args) {
  const gate_params_t* p = args[0];
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const float* gate = p->gate_and_up + r * 2 * DECODER_HIDDEN;
    for (uint32_t i = 0; i < launch->block.x; ++i) {
      p->y[r * DECODER_HIDDEN + i] = gate[i] / (1.0f + expf(-gate[i])) * gate[DECODER_HIDDEN + i];
    }
  }
}

static void gate_list(const gcap_sim_launch_t* launch, const gate_params_t* p, list_t* list) {
  const size_t bytes = launch->grid.x * DECODER_HIDDEN * sizeof(float);
  add(list, p->gate_and_up, 2 * bytes, false);
  add(list, p->y, bytes, true);
}

// --- choose, draw ---------------------------------------------------------------------------------------------------

static void choose_row(const choose_params_t* p, uint32_t r, uint32_t words, float temperature) {
  const decoder_row_t* row = p->values.rows[r];
  if (row->position < 0) return;
  int32_t best = 0;
  float largest = -INFINITY;
  for (uint32_t word = 0; word < words; ++word) {
    float logit = p->logits[r * DECODER_WORDS + word];
    if (temperature > 0) logit += temperature * decoder_noise(row, (int32_t)word);
    if (logit <= largest) continue;
    largest = logit;
    best = (int32_t)word;
  }
  p->chosen[row->slot] = best;
  p->tokens[r] = best;
}

static void choose_run(const gcap_sim_launch_t* launch, void* const* args) {
  for (uint32_t r = 0; r < launch->grid.x; ++r) choose_row(args[0], r, launch->block.x, 0);
}

static void draw_run(const gcap_sim_launch_t* launch, void* const* args) {
  const choose_params_t* p = args[0];
  for (uint32_t r = 0; r < launch->grid.x; ++r) choose_row(p, r, launch->block.x, p->values.rows[r]->temperature);
}

static void choose_list(const gcap_sim_launch_t* launch, const choose_params_t* p, list_t* list) {
  add_rows(list, &p->values, launch->grid.x);
  for (uint32_t r = 0; r < launch->grid.x; ++r) {
    const decoder_row_t* row = p->values.rows[r];
    if (row->position < 0) continue;
    add(list, p->logits + r * DECODER_WORDS, DECODER_WORDS * sizeof(float), false);
    add(list, &p->chosen[row->slot], sizeof(*p->chosen), true);
    add(list, &p->tokens[r], sizeof(*p->tokens), true);
  }
}

// --- Registration ---------------------------------------------------------------------------------------------------

// The function whose address is the kernel's handle, the list as the simulator asks for it, and the registration.
#define TWIN(kernel, params_type, run, list_of)                                                               \
  void kernel(params_type params) {                                                                           \
    (void)params;                                                                                             \
    abort();                                                                                                  \
  }                                                                                                           \
  static size_t kernel##_accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, \
                                  size_t capacity) {                                                          \
    list_t list = {out, capacity, 0};                                                                         \
    list_of(launch, args[0], &list);                                                                          \
    return list.count;                                                                                        \
  }                                                                                                           \
  __attribute__((constructor)) static void kernel##_register(void) {                                          \
    static const size_t bytes = sizeof(params_type);                                                          \
    gcap_sim_register_kernel(                                                                                 \
        &(gcap_sim_kernel_t){(const void*)kernel, #kernel, &bytes, /*num_args=*/1, run, kernel##_accesses});  \
  }

TWIN(embed_kernel, embed_params_t, embed_run, embed_list)
TWIN(norm_kernel, norm_params_t, norm_run, norm_list)
TWIN(rotate_kernel, rotate_params_t, rotate_run, rotate_list)
TWIN(attend_kernel, attend_params_t, attend_run, attend_list)
TWIN(gate_kernel, gate_params_t, gate_run, gate_list)
TWIN(choose_kernel, choose_params_t, choose_run, choose_list)
TWIN(draw_kernel, choose_params_t, draw_run, choose_list)
