// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which words of arguments are taken for pointers, on contents made by hand: what looks like a pointer and is none,
// what is one and does not look so, and whatever differs otherwise, which is named.
#include <cstring>
#include <functional>
#include <random>
#include <string>
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

constexpr uint64_t kA = 0x7f0000001000, kB = 0x7f0000008000;    // where the buffers are
constexpr uint64_t kA2 = 0x550000003000, kB2 = 0x550000007000;  // their stand-ins
constexpr size_t kBytes = 0x1000;

const std::vector<gcap_moving_buffer_t> kBuffers = {{"a", kA, kBytes, 256, {kA2}}, {"b", kB, kBytes, 256, {kB2}}};

struct Relocation {
  Relocation(const std::vector<Node>& real, const std::vector<Node>& stand_in,
             const std::vector<gcap_moving_buffer_t>& buffers = kBuffers)
      : real(real), stand_in(stand_in) {
    const gcap_relocation_rehearsals_t rehearsals = {this->stand_in.get(), 1};
    const gcap_relocation_changes_t changes = {buffers.data(), buffers.size(), nullptr, 0};
    const Outcome outcome(gcap_relocation_create(this->real.get(), &rehearsals, &changes, &relocation));
    ok = outcome.ok();
    message = outcome.message;
    EXPECT_EQ(ok, relocation != nullptr);
    EXPECT_STREQ(gcap_code_name(outcome.code), ok ? "OK" : "FAILED_PRECONDITION");
  }
  Relocation(const Relocation&) = delete;
  Relocation& operator=(const Relocation&) = delete;
  ~Relocation() { gcap_relocation_destroy(relocation); }

  // "buffer:node+offset=distance" of each word, in order.
  std::string Words() const {
    std::string text;
    for (size_t i = 0; relocation != nullptr && i < relocation->num_words; ++i) {
      const gcap_relocation_word_t& word = relocation->words[i];
      text += (i == 0 ? "" : " ") + std::to_string(word.buffer) + ":" + std::to_string(word.node) + "+" +
              std::to_string(word.offset) + "=" + std::to_string(static_cast<int64_t>(word.distance));
    }
    return ok ? text : "refused: " + message;
  }

  Contents real, stand_in;
  gcap_relocation_t* relocation = nullptr;
  bool ok = false;
  std::string message;
};

// The words of one kernel with these arguments at the two places.
std::string Words(const std::vector<Bytes>& real, const std::vector<Bytes>& stand_in,
                  const std::vector<gcap_moving_buffer_t>& buffers = kBuffers) {
  return Relocation({{real}}, {{stand_in}}, buffers).Words();
}

#define EXPECT_NAMES(text, culprit) \
  EXPECT_NE((text).find(culprit), std::string::npos) << "does not name '" << (culprit) << "': " << (text)

// --- Pointers -------------------------------------------------------------------------------------------------------

TEST(Relocation, FindsPointersByBufferAndNode) {
  const std::vector<Node> real = {{{Pack(kB), Pack(kA), Pack(7)}}, {{Pack(kA + 8), Pack(kB)}}};
  const std::vector<Node> stand_in = {{{Pack(kB2), Pack(kA2), Pack(7)}}, {{Pack(kA2 + 8), Pack(kB2)}}};
  Relocation found(real, stand_in);
  EXPECT_EQ(found.Words(), "0:0+8=0 0:1+0=8 1:0+0=0 1:1+8=0");
  ASSERT_TRUE(found.ok);
  EXPECT_EQ(found.relocation->num_buffers, 2u);
  EXPECT_EQ(found.relocation->first_word[0], 0u);
  EXPECT_EQ(found.relocation->first_word[1], 2u);
  EXPECT_EQ(found.relocation->first_word[2], 4u);
  EXPECT_EQ(found.relocation->contents, found.real.get());
}

TEST(Relocation, FindsPointersIntoTheMiddleAndToTheEnd) {
  for (const uint64_t distance : {0x1, 0xfff, 0x1000}) {
    EXPECT_EQ(Words({Pack(kA + distance)}, {Pack(kA2 + distance)}), "0:0+0=" + std::to_string(distance));
  }
}

