// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that work element by element.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

// Of functions that are computed in f32 on numbers up to 8: a few units of its last place.
constexpr double kError = 4e-6;

NodeCase Binary(const std::string& op, gcap_dtype_t type, gcap_dtype_t out, double low, double high,
                const std::function<double(double, double)>& f) {
  const Shape shape = {2, 3, 4};
  NodeCase c;
  c.name = op + (type == kTyped ? "" : std::string("Of") + gcap_dtype_name(type));
  c.op_type = op;
  c.inputs = {{type, {2, 1, 4}, low, high}, {type, {3, 1}, low, high}};
  c.outputs = {{out, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) { return f(BroadcastAt(in[0], i), BroadcastAt(in[1], i)); })};
  };
  c.error = kError;
  return c;
}

NodeCase Unary(const std::string& name, const std::string& op, gcap_dtype_t type, double low, double high,
               const std::function<double(double)>& f, const std::function<void(Attributes*)>& attributes = nullptr) {
  NodeCase c;
  c.name = name;
  c.op_type = op;
  c.attributes = attributes;
  c.inputs = {{type, {3, 5}, low, high}};
  c.outputs = {{type, {3, 5}}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    Values values;
    for (double x : in[0].at) values.push_back(f(x));
    return {values};
  };
  c.error = kError;
  return c;
}

void AddBinaries(std::vector<NodeCase>* all) {
  const gcap_dtype_t boolean = GCAP_DTYPE_BOOL, i64 = GCAP_DTYPE_I64, i32 = GCAP_DTYPE_I32;
  all->push_back(Binary("Add", kTyped, kTyped, -2, 2, [](double a, double b) { return a + b; }));
  all->push_back(Binary("Sub", kTyped, kTyped, -2, 2, [](double a, double b) { return a - b; }));
  all->push_back(Binary("Mul", kTyped, kTyped, -2, 2, [](double a, double b) { return a * b; }));
  all->push_back(Binary("Div", kTyped, kTyped, 0.5, 2, [](double a, double b) { return a / b; }));
  all->push_back(Binary("Pow", kTyped, kTyped, 0.5, 2, [](double a, double b) { return std::pow(a, b); }));
  for (gcap_dtype_t exponent : {i64, i32}) {
    NodeCase c = Binary("Pow", kTyped, kTyped, -2, 2, [](double a, double b) { return std::pow(a, b); });
    c.name += std::string("To") + gcap_dtype_name(exponent);
    c.inputs[1].type = exponent;
    c.inputs[1].low = 0, c.inputs[1].high = 3;
    all->push_back(c);
  }
  all->push_back(Binary("Min", kTyped, kTyped, -2, 2, [](double a, double b) { return std::min(a, b); }));
  all->push_back(Binary("Max", kTyped, kTyped, -2, 2, [](double a, double b) { return std::max(a, b); }));
  all->push_back(Binary("Sum", kTyped, kTyped, -2, 2, [](double a, double b) { return a + b; }));
  all->push_back(Binary("Less", kTyped, boolean, -2, 2, [](double a, double b) { return a < b; }));
  all->push_back(Binary("Greater", kTyped, boolean, -2, 2, [](double a, double b) { return a > b; }));
  all->push_back(Binary("LessOrEqual", kTyped, boolean, -2, 2, [](double a, double b) { return a <= b; }));
  all->push_back(Binary("GreaterOrEqual", kTyped, boolean, -2, 2, [](double a, double b) { return a >= b; }));
  all->push_back(Binary("LessOrEqual", i64, boolean, 0, 2, [](double a, double b) { return a <= b; }));
  all->push_back(Binary("GreaterOrEqual", i32, boolean, 0, 2, [](double a, double b) { return a >= b; }));
  for (gcap_dtype_t type : {i64, i32}) {
    const auto bits = [](double x) { return static_cast<int64_t>(x); };
    all->push_back(Binary("BitwiseAnd", type, type, -9, 9, [=](double a, double b) { return bits(a) & bits(b); }));
    all->push_back(Binary("BitwiseOr", type, type, -9, 9, [=](double a, double b) { return bits(a) | bits(b); }));
    all->push_back(Binary("BitwiseXor", type, type, -9, 9, [=](double a, double b) { return bits(a) ^ bits(b); }));
  }
  all->push_back(Binary("Xor", boolean, boolean, 0, 1, [](double a, double b) { return a != b; }));
  all->push_back(Binary("Mean", kTyped, kTyped, -2, 2, [](double a, double b) { return (a + b) / 2; }));
  for (gcap_dtype_t type : {kTyped, i64, i32}) {
    NodeCase c = Binary("Mod", type, type, 1, 9, [](double a, double b) { return std::fmod(a, b); });
    c.name += "WithFmod";
    c.inputs[0].low = -9;
    c.attributes = [](Attributes* a) { a->Int("fmod", 1); };
    all->push_back(c);
  }
  for (gcap_dtype_t type : {i64, i32}) {
    NodeCase c = Binary("Mod", type, type, -9, -1, [](double a, double b) { return a - b * std::floor(a / b); });
    c.inputs[0].high = 9;
    all->push_back(c);
  }
  for (const bool left : {true, false}) {
    const auto shift = [=](double a, double by) {
      return left ? std::fmod(a * std::pow(2, by), 256) : std::floor(a / std::pow(2, by));
    };
    NodeCase c = Binary("BitShift", GCAP_DTYPE_U8, GCAP_DTYPE_U8, 0, 9, shift);
    c.name += left ? "Left" : "Right";
    c.inputs[0].high = 255;
    c.attributes = [=](Attributes* a) { a->String("direction", left ? "LEFT" : "RIGHT"); };
    all->push_back(c);
  }
  all->push_back(Binary("Equal", i32, boolean, 0, 1, [](double a, double b) { return a == b; }));
  all->push_back(Binary("Add", i64, i64, -9, 9, [](double a, double b) { return a + b; }));
  all->push_back(Binary("Mul", i32, i32, -9, 9, [](double a, double b) { return a * b; }));
  all->push_back(Binary("And", boolean, boolean, 0, 1, [](double a, double b) { return a != 0 && b != 0; }));
  all->push_back(Binary("Or", boolean, boolean, 0, 1, [](double a, double b) { return a != 0 || b != 0; }));
}

