// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every public struct that begins with its size, as programs of another version hand it over: an older one, whose
// struct ends earlier; a newer one, whose struct is longer; and one that never called the init function. The struct
// ends where a page ends that nobody may touch, so that whoever reads or writes behind it dies. The headers are read as
// well: a struct of options, infos or stats that begins with anything else, or is not tried here, fails.

#include <cuda_runtime_api.h>
#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gcap/kit/kit.h"
#include "gcap/kit/ops/batch_norm.h"
#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/matmul.h"
#include "gcap/kit/ops/pool2d.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

using Bytes = std::vector<char>;

template <typename T>
Bytes BytesOf(const T& value) {
  Bytes bytes(sizeof(value));
  memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

size_t SizeAt(const Bytes& bytes, size_t offset) {
  size_t size = 0;
  memcpy(&size, &bytes[offset], sizeof(size));
  return size;
}
void SetSizeAt(Bytes* bytes, size_t offset, size_t size) { memcpy(&(*bytes)[offset], &size, sizeof(size)); }

// Memory that ends where a page begins that may be neither read nor written.
class AtThePagesEnd {
 public:
  explicit AtThePagesEnd(const Bytes& bytes) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), size_(bytes.size()) {
    EXPECT_LE(size_, page_);
    void* pages = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    pages_ = static_cast<char*>(pages);
    EXPECT_EQ(mprotect(pages_ + page_, page_, PROT_NONE), 0);
    memcpy(get(), bytes.data(), size_);
  }
  AtThePagesEnd(const AtThePagesEnd&) = delete;
  AtThePagesEnd& operator=(const AtThePagesEnd&) = delete;
  ~AtThePagesEnd() { EXPECT_EQ(munmap(pages_, 2 * page_), 0); }

  void* get() const { return pages_ + page_ - size_; }
  Bytes content() const { return Bytes(pages_ + page_ - size_, pages_ + page_); }

 private:
  size_t page_, size_;
  char* pages_ = nullptr;
};

// --- Structs that the library reads ---------------------------------------------------------------------------------

struct Field {
  size_t offset, bytes;
};
#define GCAP_FIELD(type, field) \
  Field { offsetof(type, field), sizeof(type::field) }

// A sized struct inside another one: where the structs around it begin, outermost first, and then where it does itself.
struct Part {
  std::string name;
  std::vector<size_t> path;
  size_t older_bytes;  // 0: it has no field that an older version could lack
};

struct Reader {
  std::string name;                              // of the struct, without "_t"
  std::string function;                          // that reads it
  Bytes good;                                    // as a program of today fills it in
  std::function<Outcome(void*)> read;            // calls the function, and expects what the values in `good` do
  size_t older_bytes = 0;                        // as in Part
  std::string refusal = "", older_refusal = "";  // what the function has against the values; "": nothing
  std::function<void(void*)> init = {};          // of options
  std::vector<Part> parts = {};
};

// Changes the size of the innermost struct of `path`, and so of those around it. What is new is `fill`.
Bytes Resized(Bytes bytes, const std::vector<size_t>& path, size_t new_bytes, char fill) {
  const size_t begin = path.back(), old_bytes = SizeAt(bytes, begin);
  const auto at = bytes.begin();
  if (new_bytes < old_bytes) {
    bytes.erase(at + static_cast<ptrdiff_t>(begin + new_bytes), at + static_cast<ptrdiff_t>(begin + old_bytes));
  } else {
    bytes.insert(at + static_cast<ptrdiff_t>(begin + old_bytes), new_bytes - old_bytes, fill);
  }
  for (const size_t offset : path) SetSizeAt(&bytes, offset, SizeAt(bytes, offset) + new_bytes - old_bytes);
  return bytes;
}

