// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "test/ort/runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace gcap {
namespace testing {
namespace {

// Of a session that is GCAP_ORT_PARALLEL, however many processors there are.
constexpr int kThreads = 3;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// ONNX Runtime looks for other paths beside itself.
std::string Absolute(const std::string& path) {
  char* found = realpath(path.c_str(), nullptr);
  const std::string absolute = found != nullptr ? found : path;
  std::free(found);
  return absolute;
}

// The library of this test's runtime; empty if there is none.
std::string LibraryPath() {
  std::ifstream file(Environment("GCAP_ORT_RUNTIMES"));
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, library;
    words >> name >> library;
    if (name == Environment("GCAP_ORT_RUNTIME")) return library;
  }
  return "";
}

struct Loaded {
  std::string reason;
  const gcap_ort_api_t* api = nullptr;
  uint32_t version = 0;
};

Loaded Load() {
  Loaded loaded;
  const std::string path = LibraryPath();
  if (path.empty()) {
    loaded.reason = "no ONNX Runtime '" + Environment("GCAP_ORT_RUNTIME") + "': set GCAP_ORT_FETCH=pip";
    return loaded;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.reason = dlerror();
    return loaded;
  }
  using GetApiBase = const gcap_ort_api_base_t* (*)();
  const gcap_ort_api_base_t* base = reinterpret_cast<GetApiBase>(dlsym(library, "OrtGetApiBase"))();
  unsigned minor = 0;
  std::sscanf(base->GetVersionString(), "1.%u.", &minor);
  loaded.version = minor;
  loaded.api = base->GetApi(minor);
  return loaded;
}

}  // namespace

const Ort* Ort::Get(std::string* out_reason) {
  static const Loaded loaded = Load();
  static Ort ort;
  ort.api_ = loaded.api;
  ort.version_ = loaded.version;
  *out_reason = loaded.reason;
  return loaded.api != nullptr ? &ort : nullptr;
}

std::string Ort::Take(gcap_ort_status_t* status) const {
  if (status == nullptr) return "";
  const std::string message = api_->GetErrorMessage(status);
  api_->ReleaseStatus(status);
  return message.empty() ? "a failure without a message" : message;
}

// --- The fixture ----------------------------------------------------------------------------------------------------

constexpr char OrtTest::kRegistration[];

std::string OrtTest::PluginPath() { return Absolute(Environment("GCAP_ORT_TEST_PLUGIN")); }

void OrtTest::SetUp() {
  std::string reason;
  ort_ = Ort::Get(&reason);
  if (ort_ == nullptr) GTEST_SKIP() << reason;
  const std::string path = PluginPath();
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library_, nullptr) << dlerror();
  plugin_ = Find<test_plugin_state_t>("test_plugin_state")();
  *plugin_ = {};
  Ok(api().CreateEnv(GCAP_ORT_LOG_ERROR, "test", &env_));
  ASSERT_EQ(ort_->Take(api().RegisterExecutionProviderLibrary(env_, kRegistration, path.c_str())), "");
  const gcap_ort_ep_device_t* const* devices = nullptr;
  size_t count = 0;
  Ok(api().GetEpDevices(env_, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    const std::string name = api().EpDevice_EpName(devices[i]);
    if (name == "GcapTest") devices_.push_back(devices[i]);
    if (name == "GcapOther" && other_ == nullptr) other_ = devices[i];
  }
  ASSERT_FALSE(devices_.empty());
}

void OrtTest::TearDown() {
  if (env_ == nullptr) return;
  Ok(api().UnregisterExecutionProviderLibrary(env_, kRegistration));
  api().ReleaseEnv(env_);
  EXPECT_LE(Live(), may_be_left_);
  dlclose(library_);
}

void* OrtTest::Symbol(const char* name) const {
  void* symbol = dlsym(library_, name);
  EXPECT_NE(symbol, nullptr) << name;
  return symbol;
}