// Of 8 bits: what fits into them, and sums, differences and products that wrap around.
void AddBytes(std::vector<NodeCase>* all) {
  const gcap_dtype_t boolean = GCAP_DTYPE_BOOL;
  for (const gcap_dtype_t type : {GCAP_DTYPE_I8, GCAP_DTYPE_U8}) {
    const double low = type == GCAP_DTYPE_I8 ? -128 : 0, high = low + 255;
    const auto wrap = [=](double v) { return v - 256 * std::floor((v - low) / 256); };
    const auto bits = [](double x) { return static_cast<int64_t>(x); };
    const auto add = [&](const std::string& op, gcap_dtype_t out, const std::function<double(double, double)>& f) {
      all->push_back(Binary(op, type, out, low, high, f));
    };
    add("Add", type, [=](double a, double b) { return wrap(a + b); });
    add("Sub", type, [=](double a, double b) { return wrap(a - b); });
    add("Mul", type, [=](double a, double b) { return wrap(a * b); });
    add("Min", type, [](double a, double b) { return std::min(a, b); });
    add("Max", type, [](double a, double b) { return std::max(a, b); });
    add("Less", boolean, [](double a, double b) { return a < b; });
    add("Greater", boolean, [](double a, double b) { return a > b; });
    add("LessOrEqual", boolean, [](double a, double b) { return a <= b; });
    add("GreaterOrEqual", boolean, [](double a, double b) { return a >= b; });
    add("BitwiseAnd", type, [=](double a, double b) { return bits(a) & bits(b); });
    add("BitwiseOr", type, [=](double a, double b) { return bits(a) | bits(b); });
    add("BitwiseXor", type, [=](double a, double b) { return bits(a) ^ bits(b); });
    for (const char* op : {"Div", "Mod"}) {
      const bool is_div = op[0] == 'D';
      NodeCase c = Binary(op, type, type, low, high,
                          [=](double a, double b) { return is_div ? std::trunc(a / b) : a - b * std::floor(a / b); });
      c.inputs[1].low = 3, c.inputs[1].high = 20;
      all->push_back(c);
    }
    const std::string of = std::string("Of") + gcap_dtype_name(type);
    all->push_back(Unary("BitwiseNot" + of, "BitwiseNot", type, low, high, [=](double x) { return wrap(-1 - x); }));
    all->push_back(Unary("Abs" + of, "Abs", type, -127, high, [](double x) { return std::fabs(x); }));
    all->push_back(Unary("Sign" + of, "Sign", type, -2, 2, [](double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }));
  }
  all->push_back(Unary("NegOfi8", "Neg", GCAP_DTYPE_I8, -127, 127, [](double x) { return -x; }));
  all->push_back(Unary("ReluOfi8", "Relu", GCAP_DTYPE_I8, -127, 127, [](double x) { return std::max(x, 0.0); }));
}