class SizedStructs : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(rig_.Create(GraphOptions()));
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    GCAP_ASSERT_OK(gcap_scratch_create(device_, nullptr, &scratch_));
    GCAP_ASSERT_OK(gcap_graph_manager_create(nullptr, &manager_));
    for (int run = 0; run < 3; ++run) {
      GCAP_ASSERT_OK(RunPlain(manager_, kId, stream_.get(), IssueJob, &job_, /*synchronize=*/true));
    }
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    gcap_allocator_destroy(device_);
  }

  std::vector<Reader> Readers();
  void AddCapture(std::vector<Reader>* all);
  void AddGraphManager(std::vector<Reader>* all);
  void AddReplay(std::vector<Reader>* all);
  void AddAllocators(std::vector<Reader>* all);
  void AddOptions(std::vector<Reader>* all);
  void AddRun(std::vector<Reader>* all);
  void AddSession(std::vector<Reader>* all);
  void AddBuckets(std::vector<Reader>* all);
  void AddOps(std::vector<Reader>* all);

  static gcap_status_t IssueJob(void* user, cudaStream_t stream) {
    return GCAP_CUDA(static_cast<CopyJob*>(user)->Issue(stream));
  }

  static constexpr int kId = 3;
  const RawStream stream_;
  CopyJob job_;
  ChainRig rig_;
  const DeviceFloats x_{Floats(kCount, 1.0f)}, y_{Floats(kCount, 0.0f)};
  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_graph_manager_t* manager_ = nullptr;  // has a graph of kId
};

template <typename T>
T* As(void* given) {
  return static_cast<T*>(given);
}

template <typename T, typename Fill>
Bytes Filled(void (*init)(T*), Fill fill) {
  T options;
  init(&options);
  fill(&options);
  return BytesOf(options);
}

template <typename T>
std::function<void(void*)> Init(void (*init)(T*)) {
  return [init](void* given) { init(As<T>(given)); };
}

void SizedStructs::AddCapture(std::vector<Reader>* all) {
  using T = gcap_capture_options_t;
  Reader r{"gcap_capture_options", "gcap_capture_begin", {}, {}};
  r.good = Filled<T>(gcap_capture_options_init, [](T* o) { o->ledger_calls = 2; });
  r.read = [this](void* given) {
    gcap_capture_t* capture = nullptr;
    Outcome outcome(gcap_capture_begin(stream_.get(), As<T>(given), &capture));
    gcap_capture_abort(capture);
    return outcome;
  };
  r.init = Init(gcap_capture_options_init);
  all->push_back(r);
}

void SizedStructs::AddGraphManager(std::vector<Reader>* all) {
  using T = gcap_graph_manager_options_t;
  Reader r{"gcap_graph_manager_options", "gcap_graph_manager_create", {}, {}};
  r.good = Filled<T>(gcap_graph_manager_options_init, [](T* o) { o->min_num_runs_before_capture = 0; });
  // The first run is captured, fails, and is done again since rerun_failed_capture is true by default.
  r.read = [this](void* given) {
    gcap_graph_manager_t* manager = nullptr;
    Outcome outcome(gcap_graph_manager_create(As<T>(given), &manager));
    if (!outcome.ok()) return outcome;
    int num_works = 0;
    const auto work = [](void* user, cudaStream_t) -> gcap_status_t {
      ++*static_cast<int*>(user);
      gcap_status_t cause = GCAP_STATUS(GCAP_INTERNAL, "not in a capture");
      gcap_capture_fail(gcap_capture_current(), cause);
      gcap_status_free(cause);
      return nullptr;
    };
    GCAP_EXPECT_OK(RunPlain(manager, 0, stream_.get(), work, &num_works, /*synchronize=*/true));
    EXPECT_EQ(num_works, 2);
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager));
    return outcome;
  };
  r.older_bytes = offsetof(T, policy);
  r.init = Init(gcap_graph_manager_options_init);
  r.parts = {{"gcap_capture_options", {0, offsetof(T, capture)}, 0}};
  all->push_back(r);
}

void SizedStructs::AddReplay(std::vector<Reader>* all) {
  using T = gcap_run_t;
  Reader r{"gcap_run", "gcap_graph_manager_replay", {}, {}};
  r.good = Filled<T>(gcap_run_init, [](T* run) {
    run->id = kId;
    run->synchronize = true;
  });
  r.older_bytes = offsetof(T, bindings);
  r.read = [this](void* given) {
    return Outcome(gcap_graph_manager_replay(manager_, As<T>(given), /*out_replayed=*/nullptr));
  };
  all->push_back(r);
}

void* ExternalAlloc(size_t bytes) {
  void* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&memory, bytes));
  return memory;
}
void ExternalFree(void* memory) { GCAP_EXPECT_CUDA(cudaFree(memory)); }

