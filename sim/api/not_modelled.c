// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Functions that the headers declare and the simulator does not model. Each stops the program and names itself: a call
// that silently succeeded would make every test above it worthless.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"

// The parameters are there for the prototype alone.
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define GCAP_SIM_API(name, class)
#define GCAP_SIM_NOT_MODELLED(name, params) \
  cudaError_t name params { gcap_sim_die(#name " is not modelled; see sim/api/api.inc for the functions that are"); }
#include "sim/api/api.inc"
