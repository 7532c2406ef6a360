// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One range holds the stand-ins of all buffers, with a gap before each group, so that a pointer to the end of one
// buffer is none into the next group. Nothing is ever written there. Nothing is shared, so nothing is locked.
//
// Why two rehearsals. Work may choose by an address: a kernel, a number of elements, an order. Two captures that agree
// do not tell that a third one would, since the work may have chosen alike at both places. So the doubt is one of
// places and not of arguments, and gcap_stand_ins_need_second settles the doubt before the second rehearsal: only
// places that differ in all that is varied leave none. With one rehearsal each varied bit has to become another one, so
// the place has the complement of the capture's bits. That is enough for a single group whose varied bits are all 0, or
// all 1: of each power of two one of the places is a multiple, and the other is not. The rest needs a third place:
//   - Of bits that are mixed, both places have a 1. So neither is a multiple of the powers above these, by which work
//     chooses, too.
//   - Of two groups, both complements agree in a bit where the addresses of the capture agree. So work that compares
//     the alignments of two buffers, to peel off elements up to an aligned one, chooses alike.

#include "lib/contents/inner.h"

#include "lib/contents/driver.h"
#include "lib/internal/cuda_guard.h"

// Address space is reserved in multiples of this, and begins at one. Measured on an H200.
#define GRANULE ((size_t)2 << 20)
// Up to this power of two bits of addresses are varied: kernels are chosen by 4 to 256 bytes, pages have 4 to 64 KiB.
#define SPAN ((size_t)64 << 10)
#define GAP SPAN
// What the lower half of an address counts. A reservation that holds a whole one shares its upper half with nobody.
#define HALF ((size_t)1 << 32)

static uintptr_t round_up(uintptr_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// --- Places ---------------------------------------------------------------------------------------------------------

static size_t span_of(const gcap_layout_group_t* group) {
  return 2 * group->alignment > SPAN ? 2 * group->alignment : SPAN;
}

// The bits of an address that are varied: from the group's alignment up to its span.
static uintptr_t varied(const gcap_layout_group_t* group) { return span_of(group) - group->alignment; }

// The varied bits of a group in a set.
static uintptr_t residue_of(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t index,
                            size_t set) {
  const gcap_layout_group_t* group = &layout->groups[index];
  if (set == 0) return (buffers[group->first].address & varied(group)) == varied(group) ? 0 : varied(group);
  // Buffers that are all well aligned show what that does. Then each group is aligned in another way than its
  // neighbours, as work can be that compares the alignments of two buffers.
  bool is_aligned = true;
  for (size_t i = 0; i < layout->num_groups; ++i) {
    const gcap_layout_group_t* other = &layout->groups[i];
    is_aligned &= (buffers[other->first].address & varied(other)) == 0;
  }
  return is_aligned ? index * group->alignment & varied(group) : 0;
}

// Lays the stand-ins out from `base` on, and returns the end.
static uintptr_t place(gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t set, uintptr_t base) {
  uintptr_t end = base;
  for (size_t i = 0; i < layout->num_groups; ++i) {
    const size_t index = set == 0 ? layout->num_groups - 1 - i : i;
    const gcap_layout_group_t* group = &layout->groups[index];
    const uintptr_t below = buffers[group->first].address & (group->alignment - 1);
    const uintptr_t begin = round_up(end + GAP, span_of(group)) + residue_of(buffers, layout, index, set) + below;
    for (size_t k = 0; k < layout->num_buffers; ++k) {
      if (layout->group_of[k] != index) continue;
      buffers[k].stand_ins[set] = begin + (buffers[k].address - buffers[group->first].address);
    }
    end = begin + group->bytes;
  }
  return end + GAP;
}

// Bytes that hold all stand-ins, wherever the range begins; 0: too many to be counted.
static size_t bytes_of(const gcap_layout_t* layout) {
  size_t bytes = GAP;
  for (size_t i = 0; i < layout->num_groups; ++i) {
    size_t more = 2 * span_of(&layout->groups[i]) + GAP;
    if (__builtin_add_overflow(more, layout->groups[i].bytes, &more) || __builtin_add_overflow(bytes, more, &bytes)) {
      return 0;
    }
  }
  return bytes > SIZE_MAX - GRANULE ? 0 : round_up(bytes, GRANULE);
}

// --- Ranges ---------------------------------------------------------------------------------------------------------

static gcap_status_t take_memory(gcap_stand_ins_t* stand_ins) {
  void* memory = NULL;
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&memory, stand_ins->bytes));
  stand_ins->base = (uintptr_t)memory;
  return status;
}