// Such a word differs by the distance of a buffer all the same, as two numbers side by side may.
TEST(Relocation, AWordThatIsInNoBufferIsNamed) {
  for (const int64_t distance : {0x1001, -1, -8, -0x1000000, 0x1000000}) {
    const uint64_t offset = static_cast<uint64_t>(distance);
    EXPECT_NAMES(Words({Pack(kA + offset)}, {Pack(kA2 + offset)}), "which is no address in a buffer both times");
  }
}

TEST(Relocation, NumbersThatAreEqualAreNoPointers) {
  const std::vector<Bytes> numbers = {Pack(kA - 1), Pack(kA2), Pack(kB + kBytes + 1), Pack(0)};
  EXPECT_EQ(Words(numbers, numbers), "");
  EXPECT_EQ(Words({Pack(kB2, kA, kB2)}, {Pack(kB2, kA2, kB2)}), "0:0+8=0");  // beside a pointer
}

TEST(Relocation, FindsPointersAtAnyByteOfAStruct) {
  for (size_t before = 0; before < 17; ++before) {
    Bytes real(before, 0xab), stand_in(before, 0xab);
    const Bytes tail = Pack(uint8_t{3}), a = Pack(kA + 2), a2 = Pack(kA2 + 2), b = Pack(kB), b2 = Pack(kB2);
    for (const Bytes* part : {&a, &tail, &b}) real.insert(real.end(), part->begin(), part->end());
    for (const Bytes* part : {&a2, &tail, &b2}) stand_in.insert(stand_in.end(), part->begin(), part->end());
    EXPECT_EQ(Words({real}, {stand_in}),
              "0:0+" + std::to_string(before) + "=2 1:0+" + std::to_string(before + 9) + "=0");
  }
}

TEST(Relocation, FindsPointersOneBehindTheOther) {
  EXPECT_EQ(Words({Pack(uint8_t{1}, kA, kB, kA + 1)}, {Pack(uint8_t{1}, kA2, kB2, kA2 + 1)}),
            "0:0+1=0 0:0+17=1 1:0+9=0");
}

TEST(Relocation, FindsPointersInOneArgumentBuffer) {
  Node real = {{Pack(uint32_t{1}, kA, uint32_t{2}, kB)}}, stand_in = {{Pack(uint32_t{1}, kA2, uint32_t{2}, kB2)}};
  real.by_extra = stand_in.by_extra = true;
  EXPECT_EQ(Relocation({real}, {stand_in}).Words(), "0:0+4=0 1:0+16=0");
}

TEST(Relocation, BuffersMayOverlap) {
  // b begins within a, and each has its own stand-in.
  const std::vector<gcap_moving_buffer_t> buffers = {{"a", kA, kBytes, 256, {kA2}}, {"b", kA + 256, 64, 256, {kB2}}};
  EXPECT_EQ(Words({Pack(kA + 256), Pack(kA + 256)}, {Pack(kA2 + 256), Pack(kB2)}, buffers), "0:0+0=256 1:0+8=0");
  const std::vector<gcap_moving_buffer_t> twice = {{"a", kA, kBytes, 256, {kA2}}, {"b", kA, kBytes, 256, {kB2}}};
  EXPECT_EQ(Words({Pack(kA), Pack(kA)}, {Pack(kA2), Pack(kB2)}, twice), "0:0+0=0 1:0+8=0");
}

// Two buffers with one distance: the word is that of the buffer that it points into.
TEST(Relocation, OfTwoWithOneDistanceItIsTheOneThatThePointerIsIn) {
  const std::vector<gcap_moving_buffer_t> buffers = {{"a", kA, kBytes, 256, {kA2}},
                                                     {"b", kB, kBytes, 256, {kB - kA + kA2}}};
  const auto words = [&](uint64_t pointer) { return Words({Pack(pointer)}, {Pack(pointer - kA + kA2)}, buffers); };
  EXPECT_EQ(words(kA + 16), "0:0+0=16");
  EXPECT_EQ(words(kA + kBytes), "0:0+0=4096");
  EXPECT_EQ(words(kB), "1:0+0=0");
  for (const uint64_t pointer : {kA - 8, kA + kBytes + 8, kB + 2 * kBytes}) {
    EXPECT_NAMES(words(pointer), "node 0 of 1, kernel: argument 0 is 0x");
    EXPECT_NAMES(words(pointer), "which is no address in a buffer both times");
  }
  // One behind the other: the end of a is the beginning of b.
  const std::vector<gcap_moving_buffer_t> neighbours = {{"a", kA, kBytes, 256, {kA2}},
                                                        {"b", kA + kBytes, kBytes, 256, {kA2 + kBytes}}};
  const uint64_t middle = kA + kBytes, middle2 = kA2 + kBytes;
  EXPECT_NAMES(Words({Pack(middle)}, {Pack(middle2)}, neighbours), "no address in a buffer both times");
  EXPECT_EQ(Words({Pack(middle + 1)}, {Pack(middle2 + 1)}, neighbours), "1:0+0=1");
}

