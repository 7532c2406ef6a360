// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Bytes as one ONNX node with hostile shapes, contents and attributes: through shape inference, the CPU EP, and the
// kernels that a device EP has of ops/nodes.
//
// What must hold: inference accepts at most one rank of an output; what it says without the contents it says with them
// too, or leaves open; a refusal is none of gcap's own mistakes; and where the CPU EP and the device both take the
// node, both refuse it or both compute the same. Numbers that move, integers and bools are equal; floats that are
// computed differ by TOLERANCE of the result and one, since sums are added in another order; so no number that is added
// to others is large, since the result would be the rounding. What a sanitizer sees comes on top.
//
// The CPU EP refuses three contents that a device cannot refuse, since only the kernel reads them: an index that is
// outside (the device gives zeros), and a division of integers by zero.
//
// The runtime, the kernels' handles and the CPU EP are made once; no node changes them.
#include <math.h>

#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/ops/nodes.h"
#include "gcap/kit/shape_inference.h"
#include "gcap/log.h"
#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "test/fuzz/input.h"

#define TOLERANCE 1e-5

enum {
  MAX_INPUTS = 4,
  MAX_OUTPUTS = 3,
  MAX_VALUES = MAX_INPUTS + MAX_OUTPUTS,
  MAX_ELEMENTS = 2048,
  MAX_ATTRIBUTES = 4
};
enum { MAX_BYTES = MAX_ELEMENTS * 8 };

// What all inputs share.
static struct {
  gcap_ep_t* cpu;
  gcap_runtime_t* runtime;
  gcap_node_kernels_t* kernels;
  gcap_run_resources_t resources;
} rig;

// One node: a model of it alone, whose values are its inputs, then its outputs.
typedef struct trial {
  fuzz_input_t in;
  gcap_node_t node;
  gcap_model_t model;
  gcap_value_t values[MAX_VALUES];
  int indices[MAX_VALUES];
  gcap_attribute_t attributes[MAX_ATTRIBUTES];
  int64_t numbers[MAX_ATTRIBUTES][GCAP_MAX_RANK + 1];
  gcap_attributes_t list;
  gcap_tensor_t inputs[MAX_INPUTS], outputs[MAX_OUTPUTS];
  bool is_constant[MAX_INPUTS];
} trial_t;

// Aligned to what any type needs.
static uint64_t contents[MAX_INPUTS][MAX_BYTES / 8], made[2][MAX_OUTPUTS][MAX_BYTES / 8];

static void setup(void) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.kernels.use_tf32 = false;
  gcap_log_set_sink(NULL, NULL, GCAP_LOG_ERROR);
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);  // what is made here stays
  const bool made_all = gcap_cpu_ep_create(&rig.cpu) == NULL && gcap_runtime_create(&options, &rig.runtime) == NULL &&
                        gcap_node_kernels_create(0, &options.kernels, &rig.kernels) == NULL;
  FUZZ_CHECK(made_all, "there are no EPs");
  gcap_run_resources_init(&rig.resources);
  FUZZ_CHECK(gcap_runtime_get_resources(rig.runtime, &rig.resources) == NULL, "there is no stream");
}

// Consumes a status: whether it is a success. A refusal says what is wrong with the node.
static bool ok(gcap_status_t status) {
  if (status == NULL) return true;
  const gcap_code_t code = gcap_status_code(status);
  FUZZ_CHECK(code == GCAP_INVALID_ARGUMENT || code == GCAP_UNIMPLEMENTED || code == GCAP_RESOURCE_EXHAUSTED ||
                 code == GCAP_LIBRARY_ERROR,
             "%s: %s", gcap_code_name(code), gcap_status_message(status));
  if (getenv("FUZZ_VERBOSE") != NULL) fprintf(stderr, "%s\n", gcap_status_message(status));
  gcap_status_free(status);
  return false;
}

// --- Draws ----------------------------------------------------------------------------------------------------------