long long OrtTest::Counter(gcap_ort_allocator_t* allocator, const char* key) const {
  gcap_ort_key_values_t* pairs = nullptr;
  Ok(api().AllocatorGetStats(allocator, &pairs));
  const char* text = api().GetKeyValue(pairs, key);
  const long long value = text != nullptr ? std::atoll(text) : -1;
  api().ReleaseKeyValuePairs(pairs);
  return value;
}

size_t OrtTest::Live() const { return Find<size_t (*)(const char*)>("gcap_sim_live")(nullptr); }

// --- Tensors --------------------------------------------------------------------------------------------------------

DeviceTensor::DeviceTensor(const Ort* ort, gcap_ort_env_t* env, const gcap_ort_ep_device_t* device, const Shape& shape,
                           const Floats& values)
    : ort_(ort), env_(env), shape_(shape) {
  for (int64_t size : shape) size_ *= static_cast<size_t>(size);
  const gcap_ort_memory_info_t* info = ort->api().EpDevice_MemoryInfo(device, GCAP_ORT_MEMORY_DEFAULT);
  gcap_ort_allocator_t* allocator = nullptr;
  EXPECT_EQ(ort->Take(ort->api().GetSharedAllocator(env, info, &allocator)), "");
  EXPECT_EQ(
      ort->Take(ort->api().CreateTensorAsOrtValue(allocator, shape.data(), shape.size(), GCAP_ORT_FLOAT, &value_)), "");
  if (!values.empty()) Set(values);
}

DeviceTensor::~DeviceTensor() { ort_->api().ReleaseValue(value_); }

gcap_ort_value_t* DeviceTensor::Host(const Floats& values) const {
  gcap_ort_memory_info_t* info = nullptr;
  gcap_ort_value_t* value = nullptr;
  EXPECT_EQ(ort_->Take(ort_->api().CreateCpuMemoryInfo(GCAP_ORT_DEVICE_ALLOCATOR, GCAP_ORT_MEM_DEFAULT, &info)), "");
  EXPECT_EQ(ort_->Take(ort_->api().CreateTensorWithDataAsOrtValue(info, const_cast<float*>(values.data()),
                                                                  values.size() * sizeof(float), shape_.data(),
                                                                  shape_.size(), GCAP_ORT_FLOAT, &value)),
            "");
  ort_->api().ReleaseMemoryInfo(info);
  return value;
}

void DeviceTensor::Set(const Floats& values) {
  gcap_ort_value_t* host = Host(values);
  EXPECT_EQ(ort_->Take(ort_->api().CopyTensors(env_, &host, &value_, nullptr, 1)), "");
  ort_->api().ReleaseValue(host);
}

Floats DeviceTensor::Get() const {
  Floats values(size_);
  gcap_ort_value_t* host = Host(values);
  EXPECT_EQ(ort_->Take(ort_->api().CopyTensors(env_, &value_, &host, nullptr, 1)), "");
  ort_->api().ReleaseValue(host);
  return values;
}

// --- Runs -----------------------------------------------------------------------------------------------------------

OrtRunOptions::OrtRunOptions(const Ort* ort, const Options& options) : ort_(ort) {
  EXPECT_EQ(ort->Take(ort->api().CreateRunOptions(&options_)), "");
  for (const auto& option : options) {
    EXPECT_EQ(ort->Take(ort->api().AddRunConfigEntry(options_, option.first.c_str(), option.second.c_str())), "");
  }
}

OrtBinding::OrtBinding(const Ort* ort, gcap_ort_session_t* session) : ort_(ort), session_(session) {
  EXPECT_EQ(ort->Take(ort->api().CreateIoBinding(session, &binding_)), "");
}

void OrtBinding::BindInput(const std::string& name, const DeviceTensor& tensor) {
  EXPECT_EQ(ort_->Take(ort_->api().BindInput(binding_, name.c_str(), tensor.value())), "");
}

void OrtBinding::BindOutput(const std::string& name, const DeviceTensor& tensor) {
  EXPECT_EQ(ort_->Take(ort_->api().BindOutput(binding_, name.c_str(), tensor.value())), "");
}

