// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work of cuBLASLt and cuDNN on buffers that move: every algorithm that the library of the build offers is captured at
// one place and replayed at another, where its output must be, bit by bit, that of a fresh capture. Each test prints
// how many algorithms moved.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/libraries_test.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kApart = 256;  // so that buffers touch at neither place

gcap_status_t Issue(void* call, cudaStream_t stream, void* const* addresses) {
  const Call* const self = static_cast<const Call*>(call);
  return self->issue(stream, addresses) ? nullptr
                                        : GCAP_STATUS(GCAP_LIBRARY_ERROR, "%s was refused", self->name.c_str());
}

// Memory for the buffers of a call, each of its own.
class Place {
 public:
  Place(const Call& call, uint32_t seed) : call_(call), seed_(seed) {
    for (const size_t count : call.counts) {
      GCAP_EXPECT_CUDA(cudaMalloc(&addresses.emplace_back(), count * SizeOf(call.element) + kApart));
    }
    Fill();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    for (void* address : addresses) GCAP_EXPECT_CUDA(cudaFree(address));
  }

  // What was there at first.
  void Fill() const {
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Bytes bytes = Eighths(call_.element, call_.counts[i], seed_ + static_cast<uint32_t>(i));
      GCAP_EXPECT_CUDA(cudaMemcpy(addresses[i], bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    }
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  Bytes Read(size_t buffer) const {
    Bytes bytes(call_.counts[buffer] * SizeOf(call_.element));
    GCAP_EXPECT_CUDA(cudaMemcpy(bytes.data(), addresses[buffer], bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
  std::vector<Bytes> ReadAll() const {
    std::vector<Bytes> all;
    for (size_t i = 0; i < addresses.size(); ++i) all.push_back(Read(i));
    return all;
  }

  std::vector<void*> addresses;

 private:
  const Call& call_;
  const uint32_t seed_;
};

class GraphLibraries : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  Outcome RunOn(int id, Call& call, const Place& place) {
    std::vector<gcap_graph_buffer_t> items;
    for (size_t i = 0; i < place.addresses.size(); ++i) {
      items.push_back({nullptr, place.addresses[i], call.counts[i] * SizeOf(call.element), 0});
    }
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items.data();
    buffers.count = items.size();
    const std::array<bool, 8> may_be_unused = {true, true, true, true, true, true, true, true};
    EXPECT_LE(items.size(), may_be_unused.size());
    buffers.may_be_unused = may_be_unused.data();  // not each algorithm has a workspace, nor reads C
    return Outcome(RunPlainOn(manager_, id, stream_->get(), &buffers, Issue, &call, true));
  }

  // Issues the call as it is, which loads what the library needs for it. False: the library does not offer it.
  bool WarmUp(const Call& call, const Place& place) {
    const bool issued = call.issue(stream_->get(), place.addresses.data());
    stream_->Synchronize();
    place.Fill();
    (void)cudaGetLastError();
    return issued;
  }

  // Captures the call at one place and replays it at another, if the library offers it.
  void ExpectMoves(Call call) {
    SCOPED_TRACE(call.name);
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
    const Place first(call, 1), second(call, 100);
    if (!WarmUp(call, first)) return;
    ++offered_;
    const Outcome captured = RunOn(0, call, first);
    ASSERT_TRUE(captured.ok()) << captured.message;
    const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_MOVABLE));
    EXPECT_TRUE(refusal.ok()) << refusal.message;
    const std::vector<Bytes> before = first.ReadAll();

    const Outcome replayed = RunOn(0, call, second);
    ASSERT_TRUE(replayed.ok()) << replayed.message;
    EXPECT_EQ(Info(0).captures, 1u);
    EXPECT_EQ(Info(0).replays, 2u) << "no replay, but an eager run";
    const Bytes moved = second.Read(call.output());
    const bool is_first_untouched = before == first.ReadAll();
    EXPECT_TRUE(is_first_untouched);

    second.Fill();
    const Bytes filled = second.Read(call.output());
    const Outcome fresh = RunOn(1, call, second);
    ASSERT_TRUE(fresh.ok()) << fresh.message;
    const Bytes expected = second.Read(call.output());
    EXPECT_FALSE(expected == filled) << "the call writes nothing";
    const bool is_equal = moved == expected;
    EXPECT_TRUE(is_equal) << "other bits than those of a fresh capture";
    const bool has_moved = refusal.ok() && Info(0).replays == 2 && is_first_untouched && is_equal;
    moved_ += has_moved;
    nodes_ = std::max(nodes_, Info(0).nodes);
  }

  // Says how many there were, and expects some.
  void Tell(const char* what) const {
    std::printf("%s: %d of %d algorithms moved, of up to %zu nodes\n", what, moved_, offered_, nodes_);
    EXPECT_GT(offered_, 0);
    EXPECT_EQ(moved_, offered_);
  }

  int offered_ = 0, moved_ = 0;
  size_t nodes_ = 0;
};

// --- cuBLASLt -------------------------------------------------------------------------------------------------------

constexpr size_t kWorkspaceBytes = size_t{4} << 20;
class GraphProducts : public GraphLibraries {
 protected:
  void ExpectAllMove(const char* what, Element element) {
    const uint64_t sizes[][3] = {{16, 8, 32}, {64, 64, 64}, {32, 16, 4096}, {256, 128, 512}};
    for (const auto& size : sizes) {
      Product product(size[0], size[1], size[2], element);
      for (const uint64_t max_workspace : {uint64_t{0}, uint64_t{kWorkspaceBytes}}) {
        for (const auto& algorithm : product.Algorithms(max_workspace)) {
          ExpectMoves(product.CallOf(algorithm));
          with_workspace_ += algorithm.workspaceSize > 0;
        }
      }
    }
    Tell(what);
    std::printf("%s: %d with a workspace\n", what, with_workspace_);
    EXPECT_GT(with_workspace_, 0);
  }

  int with_workspace_ = 0;
};

TEST_F(GraphProducts, OfFloatsMove) { ExpectAllMove("cuBLASLt f32", Element::kF32); }
TEST_F(GraphProducts, OfHalvesMove) { ExpectAllMove("cuBLASLt f16", Element::kF16); }
TEST_F(GraphProducts, OfBrainFloatsMove) { ExpectAllMove("cuBLASLt bf16", Element::kBf16); }

// --- cuDNN ----------------------------------------------------------------------------------------------------------

TEST_F(GraphLibraries, ConvolutionsOfEveryAlgorithmMove) {
  const ConvolutionShape shapes[] = {{2, 4, 8, 4, 3}, {1, 16, 32, 32, 3}, {2, 32, 14, 64, 1}, {1, 8, 32, 8, 5}};
  for (const ConvolutionShape& shape : shapes) {
    Convolution convolution(shape, stream_->get());
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      Call call;
      if (convolution.Find(static_cast<cudnnConvolutionFwdAlgo_t>(i), &call)) ExpectMoves(call);
    }
  }
  Tell("cuDNN convolutions");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
