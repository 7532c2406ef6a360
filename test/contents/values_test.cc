// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which bytes of arguments are taken for values, on contents made by hand: what a value may be, what is captured in its
// place, what carries one, and whatever differs otherwise, which is named.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "test/contents/made_contents.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/contents/relocation.h"
}

namespace gcap {
namespace testing {
namespace {

gcap_value_bytes_t BytesOf(const Bytes& bytes) {
  gcap_value_bytes_t value = {};
  std::memcpy(value.at, bytes.data(), bytes.size());
  return value;
}

gcap_changing_value_t Value(const char* name, gcap_graph_value_type_t type, const Bytes& now, const Bytes& low,
                            const Bytes& high) {
  gcap_changing_value_t value = {};
  value.name = name;
  value.type = type;
  value.bytes = now.size();
  value.now = BytesOf(now);
  value.low = BytesOf(low);
  value.high = BytesOf(high);
  return value;
}

template <typename T>
gcap_changing_value_t Number(const char* name, T now, T low, T high) {
  const gcap_graph_value_type_t type = std::is_floating_point<T>::value ? GCAP_GRAPH_VALUE_FLOAT
                                       : std::is_signed<T>::value       ? GCAP_GRAPH_VALUE_SIGNED
                                                                        : GCAP_GRAPH_VALUE_UNSIGNED;
  return Value(name, type, Pack(now), Pack(low), Pack(high));
}

template <typename T>
T As(const gcap_value_bytes_t& bytes) {
  T number;
  std::memcpy(&number, bytes.at, sizeof(number));
  return number;
}

// What the values are in a capture: 0 is the real one, 1 to 3 those at stand-ins.
constexpr size_t kCaptures = GCAP_STAND_IN_SETS + 1;
const gcap_value_bytes_t& At(const gcap_changing_value_t& value, size_t capture) {
  return capture == 0 ? value.now : value.stand_ins[capture - 1];
}

// Work that is captured in all captures, where `work` makes the nodes for the values and buffers of one.
using Work = std::function<std::vector<Node>(const std::vector<gcap_value_bytes_t>&, const std::vector<uint64_t>&)>;

struct Found {
  Found(std::vector<gcap_changing_value_t> given, const Work& work, std::vector<gcap_moving_buffer_t> moving = {})
      : values(std::move(given)), buffers(std::move(moving)) {
    gcap_values_choose(values.data(), values.size());
    for (size_t capture = 0; capture < kCaptures; ++capture) {
      std::vector<gcap_value_bytes_t> at;
      std::vector<uint64_t> addresses;
      for (const auto& value : values) at.push_back(At(value, capture));
      for (const auto& buffer : buffers) {
        addresses.push_back(capture == 0 ? buffer.address : buffer.stand_ins[capture - 1]);
      }
      made.push_back(std::make_unique<Contents>(work(at, addresses)));
    }
    for (size_t set = 0; set < GCAP_STAND_IN_SETS; ++set) elsewhere.push_back(*made[set + 1]->get());
    const gcap_relocation_rehearsals_t rehearsals = {elsewhere.data(), elsewhere.size()};
    const gcap_relocation_changes_t changes = {buffers.data(), buffers.size(), values.data(), values.size()};
    const Outcome outcome(gcap_relocation_create(made[0]->get(), &rehearsals, &changes, &relocation));
    ok = outcome.ok();
    message = outcome.message;
    EXPECT_EQ(ok, relocation != nullptr);
    EXPECT_STREQ(gcap_code_name(outcome.code), ok ? "OK" : "FAILED_PRECONDITION");
  }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found() { gcap_relocation_destroy(relocation); }

  // "value:node+offset" of each place, and "[from,bytes]" where it is a part of the value.
  std::string Words() const {
    std::string text;
    for (size_t i = 0; relocation != nullptr && i < relocation->num_value_words; ++i) {
      const gcap_value_word_t& word = relocation->value_words[i];
      text += (i == 0 ? "" : " ") + std::to_string(word.value) + ":" + std::to_string(word.node) + "+" +
              std::to_string(word.offset);
      if (word.bytes == values[word.value].bytes) continue;
      text += "[" + std::to_string(word.from) + "," + std::to_string(word.bytes) + "]";
    }
    return ok ? text : "refused: " + message;
  }

