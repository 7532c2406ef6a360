// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// RotaryEmbedding, of ONNX and of com.microsoft, which have their inputs in another order. How much of a head is
// rotated, the cosines tell; attributes must agree.

#include "ops/kernels/rotary.h"

#include "ops/nodes/op.h"

// Where the inputs are.
typedef struct places {
  int cosines, sines, positions;
} places_t;

static places_t places_of(const gcap_node_op_t* op) {
  return op->code == GCAP_NODE_ROTARY_OF_MICROSOFT ? (places_t){2, 3, 1} : (places_t){1, 2, 3};
}

bool gcap_node_rotary_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int rank = gcap_node_input(model, node, 0)->rank;
  if (rank != 3 && rank != 4) return false;
  return gcap_node_float(node, "scale", 1.0f) == 1.0f && gcap_node_int(node, "is_packed_batching", 0) == 0;
}

// Of an input of rank 3 without the number of heads, a head is as long as the cosines say.
static int64_t heads_of(const gcap_node_kernel_t* kernel, const gcap_tensor_t* x, int64_t rotated) {
  const int64_t heads = gcap_node_int(kernel->node, "num_heads", 0);
  if (heads != 0 || x->rank != 3 || rotated == 0) return heads;
  return x->shape[2] / rotated;
}

gcap_status_t gcap_node_rotary(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const places_t places = places_of(kernel->op);
  const gcap_tensor_t *x = &context->inputs[0], *cosines = &context->inputs[places.cosines];
  const int64_t rotated = cosines->rank > 0 ? 2 * cosines->shape[cosines->rank - 1] : 0;
  const gcap_rotary_t how = {.cosines = cosines,
                             .sines = &context->inputs[places.sines],
                             .positions = kernel->node->num_inputs == 4 ? &context->inputs[places.positions] : NULL,
                             .heads = heads_of(kernel, x, rotated),
                             .interleaved = gcap_node_int(kernel->node, "interleaved", 0) != 0};
  const int64_t given = gcap_node_int(kernel->node, "rotary_embedding_dim", 0);
  const int64_t size = x->rank == 4 ? x->shape[3] : how.heads > 0 ? x->shape[2] / how.heads : 0;
  if (rotated != (given != 0 ? given : size)) {
    return GCAP_NODE_REFUSE(kernel->node, "input %d has rows of %lld, allowed is half of %lld", places.cosines,
                            (long long)(rotated / 2), (long long)(given != 0 ? given : size));
  }
  return gcap_rotate(context->resources.stream, &how, x, &context->outputs[0]);
}
