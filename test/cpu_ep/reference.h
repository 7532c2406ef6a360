// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reference.h: ONNX's operators on i64 as their documentation says them: each element of the output is found from its
// index alone. Nothing here is shared with the library. What an operator refuses has no value.
#ifndef GCAP_TEST_CPU_EP_REFERENCE_H_
#define GCAP_TEST_CPU_EP_REFERENCE_H_

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/shape/onnx_node.h"

namespace gcap {
namespace testing {

using Numbers = std::vector<int64_t>;

struct Ref {
  Sizes shape;
  Numbers at;

  int rank() const { return static_cast<int>(shape.size()); }
  Host ToHost() const { return Host(shape, at); }
};
using MaybeRef = std::optional<Ref>;

inline Numbers IndexOf(int64_t flat, const Sizes& shape) {
  Numbers index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}
inline int64_t FlatOf(const Numbers& index, const Sizes& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

inline Ref Make(const Sizes& shape, const std::function<int64_t(const Numbers&)>& element) {
  Ref ref{shape, {}};
  for (int64_t i = 0; i < Count(shape); ++i) ref.at.push_back(element(IndexOf(i, shape)));
  return ref;
}

// The element of `ref` that broadcasting puts at an index of the output.
inline int64_t BroadcastAt(const Ref& ref, const Numbers& index) {
  Numbers own(index.end() - ref.rank(), index.end());
  for (size_t i = 0; i < own.size(); ++i) own[i] = ref.shape[i] == 1 ? 0 : own[i];
  return ref.at[static_cast<size_t>(FlatOf(own, ref.shape))];
}

inline std::optional<Sizes> BroadcastShape(const Sizes& a, const Sizes& b) {
  Sizes shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {  // from the last axis
    const int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1, of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return std::nullopt;
    shape[shape.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return shape;
}

inline MaybeRef Binary(const std::string& op, const Ref& a, const Ref& b) {
  const std::optional<Sizes> shape = BroadcastShape(a.shape, b.shape);
  if (!shape) return std::nullopt;
  bool by_zero = false;
  const Ref made = Make(*shape, [&](const Numbers& index) -> int64_t {
    const int64_t x = BroadcastAt(a, index), y = BroadcastAt(b, index);
    const auto wrapped = [](__int128 value) { return static_cast<int64_t>(static_cast<uint64_t>(value)); };
    if (op == "Add") return wrapped(static_cast<__int128>(x) + y);
    if (op == "Sub") return wrapped(static_cast<__int128>(x) - y);
    if (op == "Mul") return wrapped(static_cast<__int128>(x) * y);
    if (op == "Min") return std::min(x, y);
    if (op == "Max") return std::max(x, y);
    if (y == 0) by_zero = true;
    if (y == 0) return 0;
    const __int128 quotient = static_cast<__int128>(x) / y, rest = static_cast<__int128>(x) % y;
    if (op == "Div") return wrapped(quotient);
    return wrapped(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);  // Mod
  });
  return by_zero ? std::nullopt : MaybeRef(made);
}

inline MaybeRef Gather(const Ref& data, const Ref& indices, int axis) {
  if (axis < -data.rank() || axis >= data.rank()) return std::nullopt;
  const size_t at = static_cast<size_t>(axis < 0 ? axis + data.rank() : axis);
  for (int64_t i : indices.at) {
    if (i < -data.shape[at] || i >= data.shape[at]) return std::nullopt;
  }
  Sizes shape(data.shape.begin(), data.shape.begin() + at);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + at + 1, data.shape.end());
  if (shape.size() > GCAP_MAX_RANK) return std::nullopt;
  return Make(shape, [&](const Numbers& index) {
    const Numbers which(index.begin() + at, index.begin() + at + indices.rank());
    int64_t row = indices.at[static_cast<size_t>(FlatOf(which, indices.shape))];
    if (row < 0) row += data.shape[at];
    Numbers from(index.begin(), index.begin() + at);
    from.push_back(row);
    from.insert(from.end(), index.begin() + at + indices.rank(), index.end());
    return data.at[static_cast<size_t>(FlatOf(from, data.shape))];
  });
}

inline MaybeRef Concat(const std::vector<Ref>& parts, int axis) {
  Sizes shape = parts[0].shape;
  if (axis < 0 || axis >= parts[0].rank()) return std::nullopt;
  const size_t at = static_cast<size_t>(axis);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].rank() != parts[0].rank()) return std::nullopt;
    for (size_t j = 0; j < shape.size(); ++j) {
      if (j != at && parts[i].shape[j] != shape[j]) return std::nullopt;
    }
    shape[at] += parts[i].shape[at];
  }
  return Make(shape, [&](Numbers index) {
    size_t part = 0;
    while (index[at] >= parts[part].shape[at]) index[at] -= parts[part++].shape[at];
    return parts[part].at[static_cast<size_t>(FlatOf(index, parts[part].shape))];
  });
}

// The indices that a slice of one axis takes. Backwards, a start before the first element is the first one, other than
// in Python: "for negative stepping it is clamped to [0, dims[axes[i]]-1]" (ONNX's Slice).
inline Numbers SliceIndices(int64_t size, int64_t start, int64_t end, int64_t step) {
  Numbers taken;
  if (start < 0) start += size;
  if (end < 0) end += size;
  if (size == 0) return taken;
  if (step > 0) {
    for (int64_t i = std::max<int64_t>(start, 0); i < std::min(end, size); i += step) taken.push_back(i);
  } else {
    const int64_t first = std::max<int64_t>(std::min(start, size - 1), 0);
    for (int64_t i = first; i > std::max<int64_t>(end, -1); i += step) taken.push_back(i);
  }
  return taken;
}

// One axis.
inline MaybeRef Slice(const Ref& data, int64_t start, int64_t end, int axis, int64_t step) {
  if (axis < 0 || axis >= data.rank() || step == 0) return std::nullopt;
  const size_t at = static_cast<size_t>(axis);
  const Numbers taken = SliceIndices(data.shape[at], start, end, step);
  Sizes shape = data.shape;
  shape[at] = static_cast<int64_t>(taken.size());
  return Make(shape, [&](Numbers index) {
    index[at] = taken[static_cast<size_t>(index[at])];
    return data.at[static_cast<size_t>(FlatOf(index, data.shape))];
  });
}

inline Ref Transpose(const Ref& data, const Numbers& perm) {
  Sizes shape;
  for (int64_t from : perm) shape.push_back(data.shape[static_cast<size_t>(from)]);
  return Make(shape, [&](const Numbers& index) {
    Numbers from(index.size());
    for (size_t i = 0; i < perm.size(); ++i) from[static_cast<size_t>(perm[i])] = index[i];
    return data.at[static_cast<size_t>(FlatOf(from, data.shape))];
  });
}

// Each element of the input goes to the element of the output that has its index, with 0 where it is reduced.
inline Ref Reduce(const std::string& op, const Ref& data, const std::vector<bool>& reduced, bool keep) {
  Sizes kept = data.shape, shape;
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i] = reduced[i] ? 1 : kept[i];
    if (!reduced[i] || keep) shape.push_back(kept[i]);
  }
  const int64_t none = op == "ReduceProd" ? 1 : op == "ReduceSum" ? 0 : INT64_MIN;
  Ref made{shape, Numbers(static_cast<size_t>(Count(kept)), none)};
  for (int64_t i = 0; i < Count(data.shape); ++i) {
    Numbers index = IndexOf(i, data.shape);
    for (size_t j = 0; j < index.size(); ++j) index[j] = reduced[j] ? 0 : index[j];
    int64_t& out = made.at[static_cast<size_t>(FlatOf(index, kept))];
    const int64_t x = data.at[static_cast<size_t>(i)];
    if (op == "ReduceMax") out = std::max(out, x);
    if (op == "ReduceSum") out = static_cast<int64_t>(static_cast<uint64_t>(out) + static_cast<uint64_t>(x));
    if (op == "ReduceProd") out = static_cast<int64_t>(static_cast<uint64_t>(out) * static_cast<uint64_t>(x));
  }
  return made;
}

inline MaybeRef Reshape(const Ref& data, const Numbers& request) {
  Sizes shape;
  int64_t others = 1, rests = 0;
  for (size_t i = 0; i < request.size(); ++i) {
    if (request[i] < -1 || (request[i] == 0 && i >= data.shape.size())) return std::nullopt;
    shape.push_back(request[i] == 0 ? data.shape[i] : request[i]);
    rests += request[i] == -1;
    if (request[i] != -1) others *= shape.back();
  }
  if (rests > 1 || (rests == 1 && others == 0)) return std::nullopt;
  for (int64_t& size : shape) size = size == -1 ? Count(data.shape) / others : size;
  return Count(shape) == Count(data.shape) ? MaybeRef(Ref{shape, data.at}) : std::nullopt;
}

inline MaybeRef Expand(const Ref& data, const Numbers& request) {
  if (std::any_of(request.begin(), request.end(), [](int64_t size) { return size < 0; })) return std::nullopt;
  const std::optional<Sizes> shape = BroadcastShape(data.shape, request);
  if (!shape) return std::nullopt;
  return Make(*shape, [&](const Numbers& index) { return BroadcastAt(data, index); });
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CPU_EP_REFERENCE_H_
