// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two fills of all that the operation reads: by the caller's functions, or drawn by the type. Drawn floats are few and
// short, so every format has them, and sums and products of some of them are exact, whatever their order. Locking:
// none.

#include <stdlib.h>
#include <string.h>

#include "kit/check/checking.h"
#include "lib/internal/unwind.h"

// --- Values ------------------------------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t draw(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The upper half is a bfloat16.
static uint32_t f32_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Of a value that binary16 has as a normal number, or zero.
static uint16_t f16_of(float value) {
  const uint32_t bits = f32_of(value), sign = bits >> 16 & 0x8000u;
  if ((bits & 0x7fffffffu) == 0) return (uint16_t)sign;
  const uint32_t exponent = (bits >> 23 & 0xffu) - 127 + 15;
  return (uint16_t)(sign | exponent << 10 | (bits >> 13 & 0x3ffu));
}

static void draw_element(gcap_dtype_t type, uint64_t* state, void* element) {
  const uint64_t bits = draw(state) >> 32;
  const float number = (float)((int)(bits % 32) - 16) / 8.0f;
  switch (type) {
    case GCAP_DTYPE_F32: memcpy(element, &number, sizeof(number)); return;
    case GCAP_DTYPE_F16: memcpy(element, &(uint16_t){f16_of(number)}, sizeof(uint16_t)); return;
    case GCAP_DTYPE_BF16: memcpy(element, &(uint16_t){(uint16_t)(f32_of(number) >> 16)}, sizeof(uint16_t)); return;
    case GCAP_DTYPE_I64: memcpy(element, &(int64_t){(int64_t)(bits % 4)}, sizeof(int64_t)); return;
    case GCAP_DTYPE_I32: memcpy(element, &(int32_t){(int32_t)(bits % 4)}, sizeof(int32_t)); return;
    case GCAP_DTYPE_I8:
    case GCAP_DTYPE_U8: *(unsigned char*)element = (unsigned char)(bits % 4); return;
    case GCAP_DTYPE_BOOL: *(unsigned char*)element = (unsigned char)(bits % 2); return;
  }
}

static gcap_status_t fill_values(const gcap_check_buffer_t* buffer, uint64_t seed, void* values) {
  if (buffer->fill != NULL) return buffer->fill(buffer->fill_user, seed, values);
  const size_t element_bytes = gcap_dtype_bytes(buffer->type);
  for (size_t at = 0; at < buffer->bytes; at += element_bytes) draw_element(buffer->type, &seed, (char*)values + at);
  return NULL;
}

// --- Buffers -----------------------------------------------------------------------------------------------------------

static void free_values(void** values) { free(*values); }

static gcap_status_t fill_device(const gcap_checking_t* checking, const gcap_check_buffer_t* buffer, uint64_t seed) {
  const cudaStream_t stream = checking->places[GCAP_CHECK_HOME].stream;
  GCAP_AT_SCOPE_END(free_values) void* values = malloc(buffer->bytes);  // a fill of the caller's may not return
  if (values == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the %zu bytes of '%s'", buffer->bytes,
                       buffer->name != NULL ? buffer->name : "");
  }
  gcap_status_t status = fill_values(buffer, seed, values);
  if (status == NULL) {
    status = GCAP_CUDA(cudaMemcpyAsync(buffer->address, values, buffer->bytes, cudaMemcpyDefault, stream));
    status = gcap_status_join(status, GCAP_CUDA(cudaStreamSynchronize(stream)));
  }
  return status;
}

static gcap_status_t fill_inputs(gcap_checking_t* checking, int fill, uint64_t* state) {
  unsigned char* on_host = checking->host_fills + (size_t)fill * checking->host_fill_bytes;
  for (size_t i = 0; i < checking->check.num_inputs; ++i) {
    const gcap_check_buffer_t* input = &checking->check.inputs[i];
    const uint64_t seed = draw(state);
    if (input->on_host) {
      GCAP_RETURN_IF_ERROR(fill_values(input, seed, on_host));
      on_host += input->bytes;
    } else {
      GCAP_RETURN_IF_ERROR(fill_device(checking, input, seed));
    }
  }
  return NULL;
}

static gcap_status_t fill_outputs(gcap_checking_t* checking, uint64_t* state) {
  const cudaStream_t stream = checking->places[GCAP_CHECK_HOME].stream;
  for (size_t i = 0; i < checking->check.num_outputs; ++i) {
    const gcap_check_buffer_t* output = &checking->check.outputs[i];
    const uint64_t seed = draw(state);
    if (output->in_place) {
      GCAP_RETURN_IF_ERROR(fill_device(checking, output, seed));
    } else {
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(output->address, GCAP_CHECK_POISON, output->bytes, stream)));
    }
  }
  return NULL;
}

gcap_status_t gcap_checking_fill(gcap_checking_t* checking) {
  const cudaStream_t stream = checking->places[GCAP_CHECK_HOME].stream;
  uint64_t state = checking->check.seed;
  for (int fill = 0; fill < GCAP_CHECK_NUM_FILLS; ++fill) {
    GCAP_RETURN_IF_ERROR(fill_inputs(checking, fill, &state));
    GCAP_RETURN_IF_ERROR(fill_outputs(checking, &state));
    GCAP_RETURN_IF_ERROR(gcap_verify_state_save(checking->inputs, GCAP_CHECK_BEFORE + (size_t)fill, stream));
    GCAP_RETURN_IF_ERROR(gcap_verify_state_save(checking->outputs, GCAP_CHECK_BEFORE + (size_t)fill, stream));
  }
  return NULL;
}
