// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Occupancy: how many blocks of a kernel a multiprocessor holds at a time.
//
// The idea: threads, blocks, registers and shared memory each set a limit, and the least one counts; the numbers are
// those of the simulated device and of what the kernel's machine code tells, or of the registers that a twin is said to
// use. A kernel's own limit of threads does not count, as measured. Locking: the global mutex.
#include "sim/device/occupancy.h"

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/device/kernel.h"
#include "sim/device/properties.h"
#include "sim/device/twin.h"

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

// Registers are given to warps in steps.
static size_t registers_of_warp(gcap_sim_needs_t needs) {
  const size_t registers = (needs.registers != 0 ? needs.registers : GCAP_SIM_KERNEL_REGISTERS) * GCAP_SIM_WARP;
  return (registers + GCAP_SIM_REGISTER_STEP - 1) / GCAP_SIM_REGISTER_STEP * GCAP_SIM_REGISTER_STEP;
}

size_t gcap_sim_occupancy(gcap_sim_needs_t needs, size_t threads, size_t shared_bytes) {
  shared_bytes += needs.shared_bytes;
  if (threads == 0 || threads > GCAP_SIM_MAX_THREADS || shared_bytes > GCAP_SIM_SHARED_BYTES_OPTIN) return 0;
  size_t rounded = (threads + GCAP_SIM_WARP - 1) / GCAP_SIM_WARP * GCAP_SIM_WARP;
  size_t blocks = least(GCAP_SIM_MAX_RESIDENT_THREADS / rounded, GCAP_SIM_MAX_RESIDENT_BLOCKS);
  blocks = least(blocks, GCAP_SIM_REGISTERS / (rounded / GCAP_SIM_WARP * registers_of_warp(needs)));
  return least(blocks, GCAP_SIM_SHARED_BYTES_SM / (shared_bytes + GCAP_SIM_SHARED_BYTES_RESERVED));
}

static cudaError_t max_active_blocks(int* out, const void* function, int threads, size_t shared_bytes,
                                     unsigned int flags) {
  if (out == NULL || threads <= 0 || flags > cudaOccupancyDisableCachingOverride) return cudaErrorInvalidValue;
  size_t most;
  cudaError_t code = gcap_sim_kernel_max_shared(function, &most);
  if (code != cudaSuccess) return code;
  const gcap_sim_needs_t needs = gcap_sim_kernel_needs(function);
  *out = shared_bytes > most ? 0 : (int)gcap_sim_occupancy(needs, (size_t)threads, shared_bytes);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func, int blockSize,
                                                          size_t dynamicSMemSize) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaOccupancyMaxActiveBlocksPerMultiprocessor);
  if (code == cudaSuccess) code = max_active_blocks(numBlocks, func, blockSize, dynamicSMemSize, cudaOccupancyDefault);
  return gcap_sim_leave(code);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void* func, int blockSize,
                                                                   size_t dynamicSMemSize, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  if (code == cudaSuccess) code = max_active_blocks(numBlocks, func, blockSize, dynamicSMemSize, flags);
  return gcap_sim_leave(code);
}

static cudaError_t max_cluster(int* out, const void* function) {
  const gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  if (twin == NULL) return cudaErrorInvalidDeviceFunction;
  if (out == NULL) return cudaErrorInvalidValue;
  *out = twin->any_cluster ? GCAP_SIM_MAX_ANY_CLUSTER : GCAP_SIM_MAX_CLUSTER;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* clusterSize, const void* func,
                                                 const cudaLaunchConfig_t* launchConfig) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaOccupancyMaxPotentialClusterSize);
  if (code == cudaSuccess && launchConfig == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = max_cluster(clusterSize, func);
  return gcap_sim_leave(code);
}

// The blocks that the device holds at a time, in clusters.
static cudaError_t max_active_clusters(int* out, const void* function, const cudaLaunchConfig_t* config) {
  if (out == NULL || config == NULL) return cudaErrorInvalidValue;
  if (config->numAttrs > 0 && config->attrs == NULL) return cudaErrorInvalidValue;
  const size_t threads = (size_t)config->blockDim.x * config->blockDim.y * config->blockDim.z;
  int blocks = 0;
  cudaError_t code = max_active_blocks(&blocks, function, (int)threads, config->dynamicSmemBytes, cudaOccupancyDefault);
  size_t size = 1;
  for (unsigned int i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttributeValue* value = &config->attrs[i].val;
    if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    size = (size_t)value->clusterDim.x * value->clusterDim.y * value->clusterDim.z;
  }
  if (code == cudaSuccess && size == 0) code = cudaErrorInvalidClusterSize;
  if (code == cudaSuccess) *out = (int)((size_t)blocks * GCAP_SIM_MULTIPROCESSORS / size);
  return code;
}

cudaError_t cudaOccupancyMaxActiveClusters(int* numClusters, const void* func, const cudaLaunchConfig_t* launchConfig) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaOccupancyMaxActiveClusters);
  if (code == cudaSuccess) code = max_active_clusters(numClusters, func, launchConfig);
  return gcap_sim_leave(code);
}

// The most shared memory a block may ask for so that `blocks` of them fit.
static cudaError_t available_shared(size_t* out, const void* function, int blocks, int threads) {
  if (blocks <= 0 || threads <= 0) return cudaErrorInvalidValue;
  size_t most;
  cudaError_t code = gcap_sim_kernel_max_shared(function, &most);
  if (code != cudaSuccess) return code;
  if (out == NULL) {
    gcap_sim_die("cudaOccupancyAvailableDynamicSMemPerBlock: the place is NULL: the real runtime writes it");
  }
  const gcap_sim_needs_t needs = gcap_sim_kernel_needs(function);
  if ((size_t)blocks > gcap_sim_occupancy(needs, (size_t)threads, 0)) return cudaErrorInvalidValue;
  const size_t taken = GCAP_SIM_SHARED_BYTES_RESERVED + needs.shared_bytes;
  size_t share = GCAP_SIM_SHARED_BYTES_SM / (size_t)blocks;
  share = share > taken ? share - taken : 0;
  *out = least(share, most);
  return cudaSuccess;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, const void* func, int numBlocks,
                                                      int blockSize) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaOccupancyAvailableDynamicSMemPerBlock);
  if (code == cudaSuccess) code = available_shared(dynamicSmemSize, func, numBlocks, blockSize);
  return gcap_sim_leave(code);
}
