// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Products of cuBLASLt and convolutions of cuDNN before, in and behind holes: what a replay leaves is, bit by bit, what
// the same calls leave that are issued to the stream without gcap. Verified, sound programs have no report; an operand
// or a workspace that was replaced, and a scalar of the host that the graph has kept, are found by their steps.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_holes.h"
#include "gcap/graph_verify.h"
#include "gtest/gtest.h"
#include "test/graph/libraries_test.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kId = 2;
constexpr uint64_t kWorkspaceBytes = uint64_t{4} << 20;
constexpr uint64_t kSide = 512, kColumns = 4;          // of a product's matrices
constexpr ConvolutionShape kShape = {2, 4, 16, 4, 3};  // of as many elements
constexpr size_t kElements = kSide * kColumns;

// Device memory of bytes. Copies go through the calling thread's own stream.
class Memory {
 public:
  explicit Memory(const Bytes& bytes) : bytes_(bytes.size()) {
    EXPECT_EQ(cudaMalloc(&data_, std::max(bytes_, size_t{256})), cudaSuccess);
    Set(bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  void* get() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Set(const Bytes& bytes) const { Copy(data_, bytes.data(), cudaMemcpyHostToDevice); }
  Bytes Get() const {
    Bytes bytes(bytes_);
    Copy(bytes.data(), data_, cudaMemcpyDeviceToHost);
    return bytes;
  }

 private:
  void Copy(void* to, const void* from, cudaMemcpyKind kind) const {
    EXPECT_EQ(cudaMemcpyAsync(to, from, bytes_, kind, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  }

  size_t bytes_;
  void* data_ = nullptr;
};

std::unique_ptr<Memory> Filled(size_t elements, uint32_t seed) {
  return std::make_unique<Memory>(Eighths(Element::kF32, elements, seed));
}

enum class Place { kCaptured, kHole, kHoleWhereRefused };

// One call of a library, which makes one activation of another. All else that the call reads is its own.
class Step {
 public:
  // `input`: the call's buffer that is the activation.
  Step(const Call& call, size_t input, uint32_t seed, cudaStream_t stream) : call_(call), input_(input) {
    for (size_t i = 0; i < workspace_index(); ++i) {
      weights.push_back(i != input ? Filled(call.counts[i], seed + static_cast<uint32_t>(i)) : nullptr);
    }
    own_workspace_ = Filled(call.counts[workspace_index()], seed);
    stream_ = stream;
  }
  size_t workspace_index() const { return call_.output() - 1; }
  size_t workspace_bytes() const { return call_.counts[workspace_index()] * sizeof(float); }
  size_t input_elements() const { return call_.counts[input_]; }
  size_t output_elements() const { return call_.counts[call_.output()]; }

  // Issues the call with this workspace.
  bool IssueWith(void* workspace, void* from, void* to) const {
    std::vector<void*> at;
    for (const auto& weight : weights) at.push_back(weight != nullptr ? weight->get() : from);
    at.push_back(workspace);
    at.push_back(to);
    return call_.issue(stream_, at.data());
  }
  bool IssueAlone(void* from, void* to) const { return IssueWith(own_workspace_->get(), from, to); }
  // As the work of a run does, or the function of a hole.
  gcap_status_t Issue(const gcap_run_resources_t& run, void* from, void* to) const {
    if (search && !search()) return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the search of %s failed", call_.name.c_str());
    void* block = workspace != nullptr ? workspace->get() : nullptr;
    if (block == nullptr) GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, workspace_bytes(), run.stream, &block));
    const bool is_issued = IssueWith(block, from, to);
    GCAP_CAPTURE_NOTE(call_.name.c_str(), run.cuda_stream);
    gcap_status_t status = is_issued ? nullptr : GCAP_STATUS(GCAP_LIBRARY_ERROR, "%s was refused", call_.name.c_str());
    return workspace != nullptr ? status : gcap_status_join(status, gcap_scratch_free(run.scratch, block));
  }
  // Whether the call writes to its workspace; some only ask for one.
  bool WritesWorkspace() const {
    const auto from = Filled(input_elements(), 1), to = Filled(output_elements(), 2);
    const Bytes before = Eighths(Element::kF32, workspace_bytes() / sizeof(float), 3);
    own_workspace_->Set(before);
    EXPECT_TRUE(IssueAlone(from->get(), to->get()));
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return before != own_workspace_->Get();
  }

  Place place = Place::kCaptured;
  std::vector<std::unique_ptr<Memory>> weights;  // of each buffer before the workspace; NULL: the activation
  const Memory* workspace = nullptr;             // NULL: the run's scratch
  std::function<bool()> search;                  // what no capture allows
  std::string name;

 private:
  Call call_;
  size_t input_;
  std::unique_ptr<Memory> own_workspace_;
  cudaStream_t stream_ = nullptr;
};

// The activations of a program: the input, and what each step makes.
struct Activations {
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<Bytes> Read() const {
    std::vector<Bytes> all;
    for (const auto& each : memory) all.push_back(each->Get());
    return all;
  }
};

// Steps, one behind the other.
class Program {
 public:
  void Add(std::unique_ptr<Step> step, Place place) {
    step->place = place;
    step->name = "step " + std::to_string(steps.size());
    steps.push_back(std::move(step));
  }
  size_t CountHoles() const {
    size_t count = 0;
    for (const auto& step : steps) count += step->place == Place::kHole || step->search;
    return count;
  }
  Activations Make() const {
    Activations made;
    made.memory.push_back(Filled(steps[0]->input_elements(), 0));
    for (const auto& step : steps) made.memory.push_back(Filled(step->output_elements(), 0));
    return made;
  }
  static void Fill(const Activations& activations, uint32_t seed) {
    for (const auto& memory : activations.memory) memory->Set(Eighths(Element::kF32, memory->bytes() / 4, seed++));
  }
  // The calls alone.
  void IssueAlone(const Activations& at) const {
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_TRUE(steps[i]->IssueAlone(at.memory[i]->get(), at.memory[i + 1]->get())) << steps[i]->name;
    }
  }
  // As the work of a run. `where`: of a run without buffers.
  gcap_status_t Issue(const gcap_run_resources_t& run, const Activations* where) {
    fixed_ = where;
    functions_.resize(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      functions_[i] = {this, i};
      if (steps[i]->place == Place::kCaptured) {
        GCAP_RETURN_IF_ERROR(IssueStep(i, run));
        continue;
      }
      gcap_graph_hole_t hole;
      gcap_graph_hole_init(&hole);
      hole.name = steps[i]->name.c_str();
      hole.work = CallStep;
      hole.user = &functions_[i];
      hole.break_where_refused = steps[i]->place == Place::kHoleWhereRefused;
      GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(&run, &hole));
    }
    return nullptr;
  }

