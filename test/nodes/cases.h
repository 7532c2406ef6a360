// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cases.h: operators with attributes, shapes, and what they must give by ONNX's documentation, element by element in
// double precision. Nothing here is shared with the library.
#ifndef GCAP_TEST_NODES_CASES_H_
#define GCAP_TEST_NODES_CASES_H_

#include <functional>
#include <vector>

#include "test/nodes/node_rig.h"

namespace gcap {
namespace testing {

std::vector<NodeCase> AttentionCases();
std::vector<NodeCase> EinsumCases();
std::vector<NodeCase> ElementwiseCases();
std::vector<NodeCase> IndexCases();
std::vector<NodeCase> LayoutCases();
std::vector<NodeCase> NormalizeCases();
std::vector<NodeCase> ProductCases();
std::vector<NodeCase> QuantizeCases();
std::vector<NodeCase> RecurrentCases();
std::vector<NodeCase> ReduceCases();
std::vector<NodeCase> ResizeCases();
std::vector<NodeCase> TransposedCases();
std::vector<NodeCase> WindowCases();

// A recurrent network of any kind and size, whose name says what was drawn.
NodeCase DrawnRecurrentCase(Draws* draws);

inline std::vector<NodeCase> AllCases() {
  std::vector<NodeCase> all;
  for (const auto& family : {AttentionCases(), EinsumCases(), ElementwiseCases(), IndexCases(), LayoutCases(),
                             NormalizeCases(), ProductCases(), QuantizeCases(), RecurrentCases(), ReduceCases(),
                             ResizeCases(), TransposedCases(), WindowCases()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

// --- What references share ------------------------------------------------------------------------------------------

using Ins = std::vector<Elements>;

// The elements of a shape, each from its index.
inline Values Make(const Shape& shape, const std::function<double(const Shape&)>& element) {
  Values values;
  for (int64_t i = 0; i < Count(shape); ++i) values.push_back(element(Unravel(i, shape)));
  return values;
}

inline double At(const Elements& tensor, const Shape& index) {
  return tensor.at[static_cast<size_t>(Ravel(index, tensor.shape))];
}

// The element that broadcasting puts at an index of the output.
inline double BroadcastAt(const Elements& tensor, const Shape& index) {
  Shape own(index.end() - static_cast<std::ptrdiff_t>(tensor.shape.size()), index.end());
  for (size_t i = 0; i < own.size(); ++i) own[i] = tensor.shape[i] == 1 ? 0 : own[i];
  return At(tensor, own);
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_NODES_CASES_H_
