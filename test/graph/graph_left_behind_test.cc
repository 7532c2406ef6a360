// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work that a moved graph could do wrong: pointers that it leaves behind, numbers that look like pointers, buffers that
// come to overlap, nodes that the driver does not change. Each work is captured on one pair of buffers and run on two
// pairs in turn. One rule for all: what a run that answers OK leaves in memory is what the work leaves that is issued
// on the same addresses. What can move does, and what cannot says why.

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "gcap/graph_buffers.h"
#include "test/graph/moving_test.h"
#include "test/support/kernels/decoded_kernels.h"

namespace gcap {
namespace testing {
namespace {

#define RETURN_IF(call) GCAP_RETURN_IF_ERROR(GCAP_CUDA(call))

constexpr uint32_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr size_t kBlockBytes = 256 << 10, kPinnedBytes = 16 << 10, kStep = 4 << 10;
constexpr size_t kMiddle = kBlockBytes / 2;
constexpr int kPairs = 2;

struct Pair {
  char *x, *y;
};

// What works use besides the addresses of a run.
struct Env {
  char *block, *pinned;
  gcap_test_trace_t* trace;
  Pair caller;  // the run's buffers, as its caller knows them
  int pair;     // which pair that is
  float* temporary() const { return reinterpret_cast<float*>(block + 8 * kStep); }
  char* slot() const { return block + 9 * kStep; }
  // A caller keeps one for each of its pairs.
  void** table() const { return reinterpret_cast<void**>(pinned + 6 * kBytes) + 2 * pair; }
};

uint64_t Word(const void* address) { return reinterpret_cast<uint64_t>(address); }

// The arguments of one kernel, which are written by hand.
class Arguments {
 public:
  Arguments() { recipe_.count_at = At(kCount, 4); }
  uint8_t At(uint64_t word, size_t bytes) {
    std::memcpy(args_.bytes + end_, &word, bytes);
    end_ += bytes;
    return static_cast<uint8_t>(end_ - bytes);
  }
  Arguments& Skip(size_t bytes) {
    end_ += bytes;
    return *this;
  }
  gcap_test_recipe_t& recipe() { return recipe_; }
  gcap_test_operand_t Pointer(const void* address) { return {GCAP_TEST_POINTER, At(Word(address), 8), 0}; }
  gcap_status_t Launch(const Env* env, cudaStream_t stream, uint8_t addend = 1) {
    recipe_.addend = addend;
    return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_decoded), args_, recipe_, env->trace);
  }