  std::vector<std::unique_ptr<Step>> steps;
  int calls = 0;  // of functions

 private:
  struct Function {
    Program* program;
    size_t step;
  };
  static gcap_status_t CallStep(void* user, const gcap_run_resources_t* run) {
    const Function* function = static_cast<const Function*>(user);
    ++function->program->calls;
    return function->program->IssueStep(function->step, *run);
  }
  gcap_status_t IssueStep(size_t i, const gcap_run_resources_t& run) const {
    if (run.addresses != nullptr) return steps[i]->Issue(run, run.addresses[i], run.addresses[i + 1]);
    return steps[i]->Issue(run, fixed_->memory[i]->get(), fixed_->memory[i + 1]->get());
  }

  std::vector<Function> functions_;
  const Activations* fixed_ = nullptr;
};

class LibraryHoles : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(GraphOptions(1));
    stream_ = Resources().cuda_stream;
    gcap_graph_verify_init(&verify_);
    verify_.each = 1;
    verify_.bisect = true;
    verify_.report = &report_;
    gcap_graph_verify_report_init(&report_);
  }

  // --- Steps --------------------------------------------------------------------------------------------------------

  // Of the library's algorithms the one that asks for the most workspace.
  std::unique_ptr<Step> OfProduct(uint64_t max_workspace, uint32_t seed = 1) {
    const auto found = AlgorithmsOfProduct(max_workspace);
    const auto most = std::max_element(found.begin(), found.end(),
                                       [](const auto& a, const auto& b) { return a.workspaceSize < b.workspaceSize; });
    return StepOf(*most, seed);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> AlgorithmsOfProduct(uint64_t max_workspace) {
    products_.push_back(std::make_unique<Product>(kSide, kColumns, kSide, Element::kF32));
    const auto found = products_.back()->Algorithms(max_workspace);
    EXPECT_FALSE(found.empty());
    return found;
  }
  // Of the product that was made last.
  std::unique_ptr<Step> StepOf(const cublasLtMatmulHeuristicResult_t& algorithm, uint32_t seed) {
    return std::make_unique<Step>(products_.back()->CallOf(algorithm), /*input=*/1, seed, stream_);
  }
  // NULL: the library does not offer the algorithm.
  std::unique_ptr<Step> OfConvolution(cudnnConvolutionFwdAlgo_t algorithm, uint32_t seed = 1) {
    convolutions_.push_back(std::make_unique<Convolution>(kShape, stream_));
    Call call;
    if (!convolutions_.back()->Find(algorithm, &call)) return nullptr;
    auto step = std::make_unique<Step>(call, /*input=*/0, seed, stream_);
    const auto from = Filled(kElements, 1), to = Filled(kElements, 2);
    const bool is_offered = step->IssueAlone(from->get(), to->get());
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    (void)cudaGetLastError();
    if (!is_offered) return nullptr;
    return step;
  }
  std::unique_ptr<Step> OfAnyConvolution(uint32_t seed = 1) {
    auto step = OfConvolution(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, seed);
    EXPECT_NE(step, nullptr) << "every cuDNN has this one";
    return step;
  }
  // A convolution whose library first searches, in a step that may be a hole.
  std::unique_ptr<Step> OfSearchedConvolution(uint32_t seed = 1) {
    auto step = OfAnyConvolution(seed);
    step->search = [convolution = convolutions_.back().get()] { return convolution->Search(); };
    return step;
  }

  // --- Runs ---------------------------------------------------------------------------------------------------------

  // A run on these activations: as buffers that may move, or at fixed addresses.
  Outcome RunProgram(Program* program, const Activations& at, bool moves, bool verifies) {
    std::vector<gcap_graph_buffer_t> items;
    std::vector<gcap_graph_verify_buffer_t> named = more_named_;
    for (const auto& memory : at.memory) {
      items.push_back({nullptr, memory->get(), memory->bytes(), 0});
      named.push_back({"activation", memory->get(), memory->bytes(), GCAP_DTYPE_F32, 0, 0, false});
    }
    const std::unique_ptr<bool[]> may_be_unused(new bool[items.size()]);  // as where functions alone use a buffer
    std::fill_n(may_be_unused.get(), items.size(), true);
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items.data();
    buffers.count = items.size();
    buffers.may_be_unused = may_be_unused.get();
    verify_.buffers = named.data();
    verify_.num_buffers = named.size();
    std::pair<Program*, const Activations*> work = {program, &at};
    gcap_run_t run = RunOf(kId, /*synchronize=*/true);
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      const auto* const work = static_cast<const std::pair<Program*, const Activations*>*>(user);
      return work->first->Issue(*resources, work->second);
    };
    run.user = &work;
    run.buffers = moves ? &buffers : nullptr;
    run.verify = verifies ? &verify_ : nullptr;
    run.result = &result_;
    gcap_run_result_init(&result_);
    return Outcome(gcap_runtime_run(runtime_, &run));
  }
  // A run that leaves what the calls alone leave.
  void ExpectRight(Program* program, const Activations& at, uint32_t seed, bool moves, bool verifies = false) {
    Program::Fill(at, seed);
    program->IssueAlone(at);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    const std::vector<Bytes> expected = at.Read();
    Program::Fill(at, seed);
    const Outcome run = RunProgram(program, at, moves, verifies);
    EXPECT_TRUE(run.ok()) << run.message;
    const bool is_equal = at.Read() == expected;  // what is in them is too much to print
    EXPECT_TRUE(is_equal) << "other bits than those of the calls alone";
  }
  void ExpectReplay(Program* program, const Activations& at, uint32_t seed, bool moves, bool verifies = false) {
    const int before = program->calls;
    ExpectRight(program, at, seed, moves, verifies);
    EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED) << gcap_why_eager_name(result_.why_eager);
    if (!verifies) {
      EXPECT_EQ(program->calls - before, static_cast<int>(program->CountHoles()));
    }
    EXPECT_EQ(report_.is_verified, verifies);
    EXPECT_EQ(report_.different, 0u);
  }
  // Runs until the id has its graph, with a hole for each step that needs one.
  void Capture(Program* program, const Activations& at, bool moves, bool verifies = false) {
    const LogCatcher log;
    for (int i = 0; i < 8 && result_.outcome != GCAP_RUN_CAPTURED; ++i) {
      ExpectRight(program, at, 1000 + static_cast<uint32_t>(i), moves, verifies);
    }
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED) << log.text();
    EXPECT_EQ(Info(kId).holes, program->CountHoles()) << log.text();
    EXPECT_FALSE(report_.is_verified);
  }

  // A program of drawn steps at drawn places; the first one has two holes with something captured on all sides.
  Program Draw(uint32_t seed) {
    Program program;
    uint32_t state = seed;
    const auto draw = [&state](uint32_t below) { return ((state = state * 1664525u + 1013904223u) >> 16) % below; };
    const size_t count = seed == 0 ? 5 : 2 + draw(4);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t weights = 100 * seed + 10 * static_cast<uint32_t>(i);
      Place place = seed == 0 ? (i % 2 == 0 ? Place::kCaptured : Place::kHole) : static_cast<Place>(draw(3));
      const uint32_t kind = draw(place == Place::kHoleWhereRefused ? 4 : 3);
      auto step = kind == 0   ? OfProduct(0, weights)
                  : kind == 1 ? OfProduct(kWorkspaceBytes, weights)
                  : kind == 2 ? OfAnyConvolution(weights)
                              : OfSearchedConvolution(weights);
      program.Add(std::move(step), place);
    }
    return program;
  }

  cudaStream_t stream_ = nullptr;
  std::vector<std::unique_ptr<Product>> products_;
  std::vector<std::unique_ptr<Convolution>> convolutions_;
  std::vector<gcap_graph_verify_buffer_t> more_named_;
  gcap_graph_verify_t verify_;
  gcap_graph_verify_report_t report_;
  gcap_run_result_t result_ = {};
};

