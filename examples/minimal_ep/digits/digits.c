// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The network is two tables: its values and its nodes.

#include "examples/minimal_ep/digits/digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- Files ----------------------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  size_t rank;
  int64_t shape[4];
} weight_files[DIGITS_NUM_WEIGHTS] = {
    {"conv1_weight", 4, {REFERENCE_CONV1_CHANNELS, 1, 3, 3}},
    {"conv1_bias", 1, {REFERENCE_CONV1_CHANNELS}},
    {"conv2_weight", 4, {REFERENCE_CONV2_CHANNELS, REFERENCE_CONV1_CHANNELS, 3, 3}},
    {"conv2_bias", 1, {REFERENCE_CONV2_CHANNELS}},
    {"fc1_weight", 2, {REFERENCE_FC1_OUTPUTS, REFERENCE_FC1_INPUTS}},
    {"fc1_bias", 1, {REFERENCE_FC1_OUTPUTS}},
    {"fc2_weight", 2, {REFERENCE_CLASSES, REFERENCE_FC1_OUTPUTS}},
    {"fc2_bias", 1, {REFERENCE_CLASSES}},
};

static int load_file(const char* directory, const char* name, npy_dtype_t dtype, const int64_t* shape, size_t rank,
                     npy_array_t* out_array, char* error, size_t error_bytes) {
  char path[4096];
  int length = snprintf(path, sizeof(path), "%s/%s.npy", directory, name);
  if (length < 0 || (size_t)length >= sizeof(path)) {
    snprintf(error, error_bytes, "the path of %s.npy has %d bytes, expected fewer than %zu", name, length,
             sizeof(path));
    return -1;
  }
  return npy_load(path, dtype, shape, rank, out_array, error, error_bytes);
}

static int check_labels(const char* directory, const digits_t* digits, char* error, size_t error_bytes) {
  const int32_t* labels = digits->labels.data;
  for (size_t i = 0; i < digits->count; ++i) {
    if (labels[i] >= 0 && labels[i] < REFERENCE_CLASSES) continue;
    snprintf(error, error_bytes, "%s/heldout_labels.npy: label %zu is %d, expected 0..%d", directory, i, labels[i],
             REFERENCE_CLASSES - 1);
    return -1;
  }
  return 0;
}

static int load_all(const char* directory, digits_t* digits, char* error, size_t error_bytes) {
  for (size_t i = 0; i < DIGITS_NUM_WEIGHTS; ++i) {
    if (load_file(directory, weight_files[i].name, NPY_FLOAT32, weight_files[i].shape, weight_files[i].rank,
                  &digits->weights[i], error, error_bytes) != 0) {
      return -1;
    }
  }
  const int64_t images_shape[4] = {NPY_ANY, 1, REFERENCE_IMAGE_SIDE, REFERENCE_IMAGE_SIDE};
  if (load_file(directory, "heldout_images", NPY_FLOAT32, images_shape, 4, &digits->images, error, error_bytes) != 0) {
    return -1;
  }
  digits->count = digits->images.shape[0];
  const int64_t labels_shape[1] = {(int64_t)digits->count};
  if (load_file(directory, "heldout_labels", NPY_INT32, labels_shape, 1, &digits->labels, error, error_bytes) != 0) {
    return -1;
  }
  return check_labels(directory, digits, error, error_bytes);
}

int digits_load(const char* directory, digits_t* out_digits, char* error, size_t error_bytes) {
  *out_digits = (digits_t){0};
  int result = load_all(directory, out_digits, error, error_bytes);
  if (result != 0) digits_free(out_digits);
  return result;
}

void digits_free(digits_t* digits) {
  for (size_t i = 0; i < DIGITS_NUM_WEIGHTS; ++i) npy_free(&digits->weights[i]);
  npy_free(&digits->images);
  npy_free(&digits->labels);
  *digits = (digits_t){0};
}

reference_weights_t digits_reference_weights(const digits_t* digits) {
  return (reference_weights_t){
      .conv1_weight = digits->weights[0].data,
      .conv1_bias = digits->weights[1].data,
      .conv2_weight = digits->weights[2].data,
      .conv2_bias = digits->weights[3].data,
      .fc1_weight = digits->weights[4].data,
      .fc1_bias = digits->weights[5].data,
      .fc2_weight = digits->weights[6].data,
      .fc2_bias = digits->weights[7].data,
  };
}

// --- Model ----------------------------------------------------------------------------------------------------------

// The constants come first, in the order of weight_files.
enum {
  CONV1_WEIGHT,
  CONV1_BIAS,
  CONV2_WEIGHT,
  CONV2_BIAS,
  FC1_WEIGHT,
  FC1_BIAS,
  FC2_WEIGHT,
  FC2_BIAS,
  IMAGES,
  CONV1,
  CONV2,
  POOLED,
  FEATURES,
  HIDDEN,
  LOGITS,
  PROBABILITIES,
  NUM_VALUES,
};

#define NUM_NODES 7

