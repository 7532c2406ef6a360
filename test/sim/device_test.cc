// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a program may ask of a device and set on it, and attributes of streams, beyond the cases of //test/conformance.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuda_profiler_api.h"
#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

TEST(Device, LimitsAreKept) {
  size_t value = 0;
  EXPECT_EQ(cudaSuccess, cudaDeviceGetLimit(&value, cudaLimitStackSize));
  EXPECT_EQ(1024u, value);
  EXPECT_EQ(cudaSuccess, cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  EXPECT_EQ(cudaSuccess, cudaDeviceGetLimit(&value, cudaLimitStackSize));
  EXPECT_EQ(4096u, value);
  EXPECT_EQ(cudaSuccess, cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
  EXPECT_EQ(size_t{8} << 20, value);
  EXPECT_EQ(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&value, cudaLimitDevRuntimeSyncDepth));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceSetLimit(static_cast<cudaLimit>(7), 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 129));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
  EXPECT_EQ(cudaSuccess, cudaDeviceReset());
  EXPECT_EQ(cudaSuccess, cudaDeviceGetLimit(&value, cudaLimitStackSize));
  EXPECT_EQ(1024u, value);
}

TEST(Device, FlagsOfItsInitializationAreKept) {
  unsigned int flags = 0;
  EXPECT_EQ(cudaSuccess, cudaInitDevice(0, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid));
  EXPECT_EQ(cudaSuccess, cudaGetDeviceFlags(&flags));
  EXPECT_EQ(unsigned{cudaDeviceScheduleSpin | cudaDeviceMapHost}, flags);
  EXPECT_EQ(cudaSuccess, cudaInitDevice(0, 99, 0)) << "flags that are not said to be valid are not looked at";
}

TEST(Device, AResetForgetsTheWishForACache) {
  cudaFuncCache cache = cudaFuncCachePreferEqual;
  EXPECT_EQ(cudaSuccess, cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
  EXPECT_EQ(cudaSuccess, cudaDeviceReset());
  EXPECT_EQ(cudaSuccess, cudaDeviceGetCacheConfig(&cache));
  EXPECT_EQ(cudaFuncCachePreferNone, cache);
}

TEST(Device, TellsWhatArraysOfAGpuMayBe) {
  for (int attribute = cudaDevAttrMaxTexture1DWidth; attribute <= cudaDevAttrMaxTexture1DMipmappedWidth; ++attribute) {
    if (attribute == 44) continue;  // without a name
    int value = -1;
    EXPECT_EQ(cudaSuccess, cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0));
    EXPECT_GE(value, 0) << attribute;
  }
  int width = 0;
  EXPECT_EQ(cudaSuccess, cudaDeviceGetAttribute(&width, cudaDevAttrMaxTexture1DWidth, 0));
  EXPECT_EQ(131072, width);
}

TEST(Device, BanksOfSharedMemoryHaveFourBytes) {
  cudaSharedMemConfig config = cudaSharedMemBankSizeDefault;
  EXPECT_EQ(cudaSuccess, cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
  EXPECT_EQ(cudaSuccess, cudaDeviceGetSharedMemConfig(&config));
  EXPECT_EQ(cudaSharedMemBankSizeFourByte, config);
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceSetSharedMemConfig(static_cast<cudaSharedMemConfig>(3)));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetSharedMemConfig(nullptr));
}

TEST(Device, IsLookedAtByNoProfiler) {
  EXPECT_EQ(cudaSuccess, cudaProfilerStart());
  EXPECT_EQ(cudaSuccess, cudaProfilerStop());
}

TEST(Device, AChannelIsWhatItIsSaidToBe) {
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 16, 8, 4, cudaChannelFormatKindFloat);
  EXPECT_EQ(32, desc.x);
  EXPECT_EQ(16, desc.y);
  EXPECT_EQ(8, desc.z);
  EXPECT_EQ(4, desc.w);
  EXPECT_EQ(cudaChannelFormatKindFloat, desc.f);
}

// A program that has it in a place where nobody comes links, and is stopped where somebody does.
extern "C" cudaError_t cudaGetExportTable(const void** table, const void* id);

TEST(DeviceDeathTest, AFunctionThatIsNotDeclaredStopsWithItsName) {
  const void* table;
  EXPECT_DEATH(cudaGetExportTable(&table, nullptr), "cudaGetExportTable is not modelled");
}

