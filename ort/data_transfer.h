// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// data_transfer.h: copies for ONNX Runtime.
#ifndef GCAP_ORT_DATA_TRANSFER_H_
#define GCAP_ORT_DATA_TRANSFER_H_

#include "ort/objects.h"

// A tensor as bytes, whatever its type is, and where it is.
//   INVALID_ARGUMENT  in memory of other providers
gcap_status_t gcap_ort_describe_bytes(gcap_ort_factory_t* factory, const gcap_ort_value_t* value,
                                      gcap_tensor_t* out_tensor, gcap_memory_t* out_memory) GCAP_NODISCARD;
gcap_ort_status_t* gcap_ort_create_data_transfer(gcap_ort_ep_factory_t* self, gcap_ort_data_transfer_t** out_transfer);

#endif  // GCAP_ORT_DATA_TRANSFER_H_
