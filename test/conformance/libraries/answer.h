// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// answer.h: the comparison of what a library answers with what it answered on a GPU: NVIDIA H200, driver 580.159.04,
// cuBLASLt 13.1, cuDNN 9.19, 2026-11-21. The expectations in this folder are that record; those of cuBLAS and of
// doubles are in recorded.inc, which says what answered.
#ifndef GCAP_TEST_CONFORMANCE_LIBRARIES_ANSWER_H_
#define GCAP_TEST_CONFORMANCE_LIBRARIES_ANSWER_H_

#include <string>

namespace conformance {

// Does this program link the simulator?
bool OnSimulator();

// Compares an answer with the recorded one, or with several between "|" where a GPU gave now this, now that. On the
// simulator a row of expected_differences.inc with this name replaces the record; a row that equals the record is a
// failure, so one whose difference has gone fails.
void ExpectAnswer(const std::string& name, const std::string& recorded, const std::string& got);

// The same for a case whose answer stands in recorded.inc, and not in the test. Where no GPU was asked yet,
// skips the test; on a GPU after it printed the line that the file lacks. To be called last in a test.
void CompareWithRecord(const std::string& name, const std::string& got);

// The name of the running test, "Suite/Test.Name/Row" without the parts that parameters add to it: "Test.Row".
std::string TestName();

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_LIBRARIES_ANSWER_H_