std::string OrtBinding::Run(const Options& run_options, gcap_ort_sync_stream_t* stream) {
  const OrtRunOptions made(ort_, run_options);
  if (stream != nullptr) ort_->api().RunOptionsSetSyncStream(made.get(), stream);
  return ort_->Take(ort_->api().RunWithBinding(session_, made.get(), binding_));
}

// --- Sessions -------------------------------------------------------------------------------------------------------

OrtSession::OrtSession(const Ort* ort, gcap_ort_env_t* env, const gcap_ort_ep_device_t* device,
                       const std::string& model, const Options& options, const gcap_ort_ep_device_t* other,
                       gcap_ort_execution_mode_t mode)
    : ort_(ort) {
  std::vector<const char*> keys, values;
  for (const auto& option : options) {
    keys.push_back(option.first.c_str());
    values.push_back(option.second.c_str());
  }
  gcap_ort_session_options_t* session_options = nullptr;
  error_ = ort->Take(ort->api().CreateSessionOptions(&session_options));
  if (error_.empty()) error_ = ort->Take(ort->api().SetSessionExecutionMode(session_options, mode));
  if (error_.empty() && mode == GCAP_ORT_PARALLEL) {
    error_ = ort->Take(ort->api().SetInterOpNumThreads(session_options, kThreads));
  }
  if (error_.empty()) {
    error_ = ort->Take(ort->api().SessionOptionsAppendExecutionProvider_V2(session_options, env, &device, 1,
                                                                           keys.data(), values.data(), keys.size()));
  }
  if (error_.empty() && other != nullptr) {
    error_ = ort->Take(
        ort->api().SessionOptionsAppendExecutionProvider_V2(session_options, env, &other, 1, nullptr, nullptr, 0));
  }
  if (error_.empty()) {
    error_ = ort->Take(ort->api().CreateSessionFromArray(env, model.data(), model.size(), session_options, &session_));
  }
  ort->api().ReleaseSessionOptions(session_options);
  if (session_ != nullptr) binding_.reset(new OrtBinding(ort, session_));
}

OrtSession::~OrtSession() {
  binding_.reset();
  if (session_ != nullptr) ort_->api().ReleaseSession(session_);
}

std::string OrtSession::RunOnHost(const std::vector<std::string>& inputs, const std::vector<Shape>& shapes,
                                  const std::vector<Floats>& values, const std::string& output, Floats* out_values,
                                  const Options& run_options) {
  const gcap_ort_api_t& api = ort_->api();
  gcap_ort_memory_info_t* info = nullptr;
  EXPECT_EQ(ort_->Take(api.CreateCpuMemoryInfo(GCAP_ORT_DEVICE_ALLOCATOR, GCAP_ORT_MEM_DEFAULT, &info)), "");
  std::vector<const char*> names;
  std::vector<gcap_ort_value_t*> feeds(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(inputs[i].c_str());
    EXPECT_EQ(ort_->Take(api.CreateTensorWithDataAsOrtValue(info, const_cast<float*>(values[i].data()),
                                                            values[i].size() * sizeof(float), shapes[i].data(),
                                                            shapes[i].size(), GCAP_ORT_FLOAT, &feeds[i])),
              "");
  }
  OrtRunOptions made(ort_, run_options);
  const char* output_name = output.c_str();
  gcap_ort_value_t* fetched = nullptr;
  const std::string error =
      ort_->Take(api.Run(session_, made.get(), names.data(), feeds.data(), feeds.size(), &output_name, 1, &fetched));
  out_values->clear();
  size_t bytes = 0;
  const void* data = nullptr;
  // After a replay that has no tensor for the output, what was fetched has none either.
  if (fetched != nullptr && ort_->Take(api.GetTensorSizeInBytes(fetched, &bytes)).empty() &&
      ort_->Take(api.GetTensorData(fetched, &data)).empty()) {
    out_values->assign(static_cast<const float*>(data), static_cast<const float*>(data) + bytes / sizeof(float));
  }
  if (fetched != nullptr) api.ReleaseValue(fetched);
  for (gcap_ort_value_t* feed : feeds) api.ReleaseValue(feed);
  api.ReleaseMemoryInfo(info);
  return error;
}

}  // namespace testing
}  // namespace gcap