NodeCase BitCast(gcap_dtype_t from, gcap_dtype_t to, int64_t onnx_to, const std::function<double(double)>& f) {
  NodeCase c = Unary(std::string("BitCast") + gcap_dtype_name(from) + "To" + gcap_dtype_name(to), "BitCast", from, -100,
                     255, f, [=](Attributes* a) { a->Int("to", onnx_to); });
  c.outputs[0].first = to;
  c.error = 0;
  return c;
}

// Of an operator, without its domain.
std::string NameOf(const std::string& op) { return op.substr(op.rfind('.') + 1); }

double Gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double GeluTanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

void AddFunctions(std::vector<NodeCase>* all) {
  const auto add = [all](const std::string& op, double low, double high, const std::function<double(double)>& f,
                         const std::function<void(Attributes*)>& attributes = nullptr) {
    all->push_back(Unary(NameOf(op) + (attributes ? "WithAttributes" : ""), op, kTyped, low, high, f, attributes));
  };
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  add("Sin", -3, 3, [](double x) { return std::sin(x); });
  add("Cos", -3, 3, [](double x) { return std::cos(x); });
  add("Tan", -1, 1, [](double x) { return std::tan(x); });
  add("Asin", -1, 1, [](double x) { return std::asin(x); });
  add("Acos", -1, 1, [](double x) { return std::acos(x); });
  add("Atan", -3, 3, [](double x) { return std::atan(x); });
  add("Sinh", -2, 2, [](double x) { return std::sinh(x); });
  add("Cosh", -2, 2, [](double x) { return std::cosh(x); });
  add("Asinh", -3, 3, [](double x) { return std::asinh(x); });
  add("Acosh", 1, 3, [](double x) { return std::acosh(x); });
  add("Atanh", -0.5, 0.5, [](double x) { return std::atanh(x); });
  add("Ceil", -8, 8, [](double x) { return std::ceil(x); });
  add("Floor", -8, 8, [](double x) { return std::floor(x); });
  add("Round", -8, 8, [](double x) { return std::nearbyint(x); });
  add("Sign", -8, 8, [](double x) { return (x > 0) - (x < 0); });
  add("Softplus", -3, 3, softplus);
  add("Softsign", -3, 3, [](double x) { return x / (1 + std::fabs(x)); });
  add("Mish", -3, 3, [=](double x) { return x * std::tanh(softplus(x)); });
  add("HardSwish", -4, 4, [](double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); });
  add("HardSigmoid", -4, 4, [](double x) { return std::max(0.0, std::min(1.0, 0.2 * x + 0.5)); });
  add(
      "HardSigmoid", -4, 4, [](double x) { return std::max(0.0, std::min(1.0, 0.75 * x - 0.25)); },
      [](Attributes* a) { a->Float("alpha", 0.75f).Float("beta", -0.25f); });
  add("Elu", -3, 3, [](double x) { return x < 0 ? std::exp(x) - 1 : x; });
  add(
      "Elu", -3, 3, [](double x) { return x < 0 ? 0.5 * (std::exp(x) - 1) : x; },
      [](Attributes* a) { a->Float("alpha", 0.5f); });
  add("Celu", -3, 3, [](double x) { return std::max(0.0, x) + std::min(0.0, std::exp(x) - 1); });
  add(
      "Celu", -3, 3, [](double x) { return std::max(0.0, x) + std::min(0.0, 2 * (std::exp(x / 2) - 1)); },
      [](Attributes* a) { a->Float("alpha", 2.0f); });
  add("Selu", -3, 3,
      [](double x) { return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * (std::exp(x) - 1)); });
  add(
      "Selu", -3, 3, [](double x) { return 3 * (x > 0 ? x : 0.5 * (std::exp(x) - 1)); },
      [](Attributes* a) { a->Float("alpha", 0.5f).Float("gamma", 3.0f); });
  add("Swish", -3, 3, [=](double x) { return x * sigmoid(x); });
  add(
      "Swish", -3, 3, [=](double x) { return x * sigmoid(0.5 * x); }, [](Attributes* a) { a->Float("alpha", 0.5f); });
  add("ThresholdedRelu", -3, 3, [](double x) { return x > 1 ? x : 0; });
  add(
      "ThresholdedRelu", -3, 3, [](double x) { return x > -1 ? x : 0; },
      [](Attributes* a) { a->Float("alpha", -1.0f); });
  add("Shrink", -3, 3, [](double x) { return x < -0.5 || x > 0.5 ? x : 0; });
  add(
      "Shrink", -3, 3, [](double x) { return x < -1.5  ? x + 0.25
                                             : x > 1.5 ? x - 0.25
                                                       : 0; },
      [](Attributes* a) { a->Float("bias", 0.25f).Float("lambd", 1.5f); });
  all->push_back(Unary("ShrinkOfi32", "Shrink", GCAP_DTYPE_I32, -9, 9, [](double x) { return x; }));
  all->push_back(Unary("SignOfi64", "Sign", GCAP_DTYPE_I64, -9, 9, [](double x) { return (x > 0) - (x < 0); }));
  add("com.microsoft.QuickGelu", -3, 3, [=](double x) { return x * sigmoid(1.702 * x); });
  add(
      "com.microsoft.QuickGelu", -3, 3, [=](double x) { return x * sigmoid(0.5 * x); },
      [](Attributes* a) { a->Float("alpha", 0.5f); });
  add("com.microsoft.FastGelu", -3, 3, GeluTanh);
  all->push_back(Unary("BitwiseNotOfi32", "BitwiseNot", GCAP_DTYPE_I32, -9, 9, [](double x) { return -x - 1; }));
  for (const char* op : {"IsNaN", "IsInf"}) {
    add(op, -8, 8, [](double) { return 0; });
    all->back().outputs[0].first = GCAP_DTYPE_BOOL;
  }
}

