// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whose memory a pointer is in, and whether that memory is still the same: of small graphs, and of contents made by
// hand over memory that is there.
#include <cuda_runtime_api.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/contents/made_contents.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/contents/inner.h"
#include "lib/contents/memory.h"
#include "lib/internal/memory_source.h"
}

namespace gcap {
namespace testing {
namespace {

constexpr size_t kBytes = 256;

class Audit : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (void*& piece : memory_) GCAP_EXPECT_CUDA(cudaMalloc(&piece, kBytes));
  }
  void TearDown() override {
    for (void* piece : memory_) GCAP_EXPECT_CUDA(cudaFree(piece));
    DeviceTest::TearDown();
  }
  uintptr_t At(int piece) const { return reinterpret_cast<uintptr_t>(memory_[piece]); }

  // "node:OWNER name" of each pointer, in order.
  static std::string Owners(const gcap_graph_notes_t* notes) {
    std::string text;
    const auto add = [](void* user, const gcap_graph_pointer_t* pointer) {
      const std::string memory = pointer->memory;
      const size_t name = memory.find(": ");
      *static_cast<std::string*>(user) += std::to_string(pointer->node) + ":" + gcap_graph_owner_name(pointer->owner) +
                                          " " + (name == std::string::npos ? "" : memory.substr(0, name)) + "; ";
    };
    GCAP_EXPECT_OK(gcap_graph_audit(notes, add, &text, nullptr));
    return text;
  }

  void* memory_[3] = {};
};

// Three kernels have a pointer at one offset, and only that of the one in the middle moves.
TEST_F(Audit, APointerIsOfTheBufferThatMovesItsOwnNode) {
  Contents real({{{Pack(At(0))}}, {{Pack(At(1))}}, {{Pack(At(0))}}});
  Contents stand_in({{{Pack(At(0))}}, {{Pack(At(2))}}, {{Pack(At(0))}}});
  const gcap_moving_buffer_t buffer = {"moving", At(1), kBytes, 256, {At(2)}};
  gcap_relocation_t* relocation = nullptr;
  const gcap_relocation_rehearsals_t rehearsals = {stand_in.get(), 1};
  const gcap_relocation_changes_t changes = {&buffer, 1, nullptr, 0};
  GCAP_ASSERT_OK(gcap_relocation_create(real.get(), &rehearsals, &changes, &relocation));
  gcap_audit_subject_t subject = {};
  subject.contents = real.get();
  subject.relocation = relocation;
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  EXPECT_EQ(Owners(notes), "0:FOREIGN ; 1:BUFFER moving; 2:FOREIGN ; ");
  gcap_graph_notes_destroy(notes);
  gcap_relocation_destroy(relocation);
}

// The notes of a buffer's pointers follow the buffer, and the others stay.
TEST_F(Audit, NotesFollowTheBufferThatMoved) {
  Contents real({{{Pack(At(1))}}, {{Pack(At(0))}}});
  Contents stand_in({{{Pack(At(2))}}, {{Pack(At(0))}}});
  const gcap_moving_buffer_t buffer = {"moving", At(1), kBytes, 256, {At(2)}};
  gcap_relocation_t* relocation = nullptr;
  const gcap_relocation_rehearsals_t rehearsals = {stand_in.get(), 1};
  const gcap_relocation_changes_t changes = {&buffer, 1, nullptr, 0};
  GCAP_ASSERT_OK(gcap_relocation_create(real.get(), &rehearsals, &changes, &relocation));
  gcap_audit_subject_t subject = {};
  subject.contents = real.get();
  subject.relocation = relocation;
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  const uintptr_t moved = At(2);
  std::memcpy(real.bytes(), &moved, sizeof(moved));
  GCAP_EXPECT_OK(gcap_notes_follow(notes, relocation));
  EXPECT_EQ(Owners(notes), "0:BUFFER moving; 1:FOREIGN ; ");
  size_t findings = 77;
  for (const int piece : {1, 2, 0}) {
    GCAP_EXPECT_CUDA(cudaFree(memory_[piece]));
    memory_[piece] = nullptr;
    GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, &findings));
    EXPECT_EQ(findings, piece == 1 ? 0u : piece == 2 ? 1u : 2u);
  }
  gcap_graph_notes_destroy(notes);
  gcap_relocation_destroy(relocation);
}

