// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the driver that a program gets from the runtime, and what those tell of a pointer.
#include "test/conformance/rig.h"
#include "test/support/kernels/device_kernels.h"

namespace conformance {

namespace {

// cuPointerGetAttribute and cuPointerGetAttributes, by the driver's ABI.
using GetAttribute = int (*)(void*, int, unsigned long long);
using GetAttributes = int (*)(unsigned int, int*, void**, unsigned long long);

enum { kMemoryType = 2, kDevicePointer = 3, kHostPointer = 4, kBufferId = 7, kIsManaged = 8, kOrdinal = 9 };
enum { kRangeStart = 11, kRangeSize = 12, kMapped = 13, kMempool = 17 };

template <typename Function>
Function Entry(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  (void)cudaGetDriverEntryPointByVersion(name, &function, CUDART_VERSION, cudaEnableDefault, &status);
  return reinterpret_cast<Function>(function);
}

unsigned long long Address(const void* p) { return reinterpret_cast<unsigned long long>(p); }

// What the driver says of an attribute whose value has no more than eight bytes.
std::string Ask(GetAttribute get, int attribute, const void* p) {
  unsigned long long value = 0;
  const int code = get(&value, attribute, Address(p));
  return code == 0 ? Format("%llu", value) : Format("error %d", code);
}

std::string Range(GetAttribute get, const void* base, const void* p) {
  unsigned long long start = 77, size = 77;
  const int first = get(&start, kRangeStart, Address(p)), second = get(&size, kRangeSize, Address(p));
  const char* where = start == Address(base) ? "base" : start == 77 ? "untouched" : start == 0 ? "0" : "other";
  return Format("start=%d %s size=%d %llu", first, where, second, size);
}

}  // namespace

OBSERVE("probe.pointer.entry_point", Once().InOwnProcess()) {
  void* f = Untouched<void>();
  cudaDriverEntryPointQueryResult status = (cudaDriverEntryPointQueryResult)77;
  const auto probe = [&](const char* step, const char* name, unsigned int version, unsigned long long flags) {
    f = Untouched<void>();
    status = (cudaDriverEntryPointQueryResult)77;
    PROBE_AS_AND(step, cudaGetDriverEntryPointByVersion(name, &f, version, flags, &status), "f=%s status=%d",
                 PointerState(f), status);
  };
  probe("known", "cuPointerGetAttribute", 13000, cudaEnableDefault);
  probe("known, several", "cuPointerGetAttributes", 13000, cudaEnableDefault);
  probe("unknown", "cuNoSuchFunction", 13000, cudaEnableDefault);
  probe("not of the driver", "malloc", 13000, cudaEnableDefault);
  probe("of the runtime", "cudaMalloc", 13000, cudaEnableDefault);
  probe("empty", "", 13000, cudaEnableDefault);
  probe("NULL", nullptr, 13000, cudaEnableDefault);
  probe("version 4000", "cuPointerGetAttribute", 4000, cudaEnableDefault);
  probe("version 3000", "cuPointerGetAttribute", 3000, cudaEnableDefault);
  probe("version 0", "cuPointerGetAttribute", 0, cudaEnableDefault);
  probe("version 99000", "cuPointerGetAttribute", 99000, cudaEnableDefault);
  probe("legacy stream", "cuPointerGetAttribute", 13000, cudaEnableLegacyStream);
  probe("per-thread stream", "cuPointerGetAttribute", 13000, cudaEnablePerThreadDefaultStream);
  probe("flags 3", "cuPointerGetAttribute", 13000, 3);
  probe("flags 4", "cuPointerGetAttribute", 13000, 4);
  PROBE(cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", nullptr, 13000, cudaEnableDefault, &status));
  PROBE(cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &f, 13000, cudaEnableDefault, nullptr));
  PROBE(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &f, 13000, cudaEnableDefault, nullptr));
  const auto get = Entry<GetAttribute>("cuPointerGetAttribute");
  int type = 0;
  o.Note("before any other call", Format("%d", get(&type, kMemoryType, 0x1000)));
}

