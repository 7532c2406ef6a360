// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every function of scratch.h that answers a status, with each of its pointers NULL in turn: the answer names the
// argument, and the outputs are NULL. The header is read too, so that a new function cannot be forgotten here.

#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

struct Refused {
  std::string function, argument;
  std::function<gcap_status_t()> call;
};

class NullArguments : public ScratchTest {
 protected:
  // All that is refused. gcap_scratch_destroy and the pointers to be freed or kept accept NULL.
  std::vector<Refused> Calls() {
    gcap_scratch_t* const none = nullptr;
    const auto call = [](const char* function, const char* argument, std::function<gcap_status_t()> what) {
      return Refused{function, argument, std::move(what)};
    };
    return {
        call("gcap_scratch_create", "upstream",
             [this] { return gcap_scratch_create(nullptr, &options_, &out_scratch_); }),
        call("gcap_scratch_create", "out_scratch",
             [this] { return gcap_scratch_create(upstream_.get(), &options_, nullptr); }),
        call("gcap_scratch_alloc", "scratch", [=] { return gcap_scratch_alloc(none, 100, a_, &out_ptr_); }),
        call("gcap_scratch_alloc", "scratch", [=] { return gcap_scratch_alloc(none, 0, a_, &out_ptr_); }),
        call("gcap_scratch_alloc", "stream", [=] { return gcap_scratch_alloc(scratch_, 100, nullptr, &out_ptr_); }),
        call("gcap_scratch_alloc", "stream", [=] { return gcap_scratch_alloc(scratch_, 0, nullptr, &out_ptr_); }),
        call("gcap_scratch_alloc", "out_ptr", [=] { return gcap_scratch_alloc(scratch_, 100, a_, nullptr); }),
        call("gcap_scratch_free", "scratch", [=] { return gcap_scratch_free(none, this); }),
        call("gcap_scratch_keep", "scratch", [=] { return gcap_scratch_keep(none, this); }),
        call("gcap_scratch_forget_stream", "scratch", [=] { return gcap_scratch_forget_stream(none, a_); }),
        call("gcap_scratch_forget_stream", "stream", [=] { return gcap_scratch_forget_stream(scratch_, nullptr); }),
        call("gcap_scratch_trim", "scratch", [=] { return gcap_scratch_trim(none); }),
        call("gcap_scratch_validate", "scratch", [=] { return gcap_scratch_validate(none); }),
        call("gcap_scratch_reservation_prepare", "scratch", [=] { return gcap_scratch_reservation_prepare(none, a_); }),
        call("gcap_scratch_reservation_prepare", "stream",
             [=] { return gcap_scratch_reservation_prepare(scratch_, nullptr); }),
        call("gcap_scratch_reservation_open", "scratch",
             [=] { return gcap_scratch_reservation_open(none, a_, &out_reservation_); }),
        call("gcap_scratch_reservation_open", "stream",
             [=] { return gcap_scratch_reservation_open(scratch_, nullptr, &out_reservation_); }),
        call("gcap_scratch_reservation_open", "out_reservation",
             [=] { return gcap_scratch_reservation_open(scratch_, a_, nullptr); }),
        call("gcap_scratch_reservation_reopen", "reservation", [] { return gcap_scratch_reservation_reopen(nullptr); }),
    };
  }

  gcap_scratch_t* out_scratch_ = nullptr;
  void* out_ptr_ = nullptr;
  gcap_scratch_reservation_t* out_reservation_ = nullptr;
};

TEST_F(NullArguments, AreRefusedByName) {
  for (const bool is_known : {false, true}) {  // a stream that the scratch has not met, and one that it has
    if (is_known) Free(Alloc(100, a_));
    for (const Refused& refused : Calls()) {
      SCOPED_TRACE(refused.function + " without " + refused.argument);
      out_scratch_ = scratch_;
      out_ptr_ = this;
      out_reservation_ = reinterpret_cast<gcap_scratch_reservation_t*>(this);
      const std::string named = refused.argument + " is NULL";
      GCAP_EXPECT_FAILS(refused.call(), GCAP_INVALID_ARGUMENT, named);
      Validate();
      if (refused.argument.rfind("out_", 0) == 0) continue;
      EXPECT_TRUE(refused.function != "gcap_scratch_create" || out_scratch_ == nullptr);
      EXPECT_TRUE(refused.function != "gcap_scratch_alloc" || out_ptr_ == nullptr);
      EXPECT_TRUE(refused.function != "gcap_scratch_reservation_open" || out_reservation_ == nullptr);
    }
  }
}

TEST_F(NullArguments, AreFineWhereThereIsNothingToEnd) {
  GCAP_EXPECT_OK(gcap_scratch_destroy(nullptr));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, nullptr));
  GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, nullptr));
  gcap_scratch_reservation_release(nullptr);
}

TEST_F(NullArguments, AreTriedForEveryFunctionOfTheHeader) {
  std::ifstream file("include/gcap/scratch.h");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::set<std::string> declared, tried = {"gcap_scratch_destroy"};
  const std::regex declaration(R"(gcap_status_t\s+(gcap_\w+)\()");
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) declared.insert((*at)[1]);
  for (const Refused& refused : Calls()) tried.insert(refused.function);
  EXPECT_EQ(declared, tried);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
