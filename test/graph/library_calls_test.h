// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// library_calls_test.h: calls of other people's libraries on buffers that move. A call is run at several places by the
// graph manager, and each run is compared, bit by bit, with the same call issued there without gcap. A run may be eager
// if the graph manager says why; it may not be wrong.
#ifndef GCAP_TEST_GRAPH_LIBRARY_CALLS_TEST_H_
#define GCAP_TEST_GRAPH_LIBRARY_CALLS_TEST_H_

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"

namespace gcap {
namespace testing {

using Bytes = std::vector<uint8_t>;

// A fixed sequence for each seed.
class Sequence {
 public:
  explicit Sequence(uint32_t seed) : state_(seed) {}
  uint32_t Next() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }

 private:
  uint32_t state_;
};

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  const uint8_t* const begin = reinterpret_cast<const uint8_t*>(values.data());
  return Bytes(begin, begin + values.size() * sizeof(T));
}

// Multiples of 1/8 in [-1, 1]: sums of a few thousand products of two of them are exact in any order.
inline Bytes Eighths(size_t count, uint32_t seed) {
  Sequence sequence(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(sequence.Next() % 17) - 8) / 8.0f;
  return BytesOf(values);
}

// One buffer of a call. What it holds at first is another thing at each place, so that a read of the wrong place shows.
struct LibraryBuffer {
  enum Role { kRead, kWritten, kWorkspace };
  Role role;
  std::function<Bytes(uint32_t seed)> fill;

  static LibraryBuffer Floats(Role role, size_t count) {
    return {role, [count](uint32_t seed) { return Eighths(count, seed); }};
  }
  static LibraryBuffer Workspace(size_t bytes) { return Floats(kWorkspace, bytes / sizeof(float) + 64); }
};

struct LibraryCall {
  std::string name;
  std::vector<LibraryBuffer> buffers;
  // False: the library does not offer the call.
  std::function<bool(cudaStream_t, void* const*)> issue;
  // What the caller does before a run on buffers at these addresses. May be empty.
  std::function<void(void* const*)> prepare = nullptr;
  // All buffers but workspaces are so many bytes behind a multiple of 256.
  size_t shift = 0;
};

// Memory for the buffers of a call, each of its own.
class LibraryPlace {
 public:
  LibraryPlace(const LibraryCall& call, uint32_t seed, size_t shift) {
    for (const LibraryBuffer& buffer : call.buffers) {
      bytes_.push_back(buffer.fill(seed + 7919 * static_cast<uint32_t>(bytes_.size())));
      void* memory = nullptr;
      const size_t begin = buffer.role == LibraryBuffer::kWorkspace ? 0 : shift;
      GCAP_EXPECT_CUDA(cudaMalloc(&memory, begin + bytes_.back().size() + kApart));
      memory_.push_back(memory);
      addresses.push_back(static_cast<char*>(memory) + begin);
    }
    Fill();
  }
  LibraryPlace(const LibraryPlace&) = delete;
  LibraryPlace& operator=(const LibraryPlace&) = delete;
  ~LibraryPlace() {
    for (void* memory : memory_) GCAP_EXPECT_CUDA(cudaFree(memory));
  }

  // What was there at first.
  void Fill() const {
    for (size_t i = 0; i < addresses.size(); ++i) {
      GCAP_EXPECT_CUDA(cudaMemcpy(addresses[i], bytes_[i].data(), bytes_[i].size(), cudaMemcpyHostToDevice));
    }
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  std::vector<Bytes> Read() const {
    std::vector<Bytes> all = bytes_;
    for (size_t i = 0; i < addresses.size(); ++i) {
      GCAP_EXPECT_CUDA(cudaMemcpy(all[i].data(), addresses[i], all[i].size(), cudaMemcpyDeviceToHost));
    }
    return all;
  }
  size_t bytes(size_t buffer) const { return bytes_[buffer].size(); }

  std::vector<void*> addresses;

 private:
  static constexpr size_t kApart = 256;  // so that buffers touch at no place

  std::vector<Bytes> bytes_;
  std::vector<void*> memory_;
};

class LibraryCallsTest : public ManagerTest {
 protected:
  static constexpr int kId = 0;

  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  // Runs the call by the graph manager.
  Outcome RunOn(const LibraryCall& call, const LibraryPlace& place, gcap_run_result_t* out_result) {
    std::vector<gcap_graph_buffer_t> items;
    std::array<bool, 8> may_be_unused = {};
    EXPECT_LE(call.buffers.size(), may_be_unused.size());
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      items.push_back({nullptr, place.addresses[i], place.bytes(i), 0});
      may_be_unused[i] = call.buffers[i].role == LibraryBuffer::kWorkspace;  // which not each algorithm uses
    }
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items.data();
    buffers.count = items.size();
    buffers.may_be_unused = may_be_unused.data();
    gcap_run_result_init(out_result);
    gcap_run_t run = RunOf(kId, stream_->get(), /*synchronize=*/true);
    run.work = Issue;
    run.user = const_cast<LibraryCall*>(&call);
    run.buffers = &buffers;
    run.result = out_result;
    return Outcome(gcap_graph_manager_run(manager_, &run));
  }