// The second argument begins at byte 1: its pointers are at the multiples of 8 within it.
TEST_F(Audit, AWordOfTwoArgumentsIsNoPointer) {
  const Bytes low = Pack(At(0)), pointer = Pack(At(1));
  Bytes second(low.begin() + 1, low.end());
  second.insert(second.end(), pointer.begin(), pointer.end());
  second.resize(17);
  Contents contents({{{Bytes(1, low[0]), second}}});
  gcap_audit_subject_t subject = {};
  subject.contents = contents.get();
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  EXPECT_EQ(Owners(notes), "0:FOREIGN ; ");
  gcap_graph_notes_destroy(notes);
}

TEST_F(Audit, EachArgumentsPointerIsNoted) {
  const uint64_t number = 0x123456789a00;  // no memory is there
  Contents contents({{{Pack(At(0)), Pack(number), Pack(At(1))}}});
  gcap_audit_subject_t subject = {};
  subject.contents = contents.get();
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  EXPECT_EQ(Owners(notes), "0:FOREIGN ; 0:FOREIGN ; ");
  for (const int piece : {1, 0}) {
    GCAP_EXPECT_CUDA(cudaFree(memory_[piece]));
    memory_[piece] = nullptr;
    size_t findings = 77;
    GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, &findings));
    EXPECT_EQ(findings, piece == 1 ? 1u : 2u);
  }
  gcap_graph_notes_destroy(notes);
}

// As of a copy from an array, whose source is no address.
TEST_F(Audit, APointerToNothingIsNotNoted) {
  Contents contents({{{Pack(cudaMemsetParams{})}, cudaGraphNodeTypeMemset}});
  gcap_audit_subject_t subject = {};
  subject.contents = contents.get();
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  EXPECT_EQ(Owners(notes), "");
  gcap_graph_notes_destroy(notes);
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

class AuditOfAGraph : public Audit {
 protected:
  void TearDown() override {
    gcap_graph_notes_destroy(notes_);
    Audit::TearDown();
  }

  // Makes the notes of what the work captures, and destroys the graph.
  void Note(const std::function<void(cudaStream_t)>& work, gcap_graph_find_block_fn find_block = nullptr,
            void* user = nullptr) {
    gcap_graph_notes_destroy(notes_);
    notes_ = nullptr;
    const RawStream stream;
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    work(stream.get());
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    GCAP_EXPECT_OK(gcap_graph_notes_create(graph, find_block, user, &notes_));
    told_at_once_ = Told();
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }
  void NoteAFill(gcap_graph_find_block_fn find_block = nullptr, void* user = nullptr) {
    Note([&](cudaStream_t stream) { GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_[0], 0, kBytes, stream)); }, find_block,
         user);
  }

  // "node place OWNER" of each pointer, and " !" where the memory is not what it was.
  std::string Told() {
    std::string text;
    size_t findings = 0, silent = 77;
    memory_texts_.clear();
    const auto add = [](void* user, const gcap_graph_pointer_t* pointer) {
      auto* told = static_cast<std::pair<std::string*, std::string*>*>(user);
      *told->first += std::to_string(pointer->node) + " " + pointer->place + " " +
                      gcap_graph_owner_name(pointer->owner) + (pointer->is_finding ? " !; " : "; ");
      EXPECT_EQ(pointer->now != nullptr, pointer->is_finding);
      *told->second += std::string(pointer->memory) + (pointer->is_finding ? std::string(" | ") + pointer->now : "");
    };
    std::pair<std::string*, std::string*> texts = {&text, &memory_texts_};
    GCAP_EXPECT_OK(gcap_graph_audit(notes_, add, &texts, &findings));
    GCAP_EXPECT_OK(gcap_graph_audit(notes_, nullptr, nullptr, &silent));
    EXPECT_EQ(silent, findings);
    EXPECT_EQ(findings > 0, text.find('!') != std::string::npos);
    return text;
  }
  void ExpectMemory(const std::string& needle) const {
    EXPECT_NE(memory_texts_.find(needle), std::string::npos) << "not '" << needle << "': " << memory_texts_;
  }

  gcap_graph_notes_t* notes_ = nullptr;
  std::string told_at_once_, memory_texts_;
};