 private:
  gcap_test_args_t args_ = {};
  gcap_test_recipe_t recipe_ = {};
  size_t end_ = 0;
};

gcap_status_t Add(Env* env, cudaStream_t stream, const void* x, void* y, uint8_t addend = 1) {
  Arguments arguments;
  arguments.Skip(4);
  arguments.recipe().x = arguments.Pointer(x);
  arguments.recipe().y = arguments.Pointer(y);
  return arguments.Launch(env, stream, addend);
}

// --- Works ----------------------------------------------------------------------------------------------------------

gcap_status_t Plain(Env* env, cudaStream_t stream, void* const* at) { return Add(env, stream, at[0], at[1]); }

gcap_status_t CopySourceFixed(Env* env, cudaStream_t stream, void* const* at) {
  RETURN_IF(cudaMemcpyAsync(env->temporary(), env->caller.x, kBytes, cudaMemcpyDeviceToDevice, stream));
  GCAP_RETURN_IF_ERROR(Add(env, stream, env->temporary(), at[1]));
  return Add(env, stream, at[0], env->temporary(), 0);
}

gcap_status_t CopyTargetFixed(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(Add(env, stream, at[0], at[1], 0));
  GCAP_RETURN_IF_ERROR(Add(env, stream, at[0], env->temporary()));
  return GCAP_CUDA(cudaMemcpyAsync(env->caller.y, env->temporary(), kBytes, cudaMemcpyDeviceToDevice, stream));
}

gcap_status_t FillFixed(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(Add(env, stream, at[0], at[1]));
  return GCAP_CUDA(cudaMemsetAsync(env->caller.y, 0, kBytes / 2, stream));
}

gcap_status_t KernelFixed(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(Add(env, stream, env->caller.x, at[1]));
  return Add(env, stream, at[0], env->temporary(), 0);
}

gcap_status_t AddPacked(Env* env, cudaStream_t stream, const void* x, void* y) {
  Arguments arguments;
  arguments.Skip(1);
  arguments.recipe().x = arguments.Pointer(x);
  arguments.recipe().y = arguments.Skip(2).Pointer(y);
  return arguments.Launch(env, stream);
}
gcap_status_t Packed(Env* env, cudaStream_t stream, void* const* at) { return AddPacked(env, stream, at[0], at[1]); }
gcap_status_t PackedFixed(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(AddPacked(env, stream, env->caller.x, at[1]));
  return Add(env, stream, at[0], env->temporary(), 0);
}

// A range of two pointers, of which the kernel reads the end.
gcap_status_t AddRange(Env* env, cudaStream_t stream, const void* begin, const void* end, void* y) {
  Arguments arguments;
  arguments.Skip(4).Pointer(begin);
  arguments.recipe().x = {GCAP_TEST_END, arguments.At(Word(end), 8), 0};
  arguments.recipe().y = arguments.Pointer(y);
  return arguments.Launch(env, stream);
}
gcap_status_t Iterators(Env* env, cudaStream_t stream, void* const* at) {
  return AddRange(env, stream, at[0], static_cast<char*>(at[0]) + kBytes, at[1]);
}
gcap_status_t EndFixed(Env* env, cudaStream_t stream, void* const* at) {
  return AddRange(env, stream, at[0], env->caller.x + kBytes, at[1]);
}

gcap_status_t Difference(Env* env, cudaStream_t stream, void* const* at) {
  Arguments arguments;
  arguments.recipe().x = arguments.Skip(4).Pointer(at[0]);
  const uint8_t with = arguments.recipe().x.at;
  arguments.recipe().y = {GCAP_TEST_DIFFERENCE, arguments.At(Word(at[1]) - Word(at[0]), 8), with};
  return arguments.Launch(env, stream);
}

// {base, int32 offset of x, int32 count, int32 offset of y}
gcap_status_t ArenaOffsets(Env* env, cudaStream_t stream, void* const* at) {
  const uint64_t base = Word(env->block + kMiddle);
  Arguments arguments;
  const uint8_t with = arguments.Skip(4).At(base, 8);
  arguments.recipe().x = {GCAP_TEST_OFFSET, arguments.At(Word(at[0]) - base, 4), with};
  arguments.recipe().count_at = arguments.At(kCount, 4);
  arguments.recipe().y = {GCAP_TEST_OFFSET, arguments.At(Word(at[1]) - base, 4), with};
  return arguments.Launch(env, stream);
}

// {low half of x, count, high half of x}
gcap_status_t Halves(Env* env, cudaStream_t stream, void* const* at) {
  Arguments arguments;
  const uint8_t low = arguments.Skip(4).At(Word(at[0]), 4);
  arguments.recipe().count_at = arguments.At(kCount, 4);
  arguments.recipe().x = {GCAP_TEST_HALVES, low, arguments.At(Word(at[0]) >> 32, 4)};
  arguments.recipe().y = arguments.Skip(4).Pointer(at[1]);
  return arguments.Launch(env, stream);
}

gcap_status_t LowByteApart(Env* env, cudaStream_t stream, void* const* at) {
  Arguments arguments;
  const uint8_t page = arguments.Skip(4).At(Word(at[0]) & ~uint64_t{0xff}, 8);
  arguments.recipe().y = arguments.Pointer(at[1]);
  arguments.recipe().x = {GCAP_TEST_MASKED, page, arguments.At(Word(at[0]) & 0xff, 1)};
  return arguments.Launch(env, stream);
}

gcap_status_t Reverse(Env* env, cudaStream_t stream, void* const* at) {
  Arguments arguments;
  arguments.recipe().x = arguments.Skip(4).Pointer(at[0]);
  arguments.recipe().y = arguments.Pointer(at[1]);
  arguments.recipe().op = at[0] == at[1] ? GCAP_TEST_REVERSE_WITHIN : GCAP_TEST_REVERSE;
  return arguments.Launch(env, stream, 0);
}

// How many elements come before a multiple of 16 bytes is more than an alignment of 4 promises.
gcap_status_t HeadOfVectors(Env* env, cudaStream_t stream, void* const* at) {
  Arguments arguments;
  arguments.recipe().x = arguments.Skip(4).Pointer(at[0]);
  arguments.recipe().y = arguments.Pointer(at[1]);
  arguments.recipe().head_at = arguments.At((16 - Word(at[0]) % 16) % 16 / sizeof(float), 1);
  arguments.recipe().op = GCAP_TEST_ADD_ALIGNED;
  return arguments.Launch(env, stream);
}

gcap_status_t AddThrough(Env* env, cudaStream_t stream, const void* table, void* y) {
  Arguments arguments;
  arguments.recipe().x = {GCAP_TEST_TABLE, arguments.Skip(4).At(Word(table), 8), 0};
  arguments.recipe().y = arguments.Pointer(y);
  return arguments.Launch(env, stream);
}

gcap_status_t StoredByAKernel(Env* env, cudaStream_t stream, void* const* at) {
  Arguments arguments;
  arguments.recipe().x = arguments.Skip(4).Pointer(at[0]);
  arguments.recipe().y = arguments.Pointer(env->slot());
  arguments.recipe().op = GCAP_TEST_STORE;
  GCAP_RETURN_IF_ERROR(arguments.Launch(env, stream));
  return AddThrough(env, stream, env->slot(), at[1]);
}

// As libraries take the pointers of a batch. The input has no other pointer.
gcap_status_t TableAlone(Env* env, cudaStream_t stream, void* const* at) {
  env->table()[0] = at[0];
  RETURN_IF(cudaMemcpyAsync(env->slot(), env->table(), 8, cudaMemcpyHostToDevice, stream));
  return AddThrough(env, stream, env->slot(), at[1]);
}
gcap_status_t TableBesideAPointer(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(TableAlone(env, stream, at));
  return Add(env, stream, at[0], env->temporary(), 0);
}
gcap_status_t TableReadByTheKernel(Env* env, cudaStream_t stream, void* const* at) {
  env->table()[0] = at[0];
  return AddThrough(env, stream, env->table(), at[1]);
}

void AddOnTheHost(void* addresses) {
  const float* const x = static_cast<const float*>(static_cast<void**>(addresses)[0]);
  float* const y = static_cast<float*>(static_cast<void**>(addresses)[1]);
  for (uint32_t i = 0; i < kCount; ++i) y[i] = x[i] + 1;
}
gcap_status_t HostFunction(Env* env, cudaStream_t stream, void* const* at) {
  RETURN_IF(cudaMemcpyAsync(env->temporary(), at[0], kBytes, cudaMemcpyHostToDevice, stream));
  RETURN_IF(cudaMemcpyAsync(at[1], env->temporary(), kBytes, cudaMemcpyDeviceToHost, stream));
  env->table()[0] = at[0];
  env->table()[1] = at[1];
  return GCAP_CUDA(cudaLaunchHostFunc(stream, AddOnTheHost, env->table()));
}
// The array of the addresses lives long enough for that.
gcap_status_t HostFunctionOfTheAddresses(Env* env, cudaStream_t stream, void* const* at) {
  RETURN_IF(cudaMemcpyAsync(env->temporary(), at[0], kBytes, cudaMemcpyHostToDevice, stream));
  RETURN_IF(cudaMemcpyAsync(at[1], env->temporary(), kBytes, cudaMemcpyDeviceToHost, stream));
  return GCAP_CUDA(cudaLaunchHostFunc(stream, AddOnTheHost, const_cast<void**>(at)));
}

gcap_status_t Copy2D(Env*, cudaStream_t stream, void* const* at) {
  return GCAP_CUDA(cudaMemcpy2DAsync(at[1], 64, at[0], 32, 16, 4, cudaMemcpyDeviceToDevice, stream));
}
gcap_status_t Copy2DFromElsewhere(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(Add(env, stream, at[0], env->temporary()));
  return GCAP_CUDA(cudaMemcpy2DAsync(static_cast<char*>(at[1]) + 16, 32, env->temporary() + 4, 32, 16, 8,
                                     cudaMemcpyDeviceToDevice, stream));
}
gcap_status_t Copy3D(Env*, cudaStream_t stream, void* const* at) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = {at[0], 32, 16, 2};
  copy.dstPtr = {at[1], 32, 16, 2};
  copy.extent = {16, 2, 2};
  copy.kind = cudaMemcpyDeviceToDevice;
  return GCAP_CUDA(cudaMemcpy3DAsync(&copy, stream));
}
gcap_status_t Fill2D(Env* env, cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(Add(env, stream, at[0], at[1]));
  return GCAP_CUDA(cudaMemset2DAsync(at[1], 32, 0, 16, 8, stream));
}

