// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN, by the formulas of ONNX's documentation, one sequence after the other.

#include <algorithm>
#include <cmath>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

constexpr double kError = 4e-6;  // of sums of up to 8 terms below 1 and 5 steps of sigmoid and tanh, in f32

// One node: sizes, and which inputs and outputs it has.
struct Setup {
  std::string name, op = "LSTM", direction = "forward";
  bool batch_first = false;
  bool bias = true, lengths = false, initial_h = false, initial_c = false, peephole = false;
  bool y = true, y_h = true, y_c = true;
  int64_t steps = 4, batch = 3, features = 5, hidden = 3;

  bool linear = false;  // linear_before_reset

  int64_t gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  Shape State() const { return batch_first ? Shape{batch, directions(), hidden} : Shape{directions(), batch, hidden}; }
  Shape All() const {
    return batch_first ? Shape{batch, steps, directions(), hidden} : Shape{steps, directions(), batch, hidden};
  }
};

double Sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

// One sequence in one direction.
class Sequence {
 public:
  Sequence(const Setup& s, const Ins& in, int64_t direction, int64_t n) : s_(s), in_(in), d_(direction), n_(n) {
    h_ = s.initial_h ? Row(in[5]) : Values(static_cast<size_t>(s.hidden), 0.0);
    c_ = s.initial_c ? Row(in[6]) : Values(static_cast<size_t>(s.hidden), 0.0);
  }

  // The step at `time` of X.
  void Step(int64_t time) {
    Values h = h_, c = c_;
    for (int64_t j = 0; j < s_.hidden; ++j) {
      const size_t at = static_cast<size_t>(j);
      if (s_.op == "LSTM") {
        Lstm(time, j, &h[at], &c[at]);
      } else {
        h[at] = s_.op == "GRU" ? Gru(time, j) : std::tanh(Gate(0, time, j));
      }
    }
    h_ = h;
    c_ = c;
  }
  const Values& h() const { return h_; }
  const Values& c() const { return c_; }

 private:
  void Lstm(int64_t time, int64_t j, double* h, double* c) const {
    const double old = c_[static_cast<size_t>(j)];
    const double i = Sigmoid(Gate(0, time, j) + Peephole(0, j) * old);
    const double f = Sigmoid(Gate(2, time, j) + Peephole(2, j) * old);
    *c = f * old + i * std::tanh(Gate(3, time, j));
    *h = Sigmoid(Gate(1, time, j) + Peephole(1, j) * *c) * std::tanh(*c);
  }
  // With linear_before_reset what the state gives is reset as one, else each element of the state before the sum.
  double Gru(int64_t time, int64_t j) const {
    const double z = Sigmoid(Gate(0, time, j));
    double sum = OfX(2, time, j);
    if (s_.linear) {
      sum += Sigmoid(Gate(1, time, j)) * OfH(h_, 2, j);
    } else {
      Values reset;
      for (int64_t k = 0; k < s_.hidden; ++k) {
        reset.push_back(Sigmoid(Gate(1, time, k)) * h_[static_cast<size_t>(k)]);
      }
      sum += OfH(reset, 2, j);
    }
    return (1 - z) * std::tanh(sum) + z * h_[static_cast<size_t>(j)];
  }
  Shape StateIndex(int64_t j) const { return s_.batch_first ? Shape{n_, d_, j} : Shape{d_, n_, j}; }
  Values Row(const Elements& state) const {
    Values row;
    for (int64_t j = 0; j < s_.hidden; ++j) row.push_back(At(state, StateIndex(j)));
    return row;
  }
  double OfX(int64_t gate, int64_t time, int64_t j) const {
    const int64_t row = gate * s_.hidden + j;
    double sum = s_.bias ? At(in_[3], {d_, row}) : 0;
    for (int64_t k = 0; k < s_.features; ++k) {
      sum += At(in_[0], s_.batch_first ? Shape{n_, time, k} : Shape{time, n_, k}) * At(in_[1], {d_, row, k});
    }
    return sum;
  }
  double OfH(const Values& h, int64_t gate, int64_t j) const {
    const int64_t row = gate * s_.hidden + j;
    double sum = s_.bias ? At(in_[3], {d_, s_.gates() * s_.hidden + row}) : 0;
    for (int64_t k = 0; k < s_.hidden; ++k) sum += h[static_cast<size_t>(k)] * At(in_[2], {d_, row, k});
    return sum;
  }
  double Gate(int64_t gate, int64_t time, int64_t j) const { return OfX(gate, time, j) + OfH(h_, gate, j); }
  double Peephole(int64_t which, int64_t j) const { return s_.peephole ? At(in_[7], {d_, which * s_.hidden + j}) : 0; }

  const Setup& s_;
  const Ins& in_;
  int64_t d_, n_;
  Values h_, c_;
};

