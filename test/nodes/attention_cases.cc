// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attention and RotaryEmbedding, by ONNX's documentation: heads as an axis or behind one another, grouped heads, masks,
// a past, and outputs beside Y. MultiHeadAttention, by the documentation of ONNX Runtime.

#include <algorithm>
#include <cmath>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

struct Setup {
  std::string name;
  int64_t q_heads = 2, kv_heads = 2, queries = 3, keys = 4, past = 0;
  bool packed = false, causal = false, has_mask = false;
  gcap_dtype_t mask_type = kTyped;
  Shape mask;
  double softcap = 0, scale = 0;
  int outputs = 1;
  bool leaves_present_out = false;  // of four outputs
};

constexpr int64_t kBatch = 2, kSize = 4, kValueSize = 3;

// [batch, heads, length, size] of [batch, length, heads * size].
Elements Unpacked(const Elements& x, int64_t heads) {
  const Shape shape = {x.shape[0], heads, x.shape[1], x.shape[2] / heads};
  return {shape, Make(shape, [&](const Shape& i) { return At(x, {i[0], i[2], i[1] * shape[3] + i[3]}); })};
}

Elements Joined(const Elements& past, const Elements& now) {
  Shape shape = now.shape;
  shape[2] += past.shape[2];
  return {shape, Make(shape, [&](Shape i) {
            if (i[2] < past.shape[2]) return At(past, i);
            i[2] -= past.shape[2];
            return At(now, i);
          })};
}

// What an element of a mask adds to its score.
double Added(const Setup& s, const Elements& mask, const Shape& at) {
  const double value = BroadcastAt(mask, at);
  if (s.mask_type != GCAP_DTYPE_BOOL) return value;
  return value != 0 ? 0 : -kInf;
}

double Product(const Elements& q, const Elements& k, const Shape& at, int64_t group, double scale) {
  double sum = 0;
  for (int64_t d = 0; d < kSize; ++d) sum += At(q, {at[0], at[1], at[2], d}) * At(k, {at[0], at[1] / group, at[3], d});
  return sum * scale;
}

std::vector<Values> Expected(const Setup& s, const Ins& in) {
  const Elements q = s.packed ? Unpacked(in[0], s.q_heads) : in[0];
  Elements k = s.packed ? Unpacked(in[1], s.kv_heads) : in[1], v = s.packed ? Unpacked(in[2], s.kv_heads) : in[2];
  if (s.past > 0) k = Joined(in[4], k), v = Joined(in[5], v);
  const int64_t total = s.past + s.keys, group = s.q_heads / s.kv_heads;
  const double scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(kSize));
  const Shape of_scores = {kBatch, s.q_heads, s.queries, total};
  const Elements products = {of_scores,
                             Make(of_scores, [&](const Shape& i) { return Product(q, k, i, group, scale); })};
  const Elements weights = {of_scores, Make(of_scores, [&](const Shape& i) {
                              double score = At(products, i);
                              if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
                              if (s.causal && i[3] > s.past + i[2]) score = -kInf;
                              if (s.has_mask) score += Added(s, in[3], i);
                              return std::exp(score);
                            })};
  const auto y = [&](int64_t b, int64_t h, int64_t i, int64_t d) {
    double sum = 0, all = 0;
    for (int64_t j = 0; j < total; ++j) {
      const double weight = At(weights, {b, h, i, j});
      sum += weight * At(v, {b, h / group, j, d});
      all += weight;
    }
    return sum / all;
  };
  const Shape of_y =
      s.packed ? Shape{kBatch, s.queries, s.q_heads * kValueSize} : Shape{kBatch, s.q_heads, s.queries, kValueSize};
  std::vector<Values> made = {Make(of_y, [&](const Shape& i) {
    return s.packed ? y(i[0], i[2] / kValueSize, i[1], i[2] % kValueSize) : y(i[0], i[1], i[2], i[3]);
  })};
  const Values others[] = {k.at, v.at, products.at};
  if (s.leaves_present_out) return {made[0], products.at};
  made.insert(made.end(), others, others + s.outputs - 1);
  return made;
}