// Expects that the allocator gives memory and takes it back, and ends it.
void ExpectAllocates(gcap_allocator_t* allocator, size_t bytes) {
  void* memory = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, bytes, &memory));
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, memory));
}

void SizedStructs::AddAllocators(std::vector<Reader>* all) {
  using Scratch = gcap_scratch_options_t;
  Reader scratch{"gcap_scratch_options", "gcap_scratch_create", {}, {}};
  scratch.good = Filled<Scratch>(gcap_scratch_options_init, [](Scratch* o) { o->initial_chunk_bytes = 1 << 16; });
  // Growth chunks and extensions of 0 bytes would be refused.
  scratch.read = [this](void* given) {
    gcap_scratch_t* made = nullptr;
    const Outcome outcome(gcap_scratch_create(device_, As<Scratch>(given), &made));
    GCAP_EXPECT_OK(gcap_scratch_destroy(made));
    return outcome;
  };
  scratch.older_bytes = offsetof(Scratch, initial_growth_chunk_bytes);
  scratch.init = Init(gcap_scratch_options_init);
  all->push_back(scratch);

  using Pool = gcap_pool_allocator_options_t;
  Reader pool{"gcap_pool_allocator_options", "gcap_pool_allocator_create", {}, {}};
  pool.good = Filled<Pool>(gcap_pool_allocator_options_init, [](Pool*) {});
  // The pool keeps what is free, since release_threshold_bytes is UINT64_MAX by default.
  pool.read = [](void* given) {
    gcap_allocator_t* made = nullptr;
    Outcome outcome(gcap_pool_allocator_create(As<Pool>(given), &made));
    if (!outcome.ok()) return outcome;
    ExpectAllocates(made, 1 << 20);
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(made, &stats);
    EXPECT_GE(stats.total_allocated_bytes, 1u << 20);
    gcap_allocator_destroy(made);
    return outcome;
  };
  pool.older_bytes = offsetof(Pool, release_threshold_bytes);
  pool.init = Init(gcap_pool_allocator_options_init);
  all->push_back(pool);

  using External = gcap_external_allocator_options_t;
  Reader external{"gcap_external_allocator_options", "gcap_external_allocator_create", {}, {}};
  external.good = Filled<External>(gcap_external_allocator_options_init, [](External* o) {
    o->alloc = ExternalAlloc;
    o->free = ExternalFree;
  });
  external.read = [](void* given) {
    gcap_allocator_t* made = nullptr;
    Outcome outcome(gcap_external_allocator_create(As<External>(given), &made));
    if (!outcome.ok()) return outcome;
    ExpectAllocates(made, 256);
    GCAP_EXPECT_OK(gcap_allocator_trim(made));  // there is no empty_cache to call
    gcap_allocator_destroy(made);
    return outcome;
  };
  external.older_bytes = offsetof(External, empty_cache);
  external.init = Init(gcap_external_allocator_options_init);
  all->push_back(external);
}

