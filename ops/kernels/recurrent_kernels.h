// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// recurrent_kernels.h: what is done element by element in recurrent networks, where the products are there already: the
// functions of one element of the state, of which the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_RECURRENT_KERNELS_H_
#define GCAP_OPS_KERNELS_RECURRENT_KERNELS_H_

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gates are in ONNX's order. A kernel gets NULL for what it does not use, and for what the node lacks.
typedef struct gcap_recurrent_params {
  const float* inputs;     // of all steps: X times the weights; [rows of X, directions, gates, hidden]
  const float* recurrent;  // the state times the recurrent weights; [directions, batch, recurrent_gates, hidden]
  const float*
      candidate;         // of a GRU that resets the state before its product: the product; [directions, batch, hidden]
  const void* bias;      // [directions, 2, gates, hidden]: those of the inputs, then those of the state
  const void* peephole;  // [directions, 3, hidden]: of the gates i, o and f
  const int32_t* lengths;  // [batch]; what is outside of 0..steps counts as the nearest
  const void *initial_h, *initial_c;
  void* hidden;  // the state; [directions, batch, hidden]
  float* cell;   // the cells' state, likewise
  void* reset;   // of a GRU that resets the state before its product: what is multiplied, likewise
  void *y, *y_h, *y_c;
  int64_t elements;  // of the state
  int64_t step;      // the step that is computed
  int64_t steps, batch, directions, gates, recurrent_gates, units;
  int32_t reverse;      // 1: the only direction is the reverse one
  int32_t batch_first;  // 1: X is [batch, steps, ...], Y and states likewise
  int32_t narrow;       // 1: `elements` fits into 31 bits
} gcap_recurrent_params_t;

// Where an element of the state is.
typedef struct gcap_recurrent_place {
  int64_t direction, sequence, unit;
  int64_t length;    // of its sequence
  int64_t time;      // of X and Y, at this step
  int32_t is_ended;  // 1: the step is behind the end of the sequence; the state stays, and Y is 0
} gcap_recurrent_place_t;

GCAP_INLINE gcap_recurrent_place_t gcap_recurrent_place(const gcap_recurrent_params_t* p, int64_t i) {
  gcap_recurrent_place_t at;
  if (p->narrow) {  // divisions of 32 bits take a fraction of the time of those of 64
    const uint32_t units = (uint32_t)p->units, batch = (uint32_t)p->batch, row = (uint32_t)i / units;
    at.unit = (uint32_t)i % units;
    at.sequence = row % batch;
    at.direction = row / batch;
  } else {
    at.unit = i % p->units;
    at.sequence = i / p->units % p->batch;
    at.direction = i / p->units / p->batch;
  }
  at.length = p->lengths == NULL ? p->steps : gcap_clip_int(p->lengths[at.sequence], 0, p->steps);
  at.is_ended = p->step >= at.length;
  const int32_t is_reverse = p->reverse || at.direction == 1;
  at.time = is_reverse && !at.is_ended ? at.length - 1 - p->step : p->step;
  return at;
}

// The index of the element in initial_h, initial_c, y_h and y_c.
GCAP_INLINE int64_t gcap_recurrent_state_index(const gcap_recurrent_params_t* p, int64_t i,
                                               const gcap_recurrent_place_t* at) {
  return p->batch_first ? (at->sequence * p->directions + at->direction) * p->units + at->unit : i;
}

// The index of the element in Y.
GCAP_INLINE int64_t gcap_recurrent_y_index(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at) {
  const int64_t row = p->batch_first ? (at->sequence * p->steps + at->time) * p->directions + at->direction
                                     : (at->time * p->directions + at->direction) * p->batch + at->sequence;
  return row * p->units + at->unit;
}

GCAP_INLINE float gcap_recurrent_sigmoid(float a) { return 1.0f / (1.0f + expf(-a)); }