constexpr uint32_t kPrograms = 10, kInputs = 4;

TEST_F(LibraryHoles, ReplaysLeaveWhatTheCallsAloneLeave) {
  size_t holes = 0;
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    Program program = Draw(seed);
    holes += program.CountHoles();
    const Activations at = program.Make();
    result_ = {};
    Capture(&program, at, /*moves=*/false);
    for (uint32_t input = 1; input <= kInputs; ++input) ExpectReplay(&program, at, 77 * input, /*moves=*/false);
    GCAP_EXPECT_OK(gcap_runtime_release(runtime_, kId));
  }
  EXPECT_GT(holes, kPrograms);
}

TEST_F(LibraryHoles, ReplaysOnMovedBuffersLeaveWhatTheCallsAloneLeave) {
  for (uint32_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    Program program = Draw(seed);
    const Activations places[] = {program.Make(), program.Make(), program.Make()};
    result_ = {};
    Capture(&program, places[0], /*moves=*/true);
    for (uint32_t input = 1; input <= kInputs; ++input) {
      ExpectReplay(&program, places[input % 3], 77 * input, /*moves=*/true);
    }
    EXPECT_EQ(Info(kId).captures, 1u);
    GCAP_EXPECT_OK(gcap_runtime_release(runtime_, kId));
  }
}

