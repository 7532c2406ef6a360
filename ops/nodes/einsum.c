// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Einsum, as steps that are planned before: an operand's axes of one letter are walked as one (the diagonal), what one
// operand alone has and nobody wants is summed, and two operands become one by a batched matrix product, or, if nothing
// is summed over, by a product of elements. So operands are taken one by one, from the left. An operand whose axes lie
// as the product wants them, transposed or not, is read where it is; others are copied first. Axes of one element are
// dropped, which broadcasts them.

#include <stdlib.h>

#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/matmul.h"
#include "gcap/kit/ops/reduce.h"
#include "kit/shape/einsum.h"
#include "ops/kernels/layout_copy.h"
#include "ops/nodes/op.h"

#define MAX_WORKSPACE_BYTES ((size_t)32 << 20)    // as in matmul.c
#define ALIGNMENT ((size_t)256)                   // what a product wants of its workspace
#define MAX_STEPS (5 * GCAP_EINSUM_MAX_OPERANDS)  // two copies and two sums for each product, and a copy at the end

typedef enum where { IN_INPUT, IN_WORKSPACE, IN_OUTPUT } where_t;

typedef struct place {
  where_t where;
  int input;
  size_t offset;
} place_t;

// A tensor on the way: its labels, each once, with sizes of 2 or more, or 0, and distances in elements.
typedef struct view {
  place_t place;
  int rank;
  uint8_t labels[GCAP_MAX_RANK];
  int64_t sizes[GCAP_MAX_RANK], strides[GCAP_MAX_RANK];
} view_t;

typedef enum step_kind {
  COPY,      // of `from`
  SUM,       // [m, n] to [m]
  MULTIPLY,  // [batch, m, 1] and [batch, 1, n] to [batch, m, n]
  PRODUCT,   // by `matmul`
} step_kind_t;

typedef struct step {
  step_kind_t kind;
  place_t a, b, to;
  view_t from;
  int64_t batch, m, n;
  gcap_matmul_t* matmul;
} step_t;

typedef struct einsum {
  gcap_dtype_t dtype;
  int num_steps;
  step_t steps[MAX_STEPS];
  size_t bytes;          // of the workspace, without what products want
  size_t product_bytes;  // what each product may have behind them
} einsum_t;

typedef uint64_t labels_t;  // bits
#define ALL_LABELS (~(labels_t)0)

static labels_t bit(int label) { return (labels_t)1 << label; }

static labels_t labels_of(const uint8_t* labels, int rank) {
  labels_t found = 0;
  for (int i = 0; i < rank; ++i) found |= bit(labels[i]);
  return found;
}

static labels_t of_term(const gcap_einsum_term_t* term) { return labels_of(term->labels, term->rank); }

// The labels that are still wanted behind operand `last`.
static labels_t wanted_behind(const gcap_einsum_t* equation, int last) {
  labels_t wanted = of_term(&equation->out);
  for (int i = last + 1; i < equation->num_operands; ++i) wanted |= of_term(&equation->operands[i]);
  return wanted;
}

// What is made on the way is a tensor too.
bool gcap_node_einsum_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  gcap_einsum_t equation;
  int ranks[GCAP_EINSUM_MAX_OPERANDS] = {0};
  if (node->num_inputs > GCAP_EINSUM_MAX_OPERANDS) return false;
  for (int i = 0; i < node->num_inputs; ++i) ranks[i] = gcap_node_input(model, node, i)->rank;
  if (gcap_einsum_parse(gcap_node_string(node, "equation", ""), ranks, node->num_inputs, &equation) != NULL) {
    return false;
  }
  labels_t there = 0;
  for (int i = 0; i < equation.num_operands; ++i) {
    there = (there | of_term(&equation.operands[i])) & wanted_behind(&equation, i);
    if (__builtin_popcountll(there) > GCAP_MAX_RANK) return false;
  }
  return true;
}

// --- Planning -------------------------------------------------------------------------------------------------------