static const char* draw_op(fuzz_input_t* in) {
  static const char* const ops[] = {"Abs",
                                    "Acos",
                                    "Acosh",
                                    "Add",
                                    "And",
                                    "Asin",
                                    "Asinh",
                                    "Atan",
                                    "Atanh",
                                    "ArgMax",
                                    "ArgMin",
                                    "AveragePool",
                                    "BatchNormalization",
                                    "com.microsoft.BiasGelu",
                                    "BitwiseAnd",
                                    "BitwiseNot",
                                    "BitwiseOr",
                                    "BitwiseXor",
                                    "Cast",
                                    "Ceil",
                                    "Celu",
                                    "Clip",
                                    "Concat",
                                    "Conv",
                                    "ConstantOfShape",
                                    "Cos",
                                    "Cosh",
                                    "CumSum",
                                    "DepthToSpace",
                                    "ConvTranspose",
                                    "Div",
                                    "Dropout",
                                    "Elu",
                                    "Equal",
                                    "Expand",
                                    "com.microsoft.FastGelu",
                                    "EyeLike",
                                    "Flatten",
                                    "Floor",
                                    "GRU",
                                    "Gather",
                                    "GatherElements",
                                    "GatherND",
                                    "Gelu",
                                    "Gemm",
                                    "Greater",
                                    "GreaterOrEqual",
                                    "HardSigmoid",
                                    "HardSwish",
                                    "Identity",
                                    "IsInf",
                                    "IsNaN",
                                    "LRN",
                                    "LSTM",
                                    "GlobalAveragePool",
                                    "GlobalMaxPool",
                                    "GroupNormalization",
                                    "InstanceNormalization",
                                    "LayerNormalization",
                                    "LeakyRelu",
                                    "Less",
                                    "LessOrEqual",
                                    "LogSoftmax",
                                    "LpNormalization",
                                    "MatMul",
                                    "Max",
                                    "MaxPool",
                                    "Mean",
                                    "MeanVarianceNormalization",
                                    "Min",
                                    "Mish",
                                    "Mod",
                                    "Mul",
                                    "Neg",
                                    "Not",
                                    "OneHot",
                                    "Or",
                                    "PRelu",
                                    "Pad",
                                    "Pow",
                                    "com.microsoft.QuickGelu",
                                    "RMSNormalization",
                                    "Range",
                                    "ReduceL1",
                                    "ReduceL2",
                                    "ReduceLogSum",
                                    "ReduceMax",
                                    "ReduceMean",
                                    "ReduceMin",
                                    "ReduceProd",
                                    "ReduceSum",
                                    "ReduceSumSquare",
                                    "Relu",
                                    "Reshape",
                                    "Round",
                                    "Selu",
                                    "Resize",
                                    "ScatterElements",
                                    "ScatterND",
                                    "ReverseSequence",
                                    "Shape",
                                    "Shrink",
                                    "Sigmoid",
                                    "Sign",
                                    "Sin",
                                    "Sinh",
                                    "Size",
                                    "Slice",
                                    "Softmax",
                                    "Softplus",
                                    "Softsign",
                                    "SpaceToDepth",
                                    "Split",
                                    "Squeeze",
                                    "Sub",
                                    "Sum",
                                    "Swish",
                                    "Tan",
                                    "ThresholdedRelu",
                                    "TensorScatter",
                                    "TopK",
                                    "Tile",
                                    "Transpose",
                                    "Trilu",
                                    "Unsqueeze",
                                    "Where",
                                    "BitCast",
                                    "Hardmax",
                                    "LpPool",
                                    "GridSample",
                                    "com.microsoft.FusedMatMul",
                                    "com.microsoft.Gelu",
                                    "QuantizeLinear",
                                    "DequantizeLinear",
                                    "DynamicQuantizeLinear",
                                    "MatMulInteger",
                                    "Xor",
                                    "Attention",
                                    "RotaryEmbedding",
                                    "com.microsoft.RotaryEmbedding",
                                    "BitShift",
                                    "Einsum",
                                    "com.microsoft.MultiHeadAttention",
                                    "com.microsoft.SkipLayerNormalization",
                                    "com.microsoft.SkipSimplifiedLayerNormalization"};
  return ops[fuzz_below(in, sizeof(ops) / sizeof(ops[0]))];
}

static int64_t draw_number(fuzz_input_t* in) {
  static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 1 << 20, -100, INT64_C(1) << 40, 63};
  const unsigned how = fuzz_byte(in);
  if (how < 200) return (int64_t)(how % 8) - 3;
  return how < 240 ? (int64_t)(how % 32) : odd[how % 8];
}

static int64_t draw_size(fuzz_input_t* in) {
  static const int64_t odd[] = {-1, INT64_MAX, INT64_C(1) << 32, 1 << 20, 257, 64};
  const unsigned how = fuzz_byte(in);
  return how < 240 ? (int64_t)(how % 6) : odd[how % 6];
}