gcap_status_t AllocationNode(Env* env, cudaStream_t stream, void* const* at) {
  void* memory = nullptr;
  RETURN_IF(cudaMallocAsync(&memory, kBytes, stream));
  RETURN_IF(cudaMemcpyAsync(memory, at[0], kBytes, cudaMemcpyDeviceToDevice, stream));
  GCAP_RETURN_IF_ERROR(Add(env, stream, at[0], at[1]));
  RETURN_IF(cudaMemcpyAsync(at[1], memory, kBytes / 2, cudaMemcpyDeviceToDevice, stream));
  return GCAP_CUDA(cudaFreeAsync(memory, stream));
}

// --- Cases ----------------------------------------------------------------------------------------------------------

enum class Where {
  kDevice,
  kPinned,
  kBelowTheMiddle,
  kAboveTheMiddle,
  kLaterOnOne,
  kFirstOnOne,
  kLaterOverlapping,
  kOdd
};
enum class Must {
  kMove,
  kStay,     // its runs elsewhere are eager, and say why
  kBeRight,  // whether or not it moves
};

struct Case {
  const char* name;
  gcap_status_t (*work)(Env*, cudaStream_t, void* const*);
  Must must;
  Where where;
  gcap_graph_stand_ins_t stand_ins;
};
std::ostream& operator<<(std::ostream& stream, const Case& each) { return stream << each.name; }

