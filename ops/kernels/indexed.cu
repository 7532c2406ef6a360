// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elements that move to and from places that indices name, on the GPU: a thread for each unit that moves. Of updates
// that share a place without a reduction, any one stays. A reduction is atomic: f32, i64 and i32 are added by the
// hardware, which takes subnormal floats as zeros; all else, and each f16 and bf16, is a loop of compare-and-swap on a
// word of the element's size. So no update is lost, and the order of updates of one place, and with it the rounding of
// floats, is another one in each run.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/indexed_kernels.h"

namespace {

// --- Without a reduction --------------------------------------------------------------------------------------------

template <typename T>
__device__ void GatherElements(const gcap_elements_params_t& p) {
  gcap::ForEach<1>(p.map, [&p](int64_t i, const auto& offsets) {
    const int64_t index = gcap_element_index(&p, i);
    static_cast<T*>(p.to)[i] = index < 0 ? T{} : static_cast<const T*>(p.from)[offsets[0] + index * p.axis_stride];
  });
}

template <typename T>
__device__ void ScatterElements(const gcap_elements_params_t& p) {
  gcap::ForEach<1>(p.map, [&p](int64_t i, const auto& offsets) {
    const int64_t index = gcap_element_index(&p, i);
    if (index >= 0) static_cast<T*>(p.to)[offsets[0] + index * p.axis_stride] = static_cast<const T*>(p.from)[i];
  });
}

template <typename T>
__device__ void GatherSlices(const gcap_slices_params_t& p) {
  for (int64_t i = gcap::FirstOfThread(); i < p.slices * p.inner; i += gcap::ThreadsOfGrid()) {
    const int64_t slice = gcap_slice_of_unit(&p, i), place = gcap_gathered_slice(&p, slice);
    static_cast<T*>(p.to)[i] = place < 0 ? T{} : static_cast<const T*>(p.from)[place * p.inner + (i - slice * p.inner)];
  }
}

template <typename T>
__device__ void ScatterSlices(const gcap_slices_params_t& p) {
  for (int64_t i = gcap::FirstOfThread(); i < p.slices * p.inner; i += gcap::ThreadsOfGrid()) {
    const int64_t slice = gcap_slice_of_unit(&p, i), place = gcap_scattered_slice(&p, slice);
    static_cast<T*>(p.to)[place * p.inner + (i - slice * p.inner)] = static_cast<const T*>(p.from)[i];
  }
}

template <typename T>
__device__ void WriteCache(const gcap_cache_params_t& p) {
  for (int64_t i = gcap::FirstOfThread(); i < p.units; i += gcap::ThreadsOfGrid()) {
    const int64_t row = i / p.inner, place = gcap_cache_row(&p, row);
    if (place >= 0) static_cast<T*>(p.to)[place * p.inner + (i - row * p.inner)] = static_cast<const T*>(p.from)[i];
  }
}

// --- Reductions -----------------------------------------------------------------------------------------------------

// atomicCAS knows no types of a fixed size.
__device__ uint16_t Swap(uint16_t* to, uint16_t seen, uint16_t next) {
  return atomicCAS(reinterpret_cast<unsigned short*>(to), seen, next);
}
__device__ uint32_t Swap(uint32_t* to, uint32_t seen, uint32_t next) {
  return atomicCAS(reinterpret_cast<unsigned*>(to), seen, next);
}
__device__ uint64_t Swap(uint64_t* to, uint64_t seen, uint64_t next) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(to), seen, next);
}

// True if the hardware has added.
template <typename T>
__device__ bool Add(T*, T) {
  return false;
}
__device__ bool Add(float* to, float update) {
  atomicAdd(to, update);
  return true;
}
__device__ bool Add(int32_t* to, int32_t update) {
  atomicAdd(to, update);
  return true;
}
__device__ bool Add(int64_t* to, int64_t update) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(update));
  return true;
}

template <typename Word, typename T, typename Combine>
__device__ void Update(int32_t op, T* to, T update, Combine combine) {
  static_assert(sizeof(Word) == sizeof(T), "a word of the element's size");
  if (op == GCAP_SCATTER_ADD && Add(to, update)) return;
  Word* word = reinterpret_cast<Word*>(to);
  Word seen = *word;
  for (;;) {
    T made = combine(op, *reinterpret_cast<T*>(&seen), update);
    const Word found = Swap(word, seen, *reinterpret_cast<Word*>(&made));
    if (found == seen) return;
    seen = found;
  }
}

template <typename Word, typename T, typename Combine>
__device__ void ReduceElements(const gcap_elements_params_t& p, Combine combine) {
  gcap::ForEach<1>(p.map, [&p, combine](int64_t i, const auto& offsets) {
    const int64_t index = gcap_element_index(&p, i);
    if (index < 0) return;
    T* to = static_cast<T*>(p.to) + (offsets[0] + index * p.axis_stride);
    Update<Word>(p.scatter_op, to, static_cast<const T*>(p.from)[i], combine);
  });
}

template <typename Word, typename T, typename Combine>
__device__ void ReduceSlices(const gcap_slices_params_t& p, Combine combine) {
  for (int64_t i = gcap::FirstOfThread(); i < p.slices * p.inner; i += gcap::ThreadsOfGrid()) {
    const int64_t slice = gcap_slice_of_unit(&p, i), place = gcap_scattered_slice(&p, slice);
    T* to = static_cast<T*>(p.to) + (place * p.inner + (i - slice * p.inner));
    Update<Word>(p.scatter_op, to, static_cast<const T*>(p.from)[i], combine);
  }
}

}  // namespace

#define DEFINE_ELEMENT_KERNELS(bytes, type)                                                                            \
  __global__ void gcap_kernel_gather_elements_##bytes(gcap_elements_params_t params) { GatherElements<type>(params); } \
  __global__ void gcap_kernel_scatter_elements_##bytes(gcap_elements_params_t params) { ScatterElements<type>(params); }
GCAP_ELEMENT_KERNELS(DEFINE_ELEMENT_KERNELS)

#define DEFINE_SLICE_KERNELS(bytes, type)                                                                          \
  __global__ void gcap_kernel_gather_slices_##bytes(gcap_slices_params_t params) { GatherSlices<type>(params); }   \
  __global__ void gcap_kernel_scatter_slices_##bytes(gcap_slices_params_t params) { ScatterSlices<type>(params); } \
  __global__ void gcap_kernel_write_cache_##bytes(gcap_cache_params_t params) { WriteCache<type>(params); }
GCAP_UNIT_KERNELS(DEFINE_SLICE_KERNELS)

#define DEFINE_REDUCTIONS(T, kind, word)                                                   \
  struct Scattered_##T {                                                                   \
    __device__ gcap_##T##_t operator()(int32_t op, gcap_##T##_t a, gcap_##T##_t b) const { \
      return gcap_scattered_##T(op, a, b);                                                 \
    }                                                                                      \
  };                                                                                       \
  __global__ void gcap_kernel_reduce_elements_##T(gcap_elements_params_t params) {         \
    ReduceElements<word, gcap_##T##_t>(params, Scattered_##T());                           \
  }                                                                                        \
  __global__ void gcap_kernel_reduce_slices_##T(gcap_slices_params_t params) {             \
    ReduceSlices<word, gcap_##T##_t>(params, Scattered_##T());                             \
  }
GCAP_SCATTER_OP_KERNELS(DEFINE_REDUCTIONS)