static gcap_status_t take_addresses(gcap_stand_ins_t* stand_ins) {
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  return GCAP_DRIVER("cuMemAddressReserve", driver.reserve(&stand_ins->base, stand_ins->bytes, 0, 0, 0));
}

// How many bytes to reserve so that the upper halves of the stand-ins are their own: whole halves, one more since the
// range may begin anywhere, and twice as many again for set 1, which keeps clear of set 0. 0: too many.
static size_t reserved_bytes(size_t bytes, size_t set) {
  size_t whole = 0;
  if (bytes > SIZE_MAX - HALF) return 0;
  whole = round_up(bytes, HALF);
  size_t all = 0;
  if (__builtin_mul_overflow(whole, set == 0 ? (size_t)1 : (size_t)3, &all) ||
      __builtin_add_overflow(all, HALF, &all)) {
    return 0;
  }
  return all;
}

// Where in the reserved range the stand-ins begin: at the first whole half, or at the first one whose upper halves set
// 0 does not have.
static uintptr_t begin_of(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t set, uintptr_t base,
                          size_t bytes) {
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (size_t i = 0; set > 0 && i < layout->num_buffers; ++i) {
    const uintptr_t begin = buffers[i].stand_ins[0], end = begin + buffers[i].bytes;
    if (begin < low) low = begin;
    if (end > high) high = end;
  }
  uintptr_t begin = round_up(base, HALF);
  const size_t whole = round_up(bytes, HALF);
  // Set 0 spans no more than `whole`, so of three places one at least is clear of it.
  while (set > 0 && begin < round_up(high + 1, HALF) && (low & ~(HALF - 1)) < begin + whole) begin += whole;
  return begin;
}

static gcap_status_t take(gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t set,
                          gcap_stand_ins_t* stand_ins) {
  const size_t bytes = stand_ins->bytes;
  if (!stand_ins->is_memory) stand_ins->bytes = reserved_bytes(bytes, set);
  GCAP_RETURN_IF_ERROR(stand_ins->is_memory ? take_memory(stand_ins) : take_addresses(stand_ins));
  place(buffers, layout, set,
        stand_ins->is_memory ? stand_ins->base : begin_of(buffers, layout, set, stand_ins->base, bytes));
  return NULL;
}

gcap_status_t gcap_stand_ins_create(gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t set,
                                    int device_id, bool is_memory, gcap_stand_ins_t* out_stand_ins) {
  *out_stand_ins = (gcap_stand_ins_t){.bytes = bytes_of(layout), .is_memory = is_memory};
  if (out_stand_ins->bytes == 0 || reserved_bytes(out_stand_ins->bytes, set) == 0) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "the %zu buffers of the graph are too large to be reserved together",
                       layout->num_buffers);
  }
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = take(buffers, layout, set, out_stand_ins);
  status = gcap_status_join(status, gcap_thread_leave(device_id, &previous));
  if (status == NULL) return NULL;
  if (out_stand_ins->base != 0) status = gcap_status_join(status, gcap_stand_ins_destroy(out_stand_ins));
  return gcap_status_annotate(status, gcap_status_code(status), "no second addresses for the buffers of a graph");
}

static gcap_status_t give_back(gcap_stand_ins_t* stand_ins) {
  if (stand_ins->is_memory) return GCAP_CUDA(cudaFree((void*)stand_ins->base));
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  return GCAP_DRIVER("cuMemAddressFree", driver.unreserve(stand_ins->base, stand_ins->bytes));
}

gcap_status_t gcap_stand_ins_destroy(gcap_stand_ins_t* stand_ins) {
  if (stand_ins->base == 0) return NULL;
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = give_back(stand_ins);
  if (status == NULL) stand_ins->base = 0;  // gone, whatever becomes of the mode
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

bool gcap_stand_ins_need_second(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout) {
  if (layout->num_groups != 1) return layout->num_groups > 1;
  const gcap_layout_group_t* group = &layout->groups[0];
  const gcap_moving_buffer_t* first = &buffers[group->first];
  const uintptr_t here = first->address & varied(group), there = first->stand_ins[0] & varied(group);
  return (here != 0 && here != varied(group)) || (here ^ there) != varied(group);
}

bool gcap_stand_ins_serve(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout,
                          const gcap_moving_buffer_t* earlier, const gcap_layout_t* earlier_layout) {
  for (size_t i = 0; i < layout->num_buffers; ++i) {
    const size_t group = layout->group_of[i];
    if (group != earlier_layout->group_of[i]) return false;
    if (((buffers[i].address ^ earlier[i].address) & varied(&layout->groups[group])) != 0) return false;
  }
  return true;
}