TEST(Relocation, WithoutBuffersEqualContentsAreAllThereIs) {
  EXPECT_EQ(Words({Pack(kA)}, {Pack(kA)}, {}), "");
  EXPECT_NAMES(Words({Pack(kA)}, {Pack(kA2)}, {}), "argument 0");
  EXPECT_EQ(Relocation({}, {}).Words(), "");
}

// --- Refusals -------------------------------------------------------------------------------------------------------

TEST(Relocation, APointerInTwoArgumentsIsNamed) {
  const auto halves = [](uint64_t pointer) {
    return std::vector<Bytes>{Pack(static_cast<uint32_t>(pointer)), Pack(static_cast<uint32_t>(pointer >> 32))};
  };
  const std::string words = Words(halves(kA), halves(kA2));
  EXPECT_NAMES(words, "node 0 of 1, kernel: argument 0 is 0x1000, and 0x3000 with the buffers elsewhere");
  EXPECT_NAMES(Words({Pack(static_cast<uint32_t>(kA >> 32), static_cast<uint32_t>(kA))},
                     {Pack(static_cast<uint32_t>(kA2 >> 32), static_cast<uint32_t>(kA2))}),
               "argument 0 is 0x");
}

TEST(Relocation, WhatDiffersOtherwiseIsNamedWithBothValues) {
  EXPECT_NAMES(Words({Pack(kA), Pack(kA, kB, uint64_t{5})}, {Pack(kA2), Pack(kA2, kB2, uint64_t{6})}),
               "node 0 of 1, kernel: argument 1, byte 16 is 0x5, and 0x6 with the buffers elsewhere");
  EXPECT_NAMES(Words({Pack(kA, uint16_t{5})}, {Pack(kA2, uint16_t{6})}), "argument 0, byte 8 is 0x5, and 0x6");
  EXPECT_NAMES(Words({Pack(kB - kA)}, {Pack(kB2 - kA2)}), "argument 0 is 0x7000, and 0x4000");  // a distance
  EXPECT_NAMES(Words({Pack(kA >> 4)}, {Pack(kA2 >> 4)}), "argument 0");
  EXPECT_NAMES(Words({Pack(kA + 1)}, {Pack(kA2)}), "argument 0");
  Node real = {{Pack(kA, uint64_t{1})}}, stand_in = {{Pack(kA2, uint64_t{2})}};
  real.by_extra = stand_in.by_extra = true;
  EXPECT_NAMES(Relocation({{{}}, real}, {{{}}, stand_in}).Words(),
               "node 1 of 2, kernel: the argument buffer, byte 8 is 0x1, and 0x2");
  real.parent = stand_in.parent = 0;
  EXPECT_NAMES(Relocation({{{}, cudaGraphNodeTypeGraph}, real}, {{{}, cudaGraphNodeTypeGraph}, stand_in}).Words(),
               "node 1 of 2, in the child graph of node 0, kernel: the argument buffer, byte 8");
}

TEST(Relocation, ABufferThatWasNowhereElseIsNamed) {
  std::vector<gcap_moving_buffer_t> buffers = kBuffers;
  buffers[1].stand_ins[0] = kB;
  EXPECT_NAMES(Words({Pack(kA), Pack(kB)}, {Pack(kA2), Pack(kB)}, buffers),
               "buffer 1 'b' was captured twice at the same address 0x7f0000008000");
}