void SizedStructs::AddOptions(std::vector<Reader>* all) {
  using T = gcap_options_t;
  Reader r{"gcap_options", "gcap_runtime_create", {}, {}};
  r.good = Filled<T>(gcap_options_init, [](T* o) { o->enable_cuda_graph = true; });
  // An arena of zeros would be refused, and with a graph manager of zeros the first run would be captured.
  r.read = [](void* given) {
    gcap_runtime_t* runtime = nullptr;
    Outcome outcome(gcap_runtime_create(As<T>(given), &runtime));
    if (!outcome.ok()) return outcome;
    gcap_run_resources_t resources;
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
    const gcap_graph_info_t info = GraphInfo(runtime, 0);
    EXPECT_FALSE(info.captures_next);
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
    return outcome;
  };
  r.older_bytes = offsetof(T, arena);
  r.init = Init(gcap_options_init);
  const size_t graph = offsetof(T, graph);
  r.parts = {
      {"gcap_scratch_options", {0, offsetof(T, arena)}, offsetof(gcap_scratch_options_t, initial_growth_chunk_bytes)},
      {"gcap_pool_allocator_options",
       {0, offsetof(T, mempool)},
       offsetof(gcap_pool_allocator_options_t, release_threshold_bytes)},
      {"gcap_graph_manager_options", {0, graph}, offsetof(gcap_graph_manager_options_t, policy)},
      {"gcap_capture_options", {0, graph, offsetof(T, graph.capture)}, 0},
      {"gcap_kernel_options", {0, offsetof(T, kernels)}, offsetof(gcap_kernel_options_t, prefer_nhwc)}};
  all->push_back(r);
  r.function = "gcap_options_parse";
  r.read = [](void* given) {
    const char* const keys[] = {"device_id", "graph.max_graphs"};
    const char* const values[] = {"5", "7"};
    const Outcome outcome(gcap_options_parse(As<T>(given), keys, values, 2));
    EXPECT_EQ(As<T>(given)->device_id, outcome.ok() ? 5 : 0);
    return outcome;
  };
  all->push_back(r);
  r.function = "gcap_options_parse_for_ep";
  r.read = [](void* given) {
    const char* const key = "ep.mine.device_id";
    const char* const value = "5";
    const Outcome outcome(gcap_options_parse_for_ep(As<T>(given), "mine", &key, &value, 1));
    EXPECT_EQ(As<T>(given)->device_id, outcome.ok() ? 5 : 0);
    return outcome;
  };
  all->push_back(r);
  r.function = "gcap_options_get";
  r.read = [](void* given) {
    char value[8] = "";
    const Outcome outcome(gcap_options_get(As<T>(given), "enable_cuda_graph", value, sizeof(value)));
    EXPECT_STREQ(value, outcome.ok() ? "1" : "");
    return outcome;
  };
  all->push_back(r);
}

void SizedStructs::AddRun(std::vector<Reader>* all) {
  using T = gcap_run_options_t;
  Reader r{"gcap_run_options", "gcap_session_run", {}, {}};
  r.good = Filled<T>(gcap_run_options_init, [](T* o) { o->graph_id = GCAP_GRAPH_ID_NONE; });
  r.read = [this](void* given) {
    const gcap_tensor_t input = Tensor(x_.get(), {2, 3}), output = Tensor(y_.get(), {2, 3});
    return Outcome(gcap_session_run(rig_.session, As<T>(given), &input, &output));
  };
  r.init = Init(gcap_run_options_init);
  all->push_back(r);
  r.function = "gcap_session_warm_up";
  r.good = Filled<T>(gcap_run_options_init, [](T*) {});
  r.read = [this](void* given) {
    const gcap_tensor_t input = Tensor(x_.get(), {2, 3}), output = Tensor(y_.get(), {2, 3});
    const gcap_warm_up_run_t run = {As<T>(given), &input, &output};
    return Outcome(gcap_session_warm_up(rig_.session, &run, 1, nullptr, nullptr));
  };
  all->push_back(r);
}

void SizedStructs::AddSession(std::vector<Reader>* all) {
  using T = gcap_session_options_t;
  Reader r{"gcap_session_options", "gcap_session_create", {}, {}};
  r.good = Filled<T>(gcap_session_options_init, [](T* o) { o->max_shapes_without_id = 3; });
  r.read = [this](void* given) {
    const gcap_model_t model = {};  // which is refused, after the options were read
    gcap_ep_t* ep = rig_.ep->get();
    gcap_session_t* session = nullptr;
    return Outcome(gcap_session_create(&model, &ep, 1, As<T>(given), &session));
  };
  r.refusal = "the model has 0 values";
  r.init = Init(gcap_session_options_init);
  all->push_back(r);
}

void SizedStructs::AddBuckets(std::vector<Reader>* all) {
  using T = gcap_buckets_options_t;
  Reader r{"gcap_buckets_options", "gcap_buckets_choose", {}, {}};
  r.good = Filled<T>(gcap_buckets_options_init, [](T* o) { o->largest = 7; });
  r.read = [](void* given) {
    size_t bucket = 0;
    gcap_buckets_choice_t choice;
    gcap_buckets_choice_init(&choice);
    const Outcome outcome(gcap_buckets_choose(nullptr, 0, As<T>(given), 1, &bucket, &choice));
    EXPECT_EQ(bucket, outcome.ok() ? 7u : 0u);
    return outcome;
  };
  r.older_bytes = offsetof(T, max_bytes);
  r.init = Init(gcap_buckets_options_init);
  all->push_back(r);
}

