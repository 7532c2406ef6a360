// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// twin.h: the kernels of the program, and what runs in their place.
#ifndef GCAP_SIM_DEVICE_TWIN_H_
#define GCAP_SIM_DEVICE_TWIN_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap_sim.h"
#include "sim/nvcc/signature.h"

// A kernel, by its handle: one that nvcc compiled, one that has a twin, or both. Never moves, and lives for ever, since
// tasks point to it.
typedef struct gcap_sim_twin {
  gcap_sim_kernel_t kernel;         // the twin; without one `run` is NULL, and the rest is what is known of the kernel
  const char* registered;           // the name that nvcc's object gave it, a copy; NULL for a kernel of no such object
  const void* code;                 // the fat binary of the first object with it; NULL once that is gone
  size_t objects;                   // in which it is registered; with 0 a kernel that has no twin is gone
  gcap_sim_signature_t* signature;  // made when first asked for
  bool checked;                     // the twin against the signature
  uint64_t skipped;                 // launches that did nothing, for want of a twin
  int max_shared_bytes;             // cudaFuncAttributeMaxDynamicSharedMemorySize; -1 where nobody has set it
  int carveout;                     // cudaFuncAttributePreferredSharedMemoryCarveout; -1 for none
  bool any_cluster;                 // cudaFuncAttributeNonPortableClusterSizeAllowed
  int cluster_policy;               // cudaFuncAttributeClusterSchedulingPolicyPreference
  int required_cluster[3];          // cudaFuncAttributeRequiredClusterWidth and so on; 0 where none is required
  struct gcap_sim_twin* gone;       // the next of those that are no kernels any more
} gcap_sim_twin_t;

// Must all launches be in clusters of a size that the kernel gives?
bool gcap_sim_requires_cluster(const gcap_sim_twin_t* twin);

// What the kernel needs; all 0 for one that nvcc did not compile.
gcap_sim_needs_t gcap_sim_twin_needs(gcap_sim_twin_t* twin);
// How much dynamic shared memory a launch may ask for.
size_t gcap_sim_twin_max_shared(gcap_sim_twin_t* twin);

// The kernel of that handle; NULL when it is none.
gcap_sim_twin_t* gcap_sim_twin_find(const void* function);
// Makes the kernel ready to be launched: finds its twin by name. One that has none stops the program, unless such
// kernels are skipped.
void gcap_sim_twin_prepare(gcap_sim_twin_t* twin);
// Runs what stands for the kernel.
void gcap_sim_twin_run(gcap_sim_twin_t* twin, const gcap_sim_launch_t* launch, void* const* args);

// An object that nvcc compiled brings a kernel, and takes it away; the code must stay valid until then.
void gcap_sim_twin_declare(const void* function, const char* registered, const void* code);
void gcap_sim_twin_withdraw(const void* function, const void* code);

#endif  // GCAP_SIM_DEVICE_TWIN_H_
