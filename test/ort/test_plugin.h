// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// test_plugin.h: how tests steer the plugin that they load. Its functions are found by name (test/ort/runtime.h).
#ifndef GCAP_TEST_ORT_TEST_PLUGIN_H_
#define GCAP_TEST_ORT_TEST_PLUGIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// When kernels of the plugin fail.
typedef enum test_plugin_failure {
  TEST_PLUGIN_NEVER = 0,
  TEST_PLUGIN_IN_CAPTURE,  // while the thread captures
  TEST_PLUGIN_EAGERLY,     // while it does not
} test_plugin_failure_t;

typedef struct test_plugin {
  test_plugin_failure_t fails;
  const char* failing_node;  // NULL: each
  bool other_fails;          // a run of the EP GcapOther does not begin while the thread captures
  bool not_capturable;       // what the kernel of failing_node says when it is made
  bool forgets_input_place;  // the EP says that its kernels read no input on the host
  bool infers_any_rank;      // the EP takes whatever rank the outputs come with
  uint64_t waits_at_end;     // calls of cudaStreamSynchronize when the last kernel ended
  bool watches_ends;         // kernels note when the device is done with their eager work, by a host function
  int early_ends;            // of kernels that are watched: before the device was done
  int made_kernels;
  int live_kernels;       // made and not ended
  int computes;           // since the test set it to 0
  int captured_computes;  // of those, inside a capture
} test_plugin_t;

// Makes the slot `index` of ONNX Runtime's OrtApi, or of its OrtEpApi, answer a failure to the plugin, always, until
// test_plugin_restore_slots. The slot returns a status.
void test_plugin_break_slot(bool of_ep_api, size_t index);
void test_plugin_restore_slots(void);
typedef void (*test_plugin_break_slot_t)(bool of_ep_api, size_t index);
typedef void (*test_plugin_restore_slots_t)(void);

// Sends the warnings and errors of gcap's log to `sink`. NULL: to standard error.
typedef void (*test_plugin_sink_t)(void* user, const char* message);
void test_plugin_set_sink(test_plugin_sink_t sink, void* user);
typedef void (*test_plugin_set_sink_t)(test_plugin_sink_t sink, void* user);

// The one state of the loaded library.
test_plugin_t* test_plugin_state(void);
typedef test_plugin_t* (*test_plugin_state_t)(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_ORT_TEST_PLUGIN_H_
