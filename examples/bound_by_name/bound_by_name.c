// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tensors bound by name, wherever their memory is. The session reads and writes device memory; the program has its
// input in pinned memory and its output in pageable memory. An IO binding has staging memory on the device for both,
// and each run copies: the input before its graph, the output after it. So the graph is captured once, and each request
// may bring its result somewhere else. Runs that are not waited for need a pinned output. It prints:
//
//     the session captures on EP lesson
//     it reads x in device memory, and makes y in device memory
//     request 1: y = 10 21 32, a replay
//     request 2: y = 11 22 33, a replay
//     request 3: y = 12 23 34, a replay
//     an output in pageable memory, without a wait: output 'y': is in pageable host memory
//     request 4, not waited for: y = 13 24 35, a replay

#include <stdio.h>
#include <string.h>

#include "examples/lesson_ep/lesson_ep.h"
#include "gcap/kit/io_binding.h"

#define COUNT 3

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

// y = x + bias
static const float bias[COUNT] = {10, 20, 30};
static const gcap_value_t values[] = {{.name = "x", .rank = 1, .shape = {COUNT}},
                                      {.name = "bias", .rank = 1, .shape = {COUNT}, .host_data = bias},
                                      {.name = "y", .rank = 1, .shape = {COUNT}}};
static const gcap_node_t node = {"Add", "add", (const int[]){0, 1}, 2, (const int[]){2}, 1, NULL};
static const gcap_model_t model = {values, 3, &node, 1, (const int[]){0}, 1, (const int[]){2}, 1, NULL, 0};

static const gcap_memory_t pinned = {.kind = GCAP_MEMORY_PINNED}, pageable = {.kind = GCAP_MEMORY_HOST};

static void show_session(const gcap_session_t* session) {
  gcap_session_info_t info;
  gcap_session_get_info(session, &info);
  printf("the session %s on EP %s\n", info.captures ? "captures" : "runs eagerly", info.ep_name);
  const gcap_memory_t x = gcap_session_input_memory(session, 0), y = gcap_session_output_memory(session, 0);
  printf("it reads x in %s memory, and makes y in %s memory\n", gcap_memory_kind_name(x.kind),
         gcap_memory_kind_name(y.kind));
}

static gcap_status_t bind(gcap_io_binding_t* binding, float* x_in_pinned, float* y_data, gcap_memory_t y_memory) {
  const gcap_tensor_t x = {.data = x_in_pinned, .rank = 1, .shape = {COUNT}};
  const gcap_tensor_t y = {.data = y_data, .rank = 1, .shape = {COUNT}};
  GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_input(binding, "x", &x, pinned));
  return gcap_io_binding_bind_output(binding, "y", &y, y_memory);
}

static void fill(float* x, int request) {
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(request + i);
}

static void show(const char* title, int request, const float* y, bool replayed) {
  printf("request %d%s: y =", request, title);
  for (int i = 0; i < COUNT; ++i) printf(" %g", y[i]);
  printf(", %s\n", replayed ? "a replay" : "no replay");
}

// Each request has a result of its own in pageable memory, and is complete on return.
static gcap_status_t serve(gcap_ep_t* ep, gcap_session_t* session, gcap_io_binding_t* binding, float* x) {
  float first[COUNT];
  GCAP_RETURN_IF_ERROR(bind(binding, x, first, pageable));
  GCAP_RETURN_IF_ERROR(gcap_session_warm_up_bound(session, /*options=*/NULL, binding));
  for (int request = 1; request <= 3; ++request) {
    float y[COUNT] = {0};
    fill(x, request - 1);
    GCAP_RETURN_IF_ERROR(bind(binding, x, y, pageable));
    const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    gcap_status_t status = gcap_session_run_bound(session, /*options=*/NULL, binding);
    if (status == NULL) show("", request, y, replays);
    // The result goes: nothing of it stays bound.
    GCAP_RETURN_IF_ERROR(gcap_status_join(status, gcap_io_binding_clear(binding)));
  }
  return NULL;
}

// The program does something else while the device works.
static gcap_status_t serve_without_wait(gcap_ep_t* ep, gcap_session_t* session, gcap_io_binding_t* binding, float* x,
                                        float* y) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.synchronize = false;
  float somewhere[COUNT];
  fill(x, 3);
  GCAP_RETURN_IF_ERROR(bind(binding, x, somewhere, pageable));
  gcap_status_t refusal = gcap_session_run_bound(session, &options, binding);
  const char* message = gcap_status_message(refusal);
  printf("an output in pageable memory, without a wait: %.*s\n", (int)strcspn(message, ","), message);
  gcap_status_free(refusal);
  GCAP_RETURN_IF_ERROR(bind(binding, x, y, pinned));
  const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
  GCAP_RETURN_IF_ERROR(gcap_session_run_bound(session, &options, binding));
  GCAP_RETURN_IF_ERROR(gcap_io_binding_synchronize(binding));
  show(", not waited for", 4, y, replays);
  return gcap_io_binding_clear(binding);
}

static gcap_status_t run(gcap_ep_t* ep, gcap_session_t* session, gcap_allocator_t* memory) {
  void *x = NULL, *y = NULL;
  gcap_io_binding_t* binding = NULL;
  GCAP_RETURN_IF_ERROR(gcap_io_binding_create(session, &binding));
  gcap_status_t status = gcap_allocator_alloc(memory, COUNT * sizeof(float), &x);
  if (status == NULL) status = gcap_allocator_alloc(memory, COUNT * sizeof(float), &y);
  if (status == NULL) status = serve(ep, session, binding, x);
  if (status == NULL) status = serve_without_wait(ep, session, binding, x, y);
  status = gcap_status_join(status, gcap_io_binding_destroy(binding));
  status = gcap_status_join(status, gcap_allocator_free(memory, y));
  return gcap_status_join(status, gcap_allocator_free(memory, x));
}

int main(void) {
  const char* key = "enable_cuda_graph";
  const char* text = "1";
  gcap_ep_t* ep = NULL;
  gcap_session_t* session = NULL;
  gcap_allocator_t* memory = NULL;
  TRY(lesson_ep_create(&key, &text, 1, GCAP_GRAPH_ALL_NODES_ON_EP, &ep));
  TRY(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  TRY(gcap_pinned_allocator_create(&memory));
  show_session(session);
  TRY(run(ep, session, memory));
  gcap_allocator_destroy(memory);
  TRY(gcap_session_destroy(session));
  TRY(gcap_ep_destroy(ep));
  return 0;
}