// What is wrong with the values is found last, so no library is asked for a plan.
void SizedStructs::AddOps(std::vector<Reader>* all) {
  using Conv = gcap_conv2d_options_t;
  Reader conv{"gcap_conv2d_options", "gcap_conv2d_create", {}, {}};
  conv.good = Filled<Conv>(gcap_conv2d_options_init, [this](Conv* o) {
    o->handle = reinterpret_cast<cudnnHandle_t>(this);
    o->n = o->c = o->h = o->w = o->k = o->kernel_w = 1;
    o->kernel_h = 9;
  });
  conv.read = [](void* given) {
    gcap_conv2d_t* made = nullptr;
    return Outcome(gcap_conv2d_create(As<Conv>(given), &made));
  };
  conv.refusal = conv.older_refusal = "kernel_h is 9 with dilation 1, the padded input is 1";  // no stride is 0
  conv.older_bytes = offsetof(Conv, stride_w);
  conv.init = Init(gcap_conv2d_options_init);
  all->push_back(conv);

  using Pool = gcap_pool2d_options_t;
  Reader pool{"gcap_pool2d_options", "gcap_pool2d_create", {}, {}};
  pool.good = Filled<Pool>(gcap_pool2d_options_init, [](Pool* o) {
    o->c = o->h = o->w = o->kernel_w = 1;
    o->kernel_h = 9;
  });
  pool.read = [](void* given) {
    gcap_pool2d_t* made = nullptr;
    return Outcome(gcap_pool2d_create(As<Pool>(given), &made));
  };
  pool.refusal = pool.older_refusal =
      "kernel_h is 9 with dilation 1, the input is h 1 with pads 0 and 0";  // no stride is 0
  pool.older_bytes = offsetof(Pool, stride_h);
  pool.init = Init(gcap_pool2d_options_init);
  all->push_back(pool);

  using Norm = gcap_batch_norm_options_t;
  Reader norm{"gcap_batch_norm_options", "gcap_batch_norm_create", {}, {}};
  norm.good = Filled<Norm>(gcap_batch_norm_options_init, [](Norm* o) {
    o->c = o->h = 1;
    o->w = -9;
  });
  norm.read = [](void* given) {
    gcap_batch_norm_t* made = nullptr;
    return Outcome(gcap_batch_norm_create(As<Norm>(given), &made));
  };
  norm.refusal = norm.older_refusal = "w is -9";
  norm.older_bytes = offsetof(Norm, epsilon);
  norm.init = Init(gcap_batch_norm_options_init);
  all->push_back(norm);

  using Matmul = gcap_matmul_options_t;
  Reader matmul{"gcap_matmul_options", "gcap_matmul_create", {}, {}};
  matmul.good = Filled<Matmul>(gcap_matmul_options_init, [this](Matmul* o) {
    o->handle = reinterpret_cast<cublasLtHandle_t>(this);
    o->m = o->n = o->k = INT64_MAX;
  });
  matmul.read = [](void* given) {
    gcap_matmul_t* made = nullptr;
    return Outcome(gcap_matmul_create(As<Matmul>(given), &made));
  };
  matmul.refusal = matmul.older_refusal = "m is 9223372036854775807";
  matmul.older_bytes = offsetof(Matmul, epilogue);
  matmul.init = Init(gcap_matmul_options_init);
  all->push_back(matmul);
}

std::vector<Reader> SizedStructs::Readers() {
  std::vector<Reader> all;
  AddCapture(&all);
  AddGraphManager(&all);
  AddReplay(&all);
  AddAllocators(&all);
  AddOptions(&all);
  AddRun(&all);
  AddSession(&all);
  AddBuckets(&all);
  AddOps(&all);
  return all;
}

// Expects the function to take the struct, or to have nothing against it but `refusal`.
void ExpectRead(const Reader& reader, const Bytes& bytes, const std::string& refusal) {
  const AtThePagesEnd given(bytes);
  const Outcome outcome = reader.read(given.get());
  EXPECT_EQ(outcome.code, refusal.empty() ? GCAP_OK : GCAP_INVALID_ARGUMENT) << outcome.message;
  EXPECT_TRUE(outcome.Names(refusal)) << outcome.message;
}

