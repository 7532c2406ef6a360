// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// copy.h: what the files of copies and fills share.
#ifndef GCAP_SIM_CUDART_COPY_H_
#define GCAP_SIM_CUDART_COPY_H_

#include "core.h"

// Judges, then queues or captures a copy; one that must is done on return.
cudaError_t gcap_sim_copy_async(gcap_sim_copy_t* copy, gcap_sim_stream_t* stream);
// The same, and on return it is done, unless it stays within devices.
cudaError_t gcap_sim_copy_sync(gcap_sim_copy_t* copy);
// Takes the source's bytes now; what becomes of them later does not matter to the copy.
void gcap_sim_copy_stage(gcap_sim_task_t* task);

cudaError_t gcap_sim_fill_async(const gcap_sim_fill_t* fill, gcap_sim_stream_t* stream);
// The same; a fill of host memory is done on return.
cudaError_t gcap_sim_fill_sync(const gcap_sim_fill_t* fill);

#endif  // GCAP_SIM_CUDART_COPY_H_