NodeCase Attention(const Setup& s) {
  NodeCase c;
  c.name = "Attention" + s.name;
  c.op_type = "Attention";
  const int64_t total = s.past + s.keys;
  const auto shape = [&](int64_t heads, int64_t length, int64_t size) {
    return s.packed ? Shape{kBatch, length, heads * size} : Shape{kBatch, heads, length, size};
  };
  c.attributes = [=](Attributes* a) {
    if (s.packed) a->Int("q_num_heads", s.q_heads).Int("kv_num_heads", s.kv_heads);
    if (s.causal) a->Int("is_causal", 1);
    if (s.softcap > 0) a->Float("softcap", static_cast<float>(s.softcap));
    if (s.scale != 0) a->Float("scale", static_cast<float>(s.scale));
  };
  c.inputs = {{kTyped, shape(s.q_heads, s.queries, kSize)},
              {kTyped, shape(s.kv_heads, s.keys, kSize)},
              {kTyped, shape(s.kv_heads, s.keys, kValueSize)}};
  if (s.has_mask) {
    Values constant;
    // Of a drawn mask of bools a row might have no true one; here the first key always counts.
    if (s.mask_type == GCAP_DTYPE_BOOL) {
      for (int64_t i = 0; i < Count(s.mask); ++i) constant.push_back(i % total == 0 || i % 3 != 1 ? 1 : 0);
    }
    c.inputs.push_back({s.mask_type, s.mask, -1, 1, constant});
  }
  if (s.past > 0) {
    if (!s.has_mask) c.inputs.push_back({kTyped, kLeftOut});
    c.inputs.push_back({kTyped, {kBatch, s.kv_heads, s.past, kSize}});
    c.inputs.push_back({kTyped, {kBatch, s.kv_heads, s.past, kValueSize}});
  }
  const std::vector<std::pair<gcap_dtype_t, Shape>> outputs = {{kTyped, shape(s.q_heads, s.queries, kValueSize)},
                                                               {kTyped, {kBatch, s.kv_heads, total, kSize}},
                                                               {kTyped, {kBatch, s.kv_heads, total, kValueSize}},
                                                               {kTyped, {kBatch, s.q_heads, s.queries, total}}};
  c.outputs.assign(outputs.begin(), outputs.begin() + s.outputs);
  if (s.leaves_present_out) c.outputs[1].second = c.outputs[2].second = kLeftOut;
  c.reference = [=](const Ins& in) { return Expected(s, in); };
  c.error = 4e-6;   // in f32: products of up to 4 terms up to 1, exp and tanh of some units in the last place, a mean
  c.roundings = 1;  // of the weights, whose mean of numbers up to 1 is
  c.magnitude = 1;
  return c;
}

// --- MultiHeadAttention ---------------------------------------------------------------------------------------------

struct MultiHead {
  std::string name;
  int64_t queries = 3, keys = 4, past = 0;
  bool has_bias = false, kv_of_rank_4 = false, unidirectional = false;
  double scale = 0, filter = 0;
  Shape mask = {}, padding = {};  // empty: none
  int outputs = 1;
  double lengths = 0;  // of a padding of one axis: that of batch b is `lengths` - b
};

constexpr int64_t kNumHeads = 2;

// The heads of Q, K or V, with their part of the bias.
Elements Heads(const MultiHead& m, const Ins& in, size_t input) {
  if (input > 0 && m.kv_of_rank_4) return in[input];
  Elements x = in[input];
  const int64_t hidden = x.shape[2], before = static_cast<int64_t>(input) * kNumHeads * kSize;
  for (size_t i = 0; m.has_bias && i < x.at.size(); ++i) {
    x.at[i] += in[3].at[static_cast<size_t>(before + static_cast<int64_t>(i) % hidden)];
  }
  return Unpacked(x, kNumHeads);
}

bool Counts(const MultiHead& m, const Ins& in, const Shape& at) {
  if (m.padding.empty()) return true;
  if (m.padding.size() == 1) return static_cast<double>(at[3]) < At(in[4], {at[0]});
  return At(in[4], m.padding.size() == 2 ? Shape{at[0], at[3]} : Shape{at[0], at[2], at[3]}) > 0;
}