void AddUnaries(std::vector<NodeCase>* all) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto relu = [](double x) { return std::max(x, 0.0); };
  all->push_back(Unary("Relu", "Relu", kTyped, -2, 2, relu));
  all->push_back(Unary("ReluOfi32", "Relu", GCAP_DTYPE_I32, -9, 9, relu));
  all->push_back(Unary("Gelu", "Gelu", kTyped, -3, 3, Gelu));
  all->push_back(Unary("GeluOfMicrosoft", "com.microsoft.Gelu", kTyped, -3, 3, Gelu));
  all->push_back(
      Unary("GeluWithTanh", "Gelu", kTyped, -3, 3, GeluTanh, [](Attributes* a) { a->String("approximate", "tanh"); }));
  all->push_back(Unary("Sigmoid", "Sigmoid", kTyped, -3, 3, sigmoid));
  all->push_back(Unary("Tanh", "Tanh", kTyped, -3, 3, [](double x) { return std::tanh(x); }));
  all->push_back(Unary("Erf", "Erf", kTyped, -3, 3, [](double x) { return std::erf(x); }));
  all->push_back(Unary("Exp", "Exp", kTyped, -3, 2, [](double x) { return std::exp(x); }));
  all->push_back(Unary("Reciprocal", "Reciprocal", kTyped, 0.5, 8, [](double x) { return 1 / x; }));
  all->push_back(Unary("Log", "Log", kTyped, 0.1, 8, [](double x) { return std::log(x); }));
  all->push_back(Unary("Sqrt", "Sqrt", kTyped, 0, 8, [](double x) { return std::sqrt(x); }));
  all->push_back(Unary("Neg", "Neg", kTyped, -2, 2, [](double x) { return -x; }));
  all->push_back(Unary("Abs", "Abs", kTyped, -2, 2, [](double x) { return std::fabs(x); }));
  all->push_back(Unary("Not", "Not", GCAP_DTYPE_BOOL, 0, 1, [](double x) { return x == 0; }));
  all->push_back(Unary(
      "LeakyRelu", "LeakyRelu", kTyped, -2, 2, [](double x) { return x >= 0 ? x : 0.25 * x; },
      [](Attributes* a) { a->Float("alpha", 0.25f); }));
  all->push_back(
      Unary("LeakyReluByDefault", "LeakyRelu", kTyped, -2, 2, [](double x) { return x >= 0 ? x : 0.01 * x; }));
  all->push_back(Unary(
      "ClipByAttributes", "Clip", kTyped, -2, 2, [](double x) { return std::min(x, 0.5); },
      [](Attributes* a) { a->Float("max", 0.5f); }));
  all->push_back(Unary("Identity", "Identity", kTyped, -2, 2, [](double x) { return x; }));
  all->push_back(Unary("MeanOfOne", "Mean", kTyped, -2, 2, [](double x) { return x; }));
  all->push_back(Unary("MaxOfOne", "Max", kTyped, -2, 2, [](double x) { return x; }));
  all->push_back(Unary("SumOfOne", "Sum", kTyped, -2, 2, [](double x) { return x; }));
}

