// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Random graphs on random buffers: kernels, copies and fills at random places of several buffers, in place, in forks
// and on buffers that overlap. Each is captured at one place and replayed at others, where it must leave, bit by bit,
// what an eager run there leaves, and nothing anywhere else.

#include <algorithm>
#include <random>

#include "gcap_sim.h"
#include "test/graph/moving_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kLayouts = 500;

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}
  // From low to high, both included.
  size_t From(size_t low, size_t high) { return low + random_() % (high - low + 1); }
  bool OneIn(size_t n) { return From(1, n) == 1; }

 private:
  std::mt19937 random_;
};

// What a graph does: operations on ranges of buffers, on one of two branches or before them.
struct Operation {
  enum Kind { kAdd, kAddPacked, kFill, kCopy } kind;
  size_t from, to;                      // buffers
  size_t from_at, to_at, count, value;  // floats
  bool is_on_side;
};

struct Program {
  std::vector<size_t> floats;  // of each buffer
  std::vector<size_t> alignments;
  std::vector<Operation> operations;
  bool overlaps, forks, copies, uses_memory;
};

Program MakeProgram(Draws* draws) {
  Program program = {};
  const size_t count = draws->From(2, 6);
  const size_t alignments[] = {4, 8, 16, 64, 256};
  for (size_t i = 0; i < count; ++i) {
    program.floats.push_back(draws->OneIn(4) ? draws->From(1, 4) : draws->From(8, 500));
    program.alignments.push_back(alignments[draws->From(0, 4)]);
  }
  program.overlaps = draws->OneIn(4);
  program.forks = !program.overlaps && draws->OneIn(2);
  program.copies = !program.overlaps && draws->OneIn(3);
  program.uses_memory = draws->OneIn(4);
  const size_t operations = draws->From(1, 12);
  for (size_t i = 0; i < operations; ++i) {
    Operation op = {};
    op.kind = static_cast<Operation::Kind>(draws->From(Operation::kAdd, Operation::kCopy));
    if (op.kind == Operation::kCopy && !program.copies) op.kind = Operation::kAdd;
    op.is_on_side = program.forks && draws->OneIn(2);
    // With forks the even buffers are one branch's and the odd ones the other's.
    const auto buffer = [&] {
      const size_t drawn = draws->From(0, count - 1);
      return program.forks ? (drawn / 2 * 2 + op.is_on_side) % (count / 2 * 2) : drawn;
    };
    op.from = buffer();
    op.to = buffer();
    if (op.kind == Operation::kCopy && op.from == op.to) op.kind = Operation::kFill;
    op.count = draws->From(1, std::min(program.floats[op.from], program.floats[op.to]));
    op.from_at = draws->From(0, program.floats[op.from] - op.count);
    op.to_at = draws->From(0, program.floats[op.to] - op.count);
    op.value = draws->From(0, 255);
    program.operations.push_back(op);
  }
  return program;
}

gcap_status_t IssueOperation(const Operation& op, cudaStream_t stream, void* const* at) {
  float* const from = static_cast<float*>(at[op.from]) + op.from_at;
  float* const to = static_cast<float*>(at[op.to]) + op.to_at;
  switch (op.kind) {
    case Operation::kAdd: return AddTo(stream, from, to, op.value, static_cast<uint32_t>(op.count));
    case Operation::kAddPacked: {
      const gcap_test_packed_t args = {static_cast<uint8_t>(op.value), from, to, static_cast<uint16_t>(op.count)};
      return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_packed), args);
    }
    case Operation::kFill:
      return GCAP_CUDA(cudaMemsetAsync(to, static_cast<int>(op.value), op.count * sizeof(float), stream));
    case Operation::kCopy:
      return GCAP_CUDA(cudaMemcpyAsync(to, from, op.count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  }
  return nullptr;
}

// Memory for the buffers of a program, at addresses of its own, with known contents.
class Place {
 public:
  // `overlaps`: draws how the buffers of a program with overlaps lie to one another.
  Place(const Program& program, Draws* draws, Draws overlaps) {
    for (const size_t floats : program.floats) bytes_ += floats * sizeof(float) + 4 * kStep;
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), bytes_));
    char* next = memory_;
    for (size_t i = 0; i < program.floats.size(); ++i) {
      const size_t step = program.alignments[i];
      Draws* const from = program.overlaps ? &overlaps : draws;
      if (program.overlaps) next = memory_ + kStep * overlaps.From(0, 3);
      next += (step - reinterpret_cast<uintptr_t>(next) % step) % step + step * from->From(0, kStep / step);
      items.push_back({nullptr, next, program.floats[i] * sizeof(float), step});
      addresses.push_back(next);
      next += program.floats[i] * sizeof(float) + 1;  // buffers that do not overlap do not touch
    }
    EXPECT_LE(next, memory_ + bytes_);
    contents_.resize(bytes_);
    for (unsigned char& byte : contents_) byte = static_cast<unsigned char>(draws->From(0, 63));  // small floats
    Fill();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { GCAP_EXPECT_CUDA(cudaFree(memory_)); }

  void Fill() const {
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(memory_, contents_.data(), bytes_, cudaMemcpyHostToDevice, cudaStreamPerThread));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
  }
  std::vector<unsigned char> Read() const {
    std::vector<unsigned char> bytes(bytes_);
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(bytes.data(), memory_, bytes_, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    return bytes;
  }

  std::vector<gcap_graph_buffer_t> items;
  std::vector<void*> addresses;

 private:
  static constexpr size_t kStep = 256;
  char* memory_ = nullptr;
  size_t bytes_ = 4 * kStep;
  std::vector<unsigned char> contents_;
};