struct digits_model {
  gcap_value_t values[NUM_VALUES];
  gcap_model_t model;
};

static const int64_t pads[] = {1, 1, 1, 1};
static const int64_t window[] = {2, 2};

// A ReLU is an attribute of the node before it (gcap/kit/ops/nodes.h).
static const gcap_attribute_t conv_items[] = {
    {.name = "pads", .kind = GCAP_ATTRIBUTE_INTS, .count = 4, .ints = pads},
    {.name = "activation", .kind = GCAP_ATTRIBUTE_STRING, .string = "Relu"},
};
static const gcap_attribute_t pool_items[] = {
    {.name = "kernel_shape", .kind = GCAP_ATTRIBUTE_INTS, .count = 2, .ints = window},
    {.name = "strides", .kind = GCAP_ATTRIBUTE_INTS, .count = 2, .ints = window},
};
static const gcap_attribute_t gemm_items[] = {
    {.name = "transB", .kind = GCAP_ATTRIBUTE_INT, .i = 1},
    {.name = "activation", .kind = GCAP_ATTRIBUTE_STRING, .string = "Relu"},
};
static const gcap_attributes_t conv_attributes = {conv_items, 2};
static const gcap_attributes_t pool_attributes = {pool_items, 2};
static const gcap_attributes_t fc1_attributes = {gemm_items, 2};
static const gcap_attributes_t fc2_attributes = {gemm_items, 1};

#define IDS(...) (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static const gcap_node_t nodes[NUM_NODES] = {
    {"Conv", "conv1", IDS(IMAGES, CONV1_WEIGHT, CONV1_BIAS), IDS(CONV1), &conv_attributes},
    {"Conv", "conv2", IDS(CONV1, CONV2_WEIGHT, CONV2_BIAS), IDS(CONV2), &conv_attributes},
    {"MaxPool", "pool", IDS(CONV2), IDS(POOLED), &pool_attributes},
    {"Flatten", "flatten", IDS(POOLED), IDS(FEATURES), NULL},
    {"Gemm", "fc1", IDS(FEATURES, FC1_WEIGHT, FC1_BIAS), IDS(HIDDEN), &fc1_attributes},
    {"Gemm", "fc2", IDS(HIDDEN, FC2_WEIGHT, FC2_BIAS), IDS(LOGITS), &fc2_attributes},
    {"Softmax", "softmax", IDS(LOGITS), IDS(PROBABILITIES), NULL},
};

static const int model_inputs[] = {IMAGES};
static const int model_outputs[] = {PROBABILITIES};

digits_model_t* digits_model_create(const digits_t* digits, int64_t batch) {
  digits_model_t* model = calloc(1, sizeof(*model));
  if (model == NULL) return NULL;
  for (size_t i = 0; i < DIGITS_NUM_WEIGHTS; ++i) {
    gcap_value_t* value = &model->values[i];
    *value = (gcap_value_t){
        .name = weight_files[i].name, .rank = (int)weight_files[i].rank, .host_data = digits->weights[i].data};
    memcpy(value->shape, weight_files[i].shape, sizeof(weight_files[i].shape));
  }
  const int64_t side = REFERENCE_IMAGE_SIDE;
  const int64_t pooled_side = REFERENCE_IMAGE_SIDE / 2;
  gcap_value_t* v = model->values;
  v[IMAGES] = (gcap_value_t){.name = "images", .rank = 4, .shape = {batch, 1, side, side}};
  v[CONV1] = (gcap_value_t){.name = "conv1_out", .rank = 4, .shape = {batch, REFERENCE_CONV1_CHANNELS, side, side}};
  v[CONV2] = (gcap_value_t){.name = "conv2_out", .rank = 4, .shape = {batch, REFERENCE_CONV2_CHANNELS, side, side}};
  v[POOLED] =
      (gcap_value_t){.name = "pooled", .rank = 4, .shape = {batch, REFERENCE_CONV2_CHANNELS, pooled_side, pooled_side}};
  v[FEATURES] = (gcap_value_t){.name = "features", .rank = 2, .shape = {batch, REFERENCE_FC1_INPUTS}};
  v[HIDDEN] = (gcap_value_t){.name = "hidden", .rank = 2, .shape = {batch, REFERENCE_FC1_OUTPUTS}};
  v[LOGITS] = (gcap_value_t){.name = "logits", .rank = 2, .shape = {batch, REFERENCE_CLASSES}};
  v[PROBABILITIES] = (gcap_value_t){.name = "probabilities", .rank = 2, .shape = {batch, REFERENCE_CLASSES}};
  model->model = (gcap_model_t){
      .values = model->values,
      .num_values = NUM_VALUES,
      .nodes = nodes,
      .num_nodes = NUM_NODES,
      .inputs = model_inputs,
      .num_inputs = 1,
      .outputs = model_outputs,
      .num_outputs = 1,
  };
  return model;
}

void digits_model_destroy(digits_model_t* model) { free(model); }

const gcap_model_t* digits_model_get(const digits_model_t* model) { return &model->model; }