// What one sequence puts into Y, Y_h and Y_c. Behind the end of the sequence Y is 0, and a sequence without elements
// ends in zeros.
void Fill(const Setup& s, const Ins& in, int64_t d, int64_t n, std::vector<Elements>* made) {
  const int64_t given = s.lengths ? static_cast<int64_t>(in[4].at[static_cast<size_t>(n)]) : s.steps;
  const int64_t length = std::clamp<int64_t>(given, 0, s.steps);
  const bool is_reverse = s.direction == "reverse" || d == 1;
  Sequence sequence(s, in, d, n);
  const auto put = [&](Elements* to, const Shape& index, double value) {
    to->at[static_cast<size_t>(Ravel(index, to->shape))] = value;
  };
  for (int64_t step = 0; step < length; ++step) {
    const int64_t time = is_reverse ? length - 1 - step : step;
    sequence.Step(time);
    for (int64_t j = 0; j < s.hidden; ++j) {
      put(&(*made)[0], s.batch_first ? Shape{n, time, d, j} : Shape{time, d, n, j},
          sequence.h()[static_cast<size_t>(j)]);
    }
  }
  for (int64_t j = 0; length > 0 && j < s.hidden; ++j) {
    const Shape index = s.batch_first ? Shape{n, d, j} : Shape{d, n, j};
    put(&(*made)[1], index, sequence.h()[static_cast<size_t>(j)]);
    put(&(*made)[2], index, sequence.c()[static_cast<size_t>(j)]);
  }
}

std::vector<Values> Reference(const Setup& s, const Ins& in) {
  std::vector<Elements> made;
  for (const Shape& shape : {s.All(), s.State(), s.State()}) {
    made.push_back({shape, Values(static_cast<size_t>(Count(shape)), 0.0)});
  }
  for (int64_t d = 0; d < s.directions(); ++d) {
    for (int64_t n = 0; n < s.batch; ++n) Fill(s, in, d, n, &made);
  }
  std::vector<Values> wanted;
  if (s.y) wanted.push_back(made[0].at);
  if (s.y_h) wanted.push_back(made[1].at);
  if (s.y_c) wanted.push_back(made[2].at);
  return wanted;
}

// Inputs and outputs that are left out before others have a place.
NodeCase Recurrent(const Setup& s) {
  NodeCase c;
  c.name = s.op + s.name;
  c.op_type = s.op;
  c.attributes = [=](Attributes* a) {
    a->Int("hidden_size", s.hidden);
    if (s.direction != "forward") a->String("direction", s.direction.c_str());
    if (s.batch_first) a->Int("layout", 1);
    if (s.linear) a->Int("linear_before_reset", 1);
  };
  const int64_t d = s.directions(), rows = s.gates() * s.hidden;
  const double limit = 0.5;  // of weights, so that the gates are neither open nor shut
  c.inputs = {{kTyped, s.batch_first ? Shape{s.batch, s.steps, s.features} : Shape{s.steps, s.batch, s.features}},
              {kTyped, {d, rows, s.features}, -limit, limit},
              {kTyped, {d, rows, s.hidden}, -limit, limit}};
  const auto add = [&](bool has, const Input& input) { c.inputs.push_back(has ? input : Input{kTyped, kLeftOut}); };
  add(s.bias, {kTyped, {d, 2 * rows}, -limit, limit});
  add(s.lengths, {GCAP_DTYPE_I32, {s.batch}, -1, static_cast<double>(s.steps) + 1});
  add(s.initial_h, {kTyped, s.State()});
  add(s.initial_c, {kTyped, s.State()});
  add(s.peephole, {kTyped, {d, 3 * s.hidden}});
  while (c.inputs.back().shape == kLeftOut) c.inputs.pop_back();
  const auto make = [&](bool has, const Shape& shape) { c.outputs.push_back({kTyped, has ? shape : kLeftOut}); };
  make(s.y, s.All());
  make(s.y_h, s.State());
  make(s.y_c, s.State());
  while (c.outputs.back().second == kLeftOut) c.outputs.pop_back();
  c.reference = [=](const Ins& in) { return Reference(s, in); };
  c.error = kError;
  c.roundings = 4;  // of the state, after each step; a step passes less than half of an error on
  c.magnitude = 1;
  return c;
}

// A setup in which `change` was made.
Setup With(const std::string& name, const std::function<void(Setup*)>& change) {
  Setup s;
  s.name = name;
  change(&s);
  return s;
}

// Likewise, without cells.
NodeCase Uncelled(const std::string& op, const std::string& name, const std::function<void(Setup*)>& change) {
  Setup s = With(name, change);
  s.op = op;
  s.initial_c = s.peephole = s.y_c = false;
  return Recurrent(s);
}

void AddAll(Setup* s) { s->lengths = s->initial_h = s->initial_c = s->peephole = true; }

}  // namespace

