// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work of cuBLAS's batched products, CUB, cuFFT, cuRAND and cuSPARSE on buffers that move: each call is replayed at
// other places, or is eager there for a reason that has a name, and leaves the bits that the call leaves without gcap.
// Each test prints how many calls moved. The simulator has none of these libraries.
#include <cublas_v2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "test/graph/cub_calls.h"
#include "test/graph/library_calls_test.h"
#include "test/graph/toolkit_libraries.h"

namespace gcap {
namespace testing {
namespace {

using Buffer = LibraryBuffer;
using Call = LibraryCall;

// Where buffers lie beyond a multiple of 256. A library may choose a kernel by that.
constexpr size_t kShifts[] = {0, 16};

// Some device memory.
class Memory {
 public:
  explicit Memory(size_t bytes) { GCAP_EXPECT_CUDA(cudaMalloc(&memory_, bytes)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { GCAP_EXPECT_CUDA(cudaFree(memory_)); }
  void Write(const Bytes& bytes) const {
    GCAP_EXPECT_CUDA(cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  template <typename T = void>
  T* get() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
};

// --- cuBLAS ---------------------------------------------------------------------------------------------------------

#define EXPECT_BLAS_OK(expr) EXPECT_EQ(CUBLAS_STATUS_SUCCESS, (expr)) << #expr

constexpr int kSide = 48, kBatch = 3;
constexpr size_t kMatrixFloats = size_t{kSide} * kSide;
constexpr size_t kMatrixBytes = kMatrixFloats * sizeof(float);
constexpr size_t kTableBytes = 3 * kBatch * sizeof(void*);

// Products of squares, as a batch: C = A * B for each three.
class GraphBatchedProducts : public LibraryCallsTest {
 protected:
  void SetUp() override {
    LibraryCallsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    workspace_ = std::make_unique<Memory>(kWorkspaceBytes);
    table_ = std::make_unique<Memory>(kTableBytes);
    GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kTableBytes));
    EXPECT_BLAS_OK(cublasCreate(&handle_));
    EXPECT_BLAS_OK(cublasSetStream(handle_, stream_->get()));
    EXPECT_BLAS_OK(cublasSetWorkspace(handle_, workspace_->get(), kWorkspaceBytes));
  }
  void TearDown() override {
    if (handle_ != nullptr) {
      EXPECT_BLAS_OK(cublasDestroy(handle_));
      GCAP_EXPECT_CUDA(cudaFreeHost(pinned_));
    }
    workspace_.reset();
    table_.reset();
    LibraryCallsTest::TearDown();
  }

  // Of A, B and C: `issue` reads and writes `matrices` of each.
  static Call CallOf(const char* name, size_t matrices, std::function<bool(cudaStream_t, void* const*)> issue) {
    Call call;
    call.name = name;
    const size_t floats = matrices * kMatrixFloats;
    call.buffers = {Buffer::Floats(Buffer::kRead, floats), Buffer::Floats(Buffer::kRead, floats),
                    Buffer::Floats(Buffer::kWritten, floats)};
    call.issue = std::move(issue);
    return call;
  }
  bool One(void* const* at) {
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one_, Floats(at[0]), kSide,
                       Floats(at[1]), kSide, &zero_, Floats(at[2]), kSide) == CUBLAS_STATUS_SUCCESS;
  }
  bool Strided(void* const* at) {
    return cublasSgemmStridedBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one_, Floats(at[0]),
                                     kSide, kMatrixFloats, Floats(at[1]), kSide, kMatrixFloats, &zero_, Floats(at[2]),
                                     kSide, kMatrixFloats, kBatch) == CUBLAS_STATUS_SUCCESS;
  }
  // Of the matrices that tables of pointers in device memory point to.
  bool Batched(void* a, void* b, void* c) {
    return cublasSgemmBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one_,
                              static_cast<const float* const*>(a), kSide, static_cast<const float* const*>(b), kSide,
                              &zero_, static_cast<float* const*>(c), kSide, kBatch) == CUBLAS_STATUS_SUCCESS;
  }
  bool BatchedByTable() {
    char* const table = table_->get<char>();
    return Batched(table, table + kTableBytes / 3, table + 2 * kTableBytes / 3);
  }
  // The table of the buffers at these addresses.
  static Bytes TableOf(void* const* at) {
    std::vector<char*> table;
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < kBatch; ++k) table.push_back(static_cast<char*>(at[i]) + k * kMatrixBytes);
    }
    return BytesOf(table);
  }
  static float* Floats(void* address) { return static_cast<float*>(address); }

