// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// registry.h: the operators of a plugin as ONNX Runtime's kernel registry.
#ifndef GCAP_ORT_REGISTRY_H_
#define GCAP_ORT_REGISTRY_H_

#include "ort/objects.h"

gcap_status_t gcap_ort_registry_open(gcap_ort_factory_t* factory) GCAP_NODISCARD;
void gcap_ort_registry_close(gcap_ort_factory_t* factory);

#endif  // GCAP_ORT_REGISTRY_H_
