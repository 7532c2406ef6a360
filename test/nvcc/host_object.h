// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host_object.h: what nvcc makes of a .cu file on the host's side, by hand, for machines without nvcc: host functions
// of kernels, launches, a fat binary, and its registration.
#ifndef GCAP_TEST_NVCC_HOST_OBJECT_H_
#define GCAP_TEST_NVCC_HOST_OBJECT_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

// As NVIDIA's headers declare them to the code that nvcc makes.
struct CUkern_st;
extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int);
char __cudaInitModule(void**);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, CUstream_st* = nullptr);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(CUkern_st**, const void*);
cudaError_t __cudaLaunchKernel(CUkern_st*, dim3, dim3, void**, size_t, cudaStream_t);
}

// Takes the launch from the kernel's host function to the runtime. nvcc names it so.
template <int kId, typename... Args>
void __device_stub__by_hand(const void* function, Args... args) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))..., nullptr};
  static CUkern_st* kernel = nullptr;
  static const bool got = __cudaGetKernel(&kernel, function) == cudaSuccess;
  (void)got;
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
  if (__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream) != cudaSuccess) return;
  __cudaLaunchKernel(kernel, grid, block, pointers, shared_bytes, stream);
}

namespace gcap_test {

// The host function of a kernel: what launches with <<<>>> call, and the kernel's handle.
template <int kId, typename... Args>
void HostFunction(Args... args) {
  __device_stub__by_hand<kId, Args...>(reinterpret_cast<const void*>(&HostFunction<kId, Args...>), args...);
}

// kernel<<<grid, block, 0, stream>>>(args...)
template <typename... Args, typename... Given>
void Launch(void (*kernel)(Args...), dim3 grid, dim3 block, cudaStream_t stream, Given... args) {
  if (__cudaPushCallConfiguration(grid, block, 0, stream) == 0) kernel(args...);
}

// The attributes that tell of one parameter: nvcc 13 writes the second for kernels with large parameters.
constexpr uint32_t kParam = 0x17, kLargeParam = 0x45;

// A kernel as machine code tells of it: the bytes of each parameter, the attribute that tells them, and what a launch
// needs. With shared memory of its own a kernel has the system's beside it.
struct CodeOfKernel {
  std::string name;
  std::vector<uint32_t> param_bytes;
  uint32_t attribute = kParam;
  uint32_t max_threads = 0, shared_bytes = 0, const_bytes = 0, local_bytes = 0, registers = 0;
};

// Appends values and texts as they lie in memory.
class Bytes {
 public:
  template <typename T>
  Bytes& Put(T value) {
    const char* at = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), at, at + sizeof(value));
    return *this;
  }
  Bytes& Put(const std::vector<char>& other) {
    bytes_.insert(bytes_.end(), other.begin(), other.end());
    return *this;
  }
  Bytes& PutText(const std::string& text) {
    bytes_.insert(bytes_.end(), text.c_str(), text.c_str() + text.size() + 1);
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  const std::vector<char>& get() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

// The attributes of a kernel, as nvcc orders them: its last parameter first, between attributes of other kinds.
inline std::vector<char> InfoOf(const CodeOfKernel& kernel) {
  Bytes info;
  info.Put<uint32_t>(0x00043604).Put<uint32_t>(1);
  uint32_t offset = 0;
  for (uint32_t bytes : kernel.param_bytes) offset += bytes;
  info.Put<uint32_t>(offset << 16 | 0x1903);
  for (size_t i = kernel.param_bytes.size(); i-- > 0;) {
    offset -= kernel.param_bytes[i];
    info.Put<uint32_t>(0x000c0004 | kernel.attribute << 8).Put<uint32_t>(0);
    info.Put<uint16_t>(static_cast<uint16_t>(i)).Put<uint16_t>(static_cast<uint16_t>(offset));
    const bool large = kernel.attribute == kLargeParam;
    info.Put<uint32_t>(large ? 0xabcd0000 | kernel.param_bytes[i] : kernel.param_bytes[i] << 18 | 0x1f000);
  }
  info.Put<uint32_t>(0x00ff1b03);
  if (kernel.max_threads != 0) {
    info.Put<uint32_t>(0x000c0504).Put<uint32_t>(kernel.max_threads).Put<uint32_t>(1).Put<uint32_t>(1);
  }
  return info.get();
}

// What is told of all kernels together, by the numbers of their symbols.
inline std::vector<char> InfoOfAll(const std::vector<CodeOfKernel>& kernels, uint32_t first_symbol) {
  Bytes info;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    info.Put<uint32_t>(0x00082f04).Put<uint32_t>(first_symbol + i).Put<uint32_t>(kernels[i].registers);
    info.Put<uint32_t>(0x00081104).Put<uint32_t>(first_symbol + i).Put<uint32_t>(kernels[i].local_bytes);
  }
  return info.get();
}

// A variable of a device as machine code has it; without contents, one that is all zero.
struct CodeOfVariable {
  std::string name;
  uint64_t bytes;
  std::vector<char> contents;
  uint32_t relocated = 0;  // the type of the section that has a relocation of the last byte: 4 or 9; 0 for none
};

