// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// sample.h: recordings with a diagnosis made by hand, so that a report is compared with what was put in, whatever the
// analyser thinks of it.
#ifndef GCAP_TEST_DOCTOR_REPORT_SAMPLE_H_
#define GCAP_TEST_DOCTOR_REPORT_SAMPLE_H_

#include <string>
#include <vector>

#include "doctor/analyse/diagnosis.h"

namespace gcap_test {

// A recording of a text of events, and findings that are added to it.
class Sample {
 public:
  explicit Sample(std::string events);
  ~Sample();
  Sample(const Sample&) = delete;

  // Returns the new entry, whose indices are GCAP_DOCTOR_NONE. Valid until the next one is added.
  gcap_doctor_captured_t& AddCapture();
  gcap_doctor_finding_t& AddFinding(gcap_doctor_finding_kind_t kind, gcap_doctor_severity_t severity,
                                    std::string sentence);
  // The index of the call of that number.
  uint32_t Call(uint64_t number) const;
  // The diagnosis as it is now.
  const gcap_doctor_diagnosis_t* diagnosis();
  const gcap_doctor_recording_t* recording() const { return recording_; }

 private:
  gcap_doctor_recording_t* recording_;
  gcap_doctor_diagnosis_t diagnosis_ = {};
  std::vector<gcap_doctor_captured_t> captures_;
  std::vector<gcap_doctor_finding_t> findings_;
  std::vector<uint32_t> capture_of_;
};

// What a report writes.
std::string Written(void (*report)(FILE*, const gcap_doctor_diagnosis_t*), Sample& sample);
std::string Text(Sample& sample, bool colour = false);

extern const char kFirstLine[];

// A PyTorch program whose capture is broken by cudaStreamSynchronize in at::native::_local_scalar_dense_cuda.
Sample* MakeBroken();
// One capture with a graph of three kernels and a copy, replayed 1000 times, with device times.
Sample* MakeHealthy();
// The same one with labels on three of its nodes, of 9 us in all; the fourth takes 1 us. The whole takes `whole_ns`.
Sample* MakeLabelled(unsigned whole_ns);
// Names that would be markup, escapes or no UTF-8.
Sample* MakeHostile();
// A graph of `nodes` nodes on three streams, as PyTorch makes them, and device times.
Sample* MakeLarge(unsigned nodes);
// The broken one with that many findings more.
Sample* MakeMany(unsigned findings);
// By its name: "broken", "healthy", "labelled", "hostile", "large", "many", "small", a large one of few nodes, or
// "empty", of which nothing was recorded; nullptr for another one.
Sample* MakeByName(const std::string& name);

}  // namespace gcap_test

#endif  // GCAP_TEST_DOCTOR_REPORT_SAMPLE_H_