  static constexpr size_t kWorkspaceBytes = size_t{8} << 20;

  cublasHandle_t handle_ = nullptr;
  std::unique_ptr<Memory> workspace_, table_;
  char* pinned_ = nullptr;
  const float one_ = 1, zero_ = 0;
};

TEST_F(GraphBatchedProducts, OfOneStrideAreRight) {
  for (const size_t shift : {0, 4, 16}) {
    Call one = CallOf("one product", 1, [this](cudaStream_t, void* const* at) { return One(at); });
    Call strided = CallOf("strided products", kBatch, [this](cudaStream_t, void* const* at) { return Strided(at); });
    for (Call* call : {&one, &strided}) {
      call->shift = shift;
      call->name += ", shift " + std::to_string(shift);
      ExpectRightOrRefused(*call);
    }
  }
  Tell("cuBLAS products");
}

TEST_F(GraphBatchedProducts, InTheLibrarysOwnWorkspaceAreRight) {
  EXPECT_BLAS_OK(cublasSetStream(handle_, stream_->get()));  // which forgets the workspace that was set
  ExpectRightOrRefused(CallOf("one product", 1, [this](cudaStream_t, void* const* at) { return One(at); }));
  ExpectRightOrRefused(CallOf("products", kBatch, [this](cudaStream_t, void* const* at) { return Strided(at); }));
  Tell("cuBLAS products in a workspace of cuBLAS's own");
}

// The caller writes the table before each run, so a graph that reads the table is right wherever the buffers are. The
// graph manager cannot know that.
TEST_F(GraphBatchedProducts, OfATableInMemoryAreRefused) {
  Call call = CallOf("a table in memory", kBatch, [this](cudaStream_t, void* const*) { return BatchedByTable(); });
  call.prepare = [this](void* const* at) { table_->Write(TableOf(at)); };
  ExpectRightOrRefused(call);
  Tell("cuBLAS, a table in memory");
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_TRUE(Contains(refusals_[0].second, "no argument points into buffer")) << refusals_[0].second;
}

// The table comes through a copy that is captured.
TEST_F(GraphBatchedProducts, OfATableInPinnedMemoryAreRefused) {
  Call call = CallOf("a table in pinned memory", kBatch, [this](cudaStream_t stream, void* const* at) {
    std::memcpy(pinned_, TableOf(at).data(), kTableBytes);
    return cudaMemcpyAsync(table_->get(), pinned_, kTableBytes, cudaMemcpyHostToDevice, stream) == cudaSuccess &&
           BatchedByTable();
  });
  call.prepare = [this](void* const* at) { std::memcpy(pinned_, TableOf(at).data(), kTableBytes); };
  ExpectRightOrRefused(call);
  Tell("cuBLAS, a table in pinned memory");
  EXPECT_EQ(refusals_.size(), 1u);
}

// The pointers are data of the caller's: the buffer with them moves, and what they point to stays.
TEST_F(GraphBatchedProducts, OfATableInABufferMove) {
  const size_t floats = kBatch * kMatrixFloats;
  const Memory a(2 * floats * sizeof(float)), b(floats * sizeof(float)), c(floats * sizeof(float));
  a.Write(Eighths(2 * floats, 11));
  b.Write(Eighths(floats, 12));
  void* const fixed[] = {nullptr, b.get(), c.get()};
  table_->Write(TableOf(fixed));
  const auto fill = [&a](uint32_t seed) {
    std::vector<float*> table;
    for (uint32_t k = 0; k < kBatch; ++k) table.push_back(a.get<float>() + (seed + k) % (2 * kBatch) * kMatrixFloats);
    return BytesOf(table);
  };
  Call call;
  call.name = "a table in a buffer";
  call.buffers = {{Buffer::kRead, fill}, Buffer::Floats(Buffer::kWritten, floats)};
  call.issue = [&](cudaStream_t stream, void* const* at) {
    char* const table = table_->get<char>();
    return Batched(at[0], table + kTableBytes / 3, table + 2 * kTableBytes / 3) &&
           cudaMemcpyAsync(at[1], c.get(), floats * sizeof(float), cudaMemcpyDeviceToDevice, stream) == cudaSuccess;
  };
  ExpectRightOrRefused(call);
  Tell("cuBLAS, a table in a buffer");
  EXPECT_EQ(moved_, 1);
}

