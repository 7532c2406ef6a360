// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// recurrent.h: launches the steps of recurrent networks.
#ifndef GCAP_OPS_KERNELS_RECURRENT_H_
#define GCAP_OPS_KERNELS_RECURRENT_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/recurrent_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_recurrent_part {
  GCAP_RECURRENT_begin = 0,   // the state becomes the initial one
  GCAP_RECURRENT_lstm,        // a step of an LSTM
  GCAP_RECURRENT_gru_reset,   // of a GRU, before the product for the candidate
  GCAP_RECURRENT_gru,         // behind that product
  GCAP_RECURRENT_gru_linear,  // a step of a GRU with linear_before_reset
  GCAP_RECURRENT_rnn,         // a step of an RNN
  GCAP_RECURRENT_end,         // y_h and y_c become the state
  GCAP_RECURRENT_NUM_PARTS,
} gcap_recurrent_part_t;

// Launches one kernel of the type on `stream`, over `params->elements`, of which there is one at least.
//   CUDA_ERROR  the launch failed, or the device could not be made current
gcap_status_t gcap_recurrent(gcap_stream_t* stream, gcap_dtype_t dtype, gcap_recurrent_part_t part,
                             const gcap_recurrent_params_t* params) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_RECURRENT_H_