// Min, Max, Mean or Sum of inputs that are broadcast at different places, so that what lies between grows.
NodeCase OfMany(const std::string& op, gcap_dtype_t type, const std::vector<Shape>& inputs, const Shape& shape) {
  const auto both = [op](double a, double b) {
    return op == "Sum" || op == "Mean" ? a + b : op == "Max" ? std::max(a, b) : std::min(a, b);
  };
  NodeCase c;
  c.name = op + "Of" + std::to_string(inputs.size()) + (type == kTyped ? "" : gcap_dtype_name(type));
  c.op_type = op;
  for (const Shape& input : inputs) c.inputs.push_back({type, input, -9, 9});
  c.outputs = {{type, shape}};
  if (op == "Sum" || op == "Mean") {  // rounded after each input
    c.roundings = static_cast<int>(inputs.size()) - 1;
    c.magnitude = 9.0 * static_cast<double>(inputs.size());
  }
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) {
      double all = BroadcastAt(in[0], i);
      for (size_t k = 1; k < in.size(); ++k) all = both(all, BroadcastAt(in[k], i));
      return op == "Mean" ? all / static_cast<double>(in.size()) : all;
    })};
  };
  return c;
}

// The bounds of Clip are scalars on the host.
NodeCase Clip(const std::string& name, gcap_dtype_t type, double low, double high) {
  NodeCase c = Unary(name, "Clip", type, -8, 8, [=](double x) { return std::min(std::max(x, low), high); });
  c.inputs.push_back({type, {}, 0, 0, {low}});
  c.inputs.push_back({type, {}, 0, 0, {high}});
  return c;
}

NodeCase ClipWithoutMin(double high) {
  NodeCase c = Unary("ClipWithoutMin", "Clip", kTyped, -8, 8, [=](double x) { return std::min(x, high); });
  c.inputs.push_back({kTyped, kLeftOut});
  c.inputs.push_back({kTyped, {}, 0, 0, {high}});
  return c;
}

NodeCase Cast(const std::string& name, gcap_dtype_t from, gcap_dtype_t to, int64_t onnx_to,
              const std::function<double(double)>& f) {
  NodeCase c = Unary(name, "Cast", from, -100, 100, f, [=](Attributes* a) {
    if (onnx_to != 0) a->Int("to", onnx_to);
  });
  c.outputs[0].first = to;
  return c;
}

NodeCase Where() {
  const Shape shape = {2, 3, 4};
  NodeCase c;
  c.name = c.op_type = "Where";
  c.inputs = {{GCAP_DTYPE_BOOL, {3, 1}}, {kTyped, {2, 1, 4}}, {kTyped, {3, 4}}};
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) { return BroadcastAt(in[BroadcastAt(in[0], i) != 0 ? 1 : 2], i); })};
  };
  return c;
}

