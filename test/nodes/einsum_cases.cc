// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Einsum, by numpy's documentation: each element of the output is the sum, over all labels that the output lacks, of
// the product of the operands' elements. Terms are written out here, with digits for the axes of an ellipsis.

#include <map>
#include <set>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

struct Setup {
  std::string name, equation;
  std::vector<std::string> operands;  // a letter or digit for each axis
  std::string out;
  std::map<char, int64_t> sizes;
  std::vector<std::string> ones = {};  // by operand: labels that are of size 1 there
};

bool Has(const std::string& text, char c) { return text.find(c) != std::string::npos; }

Shape ShapeOf(const Setup& s, const std::string& term, const std::string& ones) {
  Shape shape;
  for (const char c : term) shape.push_back(Has(ones, c) ? 1 : s.sizes.at(c));
  return shape;
}

// The sum over the labels from `next` on.
double Sum(const Setup& s, const Ins& in, const std::string& summed, size_t next, std::map<char, int64_t>* at) {
  if (next < summed.size()) {
    double sum = 0;
    for (int64_t i = 0; i < s.sizes.at(summed[next]); ++i) {
      (*at)[summed[next]] = i;
      sum += Sum(s, in, summed, next + 1, at);
    }
    return sum;
  }
  double product = 1;
  for (size_t k = 0; k < in.size(); ++k) {
    Shape index;
    for (size_t axis = 0; axis < s.operands[k].size(); ++axis) {
      index.push_back(in[k].shape[axis] == 1 ? 0 : at->at(s.operands[k][axis]));
    }
    product *= At(in[k], index);
  }
  return product;
}

NodeCase Einsum(const Setup& s) {
  NodeCase c;
  c.name = "Einsum" + s.name;
  c.op_type = "Einsum";
  c.attributes = [=](Attributes* a) { a->String("equation", s.equation.c_str()); };
  for (size_t k = 0; k < s.operands.size(); ++k) {
    c.inputs.push_back({kTyped, ShapeOf(s, s.operands[k], k < s.ones.size() ? s.ones[k] : "")});
  }
  const Shape shape = ShapeOf(s, s.out, "");
  c.outputs = {{kTyped, shape}};
  std::string summed;
  for (const auto& label : s.sizes) summed += Has(s.out, label.first) ? "" : std::string(1, label.first);
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& index) {
      std::map<char, int64_t> at;
      for (size_t axis = 0; axis < index.size(); ++axis) at[s.out[axis]] = index[axis];
      return Sum(s, in, summed, 0, &at);
    })};
  };
  c.error = 1e-5;  // of sums of up to 60 products up to 1, in f32
  // What one operand alone is summed to, up to 6, and what two of three give, up to 12, are rounded to the type, and
  // then multiplied and added up to 5 times.
  c.roundings = 5;
  c.magnitude = 12;
  return c;
}

}  // namespace