TEST_F(AuditOfAGraph, MemoryThatWasFreedIsAFinding) {
  Note([&](cudaStream_t stream) {
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(memory_[0], memory_[1], kBytes, cudaMemcpyDeviceToDevice, stream));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_[2], 0, kBytes, stream));
  });
  EXPECT_EQ(Told(), "0 the source FOREIGN; 0 the destination FOREIGN; 1 the destination FOREIGN; ");
  GCAP_EXPECT_OK(gcap_notes_check(notes_));
  GCAP_EXPECT_CUDA(cudaFree(memory_[2]));
  memory_[2] = nullptr;
  EXPECT_EQ(Told(), "0 the source FOREIGN; 0 the destination FOREIGN; 1 the destination FOREIGN !; ");
  ExpectMemory("256 bytes at 0x");
  ExpectMemory(" | no memory that the driver knows (freed since)");
  GCAP_EXPECT_FAILS(gcap_notes_check(notes_), GCAP_FAILED_PRECONDITION,
                    "1 of the graph's 3 pointers is not the graph's: node 1 of 2, memset: the destination 0x");
  GCAP_EXPECT_CUDA(cudaFree(memory_[1]));
  memory_[1] = nullptr;
  GCAP_EXPECT_FAILS(gcap_notes_check(notes_), GCAP_FAILED_PRECONDITION,
                    "2 of the graph's 3 pointers is not the graph's: node 0 of 2, memcpy: the source 0x");
}

TEST_F(AuditOfAGraph, MemoryOfTheGraphsOwnNodesIsNoFinding) {
  Note([&](cudaStream_t stream) {
    void* memory = nullptr;
    GCAP_EXPECT_CUDA(cudaMallocAsync(&memory, 4096, stream));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 16, stream));
    GCAP_EXPECT_CUDA(cudaFreeAsync(memory, stream));
  });
  EXPECT_EQ(told_at_once_, "1 the destination GRAPH; ");
  EXPECT_EQ(Told(), "1 the destination GRAPH; ") << "the graph is gone";
  ExpectMemory("memory of an allocation node");
}

// As much memory of its own as it has nodes.
TEST_F(AuditOfAGraph, AGraphOfAllocationNodesAloneHasNoPointer) {
  Note([&](cudaStream_t stream) {
    for (int i = 0; i < 40; ++i) {
      void* memory = nullptr;
      GCAP_EXPECT_CUDA(cudaMallocAsync(&memory, 4096, stream));
    }
  });
  EXPECT_EQ(told_at_once_, "");
  GCAP_EXPECT_OK(gcap_notes_check(notes_));
}

TEST_F(AuditOfAGraph, AnotherHandOutOfABlockIsAFinding) {
  gcap_graph_block_t block = {memory_[0], kBytes, 5};
  const auto find = [](void* user, const void* address, gcap_graph_block_t* out_block) {
    *out_block = *static_cast<gcap_graph_block_t*>(user);
    return address == out_block->address;
  };
  NoteAFill(find, &block);
  EXPECT_EQ(told_at_once_, "0 the destination ALLOCATOR; ");
  ExpectMemory("256 bytes of the application's allocator at 0x");
  ExpectMemory("hand-out 5");
  block.number = 6;
  EXPECT_EQ(Told(), "0 the destination ALLOCATOR !; ");
  ExpectMemory("hand-out 6 (freed and handed out again since)");
  block.number = 5;
  EXPECT_EQ(Told(), "0 the destination ALLOCATOR; ");
  block.number = 0;
  NoteAFill(find, &block);
  EXPECT_EQ(told_at_once_, "0 the destination ALLOCATOR !; ") << "nobody's from the start";
  ExpectMemory(", free");
}

// Stands for a gcap_scratch_t.
struct Claimed {
  gcap_memory_source_t source;  // first
  gcap_memory_claim_t claim;
  int fails_at;  // the question that finds no host memory; 0: none does
  static gcap_status_t Find(gcap_memory_source_t* source, uintptr_t address, bool, gcap_memory_claim_t* out_claim,
                            bool* out_found) {
    auto* self = reinterpret_cast<Claimed*>(source);
    if (self->fails_at > 0 && --self->fails_at == 0)
      return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to watch it");
    *out_claim = self->claim;
    *out_found = address - self->claim.start < self->claim.bytes;
    return nullptr;
  }
};

TEST_F(AuditOfAGraph, ScratchIsTheGraphsWhileThePieceIsKeptOrNotHandedOutAgain) {
  Claimed scratch = {};
  scratch.source.find = Claimed::Find;
  scratch.claim.start = At(0);
  scratch.claim.bytes = kBytes;
  scratch.claim.source = ~uint64_t{0};
  gcap_memory_source_add(&scratch.source);
  struct {
    uint64_t hand_out, keeper;
    const char* at_once;
    uint64_t later_hand_out, later_keeper;
    const char* later;
  } const rows[] = {
      {3, 0, "SCRATCH; ", 4, 0, "SCRATCH !; "},       {3, 0, "SCRATCH; ", 3, 9, "SCRATCH; "},
      {3, 9, "RESERVATION; ", 4, 9, "RESERVATION; "}, {0, 9, "RESERVATION; ", 0, 8, "RESERVATION !; "},
      {0, 0, "SCRATCH !; ", 0, 0, "SCRATCH !; "},
  };
  for (const auto& row : rows) {
    scratch.claim.hand_out = row.hand_out;
    scratch.claim.keeper = row.keeper;
    NoteAFill();
    EXPECT_EQ(told_at_once_, std::string("0 the destination ") + row.at_once);
    EXPECT_EQ(memory_texts_.find(", free") != std::string::npos, row.hand_out == 0 && row.keeper == 0);
    scratch.claim.hand_out = row.later_hand_out;
    scratch.claim.keeper = row.later_keeper;
    EXPECT_EQ(Told(), std::string("0 the destination ") + row.later);
  }
  scratch.fails_at = 1;
  GCAP_EXPECT_FAILS(gcap_graph_audit(notes_, nullptr, nullptr, nullptr), GCAP_RESOURCE_EXHAUSTED, "to watch it");
  gcap_memory_source_remove(&scratch.source);
}