// Of an input, and of another one that is broadcast to it.
NodeCase OntoFirst(const std::string& op, const Shape& other, const std::function<double(double, double)>& f) {
  const Shape shape = {2, 3, 4};
  NodeCase c;
  c.op_type = op;
  c.name = NameOf(op) + "With" + std::to_string(other.size());
  c.inputs = {{kTyped, shape, -2, 2}, {kTyped, other, -2, 2}};
  c.outputs = {{kTyped, shape}};
  c.error = kError;
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) { return f(At(in[0], i), BroadcastAt(in[1], i)); })};
  };
  return c;
}

}  // namespace

std::vector<NodeCase> ElementwiseCases() {
  std::vector<NodeCase> all;
  AddBinaries(&all);
  AddUnaries(&all);
  AddFunctions(&all);
  AddBytes(&all);
  all.push_back(BitCast(GCAP_DTYPE_F32, GCAP_DTYPE_I32, 6, [](double x) {
    const float number = static_cast<float>(x);
    int32_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    return static_cast<double>(bits);
  }));
  NodeCase to_float = BitCast(GCAP_DTYPE_I32, GCAP_DTYPE_F32, 1, [](double x) {
    const int32_t bits = static_cast<int32_t>(x);
    float number;
    std::memcpy(&number, &bits, sizeof(number));
    return static_cast<double>(number);
  });
  to_float.inputs[0].low = 0, to_float.inputs[0].high = 1 << 30;  // numbers up to 2, some of them subnormal
  all.push_back(to_float);
  all.push_back(BitCast(GCAP_DTYPE_U8, GCAP_DTYPE_I8, 3, [](double x) { return x > 127 ? x - 256 : x; }));
  all.push_back(Clip("Clip", kTyped, -0.5, 0.25));
  all.push_back(Clip("ClipOfi64", GCAP_DTYPE_I64, -3, 5));
  all.push_back(Clip("ClipOfi8", GCAP_DTYPE_I8, -3, 5));
  all.push_back(Clip("ClipOfu8", GCAP_DTYPE_U8, 2, 5));
  all.push_back(ClipWithoutMin(0.25));
  all.push_back(Cast("CastToi32", kTyped, GCAP_DTYPE_I32, 6, [](double x) { return std::trunc(x); }));
  all.push_back(Cast("CastFromi64", GCAP_DTYPE_I64, kTyped, 0, [](double x) { return x; }));
  all.push_back(Cast("CastToBool", kTyped, GCAP_DTYPE_BOOL, 9, [](double x) { return x != 0; }));
  all.push_back(Where());
  all.push_back(OntoFirst("PRelu", {3, 1}, [](double x, double slope) { return x < 0 ? x * slope : x; }));
  all.push_back(OntoFirst("com.microsoft.BiasGelu", {4}, [](double a, double b) { return Gelu(a + b); }));
  all.push_back(OntoFirst("com.microsoft.FastGelu", {4}, [](double a, double b) { return GeluTanh(a + b); }));
  all.push_back(OfMany("Max", kTyped, {{1, 4}, {4}, {2, 3, 1}}, {2, 3, 4}));
  all.push_back(OfMany("Min", kTyped, {{4}, {}, {3, 1}, {2, 1, 1}, {1, 3, 4}}, {2, 3, 4}));
  all.push_back(OfMany("Max", GCAP_DTYPE_I64, {{2, 3}, {2, 3}, {2, 3}, {3}}, {2, 3}));
  all.push_back(OfMany("Min", GCAP_DTYPE_I32, {{2, 0}, {1, 1}, {2, 1}}, {2, 0}));
  all.push_back(OfMany("Sum", kTyped, {{1, 4}, {4}, {2, 3, 1}, {3, 4}}, {2, 3, 4}));
  all.push_back(OfMany("Mean", kTyped, {{1, 4}, {4}, {2, 3, 1}, {3, 4}}, {2, 3, 4}));
  all.push_back(OfMany("Sum", GCAP_DTYPE_I64, {{2, 3}, {3}, {2, 1}}, {2, 3}));
  return all;
}

}  // namespace testing
}  // namespace gcap