constexpr gcap_graph_stand_ins_t kAddresses = GCAP_GRAPH_STAND_INS_ADDRESSES, kMemory = GCAP_GRAPH_STAND_INS_MEMORY;

constexpr Case kCases[] = {
    {"Plain", Plain, Must::kMove, Where::kDevice, kAddresses},
    {"PlainWithMemory", Plain, Must::kMove, Where::kDevice, kMemory},
    {"CopySourceFixed", CopySourceFixed, Must::kStay, Where::kDevice, kAddresses},
    {"CopyTargetFixed", CopyTargetFixed, Must::kStay, Where::kDevice, kAddresses},
    {"FillFixed", FillFixed, Must::kStay, Where::kDevice, kAddresses},
    {"KernelFixed", KernelFixed, Must::kStay, Where::kDevice, kAddresses},
    {"Packed", Packed, Must::kMove, Where::kDevice, kAddresses},
    {"PackedFixed", PackedFixed, Must::kStay, Where::kDevice, kAddresses},
    {"Iterators", Iterators, Must::kMove, Where::kDevice, kAddresses},
    {"EndFixed", EndFixed, Must::kStay, Where::kDevice, kAddresses},
    {"Difference", Difference, Must::kStay, Where::kDevice, kAddresses},
    {"ArenaBelow", ArenaOffsets, Must::kStay, Where::kBelowTheMiddle, kAddresses},
    {"ArenaAbove", ArenaOffsets, Must::kStay, Where::kAboveTheMiddle, kAddresses},
    {"ArenaBelowWithMemory", ArenaOffsets, Must::kStay, Where::kBelowTheMiddle, kMemory},
    {"ArenaAboveWithMemory", ArenaOffsets, Must::kStay, Where::kAboveTheMiddle, kMemory},
    {"Halves", Halves, Must::kStay, Where::kDevice, kAddresses},
    {"HalvesWithMemory", Halves, Must::kStay, Where::kDevice, kMemory},
    {"LowByteApart", LowByteApart, Must::kStay, Where::kOdd, kAddresses},
    {"AliasedLater", Reverse, Must::kStay, Where::kLaterOnOne, kAddresses},
    {"AliasedAtTheCapture", Reverse, Must::kBeRight, Where::kFirstOnOne, kAddresses},
    {"OverlappingLater", Reverse, Must::kStay, Where::kLaterOverlapping, kAddresses},
    {"HeadOfVectors", HeadOfVectors, Must::kStay, Where::kOdd, kAddresses},
    {"StoredByAKernel", StoredByAKernel, Must::kMove, Where::kDevice, kAddresses},
    {"TableAlone", TableAlone, Must::kStay, Where::kDevice, kAddresses},
    {"TableBesideAPointer", TableBesideAPointer, Must::kStay, Where::kDevice, kAddresses},
    {"TableReadByTheKernel", TableReadByTheKernel, Must::kStay, Where::kDevice, kAddresses},
    {"HostFunction", HostFunction, Must::kStay, Where::kPinned, kMemory},
    {"HostFunctionOfTheAddresses", HostFunctionOfTheAddresses, Must::kStay, Where::kPinned, kMemory},
    {"Copy2D", Copy2D, Must::kStay, Where::kDevice, kMemory},
    {"Copy2DFromElsewhere", Copy2DFromElsewhere, Must::kStay, Where::kDevice, kMemory},
    {"Copy3D", Copy3D, Must::kStay, Where::kDevice, kMemory},
    {"Fill2D", Fill2D, Must::kMove, Where::kDevice, kAddresses},
    {"AllocationNode", AllocationNode, Must::kBeRight, Where::kDevice, kMemory},
};