TEST(Relocation, NodesThatDifferInMoreThanTheirArgumentsAreNamed) {
  const Node node = {{Pack(kA)}}, moved = {{Pack(kA2)}};
  EXPECT_NAMES(Relocation({node, node}, {moved}).Words(), "the graph has 2 nodes, and 1 with the buffers elsewhere");
  const auto refusal = [&](const std::function<void(Node*)>& change) {
    Node changed = moved;
    change(&changed);
    return Relocation({node, node}, {moved, changed}).Words();
  };
  EXPECT_NAMES(refusal([](Node* n) { n->grid = 2; }), "node 1 of 2, kernel: grid is 1x1x1, and 2x2x2 with the buffers");
  EXPECT_NAMES(refusal([](Node* n) { n->function = reinterpret_cast<void*>(0x10); }), "function is (nil), and 0x10");
  EXPECT_NAMES(refusal([](Node* n) { n->type = cudaGraphNodeTypeEmpty; }), "type is kernel, and empty");
  EXPECT_NAMES(refusal([](Node* n) { n->parent = 0; }), "parent is -1, and 0");
  EXPECT_NAMES(refusal([](Node* n) { n->dependencies = {0}; }), "dependencies is none, and 0");
  EXPECT_NAMES(refusal([](Node* n) { n->has_arguments = false; }), "the driver does not tell its arguments");
  EXPECT_NAMES(refusal([](Node* n) { n->by_extra = true; }), "it has other arguments with the buffers elsewhere");
  EXPECT_NAMES(refusal([](Node* n) { n->parts.push_back(Pack(1)); }), "it has other arguments");
  EXPECT_NAMES(refusal([](Node* n) { n->parts = {Pack(kA2, 1)}; }), "it has other arguments");
}

// Bytes that are in no argument, as between two, are compared by the proof alone.
TEST(Relocation, WhatTheTableDoesNotExplainFailsTheProof) {
  const auto parts = [](uint64_t pointer) { return std::vector<Bytes>{Pack(uint8_t{1}), Pack(pointer)}; };
  Contents real({{parts(kA)}}), stand_in({{parts(kA2)}});
  stand_in.bytes()[3] = 0x77;
  gcap_relocation_t* relocation = nullptr;
  const gcap_relocation_rehearsals_t rehearsals = {stand_in.get(), 1};
  const gcap_relocation_changes_t changes = {kBuffers.data(), 2, nullptr, 0};
  GCAP_EXPECT_FAILS(gcap_relocation_create(real.get(), &rehearsals, &changes, &relocation), GCAP_FAILED_PRECONDITION,
                    "node 0 of 1, kernel: with its words moved");
  EXPECT_EQ(relocation, nullptr);
}

// --- Nodes that are no kernels --------------------------------------------------------------------------------------