// Two pieces were handed out again, and the run names the one.
TEST_F(Audit, ARunNamesItsMemoryAnewAndNoOther) {
  Claimed named = {}, other = {};
  Contents contents({{{Pack(At(0)), Pack(At(0) + 8)}}, {{Pack(At(1))}}});
  const gcap_owned_t owned = {GCAP_GRAPH_OWNER_BUFFER, "x", At(0), kBytes, /*is_named=*/true};
  gcap_audit_subject_t subject = {};
  subject.contents = contents.get();
  subject.owned = &owned;
  subject.num_owned = 1;
  for (Claimed* each : {&named, &other}) {
    each->source.find = Claimed::Find;
    each->claim = {};
    each->claim.start = At(each == &named ? 0 : 1);
    each->claim.bytes = kBytes;
    each->claim.source = each == &named ? 1 : 2;
    each->claim.hand_out = 3;
    gcap_memory_source_add(&each->source);
  }
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  const auto findings = [&] {
    size_t count = 77;
    GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, &count));
    return count;
  };
  named.claim.hand_out = other.claim.hand_out = 4;
  EXPECT_EQ(findings(), 3u);
  for (const int question : {1, 2}) {
    named.fails_at = question;
    GCAP_EXPECT_FAILS(gcap_notes_name(notes), GCAP_RESOURCE_EXHAUSTED, "to watch it");
  }
  EXPECT_EQ(findings(), 3u);
  GCAP_EXPECT_OK(gcap_notes_name(notes));
  EXPECT_EQ(findings(), 1u);
  other.claim.hand_out = 3;
  EXPECT_EQ(findings(), 0u);
  named.claim.hand_out = 3;
  EXPECT_EQ(findings(), 2u) << "what was the run's before is another's";
  named.claim.hand_out = 0;
  GCAP_EXPECT_OK(gcap_notes_name(notes));
  EXPECT_EQ(findings(), 2u) << "the run names memory that is nobody's";
  gcap_graph_notes_destroy(notes);
  for (Claimed* each : {&named, &other}) gcap_memory_source_remove(&each->source);
}

// --- Changes --------------------------------------------------------------------------------------------------------

// "KIND place" of what the arguments of a kernel have otherwise.
class AuditOfChanges : public Audit {
 protected:
  gcap_status_t Find(const std::vector<Bytes>& now, const std::vector<Bytes>& fresh) {
    Contents before({{now}}), after({{fresh}});
    const gcap_block_finder_t finder = {};
    return gcap_contents_find_change(before.get(), 0, after.get(), 0, &finder, &change_);
  }
  std::string ChangeOf(const std::vector<Bytes>& now, const std::vector<Bytes>& fresh) {
    GCAP_EXPECT_OK(Find(now, fresh));
    if (change_.kind == GCAP_CHANGE_NONE) return "";
    return (change_.kind == GCAP_CHANGE_POINTER ? "POINTER " : "VALUE ") + std::string(change_.place);
  }

  gcap_node_change_t change_ = {};
};