class GraphLeftBehind : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    CreateWith([](gcap_graph_manager_options_t* options) { options->max_variants = 1; });
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&env_.block), kBlockBytes), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&env_.pinned), kPinnedBytes), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&env_.trace), sizeof(*env_.trace)), cudaSuccess);
    gcap_test_trace_t trace = {};
    trace.begin[0] = Word(env_.block);
    trace.end[0] = trace.begin[0] + kBlockBytes;
    trace.begin[1] = Word(env_.pinned);
    trace.end[1] = trace.begin[1] + kPinnedBytes;
    Copy(env_.trace, &trace, sizeof(trace));
    Copy(env_.block, std::vector<char>(kBlockBytes).data(), kBlockBytes);
    std::memset(env_.pinned, 0, kPinnedBytes);
  }
  void TearDown() override {
    if (!IsSkipped()) {
      GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
      GCAP_EXPECT_CUDA(cudaFree(env_.block));
      GCAP_EXPECT_CUDA(cudaFreeHost(env_.pinned));
      GCAP_EXPECT_CUDA(cudaFree(env_.trace));
    }
    GraphMoving::TearDown();
  }

  void Copy(void* to, const void* from, size_t bytes) {
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_->get()));
    stream_->Synchronize();
  }
  std::vector<float> ReadAll() {
    std::vector<float> all((kBlockBytes + 4 * kBytes) / sizeof(float));
    Copy(all.data(), env_.block, kBlockBytes);
    std::memcpy(all.data() + kBlockBytes / sizeof(float), env_.pinned, 4 * kBytes);
    return all;
  }
  void WriteAll(const std::vector<float>& all) {
    Copy(env_.block, all.data(), kBlockBytes);
    std::memcpy(env_.pinned, all.data() + kBlockBytes / sizeof(float), 4 * kBytes);
  }
  uint32_t Misses() {
    gcap_test_trace_t trace;
    Copy(&trace, env_.trace, sizeof(trace));
    return trace.slots[0].misses;
  }

  Pair PairOf(Where where, int index) const {
    char* const block = env_.block + 2 * index * kStep;
    char* const middle = env_.block + kMiddle;
    const ptrdiff_t far = static_cast<ptrdiff_t>(kStep) * (1 + 2 * index);
    const Pair apart = {block, block + kStep};
    switch (where) {
      case Where::kPinned: return {env_.pinned + 2 * index * kBytes, env_.pinned + (2 * index + 1) * kBytes};
      case Where::kBelowTheMiddle:
        return index == 0 ? Pair{middle + far, middle + 2 * far} : Pair{middle - far, middle - 2 * far};
      case Where::kAboveTheMiddle: return {middle + far, middle + 2 * far};
      case Where::kLaterOnOne: return index == 0 ? apart : Pair{block, block};
      case Where::kFirstOnOne: return index == 0 ? Pair{block, block} : apart;
      case Where::kLaterOverlapping: return index == 0 ? apart : Pair{block, block + kBytes / 2};
      case Where::kOdd: return {block + 4 * (1 - index), block + kStep + 4 * (1 - index)};
      default: return apart;
    }
  }

  // The input and the output of a run hold other floats each time.
  void Prepare(const Pair& pair, int run) {
    std::vector<float> floats(kCount);
    for (uint32_t i = 0; i < kCount; ++i) floats[i] = static_cast<float>(-1000 * run) - static_cast<float>(i);
    Copy(pair.y, floats.data(), kBytes);
    for (uint32_t i = 0; i < kCount; ++i) floats[i] = static_cast<float>(1000 * run + 100) + static_cast<float>(i);
    Copy(pair.x, floats.data(), kBytes);
  }

  struct Ran {
    gcap_run_outcome_t outcome;
    gcap_why_eager_t why;
  };
  // A run on the pair; what it leaves is what the work leaves that is issued there.
  Ran RunRight(const Case& each, int index) {
    const Pair pair = PairOf(each.where, index);
    env_.caller = pair;
    env_.pair = index;
    Prepare(pair, ++runs_);
    const std::vector<float> before = ReadAll();
    const gcap_graph_buffer_t items[] = {{"input", pair.x, kBytes, sizeof(float)},
                                         {"output", pair.y, kBytes, sizeof(float)}};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items;
    buffers.count = 2;
    buffers.stand_ins = each.stand_ins;
    struct Call {
      const Case* each;
      Env* env;
    } call = {&each, &env_};
    gcap_run_result_t result;
    gcap_run_result_init(&result);
    gcap_run_t run = RunOf(kId, stream_->get(), /*synchronize=*/true);
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      const Call* const call = static_cast<const Call*>(user);
      return call->each->work(call->env, resources->cuda_stream, resources->addresses);
    };
    run.user = &call;
    run.buffers = &buffers;
    run.result = &result;
    const Outcome outcome(gcap_graph_manager_run(manager_, &run));
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    const std::vector<float> got = ReadAll();
    WriteAll(before);
    void* const addresses[] = {pair.x, pair.y};
    GCAP_EXPECT_OK(each.work(&env_, stream_->get(), addresses));
    stream_->Synchronize();
    const std::vector<float> wanted = ReadAll();
    // By their bits: a pointer that a work stores may be a NaN.
    const auto differs = std::mismatch(got.begin(), got.end(), wanted.begin(),
                                       [](float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; });
    EXPECT_TRUE(differs.first == got.end())
        << "run " << runs_ << ", whose outcome is " << result.outcome << ": float " << (differs.first - got.begin())
        << " is " << *differs.first << ", wanted " << *differs.second;
    EXPECT_EQ(Misses(), 0u);
    return {result.outcome, result.why_eager};
  }

  // A check of moves has memory of its own.
  Outcome CheckMoves() {
    const uint64_t nowhere = 0, anywhere = UINT64_MAX / 2;
    Copy(&env_.trace->end[3], &anywhere, sizeof(anywhere));
    const Outcome outcome(gcap_graph_manager_check_moves(manager_, kId));
    Copy(&env_.trace->end[3], &nowhere, sizeof(nowhere));
    return outcome;
  }
  Outcome Explain(gcap_graph_question_t question) const {
    return Outcome(gcap_graph_manager_explain(manager_, kId, question));
  }

  Env env_ = {};
  int runs_ = 0;
};

