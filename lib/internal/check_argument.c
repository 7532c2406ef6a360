// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Checks of arguments. No state, nothing to lock.

#include "lib/internal/check_argument.h"

gcap_status_t gcap_check_device(int device_id) {
  int count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDeviceCount(&count)));
  if (device_id >= 0 && device_id < count) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "device_id is %d, this machine has devices 0..%d", device_id, count - 1);
}