std::vector<Values> Expected(const MultiHead& m, const Ins& in) {
  const Elements q = Heads(m, in, 0);
  Elements k = Heads(m, in, 1), v = Heads(m, in, 2);
  if (m.past > 0) k = Joined(in[6], k), v = Joined(in[7], v);
  const double scale = m.scale != 0 ? m.scale : 1 / std::sqrt(static_cast<double>(kSize));
  const double filter = m.filter != 0 ? m.filter : -10000;
  const auto weight = [&](const Shape& at) {
    if (m.unidirectional && at[3] > m.past + at[2]) return 0.0;
    double score = Product(q, k, at, /*group=*/1, scale) + (m.mask.empty() ? 0 : BroadcastAt(in[5], at));
    return std::exp(score + (Counts(m, in, at) ? 0 : filter));
  };
  const Values y = Make({kBatch, m.queries, kNumHeads * kValueSize}, [&](const Shape& i) {
    double sum = 0, all = 0;
    for (int64_t j = 0; j < m.past + m.keys; ++j) {
      const Shape at = {i[0], i[2] / kValueSize, i[1], j};
      all += weight(at);
      sum += weight(at) * At(v, {at[0], at[1], j, i[2] % kValueSize});
    }
    return sum / all;
  });
  const std::vector<Values> all = {y, k.at, v.at};
  return {all.begin(), all.begin() + m.outputs};
}

NodeCase MultiHeadAttention(const MultiHead& m) {
  NodeCase c;
  c.name = "MultiHeadAttention" + m.name;
  c.op_type = "com.microsoft.MultiHeadAttention";
  c.attributes = [=](Attributes* a) {
    a->Int("num_heads", kNumHeads).Int("unidirectional", m.unidirectional).Float("scale", static_cast<float>(m.scale));
    if (m.filter != 0) a->Float("mask_filter_value", static_cast<float>(m.filter));
  };
  const auto of_keys = [&](int64_t size) {
    return m.kv_of_rank_4 ? Shape{kBatch, kNumHeads, m.keys, size} : Shape{kBatch, m.keys, kNumHeads * size};
  };
  Values padding;
  for (int64_t i = 0; !m.padding.empty() && i < Count(m.padding); ++i) {
    const double of_key = i % 3 == 1 ? -1 : static_cast<double>(i % 3);  // 0, -1 and 2
    padding.push_back(m.padding.size() == 1 ? m.lengths - static_cast<double>(i) : of_key);
  }
  c.inputs = {
      {kTyped, {kBatch, m.queries, kNumHeads * kSize}}, {kTyped, of_keys(kSize)}, {kTyped, of_keys(kValueSize)}};
  c.inputs.push_back({kTyped, m.has_bias ? Shape{kNumHeads * (2 * kSize + kValueSize)} : kLeftOut});
  c.inputs.push_back({GCAP_DTYPE_I32, m.padding.empty() ? kLeftOut : m.padding, 0, 0, padding});
  c.inputs.push_back({kTyped, m.mask.empty() ? kLeftOut : m.mask});
  for (const int64_t size : {kSize, kValueSize}) {
    if (m.past > 0) c.inputs.push_back({kTyped, {kBatch, kNumHeads, m.past, size}});
  }
  const int64_t total = m.past + m.keys;
  c.outputs = {{kTyped, {kBatch, m.queries, kNumHeads * kValueSize}},
               {kTyped, {kBatch, kNumHeads, total, kSize}},
               {kTyped, {kBatch, kNumHeads, total, kValueSize}}};
  c.outputs.resize(static_cast<size_t>(m.outputs));
  c.reference = [=](const Ins& in) { return Expected(m, in); };
  c.error = 1e-5;                    // in f32: as Attention, of numbers that are twice as large
  c.roundings = m.has_bias ? 8 : 1;  // of Q and K with the bias, each of which moves 4 terms of a score, beside weights
  c.magnitude = 2;
  return c;
}