class GraphLeftBehindCases : public GraphLeftBehind, public ::testing::WithParamInterface<Case> {};

TEST_P(GraphLeftBehindCases, NoRunIsOkAndWrong) {
  const Case& each = GetParam();
  ASSERT_EQ(RunRight(each, 0).outcome, GCAP_RUN_CAPTURED);
  for (int i = 1; i < 12 && !HasFailure(); ++i) {
    const Ran ran = RunRight(each, i % kPairs);
    EXPECT_TRUE(each.must != Must::kMove || ran.outcome == GCAP_RUN_REPLAYED) << ran.outcome;
    if (each.must != Must::kStay || i % kPairs == 0) continue;
    EXPECT_EQ(ran.outcome, GCAP_RUN_EAGER);
    EXPECT_EQ(ran.why, GCAP_EAGER_NOT_MOVABLE);
    EXPECT_FALSE(Explain(GCAP_GRAPH_WHY_EAGER).ok());
  }
  EXPECT_EQ(Info(kId).captures, 1u);
}

// The same of an id that has a graph for each way that the buffers lie.
TEST_P(GraphLeftBehindCases, NoRunOfSeveralGraphsIsOkAndWrong) {
  CreateWith([](gcap_graph_manager_options_t* options) { options->max_variants = 4; });
  const Case& each = GetParam();
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    const Ran ran = RunRight(each, i % kPairs);
    EXPECT_TRUE(each.must != Must::kMove || i == 0 || ran.outcome == GCAP_RUN_REPLAYED) << ran.outcome;
  }
  EXPECT_LE(Info(kId).captures, 2u) << "the caller's buffers lie in two ways at most";
}

