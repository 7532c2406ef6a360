// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Random shapes, and random graphs of shape nodes, against reference.h. A case's parameter is its seed:
//   --test_filter='*/CpuEpRandom.*/17'

#include <random>

#include "test/cpu_ep/cpu_node.h"
#include "test/cpu_ep/reference.h"

namespace {

using namespace gcap::testing;  // NOLINT: the reference's operators are named as ONNX's

class CpuEpRandom : public CpuEp, public ::testing::WithParamInterface<unsigned> {
 protected:
  int64_t Draw(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }
  bool Flip() { return Draw(0, 1) == 1; }

  // Of few elements, with a 0 now and then.
  Sizes DrawShape(int most_rank = GCAP_MAX_RANK) {
    const int64_t rank = Draw(0, most_rank), most = rank > 5 ? 2 : 4;
    Sizes shape;
    for (int64_t i = 0; i < rank; ++i) shape.push_back(Draw(0, 9) == 0 ? 0 : Draw(1, most));
    return shape;
  }
  Ref DrawTensor(const Sizes& shape, int64_t least = -9, int64_t most = 9) {
    return Make(shape, [&](const Numbers&) { return Draw(least, most); });
  }
  // A shape that broadcasts to this one.
  Sizes DrawNarrower(const Sizes& shape) {
    Sizes narrower(shape.begin() + Draw(0, static_cast<int64_t>(shape.size())), shape.end());
    for (int64_t& size : narrower) size = Draw(0, 2) == 0 ? 1 : size;
    return narrower;
  }

