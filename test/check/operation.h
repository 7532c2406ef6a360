// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// operation.h: an operation under check: its buffers, which are device memory of its own, and its work.
#ifndef GCAP_TEST_CHECK_OPERATION_H_
#define GCAP_TEST_CHECK_OPERATION_H_

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gcap/kit/check.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/kernels/moving_kernels.h"

namespace gcap {
namespace testing {

constexpr size_t kElements = 256;
constexpr size_t kElementBytes = kElements * sizeof(float);

// Device memory. A byte more than asked for, so that no two blocks touch.
class Block {
 public:
  explicit Block(size_t bytes = kElementBytes) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes + 1), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0, bytes), cudaSuccess);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  void* get() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  void* data_ = nullptr;
};

// --- Calls that works are made of --------------------------------------------------------------------------------------

inline gcap_status_t Launch(const void* kernel, unsigned threads, void** args, cudaStream_t stream) {
  return GCAP_CUDA(cudaLaunchKernel(kernel, dim3(1), dim3(threads), args, 0, stream));
}

// y = max(x, 0)
inline gcap_status_t Relu(const float* x, float* y, cudaStream_t stream, int64_t count = kElements) {
  void* args[] = {&x, &y, &count};
  return Launch(reinterpret_cast<const void*>(gcap_kernel_relu_f32), 256, args, stream);
}

// y = x + addend
inline gcap_status_t Add(const float* x, float* y, uint64_t addend, cudaStream_t stream, uint32_t count = kElements) {
  void* args[] = {&x, &y, &addend, &count};
  return Launch(reinterpret_cast<const void*>(gcap_kernel_add_scalar), 256, args, stream);
}

// table[1] = table[0] + 1
inline gcap_status_t AddTable(float* const* table, cudaStream_t stream, uint32_t count = kElements) {
  void* args[] = {&table, &count};
  return Launch(reinterpret_cast<const void*>(gcap_kernel_add_table), 256, args, stream);
}

inline gcap_status_t Copy(void* to, const void* from, cudaStream_t stream, size_t bytes = kElementBytes) {
  return GCAP_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

inline gcap_status_t Fill(void* memory, int byte, cudaStream_t stream, size_t bytes = kElementBytes) {
  return GCAP_CUDA(cudaMemsetAsync(memory, byte, bytes, stream));
}

// --- Operations ----------------------------------------------------------------------------------------------------------

using Work = std::function<gcap_status_t(const gcap_run_resources_t*)>;

class Operation {
 public:
  explicit Operation(const char* name) { check.name = name; }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Buffers of so many bytes. What they return lives as long as the operation.
  float* Input(const char* name, size_t bytes = kElementBytes, gcap_dtype_t type = GCAP_DTYPE_F32) {
    return Add(&inputs_, name, bytes, type)->floats();
  }
  float* Output(const char* name, size_t bytes = kElementBytes, gcap_dtype_t type = GCAP_DTYPE_F32) {
    return Add(&outputs_, name, bytes, type)->floats();
  }
  float* InPlace(const char* name, size_t bytes = kElementBytes, gcap_dtype_t type = GCAP_DTYPE_F32) {
    float* const memory = Output(name, bytes, type);
    outputs_.back().in_place = true;
    return memory;
  }
  // A value of the host's.
  template <typename T>
  void HostInput(const char* name, T* value, gcap_dtype_t type) {
    gcap_check_buffer_t buffer = {};
    buffer.name = name;
    buffer.address = value;
    buffer.bytes = sizeof(T);
    buffer.type = type;
    buffer.on_host = true;
    inputs_.push_back(buffer);
  }
  // An output in memory of another one.
  void Append(const gcap_check_buffer_t& output) { outputs_.push_back(output); }
  gcap_check_buffer_t& last_input() { return inputs_.back(); }
  gcap_check_buffer_t& last_output() { return outputs_.back(); }
  // Memory that is none of the operation's buffers.
  Block* Own(size_t bytes = kElementBytes) {
    blocks_.push_back(std::make_unique<Block>(bytes));
    return blocks_.back().get();
  }
  // Lives as long as the operation.
  void Keep(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }

  gcap_status_t Run(gcap_check_report_t* report) {
    check.work = Issue;
    check.user = this;
    check.inputs = inputs_.data();
    check.num_inputs = inputs_.size();
    check.outputs = outputs_.data();
    check.num_outputs = outputs_.size();
    return gcap_check_capturable(&check, report);
  }

  Work work;
  gcap_check_t check = [] {
    gcap_check_t made;
    gcap_check_init(&made);
    return made;
  }();

 private:
  static gcap_status_t Issue(void* user, const gcap_run_resources_t* resources) {
    return static_cast<Operation*>(user)->work(resources);
  }
  Block* Add(std::vector<gcap_check_buffer_t>* list, const char* name, size_t bytes, gcap_dtype_t type) {
    Block* const block = Own(bytes);
    gcap_check_buffer_t buffer = {};
    buffer.name = name;
    buffer.address = block->get();
    buffer.bytes = bytes;
    buffer.type = type;
    list->push_back(buffer);
    return block;
  }

  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<gcap_check_buffer_t> inputs_, outputs_;
};

// A suite whose checks are timed. Nothing is asserted of the times.
class TimedChecks : public DeviceTest {
 protected:
  static void TearDownTestSuite() {
    if (checks_ == 0) return;
    std::printf("%d checks, %.1f ms each\n", checks_, static_cast<double>(ns_) / 1e6 / checks_);
    checks_ = 0;
    ns_ = 0;
  }
  static gcap_status_t RunTimed(Operation* operation, gcap_check_report_t* report) {
    const auto begin = std::chrono::steady_clock::now();
    gcap_status_t status = operation->Run(report);
    ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    ++checks_;
    return status;
  }

 private:
  inline static int checks_ = 0;
  inline static int64_t ns_ = 0;
};

// A report as text, for messages of tests.
inline std::string TextOf(const gcap_check_t& check, const gcap_check_report_t& report) {
  char* chars = nullptr;
  size_t size = 0;
  FILE* const file = open_memstream(&chars, &size);
  gcap_check_print(&check, &report, file);
  fclose(file);
  std::string text(chars, size);
  std::free(chars);
  return text;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CHECK_OPERATION_H_