// The documented answer of a device without the feature, which the attribute denies too.
TEST(Device, SharesNothingWithOtherProcesses) {
  int supported = -1;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&supported, cudaDevAttrIpcEventSupport, 0));
  EXPECT_EQ(0, supported);
  cudaIpcMemHandle_t memory_handle = {};
  cudaIpcEventHandle_t event_handle = {};
  void* memory;
  cudaEvent_t event, opened;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  EXPECT_EQ(cudaErrorNotSupported, cudaIpcGetMemHandle(&memory_handle, memory));
  EXPECT_EQ(cudaErrorNotSupported, cudaGetLastError());
  EXPECT_EQ(cudaErrorNotSupported, cudaIpcOpenMemHandle(&memory, memory_handle, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_EQ(cudaErrorNotSupported, cudaIpcCloseMemHandle(memory));
  EXPECT_EQ(cudaErrorNotSupported, cudaIpcGetEventHandle(&event_handle, event));
  EXPECT_EQ(cudaErrorNotSupported, cudaIpcOpenEventHandle(&opened, event_handle));
  cudaGetLastError();
  EXPECT_EQ(cudaSuccess, cudaEventRecord(event, nullptr)) << "an event of this process like others";
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
}

TEST(Device, IsFoundByItsPlaceOnTheBus) {
  char id[32];
  ASSERT_EQ(cudaSuccess, cudaDeviceGetPCIBusId(id, sizeof(id), 0));
  int bus = 0, device = -1;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, 0));
  EXPECT_EQ(bus, std::stoi(std::string(id).substr(5, 2), nullptr, 16));
  EXPECT_EQ(cudaSuccess, cudaDeviceGetByPCIBusId(&device, id));
  EXPECT_EQ(0, device);
  for (const char* text : {"0000:01:00", "01:00.0", "1:0"}) {
    device = -1;
    EXPECT_EQ(cudaSuccess, cudaDeviceGetByPCIBusId(&device, text)) << text;
    EXPECT_EQ(0, device);
  }
  for (const char* text : {"", "nonsense", "0000:01:00.0x"}) {
    EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, text)) << text;
  }
  for (const char* text : {"0000:7f:00.0", "0001:01:00.0"}) {
    EXPECT_EQ(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&device, text)) << text;
  }
  const int length = static_cast<int>(strlen(id));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(id, length, 0)) << "no room for the end";
  EXPECT_EQ(cudaSuccess, cudaDeviceGetPCIBusId(id, length + 1, 0));
  EXPECT_EQ(cudaErrorInvalidDevice, cudaDeviceGetPCIBusId(id, sizeof(id), 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(nullptr, 32, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(nullptr, "0:1:0"));
}

TEST(Device, CacheResetNeedsAThreadThatUsesADevice) {
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  EXPECT_EQ(cudaSuccess, cudaCtxResetPersistingL2Cache());
  std::thread([] { EXPECT_EQ(cudaErrorDeviceUninitialized, cudaCtxResetPersistingL2Cache()); }).join();
}

class StreamAttributes : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }
  cudaStreamAttrValue Get(cudaStreamAttrID id) {
    cudaStreamAttrValue value;
    EXPECT_EQ(cudaSuccess, cudaStreamGetAttribute(stream_, id, &value));
    return value;
  }
  cudaError_t Set(cudaStreamAttrID id, const cudaStreamAttrValue& value) {
    return cudaStreamSetAttribute(stream_, id, &value);
  }
  cudaStream_t stream_;
};

TEST_F(StreamAttributes, AreKept) {
  EXPECT_EQ(-1, static_cast<int>(Get(cudaStreamAttributeSynchronizationPolicy).syncPolicy)) << "none was set";
  EXPECT_EQ(1, Get(cudaStreamAttributeMemSyncDomainMap).memSyncDomainMap.remote);
  cudaStreamAttrValue value = {};
  value.syncPolicy = cudaSyncPolicyYield;
  EXPECT_EQ(cudaSuccess, Set(cudaStreamAttributeSynchronizationPolicy, value));
  EXPECT_EQ(cudaSyncPolicyYield, Get(cudaStreamAttributeSynchronizationPolicy).syncPolicy);
  value = {};
  value.priority = -99;
  EXPECT_EQ(cudaSuccess, Set(cudaStreamAttributePriority, value));
  int priority = 0;
  EXPECT_EQ(cudaSuccess, cudaStreamGetPriority(stream_, &priority));
  EXPECT_EQ(-5, priority);
  value = {};
  value.accessPolicyWindow.num_bytes = 4096;
  value.accessPolicyWindow.hitRatio = 0.5f;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  EXPECT_EQ(cudaSuccess, Set(cudaStreamAttributeAccessPolicyWindow, value));
  EXPECT_EQ(4096u, Get(cudaStreamAttributeAccessPolicyWindow).accessPolicyWindow.num_bytes);
  cudaStream_t other;
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&other));
  EXPECT_EQ(cudaSuccess, cudaStreamCopyAttributes(other, stream_));
  EXPECT_EQ(cudaSuccess, cudaStreamGetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &value));
  EXPECT_EQ(cudaSyncPolicyYield, value.syncPolicy);
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(other));
}

TEST_F(StreamAttributes, RefuseBadValues) {
  cudaStreamAttrValue value = {};
  EXPECT_EQ(cudaErrorInvalidValue, Set(cudaStreamAttributeSynchronizationPolicy, value));
  value.accessPolicyWindow.hitRatio = 1.5f;
  EXPECT_EQ(cudaErrorInvalidValue, Set(cudaStreamAttributeAccessPolicyWindow, value));
  value = {};
  value.accessPolicyWindow.missProp = cudaAccessPropertyPersisting;
  EXPECT_EQ(cudaErrorInvalidValue, Set(cudaStreamAttributeAccessPolicyWindow, value));
  EXPECT_EQ(cudaErrorInvalidValue, Set(cudaLaunchAttributeClusterDimension, value));
  EXPECT_DEATH(cudaStreamSetAttribute(stream_, cudaStreamAttributePriority, nullptr), "the value is NULL");
  EXPECT_DEATH(cudaStreamGetAttribute(stream_, cudaStreamAttributePriority, nullptr), "the value is NULL");
  EXPECT_EQ(cudaErrorInvalidValue, cudaStreamGetAttribute(stream_, cudaLaunchAttributeCooperative, &value));
}

void Note(cudaStream_t stream, cudaError_t status, void* user) {
  EXPECT_EQ(cudaSuccess, status);
  static_cast<std::vector<cudaStream_t>*>(user)->push_back(stream);
}

TEST_F(StreamAttributes, CallbacksComeInOrderAndKnowTheirStream) {
  std::vector<cudaStream_t> seen;
  ASSERT_EQ(cudaSuccess, cudaStreamAddCallback(stream_, Note, &seen, 0));
  ASSERT_EQ(cudaSuccess, cudaStreamAddCallback(cudaStreamLegacy, Note, &seen, 0));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(cudaStreamLegacy));
  EXPECT_EQ((std::vector<cudaStream_t>{stream_, cudaStreamLegacy}), seen);
}

}  // namespace