  // Runs the call at its places in turn, if the library offers the call at all.
  void ExpectRightOrRefused(const LibraryCall& call) {
    SCOPED_TRACE(call.name);
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
    const LibraryPlace places[kPlaces] = {{call, 1, call.shift}, {call, 2, call.shift}, {call, 3, 3 * call.shift}};
    if (!IsOffered(call, places[0])) return;
    ++offered_;
    std::string reason;
    int replays = 0;
    for (const size_t at : {0, 1, 2, 0}) {
      const gcap_run_result_t result = ExpectAsIssued(call, places, at);
      replays += result.outcome == GCAP_RUN_REPLAYED && at != 0;
      if (result.outcome == GCAP_RUN_EAGER && reason.empty()) reason = ExpectReason();
    }
    if (!reason.empty()) {
      refusals_.emplace_back(call.name, reason);
      return;
    }
    EXPECT_EQ(replays, kPlaces - 1);
    ++moved_;
  }

  // Prints how many there were, and why which of them were eager; expects some.
  void Tell(const char* what) const {
    std::printf("%s: of %d calls %d moved, %zu were eager elsewhere\n", what, offered_, moved_, refusals_.size());
    for (const auto& refusal : refusals_) std::printf("  %s: %s\n", refusal.first.c_str(), refusal.second.c_str());
    EXPECT_GT(offered_, 0);
  }

  static bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

  int offered_ = 0, moved_ = 0;
  std::vector<std::pair<std::string, std::string>> refusals_;  // of a call: its name, and why it was eager

 private:
  static constexpr int kPlaces = 3;

  static gcap_status_t Issue(void* user, const gcap_run_resources_t* resources) {
    const LibraryCall* const call = static_cast<const LibraryCall*>(user);
    if (call->issue(resources->cuda_stream, resources->addresses)) return nullptr;
    return GCAP_STATUS(GCAP_LIBRARY_ERROR, "%s was refused", call->name.c_str());
  }

  static void Prepare(const LibraryCall& call, const LibraryPlace& place) {
    place.Fill();
    if (call.prepare) call.prepare(place.addresses.data());
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }

  // Issues the call as it is, which also loads what the library needs for it.
  bool IsOffered(const LibraryCall& call, const LibraryPlace& place) {
    Prepare(call, place);
    const bool is_offered = call.issue(stream_->get(), place.addresses.data());
    stream_->Synchronize();
    (void)cudaGetLastError();
    return is_offered;
  }

  gcap_run_result_t ExpectAsIssued(const LibraryCall& call, const LibraryPlace (&places)[kPlaces], size_t at) {
    SCOPED_TRACE("at place " + std::to_string(at));
    std::vector<std::vector<Bytes>> before;
    for (const LibraryPlace& place : places) place.Fill();
    Prepare(call, places[at]);
    for (const LibraryPlace& place : places) before.push_back(place.Read());
    gcap_run_result_t result;
    const Outcome run = RunOn(call, places[at], &result);
    EXPECT_TRUE(run.ok()) << run.message;
    for (size_t i = 0; i < kPlaces; ++i) {
      const bool is_touched = i != at && before[i] != places[i].Read();
      EXPECT_FALSE(is_touched) << "the run wrote to place " << i;
    }
    const std::vector<Bytes> left = places[at].Read();
    Prepare(call, places[at]);
    EXPECT_TRUE(call.issue(stream_->get(), places[at].addresses.data()));
    stream_->Synchronize();
    ExpectEqual(call, before[at], places[at].Read(), left);
    return result;
  }

  static void ExpectEqual(const LibraryCall& call, const std::vector<Bytes>& before, const std::vector<Bytes>& expected,
                          const std::vector<Bytes>& left) {
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      if (call.buffers[i].role == LibraryBuffer::kWorkspace) continue;
      const bool is_equal = left[i] == expected[i], is_written = expected[i] != before[i];
      EXPECT_TRUE(is_equal) << "buffer " << i << " has other bytes than after the call alone";
      if (call.buffers[i].role == LibraryBuffer::kWritten) {
        EXPECT_TRUE(is_written) << "the call does not write buffer " << i;
      }
    }
  }

  // Why the last run was eager.
  std::string ExpectReason() {
    const Outcome eager(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_EAGER));
    EXPECT_FALSE(eager.ok()) << "an eager run, and no word of why";
    return eager.message;
  }
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_LIBRARY_CALLS_TEST_H_