static void draw_attribute(trial_t* trial, int index) {
  static const char* const names[] = {"axis",
                                      "axes",
                                      "perm",
                                      "keepdims",
                                      "noop_with_empty_axes",
                                      "allowzero",
                                      "to",
                                      "start",
                                      "end",
                                      "detect_negative",
                                      "detect_positive",
                                      "fmod",
                                      "gamma",
                                      "lambd",
                                      "alpha",
                                      "beta",
                                      "transA",
                                      "transB",
                                      "transBatchA",
                                      "block_size",
                                      "q_num_heads",
                                      "kv_num_heads",
                                      "num_heads",
                                      "is_causal",
                                      "softcap",
                                      "output_dtype",
                                      "value",
                                      "pads",
                                      "kernel_shape",
                                      "strides",
                                      "dilations",
                                      "group",
                                      "auto_pad",
                                      "epsilon",
                                      "size",
                                      "bias",
                                      "ceil_mode",
                                      "count_include_pad",
                                      "num_outputs",
                                      "num_groups",
                                      "output_padding",
                                      "output_shape",
                                      "split",
                                      "activation",
                                      "approximate",
                                      "batch_dims",
                                      "k",
                                      "largest",
                                      "reduction",
                                      "select_last_index",
                                      "sorted",
                                      "min",
                                      "max",
                                      "mode",
                                      "p",
                                      "blocksize",
                                      "starts",
                                      "ends",
                                      "upper",
                                      "exclusive",
                                      "reverse",
                                      "time_axis",
                                      "batch_axis",
                                      "equation",
                                      "unidirectional"};
  static const char* const texts[] = {"",
                                      "CRD",
                                      "DCR",
                                      "NOTSET",
                                      "Relu",
                                      "SAME_LOWER",
                                      "SAME_UPPER",
                                      "VALID",
                                      "add",
                                      "cubic",
                                      "edge",
                                      "linear",
                                      "none",
                                      "reflect",
                                      "tanh",
                                      "wrap",
                                      "...i",
                                      "ii->i",
                                      "ij,jk->ik",
                                      "...ij,...kj->...ik",
                                      "i...,j...->j",
                                      "i,i,i->",
                                      "LEFT"};
  gcap_attribute_t* attribute = &trial->attributes[index];
  attribute->name = names[fuzz_below(&trial->in, sizeof(names) / sizeof(names[0]))];
  attribute->kind = (gcap_attribute_kind_t)fuzz_below(&trial->in, 4);
  switch (attribute->kind) {
    case GCAP_ATTRIBUTE_INT: attribute->i = draw_number(&trial->in); break;
    case GCAP_ATTRIBUTE_FLOAT: attribute->f = (float)draw_number(&trial->in) / 4; break;
    case GCAP_ATTRIBUTE_STRING:
      attribute->string = texts[fuzz_below(&trial->in, sizeof(texts) / sizeof(texts[0]))];
      break;
    default:
      attribute->count = fuzz_below(&trial->in, GCAP_MAX_RANK + 2);
      for (size_t i = 0; i < attribute->count; ++i) trial->numbers[index][i] = draw_number(&trial->in);
      attribute->ints = trial->numbers[index];
  }
}

// Whether elements of an input are added.
static bool adds(const char* op) {
  static const char* const ops[] = {
      "AveragePool", "BatchNormalization", "Conv",   "ConvTranspose", "Gemm", "GlobalAveragePool",         "LRN",
      "LogSoftmax",  "LayerNormalization", "MatMul", "Softmax",       "Sum",  "com.microsoft.FusedMatMul", "Mean"};
  bool found = strncmp(op, "Reduce", 6) == 0;
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) found |= strcmp(op, ops[i]) == 0;
  return found;
}