std::vector<NodeCase> MultiHeadCases() {
  std::vector<MultiHead> all(15);
  all[1].name = "WithABias", all[1].has_bias = true;
  all[2].name = "WithLengths", all[2].padding = {kBatch}, all[2].lengths = 3;
  all[3].name = "WithAKeyMask", all[3].padding = {kBatch, 4};
  all[4].name = "WithAMaskOfQueriesAndKeys", all[4].padding = {kBatch, 3, 4};
  all[5].name = "WithAFilter", all[5].padding = {kBatch, 4}, all[5].filter = -1.5;
  all[6].name = "WithAllKeysFiltered", all[6].padding = {kBatch}, all[6].lengths = 0, all[6].filter = -2;
  all[7].name = "WithAnAttentionBias", all[7].mask = {kBatch, kNumHeads, 3, 4};
  all[8].name = "WithOneAttentionBias", all[8].mask = {1, 1, 3, 4}, all[8].padding = {kBatch, 4};
  all[9].name = "Unidirectional", all[9].unidirectional = true, all[9].queries = 4, all[9].scale = 0.25;
  all[10].name = "OfCrossAttention", all[10].kv_of_rank_4 = true, all[10].keys = 6;
  all[11].name = "OfCrossAttentionWithPresent", all[11].kv_of_rank_4 = true, all[11].outputs = 3;
  all[12].name = "WithPresent", all[12].outputs = 3, all[12].has_bias = true;
  all[13].name = "WithAPast", all[13].past = 2, all[13].outputs = 3, all[13].queries = all[13].keys = 3;
  all[13].unidirectional = true, all[13].has_bias = true, all[13].padding = {kBatch, 5};
  all[13].mask = {1, kNumHeads, 3, 5};
  all[14].name = "OfOneTokenWithAPast", all[14].past = 5, all[14].outputs = 3, all[14].queries = all[14].keys = 1;
  all[14].mask = {kBatch, 1, 1, 6};
  std::vector<NodeCase> cases;
  for (const MultiHead& m : all) cases.push_back(MultiHeadAttention(m));
  return cases;
}

// --- RotaryEmbedding ------------------------------------------------------------------------------------------------

struct Rotation {
  std::string name;
  bool packed = false, interleaved = false, has_positions = true, of_microsoft = false;
  int64_t rotated = 0;
};

constexpr int64_t kHeads = 2, kTokens = 3, kHeadSize = 6, kRows = 5;

NodeCase Rotary(const Rotation& r) {
  const int64_t rotated = r.rotated != 0 ? r.rotated : kHeadSize, half = rotated / 2;
  const Shape shape = r.packed ? Shape{kBatch, kTokens, kHeads * kHeadSize} : Shape{kBatch, kHeads, kTokens, kHeadSize};
  const Shape of_cache = r.has_positions ? Shape{kRows, half} : Shape{kBatch, kTokens, half};
  const Values positions = r.of_microsoft ? Values{1} : Values{4, 0, 2, 3, 1, 9};  // the last one is of no row
  NodeCase c;
  c.name = "Rotary" + r.name;
  c.op_type = r.of_microsoft ? "com.microsoft.RotaryEmbedding" : "RotaryEmbedding";
  c.attributes = [=](Attributes* a) {
    if (r.packed) a->Int("num_heads", kHeads);
    if (r.interleaved) a->Int("interleaved", 1);
    if (r.rotated != 0) a->Int("rotary_embedding_dim", r.rotated);
  };
  const Input where = {GCAP_DTYPE_I64, r.of_microsoft ? Shape{1} : Shape{kBatch, kTokens}, 0, 0, positions};
  c.inputs = {{kTyped, shape}, {kTyped, of_cache}, {kTyped, of_cache}};
  if (r.has_positions) c.inputs.insert(r.of_microsoft ? c.inputs.begin() + 1 : c.inputs.end(), where);
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    const Elements &cosines = in[r.of_microsoft ? 2 : 1], &sines = in[r.of_microsoft ? 3 : 2];
    return {Make(shape, [&](const Shape& i) {
      const int64_t batch = i[0], token = r.packed ? i[1] : i[2], d = i.back() % kHeadSize;
      if (d >= rotated) return At(in[0], i);
      const int64_t pair = r.interleaved ? d / 2 : d % half;
      Shape row = {batch, token, pair};
      if (r.has_positions) {
        const double position =
            r.of_microsoft ? 1.0 + static_cast<double>(token) : positions[static_cast<size_t>(batch * kTokens + token)];
        if (position >= kRows) return 0.0;
        row = {static_cast<int64_t>(position), pair};
      }
      const bool is_second = r.interleaved ? d % 2 == 1 : d >= half;
      const int64_t apart = r.interleaved ? 1 : half;
      Shape other = i;
      other.back() += is_second ? -apart : apart;
      return At(cosines, row) * At(in[0], i) + (is_second ? 1 : -1) * At(sines, row) * At(in[0], other);
    })};
  };
  c.error = 3e-7;  // two products up to 1 and their sum, in f32
  return c;
}

}  // namespace