// An ELF file of machine code: a header, the contents of the sections, the table of sections.
inline std::vector<char> ElfOf(const std::vector<CodeOfKernel>& kernels,
                               const std::vector<CodeOfVariable>& variables = {}) {
  Bytes names, contents, table;
  uint16_t sections = 0;
  const auto add = [&](const std::string& name, const std::vector<char>& content, uint32_t type = 0x70000000,
                       uint32_t link = 0, uint32_t info = 0) {
    table.Put<uint32_t>(static_cast<uint32_t>(names.size())).Put<uint32_t>(type);
    table.Put<uint64_t>(0).Put<uint64_t>(0).Put<uint64_t>(64 + contents.size()).Put<uint64_t>(content.size());
    table.Put<uint32_t>(link).Put<uint32_t>(info).Put<uint64_t>(4).Put<uint64_t>(0);
    names.PutText(name);
    contents.Put(content);
    return sections++;
  };
  add("", {});
  for (const CodeOfKernel& kernel : kernels) {
    add(".nv.info." + kernel.name, InfoOf(kernel));
    if (kernel.const_bytes != 0) add(".nv.constant3", std::vector<char>(kernel.const_bytes));
    if (kernel.shared_bytes == 0) continue;
    add(".nv.shared.reserved.0", {}, 8);
    add(".nv.shared." + kernel.name, std::vector<char>(kernel.shared_bytes + 1024), 8);
  }
  add(".nv.info", InfoOfAll(kernels, static_cast<uint32_t>(variables.size())));
  Bytes initialized, symbol_names, symbols;
  symbol_names.PutText("");
  for (const CodeOfVariable& variable : variables) initialized.Put(variable.contents);
  const uint16_t zero_section = add(".nv.global", {}, 8);
  const uint16_t section = add(".nv.global.init", initialized.get(), 1);
  uint64_t offset = 0;
  for (const CodeOfVariable& variable : variables) {
    symbols.Put<uint32_t>(static_cast<uint32_t>(symbol_names.size())).Put<uint16_t>(1);
    symbols.Put<uint16_t>(variable.contents.empty() ? zero_section : section);
    symbols.Put<uint64_t>(variable.contents.empty() ? 0 : offset).Put<uint64_t>(variable.bytes);
    symbol_names.PutText(variable.name);
    offset += variable.contents.size();
    if (variable.relocated == 0) continue;
    Bytes relocation;
    relocation.Put<uint64_t>(offset - 1).Put<uint64_t>(0);
    if (variable.relocated == 4) relocation.Put<uint64_t>(0);
    add(variable.relocated == 4 ? ".rela.nv.global.init" : ".rel.nv.global.init", relocation.get(), variable.relocated,
        0, section);
  }
  for (const CodeOfKernel& kernel : kernels) {
    symbols.Put<uint32_t>(static_cast<uint32_t>(symbol_names.size())).Put<uint16_t>(0x12).Put<uint16_t>(section);
    symbols.Put<uint64_t>(0).Put<uint64_t>(0);
    symbol_names.PutText(kernel.name);
  }
  const uint16_t strings = add(".strtab", symbol_names.get(), 3);
  add(".symtab", symbols.get(), 2, strings);
  Bytes all_names;
  all_names.Put(names.get()).PutText(".shstrtab");
  add(".shstrtab", all_names.get());
  Bytes elf;
  elf.Put<uint32_t>(0x464c457f).Put<uint32_t>(0x41010102).Put<uint64_t>(8).Put<uint16_t>(2).Put<uint16_t>(190);
  elf.Put<uint32_t>(1).Put<uint64_t>(0).Put<uint64_t>(0).Put<uint64_t>(64 + contents.size()).Put<uint32_t>(0);
  elf.Put<uint16_t>(64).Put<uint16_t>(56).Put<uint16_t>(0).Put<uint16_t>(64);
  elf.Put<uint16_t>(sections).Put<uint16_t>(static_cast<uint16_t>(sections - 1));
  return elf.Put(contents.get()).Put(table.get()).get();
}

inline std::vector<char> EntryOf(uint16_t kind, const std::vector<char>& payload) {
  Bytes entry;
  entry.Put(kind).Put<uint16_t>(0x0101).Put<uint32_t>(64).Put<uint64_t>(payload.size());
  for (int i = 0; i < 6; ++i) entry.Put<uint64_t>(0);
  return entry.Put(payload).get();
}

// The device code of an object: PTX that is compressed, which nobody reads, and machine code unless there is none.
inline std::vector<char> FatBinaryOf(const std::vector<CodeOfKernel>& kernels,
                                     const std::vector<CodeOfVariable>& variables = {}) {
  Bytes entries;
  entries.Put(EntryOf(1, {'\x28', '\xb5', '\x2f', '\xfd'}));
  if (!kernels.empty() || !variables.empty()) entries.Put(EntryOf(2, ElfOf(kernels, variables)));
  Bytes code;
  code.Put<uint32_t>(0xba55ed50).Put<uint16_t>(1).Put<uint16_t>(16).Put<uint64_t>(entries.size());
  return code.Put(entries.get()).get();
}

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* code;
  void* linked;
};

// An object of the program, from its registration to its end.
class HostObject {
 public:
  explicit HostObject(const std::vector<CodeOfKernel>& kernels = {}, const std::vector<CodeOfVariable>& variables = {})
      : code_(FatBinaryOf(kernels, variables)) {
    handle_ = __cudaRegisterFatBinary(&wrapper_);
  }
  ~HostObject() { __cudaUnregisterFatBinary(handle_); }
  HostObject(const HostObject&) = delete;
  HostObject& operator=(const HostObject&) = delete;

  template <typename... Args>
  HostObject& Add(void (*function)(Args...), const char* name) {
    __cudaRegisterFunction(handle_, reinterpret_cast<const char*>(function), const_cast<char*>(name), name, -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    return *this;
  }
  HostObject& AddVariable(char* variable, const char* name, size_t bytes) {
    __cudaRegisterVar(handle_, variable, variable, name, 0, bytes, 0, 0);
    return *this;
  }
  void End() { __cudaRegisterFatBinaryEnd(handle_); }

 private:
  std::vector<char> code_;
  Wrapper wrapper_ = {0x466243b1, 1, code_.data(), nullptr};
  void** handle_;
};

}  // namespace gcap_test

#endif  // GCAP_TEST_NVCC_HOST_OBJECT_H_
