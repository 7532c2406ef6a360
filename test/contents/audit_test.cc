// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whose memory a pointer is in, of contents made by hand over memory that is there: what the graphs of test/graph do
// not have.
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/contents/made_contents.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/contents/audit.h"
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
  const gcap_moving_buffer_t buffer = {"moving", At(1), kBytes, 256, At(2)};
  gcap_relocation_t* relocation = nullptr;
  GCAP_ASSERT_OK(gcap_relocation_create(real.get(), stand_in.get(), &buffer, 1, &relocation));
  gcap_audit_subject_t subject = {};
  subject.contents = real.get();
  subject.relocation = relocation;
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_notes_make(&subject, &notes));
  EXPECT_EQ(Owners(notes), "0:FOREIGN ; 1:BUFFER moving; 2:FOREIGN ; ");
  gcap_graph_notes_destroy(notes);
  gcap_relocation_destroy(relocation);
}

TEST(AuditTexts, AKeeperIsNamedByItsWholeLabel) {
  gcap_memory_t memory = {};
  memory.has_claim = true;
  memory.claim.bytes = 64;
  memory.claim.keeper = 1;
  char text[256];
  const char* const rows[][2] = {{"", " that a graph keeps"}, {"b", " that b keeps"}, {"id 3", " that id 3 keeps"}};
  for (const auto& row : rows) {
    snprintf(memory.claim.name, sizeof(memory.claim.name), "%s", row[0]);
    gcap_memory_write(&memory, text, sizeof(text));
    EXPECT_NE(std::string(text).find(row[1]), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
