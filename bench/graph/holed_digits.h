// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// holed_digits.h: the digits network of examples/minimal_ep node by node, and the ways to run it with holes between its
// nodes.
#ifndef GCAP_BENCH_GRAPH_HOLED_DIGITS_H_
#define GCAP_BENCH_GRAPH_HOLED_DIGITS_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "bench/graph/digits_network.h"
#include "bench/graph/paired.h"
#include "gcap/graph.h"
#include "gcap/graph_holes.h"
#include "gcap/kit/ops/nodes.h"

namespace gcap {
namespace bench {

// The kernels of the nodes, and memory for all values.
class DigitsNodes {
 public:
  explicit DigitsNodes(int64_t batch) : network_(batch) {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 0;
    Check(gcap_runtime_create(&options, &runtime_));
    Check(gcap_runtime_get_resources(runtime_, &resources_));
    Check(gcap_node_kernels_create(0, nullptr, &kernels_));
    const gcap_model_t* model = network_.model();
    for (int i = 0; i < model->num_values; ++i) values_.push_back(Zeros(model->values[i]));
    for (int i = 0; i < model->num_nodes; ++i) nodes_.push_back(Make(model->nodes[i]));
    CheckCuda(cudaDeviceSynchronize());
    Check(Issue(&resources_, 0, count()));  // makes library handles, and loads kernels
    CheckCuda(cudaStreamSynchronize(stream()));
  }
  // Graphs end before the kernels that they recorded, and these before the libraries' handles.
  ~DigitsNodes() {
    Check(gcap_runtime_synchronize(runtime_));
    Check(gcap_graph_manager_release_all(graphs()));
    for (const Node& node : nodes_) {
      if (node.kernel.destroy != nullptr) node.kernel.destroy(node.kernel.self);
    }
    Check(gcap_runtime_destroy(runtime_));
    Check(gcap_node_kernels_destroy(kernels_));
    for (const gcap_tensor_t& value : values_) CheckCuda(cudaFree(value.data));
  }
  DigitsNodes(const DigitsNodes&) = delete;
  DigitsNodes& operator=(const DigitsNodes&) = delete;

  int count() const { return static_cast<int>(nodes_.size()); }
  const gcap_run_resources_t* resources() const { return &resources_; }
  cudaStream_t stream() const { return resources_.cuda_stream; }
  gcap_runtime_t* runtime() const { return runtime_; }
  gcap_graph_manager_t* graphs() const {
    gcap_graph_manager_t* graphs = nullptr;
    Check(gcap_runtime_graphs(runtime_, &graphs));
    return graphs;
  }
  // The nodes from `first` to before `end`.
  gcap_status_t Issue(const gcap_run_resources_t* resources, int first, int end) const {
    for (int i = first; i < end; ++i) {
      const Node& node = nodes_[static_cast<size_t>(i)];
      gcap_tensor_t output = node.output;
      const gcap_kernel_context_t context = {node.inputs.data(), &output, nullptr, *resources};
      GCAP_RETURN_IF_ERROR(node.kernel.compute(node.kernel.self, &context));
    }
    return nullptr;
  }

 private:
  struct Node {
    gcap_kernel_t kernel;
    std::vector<gcap_tensor_t> inputs;
    gcap_tensor_t output;
  };

  static gcap_tensor_t Zeros(const gcap_value_t& value) {
    gcap_tensor_t tensor = {nullptr, value.dtype, value.rank, {}};
    for (int i = 0; i < value.rank; ++i) tensor.shape[i] = value.shape[i];
    CheckCuda(cudaMalloc(&tensor.data, gcap_tensor_bytes(&tensor)));
    CheckCuda(cudaMemset(tensor.data, 0, gcap_tensor_bytes(&tensor)));
    return tensor;
  }
  Node Make(const gcap_node_t& node) const {
    Node made = {{}, {}, values_[static_cast<size_t>(node.outputs[0])]};
    for (int i = 0; i < node.num_inputs; ++i) made.inputs.push_back(values_[static_cast<size_t>(node.inputs[i])]);
    Check(gcap_node_kernels_create_kernel(kernels_, &resources_, network_.model(), &node, &made.kernel));
    return made;
  }