TEST(Relocation, CopiesAndFillsMove) {
  struct cudaMemcpy3DParms copy = {}, copy2 = {};
  copy.srcPtr.ptr = reinterpret_cast<void*>(kA + 4);
  copy.dstPtr.ptr = reinterpret_cast<void*>(kB);
  copy2.srcPtr.ptr = reinterpret_cast<void*>(kA2 + 4);
  copy2.dstPtr.ptr = reinterpret_cast<void*>(kB2);
  const std::string expected = "0:0+" + std::to_string(offsetof(cudaMemcpy3DParms, srcPtr.ptr)) + "=4 1:0+" +
                               std::to_string(offsetof(cudaMemcpy3DParms, dstPtr.ptr)) + "=0";
  EXPECT_EQ(Relocation({{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}, {{{Pack(copy2)}, cudaGraphNodeTypeMemcpy}}).Words(),
            expected);
  copy2.extent.width = 1;
  EXPECT_NAMES(
      Relocation({{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}, {{{Pack(copy2)}, cudaGraphNodeTypeMemcpy}}).Words(),
      "node 0 of 1, memcpy: the width is 0x0, and 0x1");
  struct cudaMemsetParams fill = {}, fill2 = {};
  fill.dst = reinterpret_cast<void*>(kB + 8);
  fill2.dst = reinterpret_cast<void*>(kB2 + 8);
  EXPECT_EQ(Relocation({{{Pack(fill)}, cudaGraphNodeTypeMemset}}, {{{Pack(fill2)}, cudaGraphNodeTypeMemset}}).Words(),
            "1:0+0=8");
  fill2.elementSize = 4;
  EXPECT_NAMES(
      Relocation({{{Pack(fill)}, cudaGraphNodeTypeMemset}}, {{{Pack(fill2)}, cudaGraphNodeTypeMemset}}).Words(),
      "node 0 of 1, memset: the size of an element is 0x0, and 0x4");
}

// A pointer in one of these is not set in an executable, so a node that has another one is refused.
TEST(Relocation, OtherNodesStayOrAreNamed) {
  const struct {
    cudaGraphNodeType type;
    Bytes real, stand_in;
    const char* name;
  } cases[] = {
      {cudaGraphNodeTypeHost, Pack(kB, kA), Pack(kB, kA2), "host: the user's data is 0x7f0000001000"},
      {cudaGraphNodeTypeHost, Pack(kA, kB), Pack(kA2, kB), "host: the function"},
      {cudaGraphNodeTypeEventRecord, Pack(kA), Pack(kA2), "event record: the event"},
      {cudaGraphNodeTypeWaitEvent, Pack(kA), Pack(kA2), "event wait: the event"},
      {cudaGraphNodeTypeMemAlloc, Pack(kA), Pack(kA2), "memory allocation: the address"},
      {cudaGraphNodeTypeMemFree, Pack(kA), Pack(kA2), "memory free: the address"},
  };
  for (const auto& c : cases) {
    const Bytes elsewhere(c.real.size(), 1);
    EXPECT_EQ(Relocation({{{elsewhere}, c.type}}, {{{elsewhere}, c.type}}).Words(), "");
    EXPECT_NAMES(Relocation({{{c.real}, c.type}}, {{{c.real}, c.type}}).Words(), "that does not move with the buffer");
    EXPECT_NAMES(Relocation({{{c.real}, c.type}}, {{{c.stand_in}, c.type}}).Words(), c.name);
  }
  EXPECT_EQ(Relocation({{{}, cudaGraphNodeTypeEmpty}, {{}, cudaGraphNodeTypeGraph}},
                       {{{}, cudaGraphNodeTypeEmpty}, {{}, cudaGraphNodeTypeGraph}})
                .Words(),
            "");
}

// --- Several captures -----------------------------------------------------------------------------------------------

// The words of one kernel that was captured at the buffers and at two sets of stand-ins, or the refusal.
std::string WordsOfThree(const Bytes& real, const Bytes& first, const Bytes& second) {
  const uint64_t kA3 = 0x330000001000, kB3 = 0x330000005000;
  const std::vector<gcap_moving_buffer_t> buffers = {{"a", kA, kBytes, 256, {kA2, kA3}},
                                                     {"b", kB, kBytes, 256, {kB2, kB3}}};
  Contents at({{{real}}}), at_first({{{first}}}), at_second({{{second}}});
  const gcap_contents_t elsewhere[] = {*at_first.get(), *at_second.get()};
  const gcap_relocation_rehearsals_t rehearsals = {elsewhere, 2};
  const gcap_relocation_changes_t changes = {buffers.data(), buffers.size(), nullptr, 0};
  gcap_relocation_t* relocation = nullptr;
  const Outcome outcome(gcap_relocation_create(at.get(), &rehearsals, &changes, &relocation));
  std::string text = outcome.ok() ? "" : "refused: " + outcome.message;
  for (size_t i = 0; relocation != nullptr && i < relocation->num_words; ++i) {
    text += std::to_string(relocation->words[i].buffer) + "+" + std::to_string(relocation->words[i].offset) + " ";
  }
  gcap_relocation_destroy(relocation);
  return text;
}

TEST(Relocation, ASecondSetOfStandInsShowsWhatTheFirstDoesNot) {
  const uint64_t kA3 = 0x330000001000;
  EXPECT_EQ(WordsOfThree(Pack(kA + 8, 7), Pack(kA2 + 8, 7), Pack(kA3 + 8, 7)), "0+0 ");
  EXPECT_NAMES(WordsOfThree(Pack(kA, 7), Pack(kA2, 7), Pack(kA3, 8)), "argument 0, byte 8 is 0x7, and 0x8");
  EXPECT_NAMES(WordsOfThree(Pack(kA, 7), Pack(kA2, 8), Pack(kA3, 7)), "argument 0, byte 8 is 0x7, and 0x8");
  EXPECT_NAMES(WordsOfThree(Pack(kA), Pack(kA2), Pack(kA3 + 8)), "no address in a buffer both times");
  EXPECT_NAMES(WordsOfThree(Pack(kA), Pack(kA2), Pack(kA)), "argument 0 is 0x7f0000001000");
}

// Two numbers, of which one is the upper half of every address: a pointer as far as the captures show.
TEST(Relocation, AWordWhoseUpperHalfNeverDiffersKeepsIt) {
  const uint64_t there = (kA & ~uint64_t{0xffffffff}) | 0x40003000;
  const std::vector<gcap_moving_buffer_t> buffers = {{"a", kA, kBytes, 256, {there}}};
  const auto keeps = [&](const std::vector<Bytes>& real, const std::vector<Bytes>& elsewhere, uint64_t address) {
    const Relocation found({{real}}, {{elsewhere}}, buffers);
    EXPECT_TRUE(found.ok) << found.message;
    return gcap_relocation_keeps_halves(found.relocation, 0, address);
  };
  const uint64_t next = uint64_t{1} << 32;
  EXPECT_TRUE(keeps({Pack(kA + 8, 7)}, {Pack(there + 8, 7)}, kA + 0x10000));
  EXPECT_FALSE(keeps({Pack(kA + 8, 7)}, {Pack(there + 8, 7)}, kA + next));
  EXPECT_FALSE(keeps({Pack(kA, kA + 8)}, {Pack(there, there + 8)}, (kA & ~(next - 1)) + next - 4));
  EXPECT_TRUE(keeps({Pack(kA + 8)}, {Pack(there + 8)}, kA + next)) << "an argument of 8 bytes is one value";
}

// --- What stays behind ----------------------------------------------------------------------------------------------

TEST(Relocation, AnAddressInABufferThatDoesNotMoveIsNamed) {
  const auto words = [](uint64_t fixed, const std::string& before = "") {
    Bytes beside(before.begin(), before.end());
    const Bytes word = Pack(fixed);
    beside.insert(beside.end(), word.begin(), word.end());
    return Words({Pack(kA), beside}, {Pack(kA2), beside});
  };
  for (const uint64_t inside : {kA, kA + 1, kA + kBytes, kB, kB + 8, kB + kBytes}) {
    EXPECT_NAMES(words(inside), "argument 1 is an address in buffer");
    EXPECT_NAMES(words(inside, "abc"), "argument 1, byte 3 is an address in buffer");
  }
  EXPECT_NAMES(words(kB + 8), "in buffer 1 'b', at 0x7f0000008000, that does not move with the buffer");
  for (const uint64_t outside : {kA - 1, kA + kBytes + 1, kB - 1, kB + kBytes + 1}) {
    EXPECT_EQ(words(outside), "0:0+0=0");
  }
}

// "c" begins within "a", and "b" lies alone.
TEST(Relocation, ABufferIsUsedByAWordThatPointsIntoIt) {
  const std::vector<gcap_moving_buffer_t> buffers = {
      {"a", kA, kBytes, 256, {kA2}}, {"b", kB, kBytes, 256, {kB2}}, {"c", kA + 256, 256, 256, {kA2 + 256}}};
  gcap_layout_t layout = {};
  GCAP_ASSERT_OK(gcap_layout_create(buffers.data(), buffers.size(), &layout));
  const auto used = [&](uint64_t address, uint64_t at_stand_in) {
    const Relocation found({{{Pack(address)}}}, {{{Pack(at_stand_in)}}}, buffers);
    EXPECT_TRUE(found.ok) << found.message;
    std::string names;
    for (size_t i = 0; found.ok && i < buffers.size(); ++i) {
      if (gcap_relocation_uses(found.relocation, &layout, i)) names += buffers[i].name;
    }
    return names;
  };
  EXPECT_EQ(used(7, 7), "");
  EXPECT_EQ(used(kA, kA2), "a");
  EXPECT_EQ(used(kA + 256, kA2 + 256), "ac");
  EXPECT_EQ(used(kA + 300, kA2 + 300), "ac");
  EXPECT_EQ(used(kA + 512, kA2 + 512), "ac") << "to the end";
  EXPECT_EQ(used(kA + 513, kA2 + 513), "a");
  EXPECT_EQ(used(kB + 8, kB2 + 8), "b");
  gcap_layout_free(&layout);
}

// Also of as many as fill the list that has them.
TEST(Relocation, ABufferIsClearOfEachAddressThatStays) {
  constexpr uint64_t kFirst = 0x600000000000, kApart = 0x10000;
  for (size_t count = 0; count <= 17; ++count) {
    SCOPED_TRACE(count);
    std::vector<Bytes> real = {Pack(kA)}, stand_in = {Pack(kA2)};
    for (size_t i = count; i > 0; --i) {
      for (std::vector<Bytes>* arguments : {&real, &stand_in}) arguments->push_back(Pack(kFirst + (i - 1) * kApart));
    }
    Relocation found({{real}}, {{stand_in}});
    ASSERT_TRUE(found.ok) << found.message;
    for (size_t i = 0; i <= count; ++i) {
      const uint64_t stays = kFirst + i * kApart;
      EXPECT_EQ(gcap_relocation_is_clear(found.relocation, 0, stays - kBytes / 2), i == count);
      EXPECT_TRUE(gcap_relocation_is_clear(found.relocation, 0, stays + 1));
      EXPECT_TRUE(gcap_relocation_is_clear(found.relocation, 0, stays - kBytes));
    }
  }
}

TEST(Relocation, TheRangeOfACopyOrAFillThatDoesNotMoveIsNamed) {
  struct cudaMemsetParams fill = {};
  fill.dst = reinterpret_cast<void*>(kA - 64);
  fill.elementSize = 4;
  fill.height = 1;
  const auto filled = [&](size_t width) {
    fill.width = width;
    return Relocation({{{Pack(fill)}, cudaGraphNodeTypeMemset}}, {{{Pack(fill)}, cudaGraphNodeTypeMemset}}).Words();
  };
  EXPECT_EQ(filled(16), "");  // up to the buffer
  EXPECT_NAMES(filled(17), "memset: the destination has an address in buffer 0 'a'");
  struct cudaMemcpy3DParms copy = {};
  copy.srcPtr = cudaPitchedPtr{reinterpret_cast<void*>(kB - 256), 128, 128, 2};
  copy.dstPtr = cudaPitchedPtr{reinterpret_cast<void*>(kB2), 128, 128, 2};
  copy.kind = cudaMemcpyDeviceToDevice;
  const auto copied = [&](size_t width, size_t height, size_t depth) {
    copy.extent = cudaExtent{width, height, depth};
    return Relocation({{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}, {{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}).Words();
  };
  EXPECT_EQ(copied(128, 2, 1), "");
  EXPECT_EQ(copied(0, 9, 9), "");
  EXPECT_NAMES(copied(64, 3, 1), "memcpy: the source has an address in buffer 1 'b'");
  EXPECT_NAMES(copied(1, 1, 2), "memcpy: the source has an address in buffer 1 'b'");
}

TEST(Relocation, AnAddressInWhatACopyReadsOnTheHostIsNamed) {
  uint64_t table[] = {1, 2, 3, 4};
  struct cudaMemcpy3DParms copy = {};
  copy.srcPtr = cudaPitchedPtr{table, sizeof(table), sizeof(table), 1};
  copy.dstPtr = cudaPitchedPtr{reinterpret_cast<void*>(kB2), sizeof(table), sizeof(table), 1};
  copy.extent = cudaExtent{sizeof(table), 1, 1};
  const auto words = [&](cudaMemcpyKind kind) {
    copy.kind = kind;
    return Relocation({{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}, {{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}).Words();
  };
  for (const cudaMemcpyKind kind : {cudaMemcpyHostToDevice, cudaMemcpyDefault}) EXPECT_EQ(words(kind), "");
  const uint64_t pointer = kB + 24;
  for (const size_t at : {0, 24, 5}) {
    std::memset(table, 0, sizeof(table));
    std::memcpy(reinterpret_cast<char*>(table) + at, &pointer, sizeof(pointer));
    for (const cudaMemcpyKind kind : {cudaMemcpyHostToDevice, cudaMemcpyDefault}) {
      EXPECT_NAMES(words(kind), "memcpy: it copies from the host an address in buffer 1 'b'");
    }
  }
  copy.extent.width = 12;  // what is not copied does not count
  EXPECT_EQ(words(cudaMemcpyHostToDevice), "");
}

// Of each row of each slice, and no others.
TEST(Relocation, AnAddressInARowOfABlockThatACopyReadsOnTheHostIsNamed) {
  constexpr size_t kPitch = 3, kRows = 3, kSlice = kPitch * kRows, kDepth = 3;  // words; two of three are copied
  uint64_t table[kDepth * kSlice] = {};
  struct cudaMemcpy3DParms copy = {};
  const auto pitched = [](void* at) { return cudaPitchedPtr{at, 8 * kPitch, 8 * kPitch, kRows}; };
  copy.srcPtr = pitched(table);
  copy.srcPos = cudaPos{0, 0, 1};
  copy.dstPtr = pitched(reinterpret_cast<void*>(kB2));
  copy.extent = cudaExtent{8 * (kPitch - 1), kRows - 1, kDepth - 1};
  copy.kind = cudaMemcpyHostToDevice;
  for (size_t i = 0; i < kDepth * kSlice; ++i) {
    SCOPED_TRACE(i);
    const bool is_copied = i / kSlice >= 1 && i % kSlice / kPitch < kRows - 1 && i % kPitch < kPitch - 1;
    table[i] = kB + 24;
    const Relocation found({{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}, {{{Pack(copy)}, cudaGraphNodeTypeMemcpy}});
    EXPECT_EQ(found.ok, !is_copied);
    table[i] = 0;
  }
}

// What an array has is copied over the address.
TEST(Relocation, AnAddressInWhatACopyOfAnArrayWritesOnTheHostIsNotNamed) {
  uint64_t table[] = {kB + 24, 2};
  struct cudaMemcpy3DParms copy = {};
  copy.srcArray = reinterpret_cast<cudaArray_t>(&copy);
  copy.dstPtr = cudaPitchedPtr{table, sizeof(table), sizeof(table), 1};
  copy.extent = cudaExtent{sizeof(table), 1, 1};
  copy.kind = cudaMemcpyDefault;
  for (const bool to_array : {false, true}) {
    if (to_array) copy.dstArray = copy.srcArray;
    const Relocation found({{{Pack(copy)}, cudaGraphNodeTypeMemcpy}}, {{{Pack(copy)}, cudaGraphNodeTypeMemcpy}});
    EXPECT_TRUE(found.ok) << found.message;
  }
}

// --- Random arguments -----------------------------------------------------------------------------------------------

constexpr size_t kLayoutBytes = 96;
constexpr size_t kLayoutBuffers = 5;

// Pointers at random bytes among random numbers. Written for any addresses of the buffers.
class Layout {
 public:
  explicit Layout(unsigned seed) : random_(seed), numbers_(kLayoutBytes) {
    for (unsigned char& byte : numbers_) byte = static_cast<unsigned char>(random_());
    for (size_t at = Draw(12); at + 8 <= kLayoutBytes; at += 8 + Draw(12)) {
      pointers_.push_back({at, Draw(kLayoutBuffers), Draw(kBytes)});
    }
  }
  Bytes At(const std::vector<uint64_t>& addresses) const {
    Bytes bytes = numbers_;
    for (const auto& pointer : pointers_) {
      const uint64_t value = addresses[pointer.buffer] + pointer.distance;
      std::memcpy(&bytes[pointer.at], &value, sizeof(value));
    }
    return bytes;
  }
  // Addresses in pages of their own, any number of pages apart.
  std::vector<uint64_t> Addresses(uint64_t base) {
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < kLayoutBuffers; ++i) {
      base += 2 * kBytes * (1 + Draw(1000));
      addresses.push_back(base + 256 * Draw(kBytes / 256));
    }
    return addresses;
  }
  size_t num_pointers() const { return pointers_.size(); }

 private:
  struct Pointer {
    size_t at, buffer, distance;
  };
  size_t Draw(size_t end) { return random_() % end; }

  std::mt19937_64 random_;
  Bytes numbers_;
  std::vector<Pointer> pointers_;
};

TEST(Relocation, RandomArgumentsAreThoseOfACaptureElsewhere) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Layout layout(seed);
    const auto first = layout.Addresses(0x7f0000000000), second = layout.Addresses(0x550000000000),
               third = layout.Addresses(0x330000000000);
    std::vector<gcap_moving_buffer_t> buffers;
    for (size_t i = 0; i < kLayoutBuffers; ++i) buffers.push_back({"", first[i], kBytes, 256, {second[i]}});
    const Relocation found({{{layout.At(first)}}}, {{{layout.At(second)}}}, buffers);
    ASSERT_TRUE(found.ok) << found.message;
    EXPECT_EQ(found.relocation->num_words, layout.num_pointers());
    Bytes moved = layout.At(first);
    for (size_t i = 0; i < found.relocation->num_words; ++i) {
      const gcap_relocation_word_t& word = found.relocation->words[i];
      const uint64_t value = third[word.buffer] + word.distance;
      std::memcpy(&moved[word.offset], &value, sizeof(value));
    }
    ASSERT_EQ(moved, layout.At(third));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