static void fill(trial_t* trial, gcap_tensor_t* tensor) {
  const int64_t count = gcap_tensor_elements(tensor);
  const bool is_small = tensor->dtype == GCAP_DTYPE_F32 && adds(trial->node.op_type);
  for (int64_t i = 0; i < count; ++i) {
    int64_t number = draw_number(&trial->in);
    if (is_small) number %= 128;
    const float real = (float)number / 2;
    uint32_t bits;
    memcpy(&bits, &real, sizeof(bits));
    switch (tensor->dtype) {
      case GCAP_DTYPE_F32: ((float*)tensor->data)[i] = real; break;
      case GCAP_DTYPE_F16: ((uint16_t*)tensor->data)[i] = (uint16_t)(0x3c00 + (number & 0x83ff)); break;
      case GCAP_DTYPE_BF16: ((uint16_t*)tensor->data)[i] = (uint16_t)(bits >> 16); break;
      case GCAP_DTYPE_I64: ((int64_t*)tensor->data)[i] = number; break;
      case GCAP_DTYPE_I32: ((int32_t*)tensor->data)[i] = (int32_t)number; break;
      case GCAP_DTYPE_I8:
      case GCAP_DTYPE_U8: ((uint8_t*)tensor->data)[i] = (uint8_t)number; break;
      default: ((uint8_t*)tensor->data)[i] = number & 1;
    }
  }
}

// Whether memory is there for a tensor. Others are for inference alone.
static bool is_small(const gcap_tensor_t* tensor) {
  if (tensor->rank < 0 || tensor->rank > GCAP_MAX_RANK) return false;
  int64_t room = MAX_ELEMENTS;
  for (int i = 0; i < tensor->rank; ++i) {
    if (tensor->shape[i] < 0) return false;
    if (tensor->shape[i] > 0) room /= tensor->shape[i];
  }
  return room > 0;
}

static void draw_input(trial_t* trial, int index) {
  fuzz_input_t* in = &trial->in;
  gcap_tensor_t* tensor = &trial->inputs[index];
  const unsigned how = fuzz_byte(in);
  // Mostly the type of the first input, or numbers for the host.
  tensor->dtype = (gcap_dtype_t)(how / 4 % 9);
  if (index > 0 && how % 4 == 1) tensor->dtype = trial->inputs[0].dtype;
  if (index > 0 && how % 4 == 2) tensor->dtype = GCAP_DTYPE_I64;
  tensor->rank = (int)fuzz_below(in, how % 4 == 2 ? 2 : GCAP_MAX_RANK - 3);
  if (how == 255) tensor->rank = (int)fuzz_below(in, 12) - 1;
  for (int i = 0; i < tensor->rank && i < GCAP_MAX_RANK; ++i) {
    tensor->shape[i] = draw_size(in);
    if (index > 0 && how % 4 == 1 && i < trial->inputs[0].rank) tensor->shape[i] = trial->inputs[0].shape[i];
  }
  trial->is_constant[index] = fuzz_below(in, 3) == 0;
  tensor->data = contents[index];
  if (is_small(tensor) && gcap_dtype_bytes(tensor->dtype) != 0) fill(trial, tensor);
}

static void draw(trial_t* trial) {
  gcap_node_t* node = &trial->node;
  node->op_type = draw_op(&trial->in);
  node->name = "n";
  node->num_inputs = 1 + (int)fuzz_below(&trial->in, MAX_INPUTS);
  node->num_outputs = fuzz_below(&trial->in, 4) == 0 ? 1 + (int)fuzz_below(&trial->in, MAX_OUTPUTS) : 1;
  trial->list = (gcap_attributes_t){trial->attributes, fuzz_below(&trial->in, MAX_ATTRIBUTES + 1)};
  for (size_t i = 0; i < trial->list.count; ++i) draw_attribute(trial, (int)i);
  node->attributes = &trial->list;
  for (int i = 0; i < node->num_inputs; ++i) draw_input(trial, i);
  const unsigned type = fuzz_byte(&trial->in);
  for (int i = 0; i < node->num_outputs; ++i) {
    trial->outputs[i].dtype =
        type < 192 ? trial->inputs[type % 2 * (node->num_inputs > 1)].dtype : (gcap_dtype_t)(type % 8);
  }
  for (int i = 0; i < MAX_VALUES; ++i) trial->indices[i] = i;
  node->inputs = trial->indices;
  node->outputs = trial->indices + node->num_inputs;
}

// --- Inference ------------------------------------------------------------------------------------------------------