// Other arguments point into the buffers, so the graph moves. The caller writes the table for each run.
TEST_F(GraphBatchedProducts, OfATableThatTheCallerKeepsMove) {
  Call call = CallOf("a table that is kept", kBatch,
                     [this](cudaStream_t, void* const* at) { return One(at) && BatchedByTable(); });
  call.prepare = [this](void* const* at) { table_->Write(TableOf(at)); };
  ExpectRightOrRefused(call);
  Tell("cuBLAS, a table that the caller keeps");
  EXPECT_EQ(moved_, 1);
}

// As above, but nobody writes the table again: a check of moves tells.
TEST_F(GraphBatchedProducts, OfATableThatIsForgottenAreFound) {
  const Call call = CallOf("a forgotten table", kBatch,
                           [this](cudaStream_t, void* const* at) { return One(at) && BatchedByTable(); });
  const LibraryPlace first(call, 1, 0);
  table_->Write(TableOf(first.addresses.data()));
  ASSERT_TRUE(call.issue(stream_->get(), first.addresses.data()));
  stream_->Synchronize();
  gcap_run_result_t result;
  const Outcome captured = RunOn(call, first, &result);
  ASSERT_TRUE(captured.ok()) << captured.message;
  ASSERT_EQ(result.outcome, GCAP_RUN_CAPTURED);
  GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_FAILED_PRECONDITION, "buffer");
}

// --- CUB ------------------------------------------------------------------------------------------------------------

class GraphCub : public LibraryCallsTest {
 protected:
  void Add(const char* what, gcap_test_cub_call_t algorithm, int count, size_t out_count, size_t shift) {
    size_t bytes = 0;
    ASSERT_EQ(algorithm(nullptr, &bytes, nullptr, nullptr, count, stream_->get()), cudaSuccess);
    const auto words = [](size_t n) {
      return [n](uint32_t seed) {
        Sequence sequence(seed);
        std::vector<uint32_t> values(n);
        for (uint32_t& value : values) value = sequence.Next() << 8 ^ sequence.Next();
        return BytesOf(values);
      };
    };
    Call call;
    call.name = std::string(what) + " of " + std::to_string(count) + ", shift " + std::to_string(shift) +
                ", workspace " + std::to_string(bytes);
    call.shift = shift;
    call.buffers = {{Buffer::kRead, words(static_cast<size_t>(count))},
                    {Buffer::kWritten, words(out_count)},
                    Buffer::Workspace(bytes)};
    call.issue = [=](cudaStream_t stream, void* const* at) {
      size_t workspace_bytes = bytes;
      return algorithm(at[2], &workspace_bytes, static_cast<const uint32_t*>(at[0]), static_cast<uint32_t*>(at[1]),
                       count, stream) == cudaSuccess;
    };
    ExpectRightOrRefused(call);
  }
};

TEST_F(GraphCub, AlgorithmsAreRight) {
  for (const int count : {100, 5000, 300000, 1 << 20}) {
    const size_t all = static_cast<size_t>(count);
    for (const size_t shift : {0, 4, 16}) {
      Add("sort", gcap_test_cub_sort, count, all, shift);
      Add("scan", gcap_test_cub_scan, count, all, shift);
      Add("reduce", gcap_test_cub_reduce, count, 1, shift);
      Add("transform", gcap_test_cub_transform, count, all, shift);
    }
  }
  Tell("CUB");
}

// --- cuFFT ----------------------------------------------------------------------------------------------------------