std::vector<NodeCase> AttentionCases() {
  std::vector<Setup> setups(12);
  setups[0].name = "";
  setups[1].name = "Packed", setups[1].packed = true;
  setups[2].name = "Causal", setups[2].causal = true, setups[2].queries = 5;
  setups[3].name = "OfGroupedHeads", setups[3].q_heads = 6;
  setups[4].name = "PackedOfGroupedHeads", setups[4].packed = true, setups[4].q_heads = 4, setups[4].causal = true;
  setups[5].name = "WithAMaskForAll", setups[5].has_mask = true, setups[5].mask = {3, 4};
  setups[6].name = "WithAMaskOfBatches", setups[6].has_mask = true, setups[6].mask = {kBatch, 1, 1, 4};
  setups[7].name = "WithAMaskOfHeads", setups[7].has_mask = true, setups[7].mask = {2, 3, 4}, setups[7].causal = true;
  setups[8].name = "WithAMaskOfBools", setups[8].has_mask = true, setups[8].mask_type = GCAP_DTYPE_BOOL;
  setups[8].mask = {kBatch, 2, 3, 4}, setups[8].scale = 0.25;
  setups[9].name = "WithASoftCap", setups[9].softcap = 0.5, setups[9].has_mask = true, setups[9].mask = {3, 4};
  setups[10].name = "WithAPast", setups[10].past = 2, setups[10].has_mask = true, setups[10].mask = {3, 6};
  setups[10].outputs = 4;
  setups[11] = setups[10];
  setups[11].name = "PackedWithAPast", setups[11].packed = true, setups[11].q_heads = 4, setups[11].causal = true;
  std::vector<NodeCase> all;
  for (const Setup& s : setups) all.push_back(Attention(s));
  for (Setup s : {setups[0], setups[1]}) {
    s.name += "WithPresent";
    s.outputs = 3;
    all.push_back(Attention(s));
  }
  Setup products = setups[3], no_mask = setups[10];
  products.name = "WithProductsAlone", products.outputs = 4, products.leaves_present_out = true;
  no_mask.name = "WithAPastAndNoMask", no_mask.has_mask = false, no_mask.outputs = 3;
  all.push_back(Attention(products));
  all.push_back(Attention(no_mask));
  setups[11].name += "AndNoPresent", setups[11].outputs = 1;
  all.push_back(Attention(setups[11]));
  for (const NodeCase& c : MultiHeadCases()) all.push_back(c);
  for (const Rotation& r : std::vector<Rotation>{{""},
                                                 {"Packed", true},
                                                 {"Interleaved", false, true},
                                                 {"PackedInterleavedPart", true, true, true, false, 4},
                                                 {"Part", false, false, true, false, 2},
                                                 {"WithoutPositions", false, false, false},
                                                 {"PackedWithoutPositions", true, true, false},
                                                 {"OfMicrosoft", true, false, true, true},
                                                 {"OfMicrosoftWithHeads", false, true, true, true}}) {
    all.push_back(Rotary(r));
  }
  return all;
}

}  // namespace testing
}  // namespace gcap