class GraphLayouts : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    CreateWith([](gcap_graph_manager_options_t* options) { options->max_variants = 1; });  // what one graph is for
    side_ = std::make_unique<RawStream>();
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  void TearDown() override {
    GCAP_EXPECT_CUDA(cudaEventDestroy(event_));
    side_.reset();
    GraphMoving::TearDown();
  }

  gcap_status_t Order(cudaStream_t first, cudaStream_t second) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event_, first)));
    return GCAP_CUDA(cudaStreamWaitEvent(second, event_, 0));
  }
  WorkOn WorkOf(const Program& program) {
    return [this, &program](cudaStream_t stream, void* const* at) {
      if (program.forks) GCAP_RETURN_IF_ERROR(Order(stream, side_->get()));
      for (const Operation& op : program.operations) {
        GCAP_RETURN_IF_ERROR(IssueOperation(op, op.is_on_side ? side_->get() : stream, at));
      }
      return program.forks ? Order(side_->get(), stream) : nullptr;
    };
  }
  Outcome RunAt(const Program& program, const Place& place) {
    gcap_graph_buffers_t buffers = UnusedBuffersOf(place.items);
    if (program.uses_memory) buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
    return RunOn(buffers, WorkOf(program));
  }
  // Whether a buffer is in another 4 GiB than at first: words that may be two numbers each are then in doubt, and the
  // run may be eager. Where memory lies is the allocator's choice.
  static bool IsFar(const Place& first, const Place& place) {
    for (size_t i = 0; i < first.addresses.size(); ++i) {
      const auto gibs = [i](const Place& at) { return reinterpret_cast<uintptr_t>(at.addresses[i]) >> 32; };
      if (gibs(first) != gibs(place)) return true;
    }
    return false;
  }
  // What an eager run at the place leaves.
  std::vector<unsigned char> Eagerly(const Program& program, const Place& place) {
    place.Fill();
    GCAP_EXPECT_OK(WorkOf(program)(stream_->get(), place.addresses.data()));
    stream_->Synchronize();
    return place.Read();
  }

  void ExpectMoves(unsigned seed) {
    Draws draws(seed);
    const Program program = MakeProgram(&draws);
    const Place first(program, &draws, Draws(seed));
    const Outcome captured = RunAt(program, first);
    ASSERT_TRUE(captured.ok()) << captured.message;
    ASSERT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
    const std::vector<unsigned char> at_first = first.Read();
    EXPECT_EQ(at_first, Eagerly(program, first));
    calls_ = 0;
    int may_be_eager = program.overlaps ? 1 : 0;
    for (int i = 0; i < 4; ++i) {
      const bool lies_otherwise = i == 3;  // a replay only if nothing overlaps
      const Place place(program, &draws, Draws(lies_otherwise ? seed + kLayouts : seed));
      if (IsFar(first, place)) may_be_eager = 4;
      const Outcome moved = RunAt(program, place);
      ASSERT_TRUE(moved.ok()) << moved.message;
      const std::vector<unsigned char> bytes = place.Read();
      ASSERT_EQ(bytes, Eagerly(program, place));
      ASSERT_EQ(first.Read(), at_first) << "the first buffers were touched";
    }
    EXPECT_EQ(Info(kId).replays + static_cast<uint64_t>(calls_), 5u);
    EXPECT_LE(calls_, may_be_eager) << "not replayed";
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
    num_forks_ += program.forks;
    num_overlaps_ += program.overlaps;
    num_copies_ += program.copies;
  }

  std::unique_ptr<RawStream> side_;
  cudaEvent_t event_ = nullptr;
  int num_forks_ = 0, num_overlaps_ = 0, num_copies_ = 0;
};

TEST_F(GraphLayouts, OfEverySeedMove) {
  for (unsigned seed = 0; seed < kLayouts && !HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    gcap_sim_set_seed(seed);
    ExpectMoves(seed);
  }
  EXPECT_GT(num_forks_, 50);
  EXPECT_GT(num_overlaps_, 50);
  EXPECT_GT(num_copies_, 50);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