OBSERVE("probe.pointer.ranges", Once().InOwnProcess()) {
  Rig r(o);
  const auto get = Entry<GetAttribute>("cuPointerGetAttribute");
  void *odd = nullptr, *pool = nullptr, *managed = nullptr, *symbol = nullptr;
  REQUIRE_CUDA(cudaMalloc(&odd, 1000));
  REQUIRE_CUDA(cudaMallocAsync(&pool, 1000, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  REQUIRE_CUDA(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal));
  REQUIRE_CUDA(cudaGetSymbolAddress(&symbol, gcap_test_symbol_global()));
  char* registered = static_cast<char*>(std::aligned_alloc(4096, 8192));
  REQUIRE_CUDA(cudaHostRegister(registered, 8192, 0));
  const auto note = [&](const char* what, const void* base, size_t offset) {
    const void* p = static_cast<const char*>(base) + offset;
    o.Note(Format("range of %s", what), Range(get, base, p));
    o.Note(Format("kind of %s", what),
           Format("type=%s managed=%s ordinal=%s mapped=%s", Ask(get, kMemoryType, p).c_str(),
                  Ask(get, kIsManaged, p).c_str(), Ask(get, kOrdinal, p).c_str(), Ask(get, kMapped, p).c_str()));
    unsigned long long device = 77, host = 77, id = 0, pool_handle = 77;
    const int a = get(&device, kDevicePointer, Address(p)), b = get(&host, kHostPointer, Address(p));
    const int c = get(&id, kBufferId, Address(p)), d = get(&pool_handle, kMempool, Address(p));
    o.Note(Format("pointers of %s", what),
           Format("device=%d same=%d host=%d same=%d id=%d positive=%d pool=%d set=%d", a, device == Address(p), b,
                  host == Address(p), c, id > 0, d, pool_handle != 0 && pool_handle != 77));
  };
  note("device memory", r.d, 0);
  note("device memory, inside", r.d, 100);
  note("1000 bytes", odd, 999);
  note("1000 bytes, past the end", odd, 1001);
  note("memory of a pool", pool, 8);
  note("managed memory", managed, 8);
  note("pinned memory", r.h, 8);
  note("registered memory", registered, 8);
  note("a variable of the device", symbol, 4);
  note("pageable memory", r.pageable, 0);
  note("NULL", nullptr, 0);
  note("0x1000", reinterpret_cast<void*>(0x1000), 0);
  unsigned long long value = 0;
  o.Note("NULL data", Format("%d", get(nullptr, kRangeSize, Address(r.d))));
  o.Note("attribute 0", Format("%d", get(&value, 0, Address(r.d))));
  o.Note("attribute 99", Format("%d", get(&value, 99, Address(r.d))));
  REQUIRE_CUDA(cudaFree(odd));
  o.Note("range of freed memory", Range(get, odd, odd));
  REQUIRE_CUDA(cudaFreeAsync(pool, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  o.Note("range of memory given back to its pool", Range(get, pool, pool));
}

OBSERVE("probe.pointer.buffer_id", Once().InOwnProcess()) {
  Rig r(o);
  const auto get = Entry<GetAttribute>("cuPointerGetAttribute");
  const auto id = [&](const void* p) {
    unsigned long long value = 0;
    return get(&value, kBufferId, Address(p)) == 0 ? value : 0;
  };
  void *a = nullptr, *b = nullptr;
  REQUIRE_CUDA(cudaMalloc(&a, 4096));
  REQUIRE_CUDA(cudaMalloc(&b, 4096));
  o.Note("two allocations", Format("differ=%d rises=%d same inside=%d", id(a) != id(b), id(b) > id(a),
                                   id(a) == id(static_cast<char*>(a) + 100)));
  const unsigned long long first = id(a);
  REQUIRE_CUDA(cudaFree(a));
  void* again = nullptr;
  REQUIRE_CUDA(cudaMalloc(&again, 4096));
  o.Note("the same address again", Format("address=%d id=%d", again == a, id(again) == first));
  void *p = nullptr, *q = nullptr;
  REQUIRE_CUDA(cudaMallocAsync(&p, 4096, r.s));
  REQUIRE_CUDA(cudaMallocAsync(&q, 4096, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  const unsigned long long of_p = id(p);
  o.Note("two of a pool", Format("differ=%d", id(p) != id(q)));
  REQUIRE_CUDA(cudaFreeAsync(p, r.s));
  REQUIRE_CUDA(cudaMallocAsync(&a, 4096, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  o.Note("the same address of a pool again", Format("address=%d id=%d", a == p, id(a) == of_p));
  o.Note("pinned", Format("differ=%d", id(r.h) != id(r.d)));
}

OBSERVE("probe.pointer.several", Once().InOwnProcess()) {
  Rig r(o);
  const auto get = Entry<GetAttributes>("cuPointerGetAttributes");
  int attributes[] = {kRangeSize, kMemoryType, kIsManaged};
  const auto probe = [&](const char* step, const void* p, unsigned int count, bool with_data = true) {
    unsigned long long size = 77;
    unsigned int type = 77, managed = 77;
    void* data[] = {&size, &type, &managed};
    const int code = get(count, attributes, with_data ? data : nullptr, Address(p));
    o.Note(step, Format("%d size=%llu type=%u managed=%u", code, size, type, managed & 0xff));
  };
  probe("device memory", r.d, 3);
  probe("pinned memory", r.h, 3);
  probe("pageable memory", r.pageable, 3);
  probe("NULL", nullptr, 3);
  probe("none", r.d, 0);
  probe("no data", r.d, 3, false);
  attributes[1] = 99;
  probe("a bad attribute", r.d, 3);
}

OBSERVE("probe.pointer.capture", EachThreadAndMode().InOwnProcess()) {
  Rig r(o);
  const auto get = Entry<GetAttribute>("cuPointerGetAttribute");
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, o.mode()));
  OnActor(o, [&] {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult status;
    o.Note("range", Range(get, r.d, r.d) + " status=" + Status(r.s));
    PROBE_AND(cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &f, 13000, 0, &status), "status=%s",
              Status(r.s).c_str());
  });
  cudaGraph_t g = EndCapture(o, "end", r.s);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
}

OBSERVE("probe.kernel.parameters", Once().InOwnProcess()) {
  size_t offset = 77, size = 77;
  const auto probe = [&](const char* step, const void* function, size_t index) {
    offset = size = 77;
    PROBE_AS_AND(step, cudaFuncGetParamInfo(function, index, &offset, &size), "offset=%zu size=%zu", offset, size);
  };
  probe("first", kRelu, 0);
  probe("second", kRelu, 1);
  probe("third", kRelu, 2);
  probe("one too far", kRelu, 3);
  probe("SIZE_MAX", kRelu, SIZE_MAX);
  probe("fourth of softmax", kSoftmax, 3);
  probe("NULL", nullptr, 0);
  probe("no kernel", &offset, 0);
  PROBE_AND(cudaFuncGetParamInfo(kRelu, 0, nullptr, &size), "size=%zu", size);
  offset = 77;
  PROBE_AND(cudaFuncGetParamInfo(kRelu, 1, &offset, nullptr), "offset=%zu", offset);
  cudaFunction_t function = nullptr;
  cudaKernel_t kernel = nullptr;
  PROBE_AND(cudaGetFuncBySymbol(&function, kRelu), "set=%d", function != nullptr);
  PROBE(cudaGetFuncBySymbol(nullptr, kRelu));
  PROBE(cudaGetFuncBySymbol(&function, nullptr));
  PROBE(cudaGetFuncBySymbol(&function, &size));
  PROBE_AND(cudaGetKernel(&kernel, kRelu), "set=%d", kernel != nullptr);
  PROBE(cudaGetKernel(&kernel, nullptr));
  PROBE(cudaGetKernel(&kernel, &size));
  const char* name = nullptr;
  PROBE_AND(cudaFuncGetName(&name, &size), "set=%d", name != nullptr);
}

OBSERVE("probe.device.attributes", Once().InOwnProcess()) {
  for (int attribute = 0; attribute <= 160; ++attribute) {
    // Not asked for: where the device is, and what only arrays and the driver's own functions use.
    const bool place = attribute == 33 || attribute == 34 || attribute == 50;
    const bool array = (attribute >= 21 && attribute <= 29) || (attribute >= 42 && attribute <= 49) ||
                       (attribute >= 52 && attribute <= 74) || attribute == 77;
    const bool driver = (attribute >= 102 && attribute <= 105) || attribute == 107 || attribute == 110 ||
                        (attribute >= 122 && attribute <= 124) || (attribute >= 127 && attribute <= 129) ||
                        attribute == 132 || attribute == 136 || attribute == 137 || attribute == 139 ||
                        attribute == 140 || attribute == 141 || attribute == 145 || attribute == 146;
    if (place || array || driver) continue;
    int v = -77;
    PROBE_AS_AND(Format("attribute %d", attribute),
                 cudaDeviceGetAttribute(&v, static_cast<cudaDeviceAttr>(attribute), 0), "%s",
                 v == -77 ? "untouched"
                 : v > 0  ? "positive"
                 : v == 0 ? "zero"
                          : "negative");
  }
  cudaDeviceProp p = {};
  int device = 77;
  PROBE_AND(cudaChooseDevice(&device, &p), "device=%d", device);
  PROBE(cudaChooseDevice(nullptr, &p));
  PROBE(cudaChooseDevice(&device, nullptr));
}

}  // namespace conformance