static bool infer(const trial_t* trial, int rank, bool with_contents, gcap_tensor_t* outputs) {
  gcap_tensor_t inputs[MAX_INPUTS];
  memcpy(inputs, trial->inputs, sizeof(inputs));
  for (int i = 0; i < trial->node.num_inputs; ++i) {
    if (!with_contents || !is_small(&inputs[i])) inputs[i].data = NULL;
  }
  for (int i = 0; i < trial->node.num_outputs; ++i) {
    outputs[i] = (gcap_tensor_t){.dtype = trial->outputs[i].dtype, .rank = rank};
    for (int d = 0; d < GCAP_MAX_RANK; ++d) outputs[i].shape[d] = GCAP_DIM_INFERRED;
  }
  return ok(gcap_infer_shapes(&trial->node, inputs, outputs));
}

// Whether there are shapes of the outputs, by trying each rank.
static bool find_shapes(trial_t* trial) {
  gcap_tensor_t blind[MAX_OUTPUTS], seeing[MAX_OUTPUTS];
  int found = -1;
  for (int rank = -1; rank <= GCAP_MAX_RANK + 1; ++rank) {
    const bool is_open = infer(trial, rank, false, blind);
    if (!infer(trial, rank, true, seeing)) continue;
    FUZZ_CHECK(rank >= 0 && rank <= GCAP_MAX_RANK, "%s: rank %d", trial->node.op_type, rank);
    FUZZ_CHECK(found < 0, "%s: ranks %d and %d", trial->node.op_type, found, rank);
    FUZZ_CHECK(is_open, "%s is refused where its contents are unknown", trial->node.op_type);
    found = rank;
    for (int i = 0; i < trial->node.num_outputs; ++i) {
      for (int d = 0; d < rank; ++d) {
        FUZZ_CHECK(blind[i].shape[d] == GCAP_DIM_INFERRED || blind[i].shape[d] == seeing[i].shape[d],
                   "%s: dimension %d", trial->node.op_type, d);
      }
    }
    memcpy(trial->outputs, seeing, sizeof(seeing));
  }
  return found >= 0;
}

// --- Computing ------------------------------------------------------------------------------------------------------

static gcap_value_t value_of(const gcap_tensor_t* tensor, const void* host_data) {
  gcap_value_t value = {.name = "v", .dtype = tensor->dtype, .rank = tensor->rank, .host_data = host_data};
  memcpy(value.shape, tensor->shape, sizeof(value.shape));
  return value;
}

static void make_model(trial_t* trial) {
  const int num_inputs = trial->node.num_inputs, num_values = num_inputs + trial->node.num_outputs;
  for (int i = 0; i < num_inputs; ++i) {
    trial->values[i] = value_of(&trial->inputs[i], trial->is_constant[i] ? trial->inputs[i].data : NULL);
  }
  for (int i = num_inputs; i < num_values; ++i) trial->values[i] = value_of(&trial->outputs[i - num_inputs], NULL);
  trial->model =
      (gcap_model_t){.values = trial->values, .num_values = num_values, .nodes = &trial->node, .num_nodes = 1};
}

static bool compute(const trial_t* trial, const gcap_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)trial;
  const bool is_good = ok(kernel->compute(kernel->self, context));
  if (kernel->destroy != NULL) kernel->destroy(kernel->self);
  return is_good;
}

static bool run_on_cpu(trial_t* trial) {
  gcap_kernel_t kernel;
  gcap_tensor_t outputs[MAX_OUTPUTS];
  memcpy(outputs, trial->outputs, sizeof(outputs));
  for (int i = 0; i < trial->node.num_outputs; ++i) outputs[i].data = memset(made[0][i], 0x5a, MAX_BYTES);
  if (!ok(gcap_ep_create_kernel(rig.cpu, &trial->model, &trial->node, &kernel))) return false;
  const gcap_kernel_context_t context = {.inputs = trial->inputs, .outputs = outputs, .ep = rig.cpu};
  return compute(trial, &kernel, &context);
}

static void* on_device(const gcap_tensor_t* tensor) {
  void* memory = NULL;
  const size_t bytes = gcap_tensor_bytes(tensor);
  if (bytes == 0) return NULL;
  FUZZ_CHECK(cudaMalloc(&memory, bytes) == cudaSuccess, "no memory");
  FUZZ_CHECK(cudaMemcpy(memory, tensor->data, bytes, cudaMemcpyHostToDevice) == cudaSuccess, "no copy");
  return memory;
}