// Scratch that a graph keeps is another piece in a fresh capture, which may have gone back by now.
TEST_F(AuditOfChanges, TheScratchOfTwoCapturesIsAlike) {
  const uint64_t gone = 0x123456789a00;
  Claimed scratch = {};
  scratch.source.find = Claimed::Find;
  scratch.claim.start = At(0);
  scratch.claim.bytes = kBytes;
  gcap_memory_source_add(&scratch.source);
  for (const uint64_t keeper : {0, 9}) {
    scratch.claim.keeper = keeper;
    const char* pointer = keeper != 0 ? "" : "POINTER argument 1";
    EXPECT_EQ(ChangeOf({Pack(7), Pack(At(0))}, {Pack(7), Pack(At(0) + 16)}), pointer);
    EXPECT_EQ(ChangeOf({Pack(7), Pack(At(0))}, {Pack(7), Pack(gone)}), pointer);
    EXPECT_EQ(ChangeOf({Pack(7), Pack(At(0))}, {Pack(7), Pack(At(1))}), "POINTER argument 1");
    EXPECT_EQ(ChangeOf({Pack(7), Pack(At(1))}, {Pack(7), Pack(At(0))}), "POINTER argument 1");
    EXPECT_EQ(ChangeOf({Pack(7), Pack(At(1))}, {Pack(7), Pack(gone)}), "POINTER argument 1");
    EXPECT_EQ(ChangeOf({Pack(7), Pack(gone)}, {Pack(7), Pack(gone + 1)}), "VALUE argument 1");
  }
  // An address in halves.
  const auto halves = [](uint64_t address) {
    return std::vector<Bytes>{Pack(static_cast<uint32_t>(address)), Pack(static_cast<uint32_t>(address >> 32))};
  };
  EXPECT_EQ(ChangeOf(halves(At(0)), halves(At(0) + 16)), "");
  EXPECT_EQ(ChangeOf(halves(At(0)), halves(At(1))), "VALUE argument 0");
  gcap_memory_source_remove(&scratch.source);
}

TEST_F(AuditOfChanges, ALookThatFailsIsNoAnswer) {
  Claimed scratch = {};
  scratch.source.find = Claimed::Find;
  scratch.claim.start = At(0);
  scratch.claim.bytes = kBytes;
  scratch.claim.keeper = 9;
  gcap_memory_source_add(&scratch.source);
  int question = 0;
  bool has_failed = true;
  while (has_failed) {
    scratch.fails_at = ++question;
    const Outcome outcome(Find({Pack(At(0))}, {Pack(At(0) + 16)}));
    has_failed = scratch.fails_at == 0;
    EXPECT_EQ(outcome.code, has_failed ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << question;
  }
  EXPECT_GT(question, 5) << "of a word in each graph, of the bytes that differ, and of what is nobody's";
  gcap_memory_source_remove(&scratch.source);
}

// --- Texts ----------------------------------------------------------------------------------------------------------

TEST(AuditTexts, AKeeperIsNamedByItsWholeLabel) {
  gcap_memory_t memory = {};
  memory.has_claim = true;
  memory.claim.bytes = 64;
  memory.claim.start = 0x7000;
  memory.claim.keeper = 1;
  char text[256];
  const char* const rows[][2] = {{"", " that a graph keeps"}, {"b", " that b keeps"}, {"id 3", " that id 3 keeps"}};
  for (const auto& row : rows) {
    snprintf(memory.claim.name, sizeof(memory.claim.name), "%s", row[0]);
    gcap_memory_write(&memory, text, sizeof(text));
    EXPECT_NE(std::string(text).find(row[1]), std::string::npos) << text;
    EXPECT_NE(std::string(text).find("64 bytes of scratch at 0x7000"), std::string::npos) << text;
  }
}

TEST(AuditTexts, TheKeeperOfAnAddressIsNamedByItsWholeLabel) {
  Claimed scratch = {};
  scratch.source.find = Claimed::Find;
  scratch.claim.start = 0x7000;
  scratch.claim.bytes = 64;
  scratch.claim.keeper = 1;
  gcap_memory_source_add(&scratch.source);
  char text[256];
  for (const std::string name : {"", "b", "id 3"}) {
    snprintf(scratch.claim.name, sizeof(scratch.claim.name), "%s", name.c_str());
    gcap_memory_write_keeper(0x7008, text, sizeof(text));
    EXPECT_EQ(text, ", the address of scratch that " + (name.empty() ? "the graph" : name) + " keeps");
  }
  gcap_memory_write_keeper(0x7040, text, sizeof(text));
  EXPECT_STREQ(text, "") << "nobody's address";
  scratch.claim.keeper = 0;
  gcap_memory_write_keeper(0x7008, text, sizeof(text));
  EXPECT_STREQ(text, "") << "nobody keeps it";
  gcap_memory_source_remove(&scratch.source);
}

// The driver knows an arena's memory whatever becomes of its pieces.
TEST(AuditTexts, APieceOfScratchThatIsFreeIsNobodys) {
  gcap_memory_t memory = {};
  memory.type = 2;
  memory.has_claim = true;
  EXPECT_TRUE(gcap_memory_is_nobodys(&memory));
  memory.claim.hand_out = 1;
  EXPECT_FALSE(gcap_memory_is_nobodys(&memory));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