TEST_F(SizedStructs, ThatEndAtTheirSizeAreReadToThereAndNoFurther) {
  for (const Reader& reader : Readers()) {
    SCOPED_TRACE(reader.name + " of " + reader.function);
    EXPECT_EQ(SizeAt(reader.good, 0), reader.good.size());
    ExpectRead(reader, reader.good, reader.refusal);
  }
}

TEST_F(SizedStructs, OfAnOlderProgramKeepTheDefaultsOfWhatIsNotThere) {
  for (const Reader& reader : Readers()) {
    SCOPED_TRACE(reader.name + " of " + reader.function);
    if (reader.older_bytes != 0) {
      Bytes older(reader.good.begin(), reader.good.begin() + static_cast<ptrdiff_t>(reader.older_bytes));
      SetSizeAt(&older, 0, older.size());
      ExpectRead(reader, older, reader.older_refusal);
    }
    for (const Part& part : reader.parts) {
      SCOPED_TRACE(part.name);
      if (part.older_bytes != 0) ExpectRead(reader, Resized(reader.good, part.path, part.older_bytes, 0), "");
    }
  }
}

TEST_F(SizedStructs, OfANewerProgramAreReadUnlessItSetsWhatIsUnknown) {
  for (const Reader& reader : Readers()) {
    SCOPED_TRACE(reader.name + " of " + reader.function);
    std::vector<Part> longer = reader.parts;
    longer.push_back({reader.name, {0}, 0});
    for (const Part& part : longer) {
      SCOPED_TRACE(part.name);
      const size_t known_bytes = SizeAt(reader.good, part.path.back());
      ExpectRead(reader, Resized(reader.good, part.path, known_bytes + 16, 0), reader.refusal);
      ExpectRead(reader, Resized(reader.good, part.path, known_bytes + 16, 1),
                 part.name + "_t: struct_size is " + std::to_string(known_bytes + 16) + ", this gcap knows " +
                     std::to_string(known_bytes) + " bytes");
    }
  }
}

TEST_F(SizedStructs, ThatWereNotInitializedAreRefusedByName) {
  for (const Reader& reader : Readers()) {
    SCOPED_TRACE(reader.name + " of " + reader.function);
    std::vector<Part> unset = reader.parts;
    unset.push_back({reader.name, {0}, 0});
    for (const Part& part : unset) {
      Bytes bytes = reader.good;
      SetSizeAt(&bytes, part.path.back(), 0);
      ExpectRead(
          reader, bytes,
          part.name + "_t: struct_size is 0, which is no version's: fill the struct with " + part.name + "_init");
    }
  }
}

TEST_F(SizedStructs, AreInitializedWhateverTheMemoryHeld) {
  for (const Reader& reader : Readers()) {
    if (!reader.init) continue;
    SCOPED_TRACE(reader.name);
    Bytes of_zeros(reader.good.size(), 0), of_others(reader.good.size(), '\x5a');
    reader.init(of_zeros.data());
    reader.init(of_others.data());
    EXPECT_EQ(of_zeros, of_others);
    EXPECT_EQ(SizeAt(of_others, 0), reader.good.size());
    for (const Part& part : reader.parts)
      EXPECT_EQ(SizeAt(of_others, part.path.back()), SizeAt(reader.good, part.path.back()));
  }
}

// --- Structs that the library writes --------------------------------------------------------------------------------

struct Writer {
  std::string name, function;
  size_t bytes, older_bytes;
  std::function<void(void*)> write;
  std::vector<Field> fields;  // of which some are not 0, and some lie behind `older_bytes`
};