static view_t view_of(const gcap_einsum_term_t* term, int input, const gcap_tensor_t* tensor) {
  view_t view = {.place = {.where = IN_INPUT, .input = input}};
  int64_t strides[GCAP_MAX_RANK];
  gcap_dense_strides(tensor, strides);
  for (int axis = 0; axis < tensor->rank; ++axis) {
    if (tensor->shape[axis] == 1) continue;
    int i = 0;
    while (i < view.rank && view.labels[i] != term->labels[axis]) ++i;
    if (i == view.rank) {
      view.labels[view.rank] = term->labels[axis];
      view.sizes[view.rank++] = tensor->shape[axis];
    }
    view.strides[i] += strides[axis];
  }
  return view;
}

// Labels in an order.
typedef struct order {
  int count;
  uint8_t labels[GCAP_MAX_RANK];
} order_t;

static order_t joined(order_t a, const order_t* b) {
  for (int i = 0; i < b->count; ++i) a.labels[a.count++] = b->labels[i];
  return a;
}

// The labels of a view that are among `which`, in the order of the view.
static order_t among(const view_t* view, labels_t which) {
  order_t order = {0};
  for (int i = 0; i < view->rank; ++i) {
    if ((bit(view->labels[i]) & which) != 0) order.labels[order.count++] = view->labels[i];
  }
  return order;
}

static int64_t elements_of(const view_t* view, labels_t which) {
  int64_t elements = 1;
  for (int i = 0; i < view->rank; ++i) elements *= (bit(view->labels[i]) & which) != 0 ? view->sizes[i] : 1;
  return elements;
}

// Adds the axes of some labels of `from`.
static void add_axes(view_t* view, const view_t* from, const order_t* order) {
  for (int i = 0; i < order->count; ++i, ++view->rank) {
    int k = 0;
    while (from->labels[k] != order->labels[i]) ++k;
    view->labels[view->rank] = from->labels[k];
    view->sizes[view->rank] = from->sizes[k];
    view->strides[view->rank] = from->strides[k];
  }
}

static view_t in_order(const view_t* view, const order_t* order) {
  view_t ordered = {.place = view->place};
  add_axes(&ordered, view, order);
  return ordered;
}

static void make_dense(view_t* view) {
  int64_t stride = 1;
  for (int i = view->rank - 1; i >= 0; --i) {
    view->strides[i] = stride;
    stride *= view->sizes[i];
  }
}

static bool is_dense(const view_t* view) {
  view_t dense = *view;
  make_dense(&dense);
  bool same = true;
  for (int i = 0; i < view->rank; ++i) same &= view->strides[i] == dense.strides[i];
  return same;
}

// Whether all that is made on the way may have as many bytes as a product of two views. Zeros do not count, so that the
// size of any part can be computed.
static bool fits_memory(const view_t* view, gcap_dtype_t dtype) {
  int64_t room = PTRDIFF_MAX / MAX_STEPS / (int64_t)gcap_dtype_bytes(dtype);
  for (int i = 0; i < view->rank; ++i) room /= view->sizes[i] > 0 ? view->sizes[i] : 1;
  return room > 0;
}

// Adds a step that makes `out_view`, dense, in the workspace.
static step_t* add_step(einsum_t* e, step_kind_t kind, const view_t* from, view_t* out_view) {
  const size_t bytes = (size_t)elements_of(out_view, ALL_LABELS) * gcap_dtype_bytes(e->dtype);
  step_t* step = &e->steps[e->num_steps++];
  make_dense(out_view);
  out_view->place = (place_t){.where = IN_WORKSPACE, .offset = e->bytes};
  *step = (step_t){.kind = kind, .a = from->place, .to = out_view->place, .from = *from};
  e->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return step;
}

// Makes a view dense in an order, and sums over the labels of `summed`, which the order lacks.
static void pack(einsum_t* e, view_t* view, const order_t* order, labels_t summed) {
  const order_t behind = among(view, summed), all = joined(*order, &behind);
  const view_t ordered = in_order(view, &all);
  *view = ordered;
  if (!is_dense(&ordered)) add_step(e, COPY, &ordered, view);
  if (summed == 0) return;
  const view_t whole = *view;
  view->rank = order->count;
  step_t* step = add_step(e, SUM, &whole, view);
  step->m = elements_of(&whole, ~summed);
  step->n = elements_of(&whole, summed);
}

