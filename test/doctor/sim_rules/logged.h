// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// logged.h: what the analyser finds in a log of the simulator.
#ifndef GCAP_TEST_DOCTOR_SIM_RULES_LOGGED_H_
#define GCAP_TEST_DOCTOR_SIM_RULES_LOGGED_H_

#include <memory>
#include <string>
#include <vector>

#include "doctor/analyse/diagnosis.h"
#include "doctor/events/recording.h"

namespace gcap {
namespace testing {

// A log, and the diagnosis of it.
class Logged {
 public:
  // Runs the command, a program and its arguments, with all of its calls logged.
  static Logged Of(const std::vector<std::string>& command);
  // The text of a log. Without `says`, the analyser hears the calls and their answers alone, as on a GPU.
  explicit Logged(const std::string& log, bool with_says = true);

  const gcap_doctor_recording_t& recording() const { return *recording_; }
  const gcap_doctor_diagnosis_t& diagnosis() const { return *diagnosis_; }
  const std::string& log() const { return log_; }

  // "cudaMalloc"; "" for no call.
  std::string FunctionOf(uint32_t call) const;
  // The finding about a call of the function, of that kind; NULL for none.
  const gcap_doctor_finding_t* Find(gcap_doctor_finding_kind_t kind, const std::string& function) const;
  // All findings, a line each, for messages.
  std::string Findings() const;
  // The call that the simulator says broke the capture; GCAP_DOCTOR_NONE for none.
  uint32_t BreakerOf(const gcap_doctor_captured_t& capture) const;

 private:
  struct Destroy {
    void operator()(gcap_doctor_recording_t* recording) const { gcap_doctor_recording_destroy(recording); }
    void operator()(gcap_doctor_diagnosis_t* diagnosis) const { gcap_doctor_diagnosis_destroy(diagnosis); }
  };
  std::string log_;
  std::vector<std::string> says_;  // by call
  std::unique_ptr<gcap_doctor_recording_t, Destroy> recording_;
  std::unique_ptr<gcap_doctor_diagnosis_t, Destroy> diagnosis_;
};

// The log of a command on its standard error.
std::string LogOf(const std::vector<std::string>& command);
// What a command prints, a line each.
std::vector<std::string> LinesOf(const std::vector<std::string>& command);

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_DOCTOR_SIM_RULES_LOGGED_H_