class WrittenStructs : public SizedStructs {
 protected:
  std::vector<Writer> Writers() {
    using Info = gcap_graph_info_t;
    using Stats = gcap_allocator_stats_t;
    using Resources = gcap_run_resources_t;
    using Result = gcap_run_result_t;
    const std::vector<Field> of_info = {GCAP_FIELD(Info, state), GCAP_FIELD(Info, eager_runs),
                                        GCAP_FIELD(Info, captures), GCAP_FIELD(Info, nodes),
                                        GCAP_FIELD(Info, evictions)};
    const std::vector<Field> of_stats = {GCAP_FIELD(Stats, limit_bytes), GCAP_FIELD(Stats, in_use_bytes),
                                         GCAP_FIELD(Stats, num_allocs), GCAP_FIELD(Stats, num_shrinkages)};
    const size_t older_info = offsetof(Info, nodes), older_stats = offsetof(Stats, num_allocs);
    using Conv = gcap_conv2d_info_t;
    using Session = gcap_session_info_t;
    using Runtime = gcap_runtime_info_t;
    using Status = gcap_status_info_t;
    return {
        {"gcap_status_info",
         "gcap_status_read_info",
         sizeof(Status),
         offsetof(Status, file),
         [](void* given) {
           const gcap_status_t status = gcap_status_from_cuda(cudaErrorInvalidValue, "call()", "here.c", 7);
           gcap_status_read_info(status, As<Status>(given));
           gcap_status_free(status);
         },
         {GCAP_FIELD(Status, cuda_error), GCAP_FIELD(Status, line)}},
        {"gcap_graph_info", "gcap_graph_manager_read_info", sizeof(Info), older_info,
         [this](void* given) { gcap_graph_manager_read_info(manager_, kId, As<Info>(given)); }, of_info},
        {"gcap_conv2d_info",
         "gcap_conv2d_read_info",
         sizeof(Conv),
         offsetof(Conv, workspace_bytes),
         [](void* given) {
           gcap_conv2d_options_t options;
           gcap_conv2d_options_init(&options);
           options.n = options.c = options.h = options.w = options.k = options.kernel_h = options.kernel_w = 1;
           options.direct = GCAP_CONV2D_DIRECT_ALWAYS;  // without a handle
           gcap_conv2d_t* plan = nullptr;
           GCAP_EXPECT_OK(gcap_conv2d_create(&options, &plan));
           gcap_conv2d_read_info(plan, As<Conv>(given));
           gcap_conv2d_destroy(plan);
         },
         {GCAP_FIELD(Conv, is_direct), GCAP_FIELD(Conv, output_shape)}},
        {"gcap_session_info",
         "gcap_session_read_info",
         sizeof(Session),
         offsetof(Session, ep_name),
         [this](void* given) { gcap_session_read_info(rig_.session, As<Session>(given)); },
         {GCAP_FIELD(Session, captures), GCAP_FIELD(Session, ep_name)}},
        {"gcap_runtime_info",
         "gcap_runtime_read_info",
         sizeof(Runtime),
         sizeof(size_t),  // no version ends between three flags
         [this](void* given) { gcap_runtime_read_info(rig_.ep->runtime(), As<Runtime>(given)); },
         {GCAP_FIELD(Runtime, supports_concurrent_runs), GCAP_FIELD(Runtime, is_graph_capture_enabled)}},
        {"gcap_run_resources",
         "gcap_runtime_read_resources",
         sizeof(Resources),
         offsetof(Resources, scratch),
         [this](void* given) {
           gcap_status_free(gcap_runtime_read_resources(rig_.ep->runtime(), As<Resources>(given)));
         },
         {GCAP_FIELD(Resources, cuda_stream), GCAP_FIELD(Resources, stream), GCAP_FIELD(Resources, scratch)}},
        {"gcap_run_result",
         "gcap_graph_manager_replay",
         sizeof(Result),
         offsetof(Result, was_issued),
         [this](void* given) {
           gcap_run_t run = RunOf(kId, GCAP_RUN_OWN_STREAM, /*synchronize=*/true);
           run.result = As<Result>(given);
           gcap_status_free(gcap_graph_manager_replay(manager_, &run, nullptr));
         },
         {GCAP_FIELD(Result, outcome), GCAP_FIELD(Result, was_issued)}},
        {"gcap_allocator_stats", "gcap_allocator_read_stats", sizeof(Stats), older_stats,
         [this](void* given) { gcap_allocator_read_stats(device_, As<Stats>(given)); }, of_stats},
        {"gcap_allocator_stats", "gcap_allocator_read_stats", sizeof(Stats), older_stats,
         [this](void* given) { gcap_allocator_read_stats(gcap_scratch_allocator(scratch_), As<Stats>(given)); },
         of_stats},
    };
  }

  // Writes into a struct of `bytes`, full of something else before.
  static Bytes Write(const Writer& writer, size_t bytes) {
    Bytes before(bytes, '\x5a');
    SetSizeAt(&before, 0, bytes);
    const AtThePagesEnd given(before);
    writer.write(given.get());
    return given.content();
  }
};

