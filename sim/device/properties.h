// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// properties.h: the constants that describe a simulated device. They are those of a compute capability 9.0 GPU where a
// program may depend on them (limits of launches, priorities), and small where it should not.
#ifndef GCAP_SIM_DEVICE_PROPERTIES_H_
#define GCAP_SIM_DEVICE_PROPERTIES_H_

#define GCAP_SIM_COMPUTE_MAJOR 9
#define GCAP_SIM_COMPUTE_MINOR 0
#define GCAP_SIM_MULTIPROCESSORS 132
#define GCAP_SIM_CLOCK_KHZ 1980000
#define GCAP_SIM_MEMORY_OF_DEVICE ((size_t)8 << 30)
#define GCAP_SIM_ALIGNMENT 512  // of device allocations

#define GCAP_SIM_MAX_THREADS 1024
#define GCAP_SIM_MAX_BLOCK_X 1024
#define GCAP_SIM_MAX_BLOCK_Y 1024
#define GCAP_SIM_MAX_BLOCK_Z 64
#define GCAP_SIM_MAX_GRID_X 0x7fffffff
#define GCAP_SIM_MAX_GRID_YZ 65535
#define GCAP_SIM_SHARED_BYTES (48 << 10)         // a block's share without asking
#define GCAP_SIM_SHARED_BYTES_OPTIN (227 << 10)  // after cudaFuncSetAttribute
#define GCAP_SIM_SHARED_BYTES_SM (228 << 10)
#define GCAP_SIM_SHARED_BYTES_RESERVED (1 << 10)  // of each block, by the system

// What a multiprocessor holds at a time, and what a twin's kernel is said to need of it.
#define GCAP_SIM_WARP 32
#define GCAP_SIM_MAX_RESIDENT_THREADS 2048
#define GCAP_SIM_MAX_RESIDENT_BLOCKS 32
#define GCAP_SIM_REGISTERS 65536
#define GCAP_SIM_REGISTER_STEP 256
#define GCAP_SIM_KERNEL_REGISTERS 32

#define GCAP_SIM_MAX_CLUSTER 8  // blocks, without asking for more
#define GCAP_SIM_MAX_ANY_CLUSTER 16
#define GCAP_SIM_MAX_WINDOW_BYTES (128 << 20)
#define GCAP_SIM_MAX_PERSISTING_BYTES 39321600

#define GCAP_SIM_MEMORY_CLOCK_KHZ 3201000
#define GCAP_SIM_BUS_BITS 6144
#define GCAP_SIM_L2_BYTES (60 << 20)

#define GCAP_SIM_LEAST_PRIORITY 0
#define GCAP_SIM_GREATEST_PRIORITY (-5)

#endif  // GCAP_SIM_DEVICE_PROPERTIES_H_
