// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime.h: a real ONNX Runtime with the test's plugin, from C++. Which one, the environment says: GCAP_ORT_RUNTIMES
// is the file of @gcap_ort, and GCAP_ORT_RUNTIME the line's name.
#ifndef GCAP_TEST_ORT_RUNTIME_H_
#define GCAP_TEST_ORT_RUNTIME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ort/abi/api.h"
#include "test/ort/test_plugin.h"

namespace gcap {
namespace testing {

using Options = std::vector<std::pair<std::string, std::string>>;
using Shape = std::vector<int64_t>;
using Floats = std::vector<float>;

// The process's ONNX Runtime. Loaded once, and never unloaded.
class Ort {
 public:
  // NULL where there is none; `*out_reason` says why.
  static const Ort* Get(std::string* out_reason);
  const gcap_ort_api_t& api() const { return *api_; }
  const gcap_ort_ep_api_t& ep_api() const { return *api_->GetEpApi(); }
  uint32_t version() const { return version_; }  // 26 for 1.26
  // The message of a failed call, which is freed; empty for success.
  std::string Take(gcap_ort_status_t* status) const;

 private:
  const gcap_ort_api_t* api_ = nullptr;
  uint32_t version_ = 0;
};

// Skips where there is no ONNX Runtime. Otherwise there is an environment with the plugin, of which nothing is left at
// the test's end.
class OrtTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Expects success.
  void Ok(gcap_ort_status_t* status) const { EXPECT_EQ(ort_->Take(status), ""); }
  const gcap_ort_api_t& api() const { return ort_->api(); }
  test_plugin_t& plugin() const { return *plugin_; }
  gcap_ort_env_t* env() const { return env_; }
  const gcap_ort_ep_device_t* device(size_t i = 0) const { return devices_[i]; }
  static constexpr char kRegistration[] = "gcap_test";  // the name under which the plugin is registered
  static std::string PluginPath();
  size_t num_devices() const { return devices_.size(); }
  const gcap_ort_ep_device_t* other_device() const { return other_; }  // of the EP GcapOther
  // A function that the plugin's library exports, by its name.
  template <typename Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(Symbol(name));
  }
  // The value of a counter of an allocator; -1 if the runtime does not tell it.
  long long Counter(gcap_ort_allocator_t* allocator, const char* key) const;
  // How many handles and allocations the simulator has.
  size_t Live() const;

  const Ort* ort_ = nullptr;
  size_t may_be_left_ = 0;  // handles of which the test has broken the end

 private:
  void* Symbol(const char* name) const;
  void* library_ = nullptr;
  test_plugin_t* plugin_ = nullptr;
  gcap_ort_env_t* env_ = nullptr;
  std::vector<const gcap_ort_ep_device_t*> devices_;
  const gcap_ort_ep_device_t* other_ = nullptr;
};

// A tensor of floats in the memory of the plugin's device.
class DeviceTensor {
 public:
  DeviceTensor(const Ort* ort, gcap_ort_env_t* env, const gcap_ort_ep_device_t* device, const Shape& shape,
               const Floats& values);
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  ~DeviceTensor();
  gcap_ort_value_t* value() const { return value_; }
  void Set(const Floats& values);
  Floats Get() const;

 private:
  gcap_ort_value_t* Host(const Floats& values) const;
  const Ort* ort_;
  gcap_ort_env_t* env_;
  Shape shape_;
  size_t size_ = 1;
  gcap_ort_value_t* value_ = nullptr;
};

// What a run is told.
class OrtRunOptions {
 public:
  OrtRunOptions(const Ort* ort, const Options& options);
  OrtRunOptions(const OrtRunOptions&) = delete;
  OrtRunOptions& operator=(const OrtRunOptions&) = delete;
  ~OrtRunOptions() { ort_->api().ReleaseRunOptions(options_); }
  gcap_ort_run_options_t* get() const { return options_; }

 private:
  const Ort* ort_;
  gcap_ort_run_options_t* options_ = nullptr;
};

// Tensors for the inputs and outputs of a session. One thread at a time.
class OrtBinding {
 public:
  OrtBinding(const Ort* ort, gcap_ort_session_t* session);
  OrtBinding(const OrtBinding&) = delete;
  OrtBinding& operator=(const OrtBinding&) = delete;
  ~OrtBinding() { ort_->api().ReleaseIoBinding(binding_); }
  gcap_ort_io_binding_t* get() const { return binding_; }
  void BindInput(const std::string& name, const DeviceTensor& tensor);
  void BindOutput(const std::string& name, const DeviceTensor& tensor);
  // Runs with what is bound, on `stream` where there is one. Gives the message of a failure.
  std::string Run(const Options& run_options = {}, gcap_ort_sync_stream_t* stream = nullptr);

 private:
  const Ort* ort_;
  gcap_ort_session_t* session_;
  gcap_ort_io_binding_t* binding_ = nullptr;
};

// A session on the plugin's device, and perhaps on one of another EP after it.
class OrtSession {
 public:
  OrtSession(const Ort* ort, gcap_ort_env_t* env, const gcap_ort_ep_device_t* device, const std::string& model,
             const Options& options, const gcap_ort_ep_device_t* other = nullptr,
             gcap_ort_execution_mode_t mode = GCAP_ORT_SEQUENTIAL);
  OrtSession(const OrtSession&) = delete;
  OrtSession& operator=(const OrtSession&) = delete;
  ~OrtSession();
  const std::string& error() const { return error_; }  // of its creation; empty for success
  gcap_ort_session_t* get() const { return session_; }

  // As OrtBinding's, of a binding that the session has.
  void BindInput(const std::string& name, const DeviceTensor& tensor) { binding_->BindInput(name, tensor); }
  void BindOutput(const std::string& name, const DeviceTensor& tensor) { binding_->BindOutput(name, tensor); }
  std::string Run(const Options& run_options = {}, gcap_ort_sync_stream_t* stream = nullptr) {
    return binding_->Run(run_options, stream);
  }
  // Runs with tensors of floats in host memory.
  std::string RunOnHost(const std::vector<std::string>& inputs, const std::vector<Shape>& shapes,
                        const std::vector<Floats>& values, const std::string& output, Floats* out_values,
                        const Options& run_options = {});

 private:
  const Ort* ort_;
  std::string error_;
  gcap_ort_session_t* session_ = nullptr;
  std::unique_ptr<OrtBinding> binding_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_ORT_RUNTIME_H_