std::vector<NodeCase> EinsumCases() {
  const std::map<char, int64_t> ij = {{'i', 3}, {'j', 4}}, ijk = {{'i', 3}, {'j', 4}, {'k', 5}};
  const std::map<char, int64_t> bijk = {{'b', 2}, {'i', 3}, {'j', 4}, {'k', 5}};
  const std::map<char, int64_t> bhqkd = {{'b', 2}, {'h', 3}, {'q', 4}, {'k', 5}, {'d', 6}};
  std::vector<NodeCase> all;
  for (const Setup& s : std::vector<Setup>{
           // One operand.
           {"Identity", "ij->ij", {"ij"}, "ij", ij},
           {"Transpose", "ij->ji", {"ij"}, "ji", ij},
           {"Sum", "ij->", {"ij"}, "", ij},
           {"SumOfRows", "ij->i", {"ij"}, "i", ij},
           {"SumOfColumns", "i j -> j", {"ij"}, "j", ij},
           {"Diagonal", "bii->bi", {"bii"}, "bi", {{'b', 2}, {'i', 3}}},
           {"Trace", "ii", {"ii"}, "", {{'i', 4}}},
           {"DiagonalOfThree", "iji->ji", {"iji"}, "ji", ij},
           {"Implicit", "ba", {"ba"}, "ab", {{'a', 3}, {'b', 4}}},
           {"ImplicitOfCapitals", "aB", {"aB"}, "Ba", {{'a', 3}, {'B', 4}}},
           {"Ellipsis", "...ij->...ji", {"01ij"}, "01ji", {{'0', 2}, {'1', 3}, {'i', 3}, {'j', 4}}},
           {"ImplicitEllipsis", "i...", {"i0"}, "0i", {{'0', 2}, {'i', 3}}},
           {"Scalar", "->", {""}, "", {}},
           // Two operands.
           {"MatMul", "ij,jk->ik", {"ij", "jk"}, "ik", ijk},
           {"MatMulImplicit", "ij,jk", {"ij", "jk"}, "ik", ijk},
           {"MatMulOfATransposed", "ji,jk->ik", {"ji", "jk"}, "ik", ijk},
           {"MatMulOfBTransposed", "ij,kj->ik", {"ij", "kj"}, "ik", ijk},
           {"MatMulToATransposed", "ij,jk->ki", {"ij", "jk"}, "ki", ijk},
           {"Batch", "bij,bjk->bik", {"bij", "bjk"}, "bik", bijk},
           {"BatchInTheMiddle", "ibj,jbk->kbi", {"ibj", "jbk"}, "kbi", bijk},
           {"EllipsisBatch", "...ij,...jk->...ik", {"0ij", "0jk"}, "0ik", {{'0', 2}, {'i', 3}, {'j', 4}, {'k', 5}}},
           {"EllipsisOfOne", "...ij,jk->...ik", {"0ij", "jk"}, "0ik", {{'0', 2}, {'i', 3}, {'j', 4}, {'k', 5}}},
           {"EllipsisBroadcast",
            "...ij,...jk->...ik",
            {"01ij", "01jk"},
            "01ik",
            {{'0', 2}, {'1', 3}, {'i', 3}, {'j', 4}, {'k', 5}},
            {"0", "1"}},
           {"EllipsesOfTwoRanks", "...i,...i->...", {"01i", "1i"}, "01", {{'0', 2}, {'1', 3}, {'i', 4}}},
           {"Scores", "bqhd,bkhd->bhqk", {"bqhd", "bkhd"}, "bhqk", bhqkd},
           {"Mix", "bhqk,bkhd->bqhd", {"bhqk", "bkhd"}, "bqhd", bhqkd},
           {"Window", "bhqd,qkd->bhqk", {"bhqd", "qkd"}, "bhqk", bhqkd},
           {"Outer", "i,j->ij", {"i", "j"}, "ij", ij},
           {"OuterTransposed", "i,j->ji", {"i", "j"}, "ji", ij},
           {"Elements", "ij,ij->ij", {"ij", "ij"}, "ij", ij},
           {"ElementsTransposed", "ij,ji->ij", {"ij", "ji"}, "ij", ij},
           {"ByNumber", ",ij->ij", {"", "ij"}, "ij", ij},
           {"Inner", "i,i", {"i", "i"}, "", {{'i', 7}}},
           {"InnerOfMatrices", "ij,ij", {"ij", "ij"}, "", ij},
           {"InnerOfRows", "ij,ij->i", {"ij", "ij"}, "i", ij},
           {"SumsOfEach", "ij,kl->", {"ij", "kl"}, "", {{'i', 2}, {'j', 3}, {'k', 2}, {'l', 3}}},
           {"SumOfOne", "ijk,jl->il", {"ijk", "jl"}, "il", {{'i', 2}, {'j', 3}, {'k', 4}, {'l', 5}}},
           {"OfADiagonal", "iij,jk->ik", {"iij", "jk"}, "ik", ijk},
           {"BroadcastOverTheSum", "ij,jk->ik", {"ij", "jk"}, "ik", ijk, {"j", ""}},
           {"BroadcastRows", "bij,bij->bij", {"bij", "bij"}, "bij", {{'b', 2}, {'i', 3}, {'j', 4}}, {"i", "b"}},
           {"OfNothing", "ij,jk->ik", {"ij", "jk"}, "ik", {{'i', 3}, {'j', 0}, {'k', 5}}},
           {"ToNothing", "ij,jk->ik", {"ij", "jk"}, "ik", {{'i', 0}, {'j', 4}, {'k', 5}}},
           // More.
           {"Chain", "ij,jk,kl->il", {"ij", "jk", "kl"}, "il", {{'i', 2}, {'j', 3}, {'k', 4}, {'l', 5}}},
           {"BilinearForm", "bi,ijk,bk->bj", {"bi", "ijk", "bk"}, "bj", bijk},
           {"OfFour", "i,i,i,i->i", {"i", "i", "i", "i"}, "i", {{'i', 6}}}}) {
    all.push_back(Einsum(s));
  }
  return all;
}

}  // namespace testing
}  // namespace gcap