  // The EP computes what the reference does, or refuses what it refuses. Returns the EP's result.
  MaybeRef ExpectSame(OnnxNode&& op, const std::vector<Ref>& inputs, const MaybeRef& expected, int rank = -1) {
    SCOPED_TRACE(op.op_type());
    std::vector<Host> hosts;
    for (const Ref& input : inputs) hosts.push_back(input.ToHost());
    const size_t out_rank = expected ? expected->shape.size() : static_cast<size_t>(rank < 0 ? 1 : rank);
    Host result(GCAP_DTYPE_I64, Sizes{});
    const Outcome outcome(TryRun(op, hosts, GCAP_DTYPE_I64, out_rank, &result));
    EXPECT_STREQ(gcap_code_name(outcome.code), expected ? "OK" : "INVALID_ARGUMENT") << outcome.message;
    if (!outcome.ok() || !expected) return std::nullopt;
    EXPECT_EQ(result.shape, expected->shape);
    EXPECT_EQ(result.As<int64_t>(), expected->at);
    return Ref{result.shape, result.As<int64_t>()};
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(CpuEpRandom, BinaryOperators) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"}) {
    const Sizes shape = DrawShape();
    const Ref a = DrawTensor(DrawNarrower(shape)), b = DrawTensor(DrawNarrower(shape), Flip() ? 1 : -9, 9);
    ExpectSame(OnnxNode(op), {a, b}, Binary(op, a, b));
  }
}

TEST_P(CpuEpRandom, Where) {
  const Sizes shape = DrawShape();
  const Ref a = DrawTensor(DrawNarrower(shape)), b = DrawTensor(shape), p = DrawTensor(DrawNarrower(shape), 0, 1);
  const std::vector<uint8_t> condition(p.at.begin(), p.at.end());
  const Ref expected =
      Make(shape, [&](const Numbers& i) { return BroadcastAt(p, i) != 0 ? BroadcastAt(a, i) : BroadcastAt(b, i); });
  const Host result =
      Run(OnnxNode("Where"), {Host(p.shape, condition), a.ToHost(), b.ToHost()}, GCAP_DTYPE_I64, shape.size());
  EXPECT_EQ(result.shape, shape);
  EXPECT_EQ(result.As<int64_t>(), expected.at);
}

TEST_P(CpuEpRandom, GatherAndConcat) {
  Sizes shape = DrawShape(4);
  shape.push_back(Draw(1, 4));
  const Ref data = DrawTensor(shape);
  const int axis = static_cast<int>(Draw(-data.rank(), data.rank() - 1));
  const int64_t size = data.shape[static_cast<size_t>(axis < 0 ? axis + data.rank() : axis)];
  const Ref indices = DrawTensor(DrawShape(3), -size - (size == 0), std::max<int64_t>(size - 1, 0));
  const MaybeRef gathered = Gather(data, indices, axis);
  ExpectSame(std::move(OnnxNode("Gather").Int("axis", axis)), {data, indices}, gathered,
             data.rank() + indices.rank() - 1);

  const int along = static_cast<int>(Draw(0, data.rank() - 1));
  std::vector<Ref> parts = {data};
  for (int64_t i = Draw(0, 3); i > 0; --i) {
    shape[static_cast<size_t>(along)] = Draw(0, 3);
    parts.push_back(DrawTensor(shape));
  }
  ExpectSame(std::move(OnnxNode("Concat").Int("axis", along)), parts, Concat(parts, along));
}

TEST_P(CpuEpRandom, SliceTransposeAndExpand) {
  Sizes shape = DrawShape(6);
  shape.push_back(Draw(0, 9));
  const Ref data = DrawTensor(shape);
  const int axis = static_cast<int>(Draw(0, data.rank() - 1));
  const int64_t start = Draw(-12, 12), end = Draw(-12, 12), step = Draw(1, 4) * (Flip() ? 1 : -1);
  ExpectSame(OnnxNode("Slice"), {data, {{1}, {start}}, {{1}, {end}}, {{1}, {axis}}, {{1}, {step}}},
             Slice(data, start, end, axis, step));
  Numbers perm;
  for (int i = 0; i < data.rank(); ++i) perm.push_back(i);
  std::shuffle(perm.begin(), perm.end(), random_);
  ExpectSame(std::move(OnnxNode("Transpose").Ints("perm", perm)), {data}, Transpose(data, perm));
  const Ref narrow = DrawTensor(DrawNarrower(shape));
  ExpectSame(OnnxNode("Expand"), {narrow, {{data.rank()}, shape}}, Expand(narrow, shape));
}

TEST_P(CpuEpRandom, Reductions) {
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMax"}) {
    const Ref data = DrawTensor(DrawShape());
    std::vector<bool> reduced;
    Numbers axes;
    for (int i = 0; i < data.rank(); ++i) {
      reduced.push_back(Flip());
      if (reduced.back()) axes.push_back(Flip() ? i : i - data.rank());
    }
    const bool keep = Flip();
    OnnxNode node(op);
    node.Int("keepdims", keep).Int("noop_with_empty_axes", 1).Ints("axes", axes);
    ExpectSame(std::move(node), {data}, Reduce(op, data, reduced, keep));
  }
}

// Small integers, whose products and sums f32 has exactly.
TEST_P(CpuEpRandom, MatMul) {
  const Sizes batch = DrawShape(3);
  const int64_t m = Draw(0, 5), k = Draw(0, 5), n = Draw(0, 5);
  Sizes of_a = DrawNarrower(batch), of_b = batch, of_out = batch;
  of_a.insert(of_a.end(), {m, k});
  of_b.insert(of_b.end(), {k, n});
  of_out.insert(of_out.end(), {m, n});
  const Ref a = DrawTensor(of_a), b = DrawTensor(of_b);
  const Ref expected = Make(of_out, [&](const Numbers& index) {
    int64_t sum = 0;
    for (int64_t l = 0; l < k; ++l) {
      Numbers in_a = index, in_b = index;
      in_a.back() = l;
      in_b[in_b.size() - 2] = l;
      // The batch alone is broadcast: the matrices have the right sizes.
      Numbers own(in_a.end() - a.rank(), in_a.end());
      for (size_t i = 0; i + 2 < own.size(); ++i) own[i] = a.shape[i] == 1 ? 0 : own[i];
      sum += a.at[static_cast<size_t>(FlatOf(own, a.shape))] * b.at[static_cast<size_t>(FlatOf(in_b, b.shape))];
    }
    return sum;
  });
  const auto floats = [](const Ref& ref) { return std::vector<float>(ref.at.begin(), ref.at.end()); };
  const Host result =
      Run(OnnxNode("MatMul"), {Host(a.shape, floats(a)), Host(b.shape, floats(b))}, GCAP_DTYPE_F32, of_out.size());
  EXPECT_EQ(result.shape, of_out);
  EXPECT_EQ(result.As<float>(), floats(expected));
}