  std::vector<gcap_changing_value_t> values;
  std::vector<gcap_moving_buffer_t> buffers;
  std::vector<std::unique_ptr<Contents>> made;
  std::vector<gcap_contents_t> elsewhere;
  gcap_relocation_t* relocation = nullptr;
  bool ok = false;
  std::string message;
};

// Of work of one kernel, whose arguments follow one value of type T.
template <typename T>
std::string Words(const gcap_changing_value_t& value, const std::function<std::vector<Bytes>(T)>& arguments) {
  return Found({value}, [&](const std::vector<gcap_value_bytes_t>& at,
                            const std::vector<uint64_t>&) { return std::vector<Node>{{arguments(As<T>(at[0]))}}; })
      .Words();
}
std::string WordsOfPosition(const std::function<std::vector<Bytes>(int)>& arguments, int now = 5) {
  return Words<int>(Number<int>("position", now, 0, 4095), arguments);
}

#define EXPECT_NAMES(text, culprit) \
  EXPECT_NE((text).find(culprit), std::string::npos) << "does not name '" << (culprit) << "': " << (text)

// --- What a value may be --------------------------------------------------------------------------------------------

TEST(Values, AValueIsCheckedAndNamed) {
  const auto refusal = [](const gcap_changing_value_t& value) {
    const Outcome outcome(gcap_value_check(&value, 2));
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_INVALID_ARGUMENT);
    return outcome.ok() ? std::string("OK") : outcome.message;
  };
  EXPECT_EQ(refusal(Number<int>("p", 5, -7, 9)), "OK");
  EXPECT_EQ(refusal(Number<int8_t>("p", -7, -7, 9)), "OK");
  EXPECT_EQ(refusal(Number<uint64_t>("p", UINT64_MAX, 0, UINT64_MAX)), "OK");
  EXPECT_EQ(refusal(Number<double>("p", -0.5, -2, 1e300)), "OK");
  EXPECT_EQ(refusal(Value("p", GCAP_GRAPH_VALUE_BYTES, Bytes(32, 1), Bytes(32, 2), Bytes(32, 1))), "OK");
  EXPECT_NAMES(refusal(Number<int>("p", 10, -7, 9)), "value 2 'p' is 10, allowed are -7 to 9");
  EXPECT_NAMES(refusal(Number<int>("p", -8, -7, 9)), "value 2 'p' is -8, allowed are -7 to 9");
  EXPECT_NAMES(refusal(Number<uint16_t>("p", 10, 11, 12)), "value 2 'p' is 10, allowed are 11 to 12");
  EXPECT_NAMES(refusal(Number<float>("t", 2.5f, 0, 2)), "value 2 't' is 2.5, allowed are 0 to 2");
  EXPECT_NAMES(refusal(Number<float>("t", NAN, 0, 2)), "nan, allowed are 0 to 2");
  EXPECT_NAMES(refusal(Number<float>("t", 1, 0, NAN)), "is between 0 and ");
  EXPECT_NAMES(refusal(Number<int>("p", 5, 5, 5)), "is between 5 and 5, allowed are a lower and a higher bound");
  EXPECT_NAMES(refusal(Number<int>("p", 5, 9, -7)), "is between 9 and -7");
  EXPECT_NAMES(refusal(Value("p", GCAP_GRAPH_VALUE_BYTES, Pack(1), Pack(2), Pack(2))),
               "twice the same other bytes 0x02000000");
  for (const size_t bytes : {0, 3, 5, 16, 33}) {
    gcap_changing_value_t value = Number<int>("p", 5, 0, 9);
    value.bytes = bytes;
    EXPECT_NAMES(refusal(value), "is a signed integer of " + std::to_string(bytes) + " bytes");
    value.type = GCAP_GRAPH_VALUE_FLOAT;
    EXPECT_NAMES(refusal(value), "is a float of " + std::to_string(bytes) + " bytes");
  }
  gcap_changing_value_t bytes = Value("p", GCAP_GRAPH_VALUE_BYTES, Pack(1), Pack(2), Pack(3));
  bytes.bytes = 33;
  EXPECT_NAMES(refusal(bytes), "is bytes of 33 bytes");
  bytes.type = static_cast<gcap_graph_value_type_t>(4);
  EXPECT_NAMES(refusal(bytes), "has the type 4, allowed are 0..3");
}

TEST(Values, ANumberMayBeWhatItsBoundsAllow) {
  const gcap_changing_value_t position = Number<int>("p", 5, -2, 9), t = Number<double>("t", 0, -0.5, 2);
  for (int number = -10; number < 20; ++number) {
    const gcap_value_bytes_t bytes = BytesOf(Pack(number));
    EXPECT_EQ(gcap_value_may_be(&position, &bytes), number >= -2 && number <= 9) << number;
  }
  for (const double number : {-1e300, -0.6, -0.5, -0.0, 0.0, 1e-310, 2.0, 2.1, double{INFINITY}, double{NAN}}) {
    const gcap_value_bytes_t bytes = BytesOf(Pack(number));
    EXPECT_EQ(gcap_value_may_be(&t, &bytes), number >= -0.5 && number <= 2) << number;
  }
  const gcap_changing_value_t scale = Number<float>("s", -1, -1.5f, 0.5f);
  for (const float number : {-1e30f, -1.6f, -1.5f, -1e-40f, -0.0f, 0.0f, 0.5f, 0.6f, float{INFINITY}, float{NAN}}) {
    const gcap_value_bytes_t bytes = BytesOf(Pack(number));
    EXPECT_EQ(gcap_value_may_be(&scale, &bytes), number >= -1.5f && number <= 0.5f) << number;
  }
}

// --- What is captured in its place ----------------------------------------------------------------------------------

template <typename T>
void ExpectBoundsAndAThird(T now, T low, T high) {
  gcap_changing_value_t value = Number<T>("p", now, low, high);
  gcap_values_choose(&value, 1);
  bool has_low = false, has_high = false;
  for (const gcap_value_bytes_t& bytes : value.stand_ins) {
    const T number = As<T>(bytes);
    EXPECT_TRUE(gcap_value_may_be(&value, &bytes)) << number;
    EXPECT_TRUE(number >= low && number <= high) << number;
    has_low |= number == low;
    has_high |= number == high;
  }
  EXPECT_TRUE(has_low && has_high);
}

TEST(Values, ANumberIsCapturedAtBothBoundsAndBetween) {
  std::mt19937_64 random(4711);
  for (int i = 0; i < 3000; ++i) {
    int64_t at[] = {static_cast<int64_t>(random() >> random() % 64), static_cast<int64_t>(random() >> random() % 64),
                    static_cast<int64_t>(random() >> random() % 64)};
    std::sort(at, at + 3);
    if (at[0] == at[2]) continue;
    SCOPED_TRACE(std::to_string(at[0]) + " " + std::to_string(at[1]) + " " + std::to_string(at[2]));
    ExpectBoundsAndAThird<int64_t>(at[1], at[0], at[2]);
    ExpectBoundsAndAThird<double>(static_cast<double>(at[1]), static_cast<double>(at[0]) - 1.0e3, 2.0e19);
    ExpectBoundsAndAThird<uint8_t>(at[1] & 0x7f, 0, 0x80 | (at[2] & 0x7f));
  }
}

// So whether it is even shows too, and each of its lower bits.
TEST(Values, OneOfTheCapturesHasOtherBits) {
  for (unsigned now = 0; now <= 300; ++now) {
    gcap_changing_value_t value = Number<unsigned>("p", now, 0, 300);
    gcap_values_choose(&value, 1);
    unsigned varied = 0, parities = 0;
    for (const gcap_value_bytes_t& bytes : value.stand_ins) {
      varied |= As<unsigned>(bytes) ^ now;
      parities |= 1u << As<unsigned>(bytes) % 2;
    }
    EXPECT_EQ(varied & 0xff, 0xffu) << now;
    EXPECT_NE(parities & 1u << (now + 1) % 2, 0u) << now;
  }
}

TEST(Values, NoTwoValuesAreAlikeInAllCaptures) {
  std::vector<gcap_changing_value_t> values(12, Number<int>("p", 5, 0, 4095));
  gcap_values_choose(values.data(), values.size());
  for (size_t a = 0; a < values.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      bool differ = false;
      for (size_t capture = 0; capture < kCaptures; ++capture) {
        differ |= As<int>(At(values[a], capture)) != As<int>(At(values[b], capture));
      }
      EXPECT_TRUE(differ) << a << " " << b;
    }
  }
}

// --- What carries a value -------------------------------------------------------------------------------------------

TEST(Values, AnArgumentCarriesAValue) {
  EXPECT_EQ(WordsOfPosition([](int p) { return std::vector<Bytes>{Pack(7), Pack(p), Pack(9)}; }), "0:0+4");
  EXPECT_EQ(Words<float>(Number<float>("t", 0.5f, 0, 2),
                         [](float t) {
                           return std::vector<Bytes>{Pack(7), Pack(t)};
                         }),
            "0:0+4");
  EXPECT_EQ(Words<uint64_t>(Number<uint64_t>("seed", 3, 0, UINT64_MAX),
                            [](uint64_t s) { return std::vector<Bytes>{Pack(s)}; }),
            "0:0+0");
}

TEST(Values, AValueInAStructMayLieAtAnyByte) {
  for (size_t before = 0; before < 17; ++before) {
    EXPECT_EQ(WordsOfPosition([&](int p) {
                Bytes bytes(before, 0xab);
                const Bytes more = Pack(p, uint8_t{3}, p);
                bytes.insert(bytes.end(), more.begin(), more.end());
                return std::vector<Bytes>{bytes};
              }),
              "0:0+" + std::to_string(before) + " 0:0+" + std::to_string(before + 5));
  }
}

// The bounds show that the upper half is 0.
TEST(Values, ANumberMayBeWidenedOrNarrowed) {
  EXPECT_EQ(WordsOfPosition([](int p) { return std::vector<Bytes>{Pack(int64_t{p})}; }), "0:0+0");
  EXPECT_EQ(Words<uint64_t>(Number<uint64_t>("length", 5, 0, 4095),
                            [](uint64_t length) {
                              return std::vector<Bytes>{Pack(static_cast<uint32_t>(length)), Pack(length)};
                            }),
            "0:0+0[0,4] 0:0+8");
  // The upper half is the sign's.
  EXPECT_NAMES(
      Words<int>(Number<int>("offset", 5, -1, 4095),
                 [](int offset) { return std::vector<Bytes>{Pack(int64_t{offset})}; }),
      "node 0 of 1, kernel: argument 0 is 0x5, and 0xffffffffffffffff with other values, which is no value both "
      "times ('offset' is 5, and -1)");
}

struct Step {
  int position, length;
  float temperature;
};

TEST(Values, AStructIsCarriedWholeAndInParts) {
  const gcap_changing_value_t step = Value("step", GCAP_GRAPH_VALUE_BYTES, Pack(Step{5, 6, 0.7f}),
                                           Pack(Step{0, 1, 1.3f}), Pack(Step{4094, 4095, 0.2f}));
  EXPECT_EQ(
      Words<Step>(step,
                  [](Step s) {
                    return std::vector<Bytes>{Pack(s), Pack(s.length), Pack(8, s.temperature), Pack(s.position, 3)};
                  }),
      "0:0+0 0:0+12[4,4] 0:0+20[8,4] 0:0+24[0,4]");
}

TEST(Values, TheValueOfAFillCarriesOne) {
  const auto words = [](const std::function<void(struct cudaMemsetParams*, unsigned)>& change) {
    return Found({Number<unsigned>("fill", 5, 0, 255)},
                 [&](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
                   struct cudaMemsetParams fill = {};
                   change(&fill, As<unsigned>(at[0]));
                   return std::vector<Node>{{{Pack(fill)}, cudaGraphNodeTypeMemset}};
                 })
        .Words();
  };
  EXPECT_EQ(words([](struct cudaMemsetParams* fill, unsigned v) { fill->value = v; }),
            "0:0+" + std::to_string(offsetof(struct cudaMemsetParams, value)));
  EXPECT_NAMES(words([](struct cudaMemsetParams* fill, unsigned v) { fill->width = v; }),
               "memset: the width is 0x5, and 0xff with other values, which the driver does not change");
}

TEST(Values, ValuesAndPointersAreFoundTogether) {
  const std::vector<gcap_moving_buffer_t> buffers = {
      {"a", 0x7f0000001000, 4096, 256, {0x550000003000, 0x330000001000, 0x220000008000}}};
  const Found found(
      {Number<int>("position", 5, 0, 4095), Number<uint64_t>("seed", 9, 0, UINT64_MAX)},
      [](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>& addresses) {
        const int position = As<int>(at[0]);
        const uint64_t seed = As<uint64_t>(at[1]);
        return std::vector<Node>{{{Pack(addresses[0] + 8, position, 7), Pack(seed)}}, {{Pack(seed, addresses[0])}}};
      },
      buffers);
  EXPECT_EQ(found.Words(), "0:0+8 1:0+16 1:1+0");
  ASSERT_TRUE(found.ok) << found.message;
  EXPECT_EQ(found.relocation->num_words, 2u);
}

// --- What does not --------------------------------------------------------------------------------------------------

TEST(Values, WhatIsComputedFromAValueIsNamed) {
  const std::function<int(int)> computed[] = {
      [](int p) { return p + 1; },
      [](int p) { return -p; },
      [](int p) { return p / 2; },
      [](int p) { return p % 64; },
      [](int p) { return p & ~1; },
      [](int p) { return p > 100 ? 1 : 0; },
      [](int p) { return p < 2048; },
      [](int p) { return p == 0; },
      [](int p) { return p % 2; },
      [](int p) { return p == 4095; },
      [](int p) { return p > 6; },
      [](int p) { return p < 5; },
      [](int p) { return p < 255 ? p : 255; },
      [](int p) { return p ^ 0x400; },
      [](int p) { return p > 1 ? p : 1; },
      [](int p) { return p == 0 || p == 5 || p == 4095 ? p : p + 1; },
      [](int p) { return (p + 255) / 256; },
  };
  for (const auto& f : computed) {
    const std::string text = WordsOfPosition([&](int p) { return std::vector<Bytes>{Pack(p), Pack(f(p))}; });
    EXPECT_NAMES(text, "node 0 of 1, kernel: argument 1 is 0x");
    EXPECT_NAMES(text, "with other values, which is no value both times ('position' is 5, and ");
  }
  // Beside the value, in one argument.
  EXPECT_NAMES(WordsOfPosition([](int p) { return std::vector<Bytes>{Pack(p, 3, p + 1)}; }),
               "argument 0, byte 8 is 0x6, and 0x1000");
}

// One rises where the other falls, so what they have in common does not hide.
TEST(Values, WhatIsComputedFromTwoValuesIsNamed) {
  const std::function<int(int, int)> computed[] = {
      [](int p, int n) { return n - p; }, [](int p, int n) { return n > p; },
      [](int p, int n) { return p < n ? p : n; }, [](int p, int n) { return p < n ? n : p; }};
  for (const auto& f : computed) {
    const Found found({Number<int>("position", 5, 0, 4095), Number<int>("length", 6, 1, 4096)},
                      [&](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
                        const int p = As<int>(at[0]), n = As<int>(at[1]);
                        return std::vector<Node>{{{Pack(p), Pack(n), Pack(f(p, n))}}};
                      });
    EXPECT_NAMES(found.Words(), "argument 2 is 0x");
    EXPECT_NAMES(found.Words(), "('position' is 5, and 4095; 'length' is 6, and 1)");
  }
}

// The sum is that of the bounds, which it is in two more captures, where one value is at the one and one at the other.
TEST(Values, ASumThatIsThatOfTheBoundsIsNamed) {
  for (int p = 0; p <= 4095; ++p) {
    const Found found({Number<int>("position", p, 0, 4095), Number<int>("left", 4095 - p, 0, 4095)},
                      [&](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
                        const int sum = As<int>(at[0]) + As<int>(at[1]);
                        return std::vector<Node>{{{Pack(As<int>(at[0])), Pack(As<int>(at[1])), Pack(sum)}}};
                      });
    EXPECT_NAMES(found.Words(), "argument 2 is 0xfff");
  }
}

TEST(Values, APointerThatFollowsAValueIsNamed) {
  const std::vector<gcap_moving_buffer_t> buffers = {
      {"a", 0x7f0000001000, 0x10000, 256, {0x550000003000, 0x330000001000, 0x220000008000}}};
  const Found found(
      {Number<int>("position", 5, 0, 4095)},
      [](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>& addresses) {
        const int p = As<int>(at[0]);
        return std::vector<Node>{{{Pack(p), Pack(addresses[0] + static_cast<uint64_t>(p) * 4)}}};
      },
      buffers);
  EXPECT_NAMES(found.Words(), "argument 1 is 0x7f0000001014");
  EXPECT_NAMES(found.Words(),
               "with the buffers elsewhere and other values, which is no address in a buffer both times");
}

TEST(Values, ADecisionThatFollowsAValueIsNamed) {
  const auto words = [](const std::function<std::vector<Node>(int)>& nodes) {
    return Found({Number<int>("position", 5, 0, 4095)},
                 [&](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
                   return nodes(As<int>(at[0]));
                 })
        .Words();
  };
  const auto node = [](int p) { return Node{{Pack(p)}}; };
  EXPECT_NAMES(words([&](int p) {
                 Node n = node(p);
                 n.grid = static_cast<unsigned>(p) / 256 + 1;
                 return std::vector<Node>{n};
               }),
               "node 0 of 1, kernel: grid is 1x1x1, and 16x16x16 with other values");
  EXPECT_NAMES(words([&](int p) { return std::vector<Node>(p > 9 ? 2 : 1, node(p)); }),
               "the graph has 1 nodes, and 2 with other values");
  EXPECT_NAMES(words([&](int p) {
                 Node n = node(p);
                 n.function = reinterpret_cast<void*>(p > 9 ? 0x10 : 0x20);
                 return std::vector<Node>{n};
               }),
               "function is 0x20, and 0x10 with other values");
  EXPECT_NAMES(words([&](int p) {
                 std::vector<Node> all = {node(p), node(p)};
                 if (p > 9) all[1].dependencies = {0};
                 return all;
               }),
               "dependencies is none, and 0 with other values");
  EXPECT_NAMES(words([&](int p) {
                 struct cudaMemcpy3DParms copy = {};
                 copy.extent.width = static_cast<size_t>(p);
                 return std::vector<Node>{{{Pack(copy)}, cudaGraphNodeTypeMemcpy}};
               }),
               "memcpy: the width is 0x5, and 0xfff with other values, which the driver does not change");
  EXPECT_NAMES(words([&](int p) {
                 return std::vector<Node>{{{Pack(uint64_t{1}, int64_t{p})}, cudaGraphNodeTypeHost}};
               }),
               "host: the user's data is 0x5, and 0xfff with other values, which the driver does not change");
}

TEST(Values, AValueThatNoArgumentCarriesIsNamedUnlessThatIsAllowed) {
  const auto words = [](bool may_be_unused) {
    gcap_changing_value_t seed = Number<uint64_t>("seed", 9, 0, 99);
    seed.may_be_unused = may_be_unused;
    return Found({Number<int>("position", 5, 0, 4095), seed},
                 [](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
                   return std::vector<Node>{{{Pack(As<int>(at[0])), Pack(uint64_t{9})}}};
                 })
        .Words();
  };
  EXPECT_NAMES(words(false), "no argument carries value 1 'seed'");
  EXPECT_EQ(words(true), "0:0+0");
}

// Four flags that are all 0 now: three captures do not tell all of them apart.
TEST(Values, OfTwoValuesThatAreAlikeInAllCapturesAnArgumentMayCarryEither) {
  std::vector<gcap_changing_value_t> flags(4, Number<uint8_t>("flag", 0, 0, 1));
  flags[2].name = "causal";
  flags[3].name = "last";
  for (auto& flag : flags) flag.may_be_unused = true;
  const auto words = [&](size_t which) {
    return Found(flags,
                 [&](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
                   return std::vector<Node>{{{Pack(int{As<uint8_t>(at[which])})}}};
                 })
        .Words();
  };
  EXPECT_EQ(words(0), "0:0+0");
  EXPECT_EQ(words(1), "1:0+0");
  for (const size_t which : {2, 3}) {
    EXPECT_NAMES(words(which), "which may carry one value as well as another: ('flag' is 0");
    EXPECT_NAMES(words(which), "; 'causal' is 0, and 1; 'last' is 0, and 1)");
  }
}

// --- What a value may become ----------------------------------------------------------------------------------------

TEST(Values, AByteThatWasAlikeInAllCapturesStays) {
  const gcap_changing_value_t step = Value("step", GCAP_GRAPH_VALUE_BYTES, Pack(uint16_t{0x0105}, 6),
                                           Pack(uint16_t{0x0106}, 7), Pack(uint16_t{0x0107}, 9));
  const Found found({step}, [](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>&) {
    return std::vector<Node>{{{Bytes(at[0].at, at[0].at + 6)}}};
  });
  ASSERT_TRUE(found.ok) << found.message;
  const auto keeps = [&](uint16_t first, int second) {
    const gcap_value_bytes_t bytes = BytesOf(Pack(first, second));
    return gcap_relocation_keeps_bytes(found.relocation, 0, &bytes);
  };
  EXPECT_TRUE(keeps(0x0105, 6));
  EXPECT_TRUE(keeps(0x01ff, 0xff));
  EXPECT_FALSE(keeps(0x0205, 6));
  EXPECT_FALSE(keeps(0x0105, 0x106));
}

// --- Random arguments -----------------------------------------------------------------------------------------------

// Arguments with values at random bytes among random numbers, and pointers among them. Written for any values.
class Layout {
 public:
  explicit Layout(unsigned seed) : random_(seed), numbers_(kBytes) {
    for (unsigned char& byte : numbers_) byte = static_cast<unsigned char>(random_());
    for (size_t at = Draw(12); at + 8 <= kBytes;) {
      const size_t what = Draw(4);
      const size_t bytes = what == 1 ? 4 : 8;
      items_.push_back({at, what});
      at += bytes + Draw(12);
    }
  }
  // What a capture with these has, whatever gcap makes of it.
  Bytes With(int position, uint64_t seed, double scale, uint64_t address) const {
    Bytes bytes = numbers_;
    for (const auto& item : items_) {
      switch (item.what) {
        case 0: std::memcpy(&bytes[item.at], &address, 8); break;
        case 1: std::memcpy(&bytes[item.at], &position, 4); break;
        case 2: std::memcpy(&bytes[item.at], &seed, 8); break;
        case 3: std::memcpy(&bytes[item.at], &scale, 8); break;
      }
    }
    return bytes;
  }
  size_t Draw(size_t end) { return random_() % end; }