#define EXPECT_LIBRARY_OK(expr) EXPECT_EQ(0, (expr)) << #expr

enum class Transform { kComplex, kInPlace, kFromReal, kToReal };

struct FftShape {
  std::vector<int> sizes;
  int batch;
};

class GraphTransforms : public LibraryCallsTest {
 protected:
  void SetUp() override {
    std::string reason;
    fft_ = OpenCufft(&reason);
    if (fft_ == nullptr) GTEST_SKIP() << reason;
    LibraryCallsTest::SetUp();
  }

  void Try(const FftShape& shape, Transform transform, bool own_workspace, size_t shift) {
    const int types[] = {kFftC2C, kFftC2C, kFftR2C, kFftC2R};
    const char* const names[] = {"complex", "complex in place", "real to complex", "complex to real"};
    int plan = 0;
    size_t bytes = 0;
    std::vector<int> sizes = shape.sizes;
    EXPECT_LIBRARY_OK(fft_->cufftCreate(&plan));
    EXPECT_LIBRARY_OK(fft_->cufftSetAutoAllocation(plan, own_workspace ? 0 : 1));
    EXPECT_LIBRARY_OK(fft_->cufftMakePlanMany(plan, static_cast<int>(sizes.size()), sizes.data(), nullptr, 1, 0,
                                              nullptr, 1, 0, types[static_cast<int>(transform)], shape.batch, &bytes));
    EXPECT_LIBRARY_OK(fft_->cufftSetStream(plan, stream_->get()));
    Call call = CallOf(shape, transform);
    for (const int size : sizes) call.name += std::to_string(size) + " x ";
    call.name += std::to_string(shape.batch) + ", " + names[static_cast<int>(transform)] + ", workspace " +
                 (own_workspace ? "" : "of the plan ") + std::to_string(bytes) + ", shift " + std::to_string(shift);
    call.shift = shift;
    const size_t workspace = call.buffers.size();
    if (own_workspace) call.buffers.push_back(Buffer::Workspace(bytes));
    call.issue = [=](cudaStream_t, void* const* at) {
      if (own_workspace && fft_->cufftSetWorkArea(plan, at[workspace]) != 0) return false;
      return Execute(plan, transform, at) == 0;
    };
    ExpectRightOrRefused(call);
    EXPECT_LIBRARY_OK(fft_->cufftDestroy(plan));
  }

 private:
  static Call CallOf(const FftShape& shape, Transform transform) {
    const size_t batch = static_cast<size_t>(shape.batch), last = static_cast<size_t>(shape.sizes.back());
    size_t rows = batch;
    for (size_t i = 0; i + 1 < shape.sizes.size(); ++i) rows *= static_cast<size_t>(shape.sizes[i]);
    const size_t complex = 2 * rows * last, real = rows * last, half = 2 * rows * (last / 2 + 1);
    Call call;
    switch (transform) {
      case Transform::kComplex:
        call.buffers = {Buffer::Floats(Buffer::kRead, complex), Buffer::Floats(Buffer::kWritten, complex)};
        break;
      case Transform::kInPlace: call.buffers = {Buffer::Floats(Buffer::kWritten, complex)}; break;
      case Transform::kFromReal:
        call.buffers = {Buffer::Floats(Buffer::kRead, real), Buffer::Floats(Buffer::kWritten, half)};
        break;
      case Transform::kToReal:
        call.buffers = {Buffer::Floats(Buffer::kRead, half), Buffer::Floats(Buffer::kWritten, real)};
        break;
    }
    return call;
  }
  int Execute(int plan, Transform transform, void* const* at) const {
    switch (transform) {
      case Transform::kComplex: return fft_->cufftExecC2C(plan, at[0], at[1], kFftForward);
      case Transform::kInPlace: return fft_->cufftExecC2C(plan, at[0], at[0], kFftInverse);
      case Transform::kFromReal: return fft_->cufftExecR2C(plan, at[0], at[1]);
      default: return fft_->cufftExecC2R(plan, at[0], at[1]);
    }
  }

  const Cufft* fft_ = nullptr;
};

