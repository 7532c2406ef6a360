// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runtimes that are older or newer than gcap knows, and plugins that lack something, without an ONNX Runtime.

#include <cstring>
#include <string>

#include "gcap/kit/ort.h"
#include "gtest/gtest.h"
#include "ort/abi/api.h"

namespace gcap {
namespace testing {
namespace {

// A runtime of which nothing works but the making of statuses.
struct Runtime {
  std::string version;
  uint32_t asked_for = 0;
  std::string message;
  gcap_ort_error_code_t code = GCAP_ORT_OK;
} runtime;

gcap_ort_status_t* CreateStatus(gcap_ort_error_code_t code, const char* message) {
  runtime.code = code;
  runtime.message = message;
  return reinterpret_cast<gcap_ort_status_t*>(&runtime);
}
gcap_ort_error_code_t GetErrorCode(const gcap_ort_status_t*) { return GCAP_ORT_FAIL; }
const char* GetErrorMessage(const gcap_ort_status_t*) { return "the runtime of the test does nothing"; }
void ReleaseStatus(gcap_ort_status_t*) {}
gcap_ort_status_t* Fail() { return reinterpret_cast<gcap_ort_status_t*>(&runtime); }

const gcap_ort_ep_api_t* GetEpApi() {
  static gcap_ort_ep_api_t api;
  using Slot = gcap_ort_status_t* (*)();
  for (size_t i = 0; i < sizeof(api) / sizeof(Slot); ++i) reinterpret_cast<Slot*>(&api)[i] = Fail;
  return &api;
}
const gcap_ort_api_t* GetApi(uint32_t version) {
  static gcap_ort_api_t api;
  using Slot = gcap_ort_status_t* (*)();
  for (size_t i = 0; i < sizeof(api) / sizeof(Slot); ++i) reinterpret_cast<Slot*>(&api)[i] = Fail;
  api.CreateStatus = CreateStatus;
  api.GetErrorCode = GetErrorCode;
  api.GetErrorMessage = GetErrorMessage;
  api.ReleaseStatus = ReleaseStatus;
  api.GetEpApi = GetEpApi;
  runtime.asked_for = version;
  return &api;
}
const char* GetVersionString() { return runtime.version.c_str(); }
const gcap_ort_api_base_t kBase = {GetApi, GetVersionString};

gcap_status_t CreateEp(void*, const gcap_options_t*, gcap_ep_t**) { return nullptr; }

const gcap_ort_op_t kNoOps[] = {{}};
const gcap_ort_attribute_t kNoAttributes[] = {{}};

gcap_ort_plugin_t Plugin() {
  gcap_ort_plugin_t plugin = {};
  plugin.struct_size = sizeof(plugin);
  plugin.name = "Mine";
  plugin.vendor = "me";
  plugin.version = "1.0.0";
  plugin.create_ep = CreateEp;
  plugin.ops = kNoOps;
  plugin.attributes = kNoAttributes;
  return plugin;
}

// Loads the plugin into a runtime of this version; gives the message of the failure.
std::string Load(const std::string& version, const gcap_ort_plugin_t& plugin, size_t room = 4) {
  runtime = {version, 0, "", GCAP_ORT_OK};
  void* factories[4] = {};
  size_t count = 99;
  void* status = gcap_ort_create_factories(&plugin, &kBase, nullptr, factories, room, &count);
  EXPECT_NE(status, nullptr);
  EXPECT_EQ(count, 0u);
  return runtime.message;
}

TEST(OrtVersionTest, OlderRuntimesAreRefusedWithBothVersions) {
  for (const char* version : {"1.25.1", "1.9.0", "0.5.0", "2.0.0", "nonsense", ""}) {
    const std::string message = Load(version, Plugin());
    EXPECT_EQ(runtime.code, GCAP_ORT_NOT_IMPLEMENTED) << version;
    EXPECT_NE(message.find("'Mine' needs ONNX Runtime 1.26 or newer; this is " + std::string(version)),
              std::string::npos)
        << message;
  }
}

TEST(OrtVersionTest, TheLowerVersionOfBothIsUsed) {
  const struct {
    const char* version;
    uint32_t used;
  } cases[] = {{"1.26.0", 26}, {"1.27.3", 27}, {"1.32.0", 32}, {"1.33.1", 32}, {"1.400.0", 32}};
  for (const auto& c : cases) {
    const std::string message = Load(c.version, Plugin());
    EXPECT_EQ(runtime.asked_for, c.used) << c.version;
    EXPECT_NE(message.find("the runtime of the test does nothing"), std::string::npos) << message;
  }
}

TEST(OrtVersionTest, PluginThatLacksSomethingIsRefusedByName) {
  const auto refused = [](const char* missing, const gcap_ort_plugin_t& plugin) {
    const std::string message = Load("1.30.0", plugin);
    EXPECT_EQ(runtime.code, GCAP_ORT_INVALID_ARGUMENT);
    EXPECT_NE(message.find(std::string("lacks its ") + missing), std::string::npos) << message;
  };
  gcap_ort_plugin_t plugin = Plugin();
  plugin.struct_size = 8;
  refused("struct_size", plugin);
  plugin = Plugin();
  plugin.name = "";
  refused("name", plugin);
  plugin = Plugin();
  plugin.vendor = nullptr;
  refused("vendor", plugin);
  plugin = Plugin();
  plugin.version = nullptr;
  refused("version", plugin);
  plugin = Plugin();
  plugin.create_ep = nullptr;
  refused("create_ep", plugin);
  plugin = Plugin();
  plugin.ops = nullptr;
  refused("ops", plugin);
  plugin = Plugin();
  plugin.attributes = nullptr;
  refused("attributes", plugin);
  EXPECT_NE(Load("1.30.0", Plugin(), /*room=*/0).find("one factory"), std::string::npos);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