// A graph as exporters make them for a Reshape: vectors of sizes, cut, put together and computed with. Each node reads
// what the EP made before; the reference reads what the reference made.
TEST_P(CpuEpRandom, GraphsOfShapeNodes) {
  const Ref x = DrawTensor(DrawShape(5));
  std::vector<Ref> vectors = {{{x.rank()}, x.shape}, {{1}, {-1}}};
  const auto shape_of = ExpectSame(OnnxNode("Shape"), {x}, vectors[0]);
  ASSERT_TRUE(shape_of);
  for (int step = 0; step < 40; ++step) {
    SCOPED_TRACE(step);
    const auto any = [&]() -> const Ref& {
      return vectors[static_cast<size_t>(Draw(0, static_cast<int64_t>(vectors.size()) - 1))];
    };
    const Ref a = any(), b = any();
    MaybeRef made;
    switch (Draw(0, 6)) {
      case 0: {
        const Ref indices = DrawTensor({Draw(0, 3)}, -3, 2);
        made = ExpectSame(OnnxNode("Gather"), {a, indices}, Gather(a, indices, 0));
        break;
      }
      case 1: made = ExpectSame(std::move(OnnxNode("Concat").Int("axis", 0)), {a, b}, Concat({a, b}, 0)); break;
      case 2: {
        const char* const ops[] = {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"};
        const char* op = ops[Draw(0, 6)];
        made = ExpectSame(OnnxNode(op), {a, b}, Binary(op, a, b));
        break;
      }
      case 3: {
        const int64_t start = Draw(-5, 5), end = Draw(-5, 5), by = Draw(-2, 2);
        made = ExpectSame(OnnxNode("Slice"), {a, {{1}, {start}}, {{1}, {end}}, {{1}, {0}}, {{1}, {by}}},
                          Slice(a, start, end, 0, by));
        break;
      }
      case 4: made = ExpectSame(OnnxNode("ReduceProd"), {a}, Reduce("ReduceProd", a, {true}, true)); break;
      // The sizes that these get are mostly none; large ones are left out, since the reference computes them.
      case 5: {
        if (a.at.size() > GCAP_MAX_RANK) break;
        const MaybeRef expected = Reshape(x, a.at);
        ExpectSame(OnnxNode("Reshape"), {x, a}, expected, static_cast<int>(a.at.size()));
        break;
      }
      default: {
        if (a.at.size() > GCAP_MAX_RANK) break;
        if (std::any_of(a.at.begin(), a.at.end(), [](int64_t size) { return size > 3; })) break;
        const Ref one{{1}, {Draw(-9, 9)}};
        ExpectSame(OnnxNode("Expand"), {one, a}, Expand(one, a.at), std::max(1, static_cast<int>(a.at.size())));
        break;
      }
    }
    // Numbers that others multiply stay small, so that the reference's Reshape does not overflow.
    if (!made || made->at.size() > 12) continue;
    if (std::all_of(made->at.begin(), made->at.end(), [](int64_t each) { return each > -100 && each < 100; })) {
      vectors.push_back(*made);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CpuEpRandom, ::testing::Range(0u, 60u));

}  // namespace