// Wherever the graph was moved to meanwhile.
TEST_P(GraphLeftBehindCases, ACheckOfMovesLeavesTheBuffersAlone) {
  const Case& each = GetParam();
  ASSERT_EQ(RunRight(each, 0).outcome, GCAP_RUN_CAPTURED);
  for (int i = 0; i < kPairs && !HasFailure(); ++i) {
    RunRight(each, i);
    const std::vector<float> before = ReadAll();
    const Outcome check = CheckMoves();
    EXPECT_TRUE(check.ok() || each.must != Must::kMove) << check.message;
    EXPECT_TRUE(!check.ok() || Explain(GCAP_GRAPH_WHY_NOT_MOVABLE).ok()) << "checked, and not movable";
    const std::vector<float> after = ReadAll();
    for (const char* buffer : {env_.caller.x, env_.caller.y}) {
      const bool is_pinned = buffer >= env_.pinned && buffer < env_.pinned + kPinnedBytes;
      if (is_pinned) continue;  // stays in place, as the header says
      const size_t at = static_cast<size_t>(buffer - env_.block) / sizeof(float);
      EXPECT_TRUE(std::equal(before.begin() + at, before.begin() + at + kCount, after.begin() + at));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphLeftBehindCases, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Documented: a pointer in device memory that nobody copied there in the capture is not seen, if the buffer has another
// pointer. Then a check of moves tells, before a move and after one.
TEST_F(GraphLeftBehind, APointerInDeviceMemoryIsToldByACheckAlsoAfterAMove) {
  const auto work = [](Env* env, cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddThrough(env, stream, env->slot(), at[1]));
    return Add(env, stream, at[0], env->temporary(), 0);
  };
  const Case each = {"", work, Must::kBeRight, Where::kDevice, kAddresses};
  const char* const first = PairOf(Where::kDevice, 0).x;
  Copy(env_.slot(), &first, sizeof(first));
  ASSERT_EQ(RunRight(each, 0).outcome, GCAP_RUN_CAPTURED);
  EXPECT_FALSE(CheckMoves().ok());
  const Pair second = PairOf(Where::kDevice, 1);
  GCAP_EXPECT_OK(Bind(0, second.x));
  GCAP_EXPECT_OK(Bind(1, second.y));
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  const Outcome check = CheckMoves();
  EXPECT_EQ(check.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(check.Names("moved from")) << check.message;
}

// --- Two threads ----------------------------------------------------------------------------------------------------

// Between the look for a graph and the capture another thread may capture the id. The run of the loser is done all the
// same. That another thread's run is open is a refusal of its own. The work leaves no trace, which the two would share.
TEST_F(GraphLeftBehind, OfTwoThreadsThatCaptureOneIdBothRun) {
  constexpr int kIds = 60;
  const RawStream streams[kPairs];
  const auto run_all = [&](int thread) {
    const Pair pair = PairOf(Where::kDevice, thread);
    const gcap_graph_buffer_t items[] = {{"input", pair.x, kBytes, 4}, {"output", pair.y, kBytes, 4}};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items;
    buffers.count = 2;
    for (int id = 100; id < 100 + kIds; ++id) {
      gcap_run_t run = RunOf(id, streams[thread].get(), /*synchronize=*/true);
      run.work = [](void*, const gcap_run_resources_t* resources) {
        return AddTo(resources->cuda_stream, resources->addresses[0], resources->addresses[1], 1, kCount);
      };
      run.buffers = &buffers;
      for (bool is_done = false; !is_done;) {
        const Outcome outcome(gcap_graph_manager_run(manager_, &run));
        is_done = outcome.code != GCAP_FAILED_PRECONDITION;
        EXPECT_TRUE(outcome.ok() || !is_done) << outcome.message;
        if (!is_done) std::this_thread::yield();
      }
    }
  };
  std::thread other(run_all, 1);
  run_all(0);
  other.join();
  for (int id = 100; id < 100 + kIds; ++id) EXPECT_EQ(Info(id).captures, 1u);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));  // before the streams end
}

}  // namespace
}  // namespace testing
}  // namespace gcap