#define GCAP_DEFINE_RECURRENT(T)                                                                                   \
  /* What X gives to a gate. */                                                                                    \
  GCAP_INLINE float gcap_recurrent_of_x_##T(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at,    \
                                            int64_t gate) {                                                        \
    const gcap_##T##_t* bias = (const gcap_##T##_t*)p->bias;                                                       \
    const int64_t row = p->batch_first ? at->sequence * p->steps + at->time : at->time * p->batch + at->sequence;  \
    const float sum = p->inputs[((row * p->directions + at->direction) * p->gates + gate) * p->units + at->unit];  \
    if (bias == NULL) return sum;                                                                                  \
    return sum + gcap_load_##T(bias[(2 * at->direction * p->gates + gate) * p->units + at->unit]);                 \
  }                                                                                                                \
  /* What the state gives to gate `gate`, which is number `among` of the `count` of the product. */                \
  GCAP_INLINE float gcap_recurrent_of_h_##T(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at,    \
                                            int64_t gate, const float* product, int64_t among, int64_t count) {    \
    const gcap_##T##_t* bias = (const gcap_##T##_t*)p->bias;                                                       \
    const int64_t row = at->direction * p->batch + at->sequence;                                                   \
    const float sum = product[(row * count + among) * p->units + at->unit];                                        \
    if (bias == NULL) return sum;                                                                                  \
    return sum + gcap_load_##T(bias[((2 * at->direction + 1) * p->gates + gate) * p->units + at->unit]);           \
  }                                                                                                                \
  GCAP_INLINE float gcap_recurrent_gate_##T(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at,    \
                                            int64_t gate) {                                                        \
    return gcap_recurrent_of_x_##T(p, at, gate) +                                                                  \
           gcap_recurrent_of_h_##T(p, at, gate, p->recurrent, gate, p->recurrent_gates);                           \
  }                                                                                                                \
  /* What the cell gives to peephole `which`. */                                                                   \
  GCAP_INLINE float gcap_recurrent_of_c_##T(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at,    \
                                            int64_t which, float cell) {                                           \
    if (p->peephole == NULL) return 0.0f;                                                                          \
    const gcap_##T##_t* peephole = (const gcap_##T##_t*)p->peephole;                                               \
    return gcap_load_##T(peephole[(3 * at->direction + which) * p->units + at->unit]) * cell;                      \
  }                                                                                                                \
  GCAP_INLINE void gcap_recurrent_put_##T(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at,      \
                                          float value) {                                                           \
    if (p->y != NULL) ((gcap_##T##_t*)p->y)[gcap_recurrent_y_index(p, at)] = gcap_store_##T(value);                \
  }                                                                                                                \
                                                                                                                   \
  GCAP_INLINE void gcap_recurrent_begin_##T(const gcap_recurrent_params_t* p, int64_t i) {                         \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    const int64_t from = gcap_recurrent_state_index(p, i, &at);                                                    \
    const gcap_##T##_t *h = (const gcap_##T##_t*)p->initial_h, *c = (const gcap_##T##_t*)p->initial_c;             \
    ((gcap_##T##_t*)p->hidden)[i] = h != NULL ? h[from] : gcap_store_##T(0.0f);                                    \
    if (p->cell != NULL) p->cell[i] = c != NULL ? gcap_load_##T(c[from]) : 0.0f;                                   \
  }                                                                                                                \
                                                                                                                   \
  GCAP_INLINE void gcap_recurrent_lstm_##T(const gcap_recurrent_params_t* p, int64_t i) {                          \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    float state = 0.0f;                                                                                            \
    if (!at.is_ended) {                                                                                            \
      const float old = p->cell[i];                                                                                \
      const float in_sum = gcap_recurrent_gate_##T(p, &at, 0) + gcap_recurrent_of_c_##T(p, &at, 0, old);           \
      const float forget_sum = gcap_recurrent_gate_##T(p, &at, 2) + gcap_recurrent_of_c_##T(p, &at, 2, old);       \
      const float candidate = tanhf(gcap_recurrent_gate_##T(p, &at, 3));                                           \
      const float cell = gcap_recurrent_sigmoid(forget_sum) * old + gcap_recurrent_sigmoid(in_sum) * candidate;    \
      const float out_sum = gcap_recurrent_gate_##T(p, &at, 1) + gcap_recurrent_of_c_##T(p, &at, 1, cell);         \
      state = gcap_recurrent_sigmoid(out_sum) * tanhf(cell);                                                       \
      p->cell[i] = cell;                                                                                           \
      ((gcap_##T##_t*)p->hidden)[i] = gcap_store_##T(state);                                                       \
    }                                                                                                              \
    gcap_recurrent_put_##T(p, &at, state);                                                                         \
  }                                                                                                                \
                                                                                                                   \
  /* The state that is multiplied for the candidate. */                                                            \
  GCAP_INLINE void gcap_recurrent_gru_reset_##T(const gcap_recurrent_params_t* p, int64_t i) {                     \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    const float open = at.is_ended ? 0.0f : gcap_recurrent_sigmoid(gcap_recurrent_gate_##T(p, &at, 1));            \
    ((gcap_##T##_t*)p->reset)[i] = gcap_store_##T(open * gcap_load_##T(((const gcap_##T##_t*)p->hidden)[i]));      \
  }                                                                                                                \
  /* The state, and Y, of a sum for the candidate. */                                                              \
  GCAP_INLINE float gcap_recurrent_gru_of_##T(const gcap_recurrent_params_t* p, const gcap_recurrent_place_t* at,  \
                                              int64_t i, float candidate_sum) {                                    \
    gcap_##T##_t* hidden = (gcap_##T##_t*)p->hidden + i;                                                           \
    const float keep = gcap_recurrent_sigmoid(gcap_recurrent_gate_##T(p, at, 0));                                  \
    const float state = (1.0f - keep) * tanhf(candidate_sum) + keep * gcap_load_##T(*hidden);                      \
    *hidden = gcap_store_##T(state);                                                                               \
    return state;                                                                                                  \
  }                                                                                                                \
  GCAP_INLINE void gcap_recurrent_gru_##T(const gcap_recurrent_params_t* p, int64_t i) {                           \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    float state = 0.0f;                                                                                            \
    if (!at.is_ended) {                                                                                            \
      const float of_h = gcap_recurrent_of_h_##T(p, &at, 2, p->candidate, 0, 1);                                   \
      state = gcap_recurrent_gru_of_##T(p, &at, i, gcap_recurrent_of_x_##T(p, &at, 2) + of_h);                     \
    }                                                                                                              \
    gcap_recurrent_put_##T(p, &at, state);                                                                         \
  }                                                                                                                \
  GCAP_INLINE void gcap_recurrent_gru_linear_##T(const gcap_recurrent_params_t* p, int64_t i) {                    \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    float state = 0.0f;                                                                                            \
    if (!at.is_ended) {                                                                                            \
      const float open = gcap_recurrent_sigmoid(gcap_recurrent_gate_##T(p, &at, 1));                               \
      const float of_h = open * gcap_recurrent_of_h_##T(p, &at, 2, p->recurrent, 2, p->recurrent_gates);           \
      state = gcap_recurrent_gru_of_##T(p, &at, i, gcap_recurrent_of_x_##T(p, &at, 2) + of_h);                     \
    }                                                                                                              \
    gcap_recurrent_put_##T(p, &at, state);                                                                         \
  }                                                                                                                \
  GCAP_INLINE void gcap_recurrent_rnn_##T(const gcap_recurrent_params_t* p, int64_t i) {                           \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    float state = 0.0f;                                                                                            \
    if (!at.is_ended) {                                                                                            \
      state = tanhf(gcap_recurrent_gate_##T(p, &at, 0));                                                           \
      ((gcap_##T##_t*)p->hidden)[i] = gcap_store_##T(state);                                                       \
    }                                                                                                              \
    gcap_recurrent_put_##T(p, &at, state);                                                                         \
  }                                                                                                                \
                                                                                                                   \
  /* A sequence without elements ends in zeros, whatever it began with. */                                         \
  GCAP_INLINE void gcap_recurrent_end_##T(const gcap_recurrent_params_t* p, int64_t i) {                           \
    const gcap_recurrent_place_t at = gcap_recurrent_place(p, i);                                                  \
    const int64_t to = gcap_recurrent_state_index(p, i, &at);                                                      \
    const gcap_##T##_t none = gcap_store_##T(0.0f);                                                                \
    if (p->y_h != NULL) ((gcap_##T##_t*)p->y_h)[to] = at.length == 0 ? none : ((const gcap_##T##_t*)p->hidden)[i]; \
    if (p->y_c != NULL) ((gcap_##T##_t*)p->y_c)[to] = at.length == 0 ? none : gcap_store_##T(p->cell[i]);          \
  }

// K(name, type, whether the state is read, whether the state is written)
#define GCAP_RECURRENT_KERNELS_OF(K, T) \
  K(begin, T, false, true)              \
  K(lstm, T, true, true)                \
  K(gru_reset, T, true, false)          \
  K(gru, T, true, true)                 \
  K(gru_linear, T, true, true)          \
  K(rnn, T, true, true)                 \
  K(end, T, true, false)

#define GCAP_RECURRENT_KERNELS(K)   \
  GCAP_RECURRENT_KERNELS_OF(K, f32) \
  GCAP_RECURRENT_KERNELS_OF(K, f16) \
  GCAP_RECURRENT_KERNELS_OF(K, bf16)

GCAP_DEFINE_RECURRENT(f32)
GCAP_DEFINE_RECURRENT(f16)
GCAP_DEFINE_RECURRENT(bf16)
#undef GCAP_DEFINE_RECURRENT

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(name, T, reads, writes) \
  GCAP_KERNEL void gcap_kernel_recurrent_##name##_##T(gcap_recurrent_params_t params);
GCAP_RECURRENT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_RECURRENT_KERNELS_H_