TEST_F(GraphTransforms, OfEveryShapeAreRight) {
  // 1,009 is a prime, 1 << 20 takes several kernels.
  const FftShape shapes[] = {{{8}, 1},       {{256}, 3},    {{1000}, 2},   {{1009}, 1},
                             {{1 << 20}, 1}, {{64, 32}, 2}, {{60, 45}, 1}, {{16, 8, 12}, 2}};
  for (const FftShape& shape : shapes) {
    for (const Transform transform :
         {Transform::kComplex, Transform::kInPlace, Transform::kFromReal, Transform::kToReal}) {
      for (const size_t shift : kShifts) {
        Try(shape, transform, true, shift);
        Try(shape, transform, false, shift);
      }
    }
  }
  Tell("cuFFT");
}

// --- cuRAND ---------------------------------------------------------------------------------------------------------

class GraphRandom : public LibraryCallsTest {
 protected:
  static constexpr size_t kNumbers = 1 << 16;

  void SetUp() override {
    std::string reason;
    random_ = OpenCurand(&reason);
    if (random_ == nullptr) GTEST_SKIP() << reason;
    LibraryCallsTest::SetUp();
  }
  void* CreateGenerator(RandomKind kind) {
    void* generator = nullptr;
    EXPECT_LIBRARY_OK(random_->curandCreateGenerator(&generator, kind));
    EXPECT_LIBRARY_OK(random_->curandSetStream(generator, stream_->get()));
    return generator;
  }
  static Call CallOf(const std::string& name, std::function<int(float*)> generate) {
    Call call;
    call.name = name;
    call.buffers = {Buffer::Floats(Buffer::kWritten, kNumbers)};
    call.issue = [=](cudaStream_t, void* const* at) { return generate(static_cast<float*>(at[0])) == 0; };
    return call;
  }
  // What the generator makes next.
  Bytes Next(void* generator, const LibraryPlace& place) {
    EXPECT_LIBRARY_OK(random_->curandGenerateUniform(generator, static_cast<float*>(place.addresses[0]), kNumbers));
    stream_->Synchronize();
    return place.Read()[0];
  }
  // What a generator that nobody else uses makes next, several times.
  std::set<Bytes> Successive(RandomKind kind, int times) {
    std::set<Bytes> all;
    const LibraryPlace place(CallOf("", [](float*) { return 0; }), 1, 0);
    void* const generator = CreateGenerator(kind);
    for (int i = 0; i < times; ++i) all.insert(Next(generator, place));
    EXPECT_LIBRARY_OK(random_->curandDestroyGenerator(generator));
    return all;
  }
  // Whether a generator, without gcap, keeps to its sequence after a call that was captured and never ran.
  bool KeepsItsSequence(RandomKind kind, const std::set<Bytes>& sequence) {
    const LibraryPlace place(CallOf("", [](float*) { return 0; }), 1, 0);
    void* const generator = CreateGenerator(kind);
    Next(generator, place);
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeThreadLocal));
    EXPECT_LIBRARY_OK(random_->curandGenerateUniform(generator, static_cast<float*>(place.addresses[0]), kNumbers));
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    const bool keeps = sequence.count(Next(generator, place)) == 1;
    EXPECT_LIBRARY_OK(random_->curandDestroyGenerator(generator));
    return keeps;
  }

  const Curand* random_ = nullptr;
};

struct NamedKind {
  RandomKind kind;
  const char* name;
};
constexpr NamedKind kGenerators[] = {{kRandomXorwow, "XORWOW"}, {kRandomMrg32k3a, "MRG32k3a"},
                                     {kRandomMtgp32, "MTGP32"}, {kRandomMt19937, "MT19937"},
                                     {kRandomPhilox, "PHILOX"}, {kRandomSobol32, "SOBOL32"}};