std::vector<NodeCase> RecurrentCases() {
  return {
      Recurrent(With("", [](Setup*) {})),
      Recurrent(With("OfWeightsAlone", [](Setup* s) { s->bias = s->y_h = s->y_c = false; })),
      Recurrent(With("Reverse", [](Setup* s) { s->direction = "reverse"; })),
      Recurrent(With("WithAll", AddAll)),
      Recurrent(With("ReverseWithAll", [](Setup* s) { AddAll(s), s->direction = "reverse"; })),
      Recurrent(With("BothWays", [](Setup* s) { AddAll(s), s->direction = "bidirectional"; })),
      Recurrent(
          With("OfBatchesFirst", [](Setup* s) { AddAll(s), s->direction = "bidirectional", s->batch_first = true; })),
      Recurrent(With("WithAStateAlone", [](Setup* s) { s->bias = s->y = false, s->initial_h = s->initial_c = true; })),
      Recurrent(With("OfCellsAlone", [](Setup* s) { s->y = s->y_h = false, s->initial_c = true; })),
      Recurrent(With("WithLengthsOfNoBias", [](Setup* s) { s->bias = s->y_c = false, s->lengths = true; })),
      Recurrent(With("OfOneStep", [](Setup* s) { s->initial_h = s->initial_c = true, s->steps = 1; })),
      Recurrent(With("OfNoStep", [](Setup* s) { s->initial_h = s->initial_c = true, s->steps = 0; })),
      Recurrent(With("OfNoSequence", [](Setup* s) { s->batch = 0; })),
      Recurrent(With("OfNoFeature", [](Setup* s) { s->features = 0; })),
      Uncelled("GRU", "", [](Setup*) {}),
      Uncelled("GRU", "OfWeightsAlone", [](Setup* s) { s->bias = s->y_h = false; }),
      Uncelled("GRU", "ReverseWithAll", [](Setup* s) { AddAll(s), s->direction = "reverse"; }),
      Uncelled("GRU", "BothWays", [](Setup* s) { AddAll(s), s->direction = "bidirectional"; }),
      Uncelled("GRU", "BothWaysOfTwoUnits", [](Setup* s) { s->direction = "bidirectional", s->hidden = 2; }),
      Uncelled("GRU", "OfBatchesFirst", [](Setup* s) { AddAll(s), s->batch_first = true; }),
      Uncelled("GRU", "Linear", [](Setup* s) { s->linear = true; }),
      Uncelled("GRU", "LinearOfWeightsAlone", [](Setup* s) { s->bias = s->y_h = false, s->linear = true; }),
      Uncelled("GRU", "LinearBothWays", [](Setup* s) { AddAll(s), s->direction = "bidirectional", s->linear = true; }),
      Uncelled("GRU", "LinearOfBatchesFirst", [](Setup* s) { AddAll(s), s->batch_first = s->linear = true; }),
      Uncelled("GRU", "WithItsStateAlone", [](Setup* s) { s->y = s->bias = false, s->initial_h = true; }),
      Uncelled("GRU", "OfNoStep", [](Setup* s) { s->initial_h = true, s->steps = 0; }),
      Uncelled("RNN", "", [](Setup*) {}),
      Uncelled("RNN", "BothWays", [](Setup* s) { AddAll(s), s->direction = "bidirectional"; }),
      Uncelled("RNN", "OfBatchesFirst", [](Setup* s) { AddAll(s), s->batch_first = true; }),
  };
}

NodeCase DrawnRecurrentCase(Draws* draws) {
  const auto coin = [&] { return draws->Int(0, 1) == 1; };
  Setup s;
  s.op = std::vector<std::string>{"LSTM", "GRU", "RNN"}[static_cast<size_t>(draws->Int(0, 2))];
  s.direction = std::vector<std::string>{"forward", "reverse", "bidirectional"}[static_cast<size_t>(draws->Int(0, 2))];
  const bool is_lstm = s.op == "LSTM";
  for (bool* flag : {&s.batch_first, &s.bias, &s.lengths, &s.initial_h, &s.linear, &s.y, &s.y_h}) *flag = coin();
  for (bool* flag : {&s.initial_c, &s.peephole, &s.y_c}) *flag = is_lstm && coin();
  s.linear = s.linear && s.op == "GRU";
  s.y = s.y || !(s.y_h || s.y_c);
  s.steps = draws->Int(0, 5);
  for (int64_t* size : {&s.batch, &s.features, &s.hidden}) *size = draws->Int(1, 5);
  s.name = s.direction + " of " + std::to_string(s.steps) + " steps, " + std::to_string(s.batch) + " sequences, " +
           std::to_string(s.features) + " features, " + std::to_string(s.hidden) + " units";
  return Recurrent(s);
}

}  // namespace testing
}  // namespace gcap
