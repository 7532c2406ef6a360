// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// test_ep.h: an EP over gcap's EP runtime whose kernels only copy and set memory, and misbehave when they are told to.
#ifndef GCAP_TEST_EP_TEST_EP_H_
#define GCAP_TEST_EP_TEST_EP_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "gcap/kit/ep.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/options.h"

namespace gcap {
namespace testing {

enum class When { kNever, kInCapture, kOutsideCapture, kAlways };

// What a test tells one node, and the node the test. A node's attributes point to one; it outlives the node's graphs.
struct NodeControl {
  std::atomic<When> misbehave{When::kNever};  // of "Fail", "Alloc" and "Ignore"
  unsigned char fill = 0;                     // "Fill": every byte
  std::atomic<size_t> scratch_bytes{0};       // "Bounce": how much scratch it asks for
  std::atomic<int> pause_us{0};               // how long compute takes at least
  std::atomic<int> computes{0};               // calls of compute
  std::atomic<int> executions{0};             // "Count": how often the device came by
  bool counts = true;                         // "Count": does; else there is no host function
  bool capturable = true;                     // what the kernel says when it is made
  std::atomic<void*> scratch{nullptr};        // "Bounce": what it got last
};

// The EP. Its ops, with x the first input and y the output:
//   Rotate  y[i] = x[i + 1], the last is x[0]
//   Join    the first half of the first input, then the second half of the second
//   Fill    every byte of y is the control's
//   Bounce  y = x by way of scratch
//   Count   y = x, and the device counts
//   Fail    y = x, and answers a failure when it misbehaves
//   Alloc   y = x, and calls cudaMalloc when it misbehaves, as no kernel may in a capture
//   Leave   y = x, and calls the config's `leave`
//   Ignore  y = x, and ignores the error of a copy that was refused when it misbehaves
//   Shape   the sizes of x as i64; x is not read
//   Reshape y = x in the shape that its second input has as i64, which it reads on the host
// A size that the model leaves open is that of the first input, but for Reshape; of Fill it is not inferred.
struct TestEpConfig {
  std::string name = "test";
  std::set<std::string> ops = {"Rotate", "Join",   "Fill",  "Bounce", "Count",  "Fail",
                               "Alloc",  "Ignore", "Leave", "Shape",  "Reshape"};
  std::string broken_op;        // the op whose kernel cannot be made
  bool has_run_members = true;  // false: its runtime is a table with only what is required
  bool counts_runs = false;     // its runtime is a table whose begin_run and end_run count
  bool copies_late = false;     // of counts_runs: a copy from the host reads when the device is there, as its table may
  bool copies_to_host = true;   // of copies_late
  void (*leave)() = nullptr;    // what Leave calls; it need not return
  gcap_graph_node_policy_t policy = GCAP_GRAPH_ALL_NODES_ON_EP;
};

class TestEp {
 public:
  static gcap_status_t Create(const gcap_options_t& options, const TestEpConfig& config, std::unique_ptr<TestEp>* out);
  // Expects that the EP ends well, unless End was called.
  ~TestEp();
  gcap_status_t End();

  gcap_ep_t* get() const { return ep_; }
  gcap_runtime_t* runtime() const { return runtime_; }  // gcap's own
  const TestEpConfig& config() const { return config_; }
  int live_kernels() const { return live_kernels_; }
  int most_computes_at_once() const { return most_computes_at_once_; }
  int begun_runs() const { return begun_runs_; }
  int ended_runs() const { return ended_runs_; }
  gcap_graph_info_t Info(int graph_id) const;  // of the calling thread's graph

  // Called in each compute, if it is set, while one thread runs.
  void (*on_compute)(const char* op, const gcap_kernel_context_t* context) = nullptr;

 private:
  friend struct TestEpOps;
  explicit TestEp(const TestEpConfig& config) : config_(config) {}

  const TestEpConfig config_;
  gcap_runtime_t* runtime_ = nullptr;
  gcap_runtime_t* outer_ = nullptr;  // what the EP has, if it is not `runtime_`
  gcap_ep_t* ep_ = nullptr;
  void* staged_[64] = {};  // of late copies: pinned memory, in turn
  size_t num_staged_ = 0;
  std::atomic<int> live_kernels_{0};
  std::atomic<int> computes_now_{0};
  std::atomic<int> most_computes_at_once_{0};
  std::atomic<int> begun_runs_{0};
  std::atomic<int> ended_runs_{0};
};

// Default options with graphs enabled and captured after `min_runs` runs.
gcap_options_t GraphOptions(unsigned min_runs = 2);

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_EP_TEST_EP_H_