// Makes an operand [batch, rows, columns]; or leaves it where it is, if it is [batch, columns, rows] there, and returns
// true.
static bool pack_matrices(einsum_t* e, view_t* view, const order_t* batch, const order_t* rows, const order_t* columns,
                          labels_t summed) {
  const order_t straight = joined(joined(*batch, rows), columns), swapped = joined(joined(*batch, columns), rows);
  const view_t as_is = in_order(view, &straight), turned = in_order(view, &swapped);
  if (summed == 0 && !is_dense(&as_is) && is_dense(&turned)) {
    *view = turned;
    return true;
  }
  pack(e, view, &straight, summed);
  return false;
}

static gcap_status_t plan_product(const gcap_node_planning_t* planning, einsum_t* e, step_t* step, int64_t k,
                                  bool trans_a, bool trans_b) {
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = planning->kernels->cublaslt;
  options.batch = step->batch;
  options.m = step->m;
  options.n = step->n;
  options.k = k;
  options.trans_a = trans_a;
  options.trans_b = trans_b;
  options.dtype = e->dtype;
  options.tf32 = e->dtype == GCAP_DTYPE_F32 && planning->kernels->options.use_tf32;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  if (gcap_dtype_bytes(e->dtype) < sizeof(float)) options.alignment_bytes = 16;  // as in matmul.c
  GCAP_RETURN_IF_ERROR(gcap_matmul_create(&options, &step->matmul));
  const size_t bytes = gcap_matmul_workspace_bytes(step->matmul);
  if (bytes > e->product_bytes) e->product_bytes = bytes;
  return NULL;
}

// a = the product of a and b, over the labels that both have and nobody wants.
static gcap_status_t combine(const gcap_node_planning_t* planning, einsum_t* e, view_t* a, view_t b, labels_t wanted) {
  const labels_t of_a = labels_of(a->labels, a->rank), of_b = labels_of(b.labels, b.rank), both = of_a & of_b;
  const order_t batch = among(a, both & wanted), k = among(a, both & ~wanted);
  const order_t m = among(a, of_a & ~of_b & wanted), n = among(&b, of_b & ~of_a & wanted);
  const bool trans_a = pack_matrices(e, a, &batch, &m, &k, of_a & ~of_b & ~wanted);
  const bool trans_b = pack_matrices(e, &b, &batch, &k, &n, of_b & ~of_a & ~wanted);
  const int64_t depth = elements_of(a, both & ~wanted);
  view_t made = {0};
  add_axes(&made, a, &batch);
  add_axes(&made, a, &m);
  add_axes(&made, &b, &n);
  if (!fits_memory(&made, e->dtype)) {
    return GCAP_NODE_REFUSE(planning->node, "what is made on the way would have more than %lld bytes",
                            (long long)(PTRDIFF_MAX / MAX_STEPS));
  }
  step_t* step = add_step(e, k.count == 0 ? MULTIPLY : PRODUCT, a, &made);
  step->b = b.place;
  step->batch = elements_of(a, both & wanted);
  step->m = elements_of(a, of_a & ~of_b);
  step->n = elements_of(&b, of_b & ~of_a);
  *a = made;
  return step->kind == MULTIPLY ? NULL : plan_product(planning, e, step, depth, trans_a, trans_b);
}

// The last step writes the output, in its order.
static void finish(einsum_t* e, const view_t* view, const order_t* out) {
  const view_t ordered = in_order(view, out);
  view_t made = ordered;
  if (e->num_steps == 0 || !is_dense(&ordered)) add_step(e, COPY, &ordered, &made);
  step_t* last = &e->steps[e->num_steps - 1];
  e->bytes = last->to.offset;
  last->to = (place_t){.where = IN_OUTPUT};
}