// The work sets the generator back first, so the work does the same each time. Some generators cannot be set back.
TEST_F(GraphRandom, NumbersOfAGeneratorThatIsSetBackAreRight) {
  for (const NamedKind& each : kGenerators) {
    void* const generator = CreateGenerator(each.kind);
    const auto set_back = [=] { return random_->curandSetGeneratorOffset(generator, 1024); };
    const std::string name = each.name;
    ExpectRightOrRefused(CallOf(name + ", uniform", [=](float* y) {
      return set_back() != 0 ? 1 : random_->curandGenerateUniform(generator, y, kNumbers);
    }));
    ExpectRightOrRefused(CallOf(name + ", normal", [=](float* y) {
      return set_back() != 0 ? 1 : random_->curandGenerateNormal(generator, y, kNumbers, 1, 2);
    }));
    ExpectRightOrRefused(CallOf(name + ", bits", [=](float* y) {
      return set_back() != 0 ? 1 : random_->curandGenerate(generator, reinterpret_cast<unsigned*>(y), kNumbers);
    }));
    EXPECT_LIBRARY_OK(random_->curandDestroyGenerator(generator));
  }
  Tell("cuRAND, set back");
}

// The generator goes on with each call, and rehearsals are calls too: which numbers a run gets is open. They are
// numbers of the generator's sequence, if the generator itself keeps to its sequence where a capture was thrown away;
// and they are in the run's own buffer.
TEST_F(GraphRandom, NumbersOfAGeneratorThatGoesOnAreOfItsSequence) {
  for (const NamedKind& each : kGenerators) {
    SCOPED_TRACE(each.name);
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
    const std::set<Bytes> sequence = Successive(each.kind, 32);
    const bool keeps = KeepsItsSequence(each.kind, sequence);
    void* const generator = CreateGenerator(each.kind);
    const Call call =
        CallOf(each.name, [=](float* y) { return random_->curandGenerateUniform(generator, y, kNumbers); });
    const LibraryPlace places[] = {{call, 1, 0}, {call, 2, 0}};
    EXPECT_TRUE(call.issue(stream_->get(), places[0].addresses.data()));
    stream_->Synchronize();
    std::string told = each.name;
    for (const size_t at : {0, 1, 0, 1}) {
      for (const LibraryPlace& place : places) place.Fill();
      const Bytes other = places[1 - at].Read()[0];
      gcap_run_result_t result;
      const Outcome run = RunOn(call, places[at], &result);
      EXPECT_TRUE(run.ok()) << run.message;
      const bool is_of_sequence = sequence.count(places[at].Read()[0]) == 1;
      EXPECT_TRUE(is_of_sequence || !keeps) << "other numbers than the generator makes";
      const bool is_other_touched = other != places[1 - at].Read()[0];
      EXPECT_FALSE(is_other_touched);
      told += result.outcome == GCAP_RUN_REPLAYED ? ", replayed"
              : result.outcome == GCAP_RUN_EAGER  ? ", eager"
                                                  : ", captured";
    }
    std::printf("cuRAND, going on: %s; without gcap, after a capture that was thrown away: %s\n", told.c_str(),
                keeps ? "numbers of its sequence" : "others");
    EXPECT_LIBRARY_OK(random_->curandDestroyGenerator(generator));
  }
}

// --- cuSPARSE -------------------------------------------------------------------------------------------------------

constexpr int kRows = 600, kColumns = 500, kRight = 8;  // of the sparse matrix; of the right-hand side
enum class Format { kCsr, kCoo };

struct SparseAlgorithm {
  Format format;
  int number;
};

// A sparse matrix: another one for each seed, with as many numbers.
struct SparseIndices {
  std::vector<int> offsets, rows, columns;

  explicit SparseIndices(uint32_t seed) : offsets(1) {
    Sequence sequence(seed);
    for (int row = 0; row < kRows; ++row) {
      const int count = (row + static_cast<int>(seed % kRows)) % kRows % 20;
      int column = static_cast<int>(sequence.Next() % 20);
      for (int i = 0; i < count; ++i) {
        rows.push_back(row);
        columns.push_back(column);
        column += 1 + static_cast<int>(sequence.Next() % 20);
      }
      offsets.push_back(static_cast<int>(columns.size()));
    }
  }
  static size_t count() { return SparseIndices(0).columns.size(); }
};

class GraphSparse : public LibraryCallsTest {
 protected:
  // The buffers: offsets or rows, columns, values, x, y, alpha and beta, workspace.
  enum { kFirstIndices, kColumnIndices, kValues, kX, kY, kScalars, kWorkspaceAt };

