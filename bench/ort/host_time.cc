// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host_time LIBONNXRUNTIME PLUGIN EP_NAME MODEL [RUNS]: how long a call of RunWithBinding takes on the host, for a
// model of examples/ort_plugin_ep/digits_model.py on an EP of a plugin: eagerly, by a replay, and by a replay that
// nothing waits for. Prints the median of each, and what 99 of 100 stay below, in us.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

using Clock = std::chrono::steady_clock;

void Check(const std::string& error) {
  if (error.empty()) return;
  std::fprintf(stderr, "host_time: %s\n", error.c_str());
  std::exit(1);
}

// `wait` follows each call and is not measured.
void Measure(const char* name, int runs, const std::function<void()>& call, const std::function<void()>& wait) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    wait();
  }
  std::sort(times.begin(), times.end());
  std::printf("%-28s %8.1f us %8.1f us\n", name, times[times.size() / 2], times[times.size() * 99 / 100]);
}

void Run(const Ort* ort, gcap_ort_env_t* env, const gcap_ort_ep_device_t* device, const std::string& model, int runs) {
  OrtSession session(ort, env, device, model, {{"enable_cuda_graph", "1"}, {"use_tf32", "0"}});
  Check(session.error());
  OrtBinding binding(ort, session.get());
  DeviceTensor images(ort, env, device, {1, 1, 8, 8}, Floats(64, 0.5f)), probabilities(ort, env, device, {1, 10}, {});
  binding.BindInput("images", images);
  binding.BindOutput("probabilities", probabilities);
  const OrtRunOptions plain(ort, {}), eager(ort, {{"gpu_graph_id", "-1"}}),
      not_awaited(ort, {{"disable_synchronize_execution_providers", "1"}});
  const auto with = [&](const OrtRunOptions& options) {
    return [&] { Check(ort->Take(ort->api().RunWithBinding(session.get(), options.get(), binding.get()))); };
  };
  const auto wait = [&] { Check(ort->Take(ort->api().SynchronizeBoundOutputs(binding.get()))); };
  with(plain)();  // captures
  Measure("eager", runs, with(eager), [] {});
  Measure("replay", runs, with(plain), [] {});
  Measure("replay, not awaited", runs, with(not_awaited), wait);
}

int Main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: host_time LIBONNXRUNTIME PLUGIN EP_NAME MODEL [RUNS]\n");
    return 2;
  }
  const std::string list = std::string(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") + "/runtimes";
  std::ofstream(list) << "bench " << argv[1] << " - -\n";
  setenv("GCAP_ORT_RUNTIMES", list.c_str(), 1);
  setenv("GCAP_ORT_RUNTIME", "bench", 1);
  std::string reason;
  const Ort* const ort = Ort::Get(&reason);
  if (ort == nullptr) Check(reason);
  gcap_ort_env_t* env = nullptr;
  Check(ort->Take(ort->api().CreateEnv(GCAP_ORT_LOG_ERROR, "bench", &env)));
  Check(ort->Take(ort->api().RegisterExecutionProviderLibrary(env, argv[3], argv[2])));
  const gcap_ort_ep_device_t* const* devices = nullptr;
  size_t count = 0;
  Check(ort->Take(ort->api().GetEpDevices(env, &devices, &count)));
  const gcap_ort_ep_device_t* device = nullptr;
  for (size_t i = 0; i < count && device == nullptr; ++i) {
    if (std::strcmp(ort->api().EpDevice_EpName(devices[i]), argv[3]) == 0) device = devices[i];
  }
  if (device == nullptr) Check(std::string("the plugin has no device of the EP ") + argv[3]);
  std::ostringstream model;
  model << std::ifstream(argv[4], std::ios::binary).rdbuf();
  if (model.str().empty()) Check(std::string("no model ") + argv[4]);
  Run(ort, env, device, model.str(), argc > 5 ? std::atoi(argv[5]) : 2000);
  Check(ort->Take(ort->api().UnregisterExecutionProviderLibrary(env, argv[3])));
  ort->api().ReleaseEnv(env);
  return 0;
}

}  // namespace
}  // namespace testing
}  // namespace gcap

int main(int argc, char** argv) { return gcap::testing::Main(argc, argv); }