// The search of cuDNN allocates and waits: a capture refuses the step, and the next one has a hole there.
TEST_F(LibraryHoles, AStepWhoseLibraryCallIsRefusedBecomesAHole) {
  for (const bool moves : {false, true}) {
    SCOPED_TRACE(moves ? "buffers" : "fixed addresses");
    Program program;
    program.Add(OfProduct(kWorkspaceBytes), Place::kCaptured);
    program.Add(OfSearchedConvolution(), Place::kHoleWhereRefused);
    program.Add(OfAnyConvolution(), Place::kHoleWhereRefused);  // which can be captured, and is
    program.Add(OfProduct(0), Place::kCaptured);
    const Activations at = program.Make();
    result_ = {};
    Capture(&program, at, moves);
    EXPECT_EQ(Info(kId).holes, 1u);
    for (uint32_t input = 1; input <= kInputs; ++input) ExpectReplay(&program, at, 77 * input, moves);
    GCAP_EXPECT_OK(gcap_runtime_release(runtime_, kId));
  }
}

TEST_F(LibraryHoles, VerifiedSoundProgramsHaveNoReport) {
  for (const bool moves : {false, true}) {
    for (uint32_t seed = 0; seed < kPrograms / 2; ++seed) {
      SCOPED_TRACE((moves ? "moving program " : "program ") + std::to_string(seed));
      Program program = Draw(seed);
      const Activations at = program.Make();
      result_ = {};
      Capture(&program, at, moves, /*verifies=*/true);
      for (uint32_t input = 1; input <= 2; ++input) ExpectReplay(&program, at, 77 * input, moves, /*verifies=*/true);
      GCAP_EXPECT_OK(gcap_runtime_release(runtime_, kId));
    }
  }
}