  void SetUp() override {
    std::string reason;
    sparse_ = OpenCusparse(&reason);
    if (sparse_ == nullptr) GTEST_SKIP() << reason;
    LibraryCallsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    EXPECT_LIBRARY_OK(sparse_->cusparseCreate(&handle_));
    EXPECT_LIBRARY_OK(sparse_->cusparseSetStream(handle_, stream_->get()));
    EXPECT_LIBRARY_OK(sparse_->cusparseSetPointerMode(handle_, kSparseOnDevice));
  }
  void TearDown() override {
    if (handle_ != nullptr) {
      EXPECT_LIBRARY_OK(sparse_->cusparseDestroy(handle_));
    }
    LibraryCallsTest::TearDown();
  }

  // y = alpha * A * x + beta * y, of a vector or a matrix x.
  void Try(const SparseAlgorithm& algorithm, bool is_matrix, size_t shift) {
    Call call;
    const size_t width = is_matrix ? kRight : 1;
    call.buffers = {{Buffer::kRead, [algorithm](uint32_t seed) { return FirstIndices(algorithm.format, seed); }},
                    {Buffer::kRead, [](uint32_t seed) { return BytesOf(SparseIndices(Seed(seed, 1)).columns); }},
                    Buffer::Floats(Buffer::kRead, SparseIndices::count()),
                    Buffer::Floats(Buffer::kRead, kColumns * width),
                    Buffer::Floats(Buffer::kWritten, kRows * width),
                    {Buffer::kRead,
                     [](uint32_t seed) {
                       return BytesOf(std::vector<float>{seed % 3 + 1.0f, 0.5f});
                     }},
                    Buffer::Workspace(0)};
    size_t bytes = 0;
    const LibraryPlace place(call, 1, 0);  // the library wants addresses before it says how large a workspace is
    if (Do(algorithm.number, is_matrix, algorithm.format, place.addresses.data(), &bytes) != 0) return;
    call.buffers[kWorkspaceAt] = Buffer::Workspace(bytes);
    call.shift = shift;
    call.name = std::string(is_matrix ? "matrix" : "vector") + ", algorithm " + std::to_string(algorithm.number) +
                (algorithm.format == Format::kCsr ? " of CSR" : " of COO") + ", workspace " + std::to_string(bytes) +
                ", shift " + std::to_string(shift);
    call.issue = [=](cudaStream_t, void* const* at) {
      return Do(algorithm.number, is_matrix, algorithm.format, at, nullptr) == 0;
    };
    ExpectRightOrRefused(call);
  }

 private:
  // A place gives each buffer a seed of its own; both lists of indices are of one matrix.
  static uint32_t Seed(uint32_t seed, uint32_t buffer) { return seed - 7919 * buffer; }
  static Bytes FirstIndices(Format format, uint32_t seed) {
    const SparseIndices indices(Seed(seed, 0));
    return BytesOf(format == Format::kCsr ? indices.offsets : indices.rows);
  }