  const DigitsNetwork network_;
  gcap_runtime_t* runtime_ = nullptr;
  gcap_run_resources_t resources_;
  gcap_node_kernels_t* kernels_ = nullptr;
  std::vector<gcap_tensor_t> values_;
  std::vector<Node> nodes_;
};

// Some nodes in a row, in a graph or in a hole.
struct DigitsPart {
  const DigitsNodes* nodes;
  int first, end;
  bool in_hole;

  gcap_status_t Issue(const gcap_run_resources_t* resources) const { return nodes->Issue(resources, first, end); }
  static gcap_status_t Call(void* user, const gcap_run_resources_t* resources) {
    return static_cast<const DigitsPart*>(user)->Issue(resources);
  }
};

using DigitsParts = std::vector<DigitsPart>;

// One part.
inline DigitsParts WholeDigits(const DigitsNodes& nodes) { return {{&nodes, 0, nodes.count(), false}}; }

// A hole of nothing between each two nodes.
inline DigitsParts DigitsAroundNothing(const DigitsNodes& nodes) {
  DigitsParts parts;
  for (int i = 0; i < nodes.count(); ++i) {
    if (i > 0) parts.push_back({&nodes, i, i, true});
    parts.push_back({&nodes, i, i + 1, false});
  }
  return parts;
}

// One node in a hole.
inline DigitsParts DigitsAroundNode(const DigitsNodes& nodes, int node) {
  return {{&nodes, 0, node, false}, {&nodes, node, node + 1, true}, {&nodes, node + 1, nodes.count(), false}};
}

// The parts as a graph of gcap.
class HoledDigits {
 public:
  HoledDigits(DigitsNodes* nodes, int id, DigitsParts parts) : parts_(std::move(parts)), graphs_(nodes->graphs()) {
    gcap_run_init(&run_);
    run_.id = id;
    gcap_run_t run = run_;
    run.work = Issue;
    run.user = this;
    run.synchronize = true;
    Check(gcap_runtime_run(nodes->runtime(), &run));
  }
  HoledDigits(const HoledDigits&) = delete;
  HoledDigits& operator=(const HoledDigits&) = delete;
  void Replay() const { Check(gcap_graph_manager_replay(graphs_, &run_, /*out_replayed=*/nullptr)); }

 private:
  static gcap_status_t Issue(void* user, const gcap_run_resources_t* resources) {
    for (DigitsPart& part : static_cast<HoledDigits*>(user)->parts_) {
      gcap_graph_hole_t hole;
      gcap_graph_hole_init(&hole);
      hole.work = DigitsPart::Call;
      hole.user = &part;
      GCAP_RETURN_IF_ERROR(part.in_hole ? gcap_graph_hole_issue(resources, &hole) : part.Issue(resources));
    }
    return nullptr;
  }

  DigitsParts parts_;
  gcap_graph_manager_t* const graphs_;
  gcap_run_t run_;
};

// The peer: an executable for each part that is in no hole, launched with nothing around, and the others issued.
class BareDigits {
 public:
  BareDigits(const DigitsNodes& nodes, const DigitsParts& parts) : nodes_(nodes), parts_(parts), steps_(parts.size()) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].in_hole) continue;
      steps_[i].captured = CaptureRun(*nodes.resources(), [&] { Check(parts[i].Issue(nodes.resources())); });
      CheckCuda(cudaGraphInstantiate(&steps_[i].exec, steps_[i].captured.graph, 0));
    }
    Launch();  // the first launch uploads
    CheckCuda(cudaStreamSynchronize(nodes.stream()));
  }
  ~BareDigits() {
    for (const Step& step : steps_) {
      if (step.exec == nullptr) continue;
      CheckCuda(cudaGraphExecDestroy(step.exec));
      Release(step.captured);
    }
  }
  BareDigits(const BareDigits&) = delete;
  BareDigits& operator=(const BareDigits&) = delete;
  void Launch() const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (steps_[i].exec != nullptr) {
        CheckCuda(cudaGraphLaunch(steps_[i].exec, nodes_.stream()));
      } else {
        Check(parts_[i].Issue(nodes_.resources()));
      }
    }
  }

 private:
  struct Step {
    CapturedRun captured;
    cudaGraphExec_t exec;
  };

  const DigitsNodes& nodes_;
  const DigitsParts parts_;
  std::vector<Step> steps_;
};

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_GRAPH_HOLED_DIGITS_H_
