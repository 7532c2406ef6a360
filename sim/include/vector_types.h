// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// vector_types.h: the simulator's declarations of CUDA's small vector types and of dim3.
#ifndef GCAP_SIM_VECTOR_TYPES_H_
#define GCAP_SIM_VECTOR_TYPES_H_

struct uint3 {
  unsigned int x, y, z;
};
typedef struct uint3 uint3;

// A grid or block extent. In C++ the members default to 1, as in CUDA; in C the caller sets all three.
struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;

#endif  // GCAP_SIM_VECTOR_TYPES_H_