 private:
  static constexpr size_t kBytes = 96;
  struct Item {
    size_t at, what;
  };
  std::mt19937_64 random_;
  Bytes numbers_;
  std::vector<Item> items_;
};

TEST(Values, RandomArgumentsAreThoseOfACaptureWithOtherValues) {
  const std::vector<gcap_moving_buffer_t> buffers = {
      {"a", 0x7f0000001000, 4096, 256, {0x550000003000, 0x330000001000, 0x220000008000}}};
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Layout layout(seed);
    std::vector<gcap_changing_value_t> values = {
        Number<int>("position", static_cast<int>(layout.Draw(4096)), 0, 4095),
        Number<uint64_t>("seed", layout.Draw(SIZE_MAX), 0, UINT64_MAX),
        Number<double>("scale", static_cast<double>(layout.Draw(100)) / 7, -1, 1e6)};
    for (auto& value : values) value.may_be_unused = true;
    const Found found(
        values,
        [&](const std::vector<gcap_value_bytes_t>& at, const std::vector<uint64_t>& addresses) {
          return std::vector<Node>{
              {{layout.With(As<int>(at[0]), As<uint64_t>(at[1]), As<double>(at[2]), addresses[0])}}};
        },
        buffers);
    ASSERT_TRUE(found.ok) << found.message;
    const int position = static_cast<int>(layout.Draw(4096));
    const uint64_t random = layout.Draw(SIZE_MAX);
    const double scale = static_cast<double>(layout.Draw(1000000)) / 3;
    const gcap_value_bytes_t other[] = {BytesOf(Pack(position)), BytesOf(Pack(random)), BytesOf(Pack(scale))};
    Bytes moved = layout.With(As<int>(values[0].now), As<uint64_t>(values[1].now), As<double>(values[2].now), 0x99);
    for (size_t i = 0; i < found.relocation->num_value_words; ++i) {
      const gcap_value_word_t& word = found.relocation->value_words[i];
      std::memcpy(&moved[word.offset], other[word.value].at + word.from, word.bytes);
    }
    ASSERT_EQ(moved, layout.With(position, random, scale, 0x99));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
