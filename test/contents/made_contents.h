// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// made_contents.h: contents of graphs that were never captured.
#ifndef GCAP_TEST_CONTENTS_MADE_CONTENTS_H_
#define GCAP_TEST_CONTENTS_MADE_CONTENTS_H_

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
#include "lib/contents/contents.h"
}

namespace gcap {
namespace testing {

using Bytes = std::vector<unsigned char>;

template <typename... Values>
Bytes Pack(Values... values) {
  Bytes bytes;
  const auto add = [&](const void* value, size_t count) {
    const auto* first = static_cast<const unsigned char*>(value);
    bytes.insert(bytes.end(), first, first + count);
  };
  (add(&values, sizeof(values)), ...);
  return bytes;
}

// A node as a test describes it. Its parts lie one behind the other, each at a multiple of its own size up to 8.
struct Node {
  std::vector<Bytes> parts;
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  bool by_extra = false;
  bool has_arguments = true;
  unsigned grid = 1;
  void* function = nullptr;
  std::vector<size_t> dependencies = {};
  size_t parent = GCAP_CONTENTS_TOP;
};

template <typename T>
T* CopyOf(const std::vector<T>& values) {
  T* copy = static_cast<T*>(std::calloc(values.size() + 1, sizeof(T)));
  if (!values.empty()) std::memcpy(copy, values.data(), values.size() * sizeof(T));
  return copy;
}

// Contents of such nodes.
class Contents {
 public:
  explicit Contents(const std::vector<Node>& nodes) {
    std::vector<gcap_contents_node_t> all;
    std::vector<gcap_contents_part_t> parts;
    std::vector<gcap_contents_dependency_t> dependencies;
    Bytes bytes;
    for (const Node& from : nodes) {
      bytes.resize((bytes.size() + 15) / 16 * 16);
      gcap_contents_node_t node = {};
      node.type = from.type;
      node.parent = from.parent;
      node.is_known = true;
      node.function = from.function;
      node.grid[0] = node.grid[1] = node.grid[2] = from.grid;
      node.has_arguments = from.has_arguments;
      node.by_extra = from.by_extra;
      node.begin = bytes.size();
      node.first_part = parts.size();
      node.num_parts = from.parts.size();
      node.first_dependency = dependencies.size();
      node.num_dependencies = from.dependencies.size();
      for (const size_t index : from.dependencies) dependencies.push_back({index, {}});
      for (const Bytes& part : from.parts) {
        const size_t alignment = part.size() % 8 == 0 ? 8 : part.size() % 4 == 0 ? 4 : 1;
        while ((bytes.size() - node.begin) % alignment != 0) bytes.push_back(0);
        parts.push_back({bytes.size() - node.begin, part.size()});
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
      node.bytes = bytes.size() - node.begin;
      all.push_back(node);
    }
    contents_.nodes = CopyOf(all);
    contents_.count = all.size();
    contents_.parts = CopyOf(parts);
    contents_.num_parts = parts.size();
    contents_.dependencies = CopyOf(dependencies);
    contents_.num_dependencies = dependencies.size();
    contents_.bytes = CopyOf(bytes);
    contents_.num_bytes = bytes.size();
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() { gcap_contents_free(&contents_); }

  gcap_contents_t* get() { return &contents_; }
  unsigned char* bytes() { return contents_.bytes; }

 private:
  gcap_contents_t contents_ = {};
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CONTENTS_MADE_CONTENTS_H_