// --- Planted faults -------------------------------------------------------------------------------------------------

class LibraryFaults : public LibraryHoles {
 protected:
  // Two steps of each library, of which the second one is in a hole.
  Program Planted() {
    Program program;
    program.Add(OfProduct(kWorkspaceBytes, 10), Place::kCaptured);
    program.Add(OfAnyConvolution(20), Place::kCaptured);
    program.Add(OfProduct(kWorkspaceBytes, 30), Place::kHole);
    program.Add(OfAnyConvolution(40), Place::kCaptured);
    program.Add(OfProduct(kWorkspaceBytes, 50), Place::kCaptured);
    return program;
  }
  void CaptureVerified(Program* program, const Activations& at) {
    result_ = {};
    Capture(program, at, /*moves=*/false, /*verifies=*/true);
    ExpectReplay(program, at, 5, /*moves=*/false, /*verifies=*/true);
  }
  // The run differs, first behind the step, since its graph has that fault.
  void ExpectFound(Program* program, const Activations& at, size_t step, gcap_graph_fault_t fault) {
    const LogCatcher log;
    Program::Fill(at, 9);
    const Outcome run = RunProgram(program, at, /*moves=*/false, /*verifies=*/true);
    EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
    EXPECT_EQ(report_.step, step) << run.message;
    EXPECT_EQ(report_.fault, fault) << run.message;
    EXPECT_NE(report_.node, SIZE_MAX) << run.message;
    EXPECT_TRUE(run.Names("library_holes_test.cc")) << "where the step was issued: " << run.message;
    const std::vector<Bytes> left = at.Read();
    Program::Fill(at, 9);
    program->IssueAlone(at);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    const bool is_equal = at.Read() == left;
    EXPECT_TRUE(is_equal) << "the buffers have what the work left";
    GCAP_EXPECT_OK(gcap_runtime_release(runtime_, kId));
  }
};

TEST_F(LibraryFaults, AnOperandThatWasReplacedIsFound) {
  for (const size_t step : {0, 1, 3, 4}) {
    SCOPED_TRACE("step " + std::to_string(step));
    Program program = Planted();
    const Activations at = program.Make();
    CaptureVerified(&program, at);
    auto& weights = program.steps[step]->weights;
    const size_t which = weights[0] != nullptr ? 0 : 1;
    const std::unique_ptr<Memory> old = std::move(weights[which]);  // still there, and somebody else's
    weights[which] = Filled(old->bytes() / sizeof(float), 4711);
    ExpectFound(&program, at, step, GCAP_GRAPH_FAULT_STALE_POINTER);
  }
}