static gcap_status_t plan_steps(const gcap_node_planning_t* planning, einsum_t* e) {
  gcap_einsum_t equation;
  int64_t sizes[GCAP_EINSUM_MAX_LABELS];
  GCAP_RETURN_IF_ERROR(gcap_einsum_read(planning->node, planning->inputs, &equation, sizes));
  e->dtype = planning->inputs[0].dtype;
  view_t view = view_of(&equation.operands[0], 0, &planning->inputs[0]);
  for (int i = 1; i < equation.num_operands; ++i) {
    const view_t next = view_of(&equation.operands[i], i, &planning->inputs[i]);
    GCAP_RETURN_IF_ERROR(combine(planning, e, &view, next, wanted_behind(&equation, i)));
  }
  order_t out = {0};
  for (int axis = 0; axis < equation.out.rank; ++axis) {
    if (sizes[equation.out.labels[axis]] != 1) out.labels[out.count++] = equation.out.labels[axis];
  }
  if (equation.num_operands == 1) pack(e, &view, &out, labels_of(view.labels, view.rank) & ~of_term(&equation.out));
  finish(e, &view, &out);
  return NULL;
}

void gcap_node_einsum_end(void* plan) {
  einsum_t* e = plan;
  for (int i = 0; i < e->num_steps; ++i) gcap_matmul_destroy(e->steps[i].matmul);
  free(e);
}

gcap_status_t gcap_node_einsum_plan(const gcap_node_planning_t* planning, void** out_plan) {
  einsum_t* e = calloc(1, sizeof(*e));
  if (e == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", planning->node->name);
  gcap_status_t status = plan_steps(planning, e);
  if (status != NULL) {
    gcap_node_einsum_end(e);
    return status;
  }
  *out_plan = e;
  return NULL;
}

// --- Computing ------------------------------------------------------------------------------------------------------

static void* data_at(const gcap_kernel_context_t* context, const place_t* place, char* workspace) {
  if (place->where == IN_INPUT) return context->inputs[place->input].data;
  return place->where == IN_OUTPUT ? context->outputs[0].data : workspace + place->offset;
}

static gcap_tensor_t tensor(void* data, gcap_dtype_t dtype, int rank, int64_t d0, int64_t d1, int64_t d2) {
  return (gcap_tensor_t){.data = data, .dtype = dtype, .rank = rank, .shape = {d0, d1, d2}};
}

static gcap_status_t copy(const gcap_kernel_context_t* context, const einsum_t* e, const step_t* step, const void* from,
                          void* to) {
  view_t made = step->from;
  make_dense(&made);
  return gcap_copy_strided(context->resources.stream, gcap_dtype_bytes(e->dtype), made.rank, made.sizes, from,
                           step->from.strides, to, made.strides);
}

static gcap_status_t issue(const gcap_kernel_context_t* context, const einsum_t* e, const step_t* s, char* workspace) {
  gcap_stream_t* stream = context->resources.stream;
  void *a = data_at(context, &s->a, workspace), *to = data_at(context, &s->to, workspace);
  if (s->kind == COPY) return copy(context, e, s, a, to);
  if (s->kind == SUM) {
    const gcap_tensor_t x = tensor(a, e->dtype, 2, s->m, s->n, 0), y = tensor(to, e->dtype, 1, s->m, 0, 0);
    return gcap_reduce(stream, GCAP_REDUCE_SUM, &x, (const int64_t[]){1}, 1, &y);
  }
  void* b = data_at(context, &s->b, workspace);
  if (s->kind == PRODUCT) {
    return gcap_matmul_run(s->matmul, stream, a, b, /*bias=*/NULL, /*addend=*/NULL, to,
                           e->product_bytes == 0 ? NULL : workspace + e->bytes);
  }
  const gcap_tensor_t left = tensor(a, e->dtype, 3, s->batch, s->m, 1),
                      right = tensor(b, e->dtype, 3, s->batch, 1, s->n),
                      y = tensor(to, e->dtype, 3, s->batch, s->m, s->n);
  return gcap_binary(stream, GCAP_BINARY_MUL, &left, &right, &y);
}

gcap_status_t gcap_node_einsum(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const einsum_t* e = kernel->plan;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, e->bytes + e->product_bytes, &workspace));
  gcap_status_t status = NULL;
  for (int i = 0; i < e->num_steps && status == NULL; ++i) status = issue(context, e, &e->steps[i], workspace);
  return gcap_node_return_workspace(context, workspace, status);
}