static bool run_on_device(trial_t* trial) {
  const gcap_node_t* node = &trial->node;
  gcap_kernel_t kernel;
  if (!ok(gcap_node_kernels_create_kernel(rig.kernels, &rig.resources, &trial->model, node, &kernel))) return false;
  gcap_tensor_t inputs[MAX_INPUTS], outputs[MAX_OUTPUTS];
  memcpy(inputs, trial->inputs, sizeof(inputs));
  memcpy(outputs, trial->outputs, sizeof(outputs));
  for (int i = 0; i < node->num_inputs; ++i) {
    const bool is_read_here =
        gcap_node_kernels_input_place(rig.kernels, &trial->model, node, i) == GCAP_INPUT_IN_HOST_MEMORY;
    if (!is_read_here) inputs[i].data = on_device(&trial->inputs[i]);
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    outputs[i].data = memset(made[1][i], 0xa5, MAX_BYTES);
    outputs[i].data = on_device(&outputs[i]);
  }
  const gcap_kernel_context_t context = {.inputs = inputs, .outputs = outputs, .resources = rig.resources};
  const bool is_good = compute(trial, &kernel, &context);
  FUZZ_CHECK(gcap_stream_end_run(rig.resources.stream, true) == NULL, "the run does not end");
  for (int i = 0; i < node->num_outputs; ++i) {
    const size_t bytes = gcap_tensor_bytes(&outputs[i]);
    const cudaError_t copied =
        bytes == 0 || !is_good ? cudaSuccess : cudaMemcpy(made[1][i], outputs[i].data, bytes, cudaMemcpyDeviceToHost);
    FUZZ_CHECK(copied == cudaSuccess && cudaFree(outputs[i].data) == cudaSuccess, "an output is lost");
  }
  for (int i = 0; i < node->num_inputs; ++i) {
    if (inputs[i].data != trial->inputs[i].data)
      FUZZ_CHECK(cudaFree(inputs[i].data) == cudaSuccess, "an input is lost");
  }
  return is_good;
}

// --- Comparing ------------------------------------------------------------------------------------------------------

static bool is_near(float a, float b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabsf(a - b) <= (float)TOLERANCE * (1 + fabsf(b));
}

static void compare(const trial_t* trial) {
  for (int i = 0; i < trial->node.num_outputs; ++i) {
    const gcap_tensor_t* tensor = &trial->outputs[i];
    for (int64_t k = 0; tensor->dtype == GCAP_DTYPE_F32 && k < gcap_tensor_elements(tensor); ++k) {
      const float a = ((const float*)made[0][i])[k], b = ((const float*)made[1][i])[k];
      FUZZ_CHECK(is_near(a, b), "%s: element %d is %g on the CPU, %g on the device", trial->node.op_type, (int)k,
                 (double)a, (double)b);
    }
    if (tensor->dtype == GCAP_DTYPE_F32) continue;
    FUZZ_CHECK(memcmp(made[0][i], made[1][i], gcap_tensor_bytes(tensor)) == 0,
               "%s: the output of type %s is another one on the device", trial->node.op_type,
               gcap_dtype_name(tensor->dtype));
  }
}

// Whether the CPU EP reads an element that it may refuse.
static bool refuses_elements(const gcap_node_t* node) {
  return strcmp(node->op_type, "Gather") == 0 || strcmp(node->op_type, "Div") == 0 || strcmp(node->op_type, "Mod") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  if (rig.cpu == NULL) setup();
  trial_t trial = {.in = {data, bytes}};
  draw(&trial);
  if (!find_shapes(&trial)) return 0;
  for (int i = 0; i < trial.node.num_inputs; ++i) {
    if (!is_small(&trial.inputs[i])) return 0;
  }
  for (int i = 0; i < trial.node.num_outputs; ++i) {
    if (!is_small(&trial.outputs[i])) return 0;
  }
  make_model(&trial);
  const bool has_cpu = gcap_ep_supports(rig.cpu, &trial.model, &trial.node);
  const bool has_device = gcap_node_kernels_supports(rig.kernels, &trial.model, &trial.node);
  const bool on_cpu = has_cpu && run_on_cpu(&trial), on_the_device = has_device && run_on_device(&trial);
  if (!has_cpu || !has_device) return 0;
  FUZZ_CHECK(on_cpu == on_the_device || (on_the_device && refuses_elements(&trial.node)),
             "%s is %s on the CPU, and %s on the device", trial.node.op_type, on_cpu ? "computed" : "refused",
             on_the_device ? "computed" : "refused");
  if (on_cpu) compare(&trial);
  return 0;
}