TEST_F(WrittenStructs, AreWrittenAsFarAsTheProgramHasThem) {
  void* memory = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch_), 1000, &memory));
  for (const Writer& writer : Writers()) {
    SCOPED_TRACE(writer.name + " of " + writer.function);
    const Bytes today = Write(writer, writer.bytes);
    const Bytes older = Write(writer, writer.older_bytes);
    const Bytes newer = Write(writer, writer.bytes + 16);
    EXPECT_EQ(SizeAt(today, 0), today.size());
    EXPECT_EQ(SizeAt(older, 0), older.size());
    EXPECT_EQ(SizeAt(newer, 0), newer.size());
    for (const Field& field : writer.fields) {
      EXPECT_EQ(memcmp(&newer[field.offset], &today[field.offset], field.bytes), 0) << "at " << field.offset;
      if (field.offset >= writer.older_bytes) continue;
      EXPECT_EQ(memcmp(&older[field.offset], &today[field.offset], field.bytes), 0) << "at " << field.offset;
    }
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(newer[writer.bytes + i], 0) << "what the library lacks";
  }
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(scratch_, &stats);
  EXPECT_EQ(stats.num_allocs, 1u) << "not all that was compared was 0";
  GCAP_EXPECT_OK(gcap_allocator_free(gcap_scratch_allocator(scratch_), memory));
}

TEST_F(WrittenStructs, WithoutASizeAreLeftAlone) {
  for (const Writer& writer : Writers()) {
    SCOPED_TRACE(writer.name + " of " + writer.function);
    const Bytes before(sizeof(size_t), 0);
    const AtThePagesEnd given(before);
    writer.write(given.get());
    EXPECT_EQ(given.content(), before);
  }
}

// --- The headers ----------------------------------------------------------------------------------------------------

// The first member of each struct of options, infos, stats, resources or results, and of a run, that the text defines,
// by the struct's name without "_t".
std::map<std::string, std::string> FirstMembers(const std::string& text) {
  static const std::regex definition(
      R"(typedef\s+struct(?:\s+\w+)?\s*\{\s*([^;]*?)\s*;[^}]*\}\s*(gcap_run|\w+_(?:options|info|stats|resources|result))_t\s*;)");
  std::map<std::string, std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), definition), end; at != end; ++at) {
    found[(*at)[2]] = (*at)[1];
  }
  return found;
}

std::string HeadersOf(const std::string& folder) {
  std::ostringstream text;
  DIR* opened = opendir(folder.c_str());
  while (const dirent* entry = opened == nullptr ? nullptr : readdir(opened)) {
    std::ifstream file(folder + "/" + entry->d_name);
    for (std::string line; std::getline(file, line);) text << line.substr(0, line.find("//")) << "\n";
  }
  if (opened != nullptr) closedir(opened);
  return text.str();
}

TEST(SizedHeaders, AFirstMemberIsFoundHoweverItIsBroken) {
  const auto found = FirstMembers(
      "typedef struct a_options {\n  size_t struct_size;\n  int x;\n} a_options_t;\n"
      "typedef struct\n{ int\n x; size_t struct_size; } b_stats_t ;\ntypedef struct c { int x; } c_t;\n");
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"a_options", "size_t struct_size"}, {"b_stats", "int\n x"}}));
}

TEST_F(WrittenStructs, EveryStructOfOptionsInfosOrStatsBeginsWithItsSizeAndIsTriedHere) {
  std::set<std::string> tried;
  for (const Reader& reader : Readers()) {
    tried.insert(reader.name);
    for (const Part& part : reader.parts) tried.insert(part.name);
  }
  for (const Writer& writer : Writers()) tried.insert(writer.name);
  std::set<std::string> declared;
  const std::string headers =
      HeadersOf("include/gcap") + HeadersOf("include/gcap/kit") + HeadersOf("include/gcap/kit/ops");
  for (const auto& struct_and_member : FirstMembers(headers)) {
    EXPECT_EQ(struct_and_member.second, "size_t struct_size") << struct_and_member.first;
    declared.insert(struct_and_member.first);
  }
  EXPECT_EQ(declared, tried);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