// The function of a hole finds what is there now.
TEST_F(LibraryFaults, AnOperandThatWasReplacedInAHoleIsNoFault) {
  Program program = Planted();
  const Activations at = program.Make();
  CaptureVerified(&program, at);
  auto& weights = program.steps[2]->weights;
  const std::unique_ptr<Memory> old = std::move(weights[0]);
  weights[0] = Filled(old->bytes() / sizeof(float), 4711);
  ExpectReplay(&program, at, 9, /*moves=*/false, /*verifies=*/true);
}

TEST_F(LibraryFaults, AScalarOfTheHostThatTheGraphHasKeptIsFound) {
  for (const size_t step : {0, 1, 3, 4}) {
    for (const bool is_beta : {false, true}) {
      const bool is_product = step % 4 == 0;
      if (is_beta && !is_product) continue;
      SCOPED_TRACE("step " + std::to_string(step) + (is_beta ? ", beta" : ", alpha"));
      products_.clear();
      convolutions_.clear();
      Program program = Planted();
      // In the order of the steps: products 0, 2 and 4, convolutions 1 and 3.
      float* const scalar = is_beta      ? &products_[step / 2]->beta
                            : is_product ? &products_[step / 2]->alpha
                                         : &convolutions_[step / 2]->alpha;
      *scalar = 2;
      const Activations at = program.Make();
      CaptureVerified(&program, at);
      *scalar = 3;
      ExpectFound(&program, at, step, GCAP_GRAPH_FAULT_FROZEN_VALUE);
    }
  }
}

// The graph goes on to write to its workspace, which is a tensor by now.
TEST_F(LibraryFaults, AWorkspaceThatWasReplacedIsFound) {
  const auto expect_found = [this](std::unique_ptr<Step> step) {
    Program program;
    program.Add(OfAnyConvolution(20), Place::kCaptured);
    program.Add(OfProduct(0, 30), Place::kHole);
    program.Add(std::move(step), Place::kCaptured);
    program.Add(OfAnyConvolution(40), Place::kCaptured);
    Step* const planted = program.steps[2].get();
    const auto old = Filled(planted->workspace_bytes() / sizeof(float), 1);
    const auto fresh = Filled(planted->workspace_bytes() / sizeof(float), 2);
    planted->workspace = old.get();
    const Activations at = program.Make();
    CaptureVerified(&program, at);
    planted->workspace = fresh.get();
    const Bytes tensor = Eighths(Element::kF32, old->bytes() / sizeof(float), 3);
    old->Set(tensor);
    more_named_ = {{"a tensor", old->get(), old->bytes(), GCAP_DTYPE_F32, 0, 0, false}};
    ExpectFound(&program, at, /*step=*/2, GCAP_GRAPH_FAULT_STALE_POINTER);
    EXPECT_EQ(report_.step_buffer, 0u) << "the tensor";
    const bool is_whole = old->Get() == tensor;
    EXPECT_TRUE(is_whole) << "put back, and not written by the work";
    more_named_.clear();
  };
  int products = 0;
  for (const auto& algorithm : AlgorithmsOfProduct(kWorkspaceBytes)) {
    auto step = StepOf(algorithm, 50);
    if (!step->WritesWorkspace()) continue;
    SCOPED_TRACE("a product with " + std::to_string(algorithm.workspaceSize) + " bytes of workspace");
    ++products;
    expect_found(std::move(step));
  }
  EXPECT_GT(products, 0);
  int convolutions = 0;
  for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
    SCOPED_TRACE("algorithm " + std::to_string(i));
    auto step = OfConvolution(static_cast<cudnnConvolutionFwdAlgo_t>(i), 50);
    if (step == nullptr || !step->WritesWorkspace()) continue;
    ++convolutions;
    expect_found(std::move(step));
  }
  EXPECT_GT(convolutions, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