  void* MatrixOf(Format format, void* const* at) {
    void* matrix = nullptr;
    const int64_t count = static_cast<int64_t>(SparseIndices::count());
    const int made =
        format == Format::kCsr
            ? sparse_->cusparseCreateCsr(&matrix, kRows, kColumns, count, at[kFirstIndices], at[kColumnIndices],
                                         at[kValues], kSparseIndex32, kSparseIndex32, kSparseFromZero, CUDA_R_32F)
            : sparse_->cusparseCreateCoo(&matrix, kRows, kColumns, count, at[kFirstIndices], at[kColumnIndices],
                                         at[kValues], kSparseIndex32, kSparseFromZero, CUDA_R_32F);
    EXPECT_EQ(made, 0);
    return matrix;
  }
  // Asks for the workspace's size, or with `out_bytes` NULL issues the product.
  int Do(int algorithm, bool is_matrix, Format format, void* const* at, size_t* out_bytes) {
    void* const a = MatrixOf(format, at);
    const int done = is_matrix ? Multiply(algorithm, a, at, out_bytes) : Apply(algorithm, a, at, out_bytes);
    EXPECT_LIBRARY_OK(sparse_->cusparseDestroySpMat(a));
    return done;
  }
  int Apply(int algorithm, void* a, void* const* at, size_t* out_bytes) {
    void *x = nullptr, *y = nullptr;
    const float* const alpha = static_cast<const float*>(at[kScalars]);
    EXPECT_LIBRARY_OK(sparse_->cusparseCreateDnVec(&x, kColumns, at[kX], CUDA_R_32F));
    EXPECT_LIBRARY_OK(sparse_->cusparseCreateDnVec(&y, kRows, at[kY], CUDA_R_32F));
    const int done = out_bytes != nullptr
                         ? sparse_->cusparseSpMV_bufferSize(handle_, kSparseAsIs, alpha, a, x, alpha + 1, y, CUDA_R_32F,
                                                            algorithm, out_bytes)
                         : sparse_->cusparseSpMV(handle_, kSparseAsIs, alpha, a, x, alpha + 1, y, CUDA_R_32F, algorithm,
                                                 at[kWorkspaceAt]);
    EXPECT_LIBRARY_OK(sparse_->cusparseDestroyDnVec(x));
    EXPECT_LIBRARY_OK(sparse_->cusparseDestroyDnVec(y));
    return done;
  }
  int Multiply(int algorithm, void* a, void* const* at, size_t* out_bytes) {
    void *b = nullptr, *c = nullptr;
    const float* const alpha = static_cast<const float*>(at[kScalars]);
    EXPECT_LIBRARY_OK(sparse_->cusparseCreateDnMat(&b, kColumns, kRight, kColumns, at[kX], CUDA_R_32F, kSparseColumns));
    EXPECT_LIBRARY_OK(sparse_->cusparseCreateDnMat(&c, kRows, kRight, kRows, at[kY], CUDA_R_32F, kSparseColumns));
    const int done = out_bytes != nullptr
                         ? sparse_->cusparseSpMM_bufferSize(handle_, kSparseAsIs, kSparseAsIs, alpha, a, b, alpha + 1,
                                                            c, CUDA_R_32F, algorithm, out_bytes)
                         : sparse_->cusparseSpMM(handle_, kSparseAsIs, kSparseAsIs, alpha, a, b, alpha + 1, c,
                                                 CUDA_R_32F, algorithm, at[kWorkspaceAt]);
    EXPECT_LIBRARY_OK(sparse_->cusparseDestroyDnMat(b));
    EXPECT_LIBRARY_OK(sparse_->cusparseDestroyDnMat(c));
    return done;
  }

  const Cusparse* sparse_ = nullptr;
  void* handle_ = nullptr;
};

TEST_F(GraphSparse, ProductsWithAVectorAreRight) {
  for (const SparseAlgorithm& algorithm : {SparseAlgorithm{Format::kCsr, kSparseVectorAny},
                                           {Format::kCsr, kSparseVectorCsr1},
                                           {Format::kCsr, kSparseVectorCsr2},
                                           {Format::kCoo, kSparseVectorAny},
                                           {Format::kCoo, kSparseVectorCoo1},
                                           {Format::kCoo, kSparseVectorCoo2}}) {
    for (const size_t shift : kShifts) Try(algorithm, false, shift);
  }
  Tell("cuSPARSE, a vector");
}

TEST_F(GraphSparse, ProductsWithAMatrixAreRight) {
  for (const SparseAlgorithm& algorithm : {SparseAlgorithm{Format::kCsr, kSparseMatrixAny},
                                           {Format::kCsr, kSparseMatrixCsr1},
                                           {Format::kCsr, kSparseMatrixCsr2},
                                           {Format::kCsr, kSparseMatrixCsr3},
                                           {Format::kCoo, kSparseMatrixAny},
                                           {Format::kCoo, kSparseMatrixCoo1},
                                           {Format::kCoo, kSparseMatrixCoo2},
                                           {Format::kCoo, kSparseMatrixCoo3},
                                           {Format::kCoo, kSparseMatrixCoo4}}) {
    for (const size_t shift : kShifts) Try(algorithm, true, shift);
  }
  Tell("cuSPARSE, a matrix");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
