// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// script.h: recordings written as a program would be told, a line a call:
//
//   main cuStreamBeginCapture stream=1 mode=global     thread, function, fields of the format
//   main cuLaunchKernel stream=1 +kernel               it made a node in the graph that was begun last
//   main cuLaunchKernel stream=1 +kernel@2             in graph 2; begins number their graphs from 1 on
//   main cuStreamSynchronize stream=1 -> 900           its result, 0 if nothing is said
//   main cuMemAlloc at=item                            from the place that Place("item", ...) defined
//   > main cuMemFree                                   the driver called it inside of the call before
//   ! replays exec=1 count=3                           another kind of line
//
// Stream 9 is the legacy one, 8 a blocking one, 1 to 4 are non-blocking.
#ifndef GCAP_TEST_DOCTOR_ANALYSE_SCRIPT_H_
#define GCAP_TEST_DOCTOR_ANALYSE_SCRIPT_H_

#include <stdio.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "doctor/analyse/diagnosis.h"
#include "doctor/events/recording.h"

namespace script {

class Diagnosis;
inline std::function<void(const Diagnosis&)> watch;  // sees each diagnosis

struct Destroy {
  void operator()(gcap_doctor_recording_t* recording) const { gcap_doctor_recording_destroy(recording); }
  void operator()(gcap_doctor_diagnosis_t* diagnosis) const { gcap_doctor_diagnosis_destroy(diagnosis); }
};

// A recording and what was found in it.
class Diagnosis {
 public:
  explicit Diagnosis(std::string text) {
    FILE* file = fmemopen(text.data(), text.size(), "r");
    recording_.reset(gcap_doctor_recording_read(file, "script"));
    fclose(file);
    diagnosis_.reset(gcap_doctor_diagnosis_create(recording_.get()));
    if (watch) watch(*this);
  }
  const gcap_doctor_diagnosis_t* operator->() const { return diagnosis_.get(); }
  gcap_doctor_diagnosis_t* get() const { return diagnosis_.get(); }
  const gcap_doctor_recording_t* recording() const { return recording_.get(); }

  // Of that kind; NULL if there is none.
  const gcap_doctor_finding_t* Find(gcap_doctor_finding_kind_t kind) const {
    for (size_t i = 0; i < diagnosis_->num_findings; ++i) {
      if (diagnosis_->findings[i].kind == kind) return &diagnosis_->findings[i];
    }
    return nullptr;
  }
  // That are errors or warnings.
  size_t NumSerious() const {
    size_t count = 0;
    for (size_t i = 0; i < diagnosis_->num_findings; ++i)
      count += diagnosis_->findings[i].severity != GCAP_DOCTOR_SEVERITY_NOTE;
    return count;
  }
  // "R11", or "" for none.
  std::string Rule(const gcap_doctor_finding_t* finding) const {
    return finding != nullptr && finding->rule != nullptr ? finding->rule->id : "";
  }
  // The number of the call that a finding shows, counted from 1 in the script; 0 for none.
  uint64_t Call(const gcap_doctor_finding_t* finding) const { return Number(finding->call); }
  uint64_t Other(const gcap_doctor_finding_t* finding) const { return Number(finding->other); }
  // All findings, a line each, for messages.
  std::string All() const {
    std::string all;
    for (size_t i = 0; i < diagnosis_->num_findings; ++i) {
      const gcap_doctor_finding_t& finding = diagnosis_->findings[i];
      all += std::to_string(finding.severity) + " " + gcap_doctor_finding_kind_name(finding.kind) + " " +
             Rule(&finding) + ": " + finding.sentence + " -> " + finding.remedy + "\n";
    }
    return all;
  }

 private:
  uint64_t Number(uint32_t call) const { return call == GCAP_DOCTOR_NONE ? 0 : recording_->calls[call].number; }

  std::unique_ptr<gcap_doctor_recording_t, Destroy> recording_;
  std::unique_ptr<gcap_doctor_diagnosis_t, Destroy> diagnosis_;
};

class Script {
 public:
  Script() {
    Line("gcap-events version=1 pid=7 time=100 program=test");
    for (int i = 1; i <= 4; ++i) Line("stream id=" + std::to_string(i) + " what=nonblocking");
    Line("stream id=8 what=blocking");
    Line("stream id=9 what=legacy");
  }

  // A stack by its name: "libtorch.so:item" are C frames, "train.py:12:body" are Python frames, innermost first.
  Script& Place(const std::string& name, std::initializer_list<std::string> c,
                std::initializer_list<std::string> python = {}) {
    std::string c_ids, python_ids;
    for (const std::string& frame : c) {
      const size_t colon = frame.find(':');
      const std::string id = std::to_string(++num_frames_);
      Line("frame id=" + id + " module=/usr/lib/" + frame.substr(0, colon) + " offset=0x" + id +
           " function=" + frame.substr(colon + 1));
      c_ids += (c_ids.empty() ? "" : ",") + std::to_string(num_frames_);
    }
    for (const std::string& frame : python) {
      const size_t colon = frame.find(':'), second = frame.find(':', colon + 1);
      Line("pyframe id=" + std::to_string(++num_frames_) + " file=" + frame.substr(0, colon) +
           " line=" + frame.substr(colon + 1, second - colon - 1) + " function=" + frame.substr(second + 1));
      python_ids += (python_ids.empty() ? "" : ",") + std::to_string(num_frames_);
    }
    places_[name] = ++num_stacks_;
    Line("stack id=" + std::to_string(num_stacks_) + (c_ids.empty() ? "" : " c=" + c_ids) +
         (python_ids.empty() ? "" : " py=" + python_ids));
    return *this;
  }

  Script& Run(std::initializer_list<std::string> lines) {
    for (const std::string& line : lines) Run(line);
    return *this;
  }

  Script& Run(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "!") {
      Line(line.substr(2));
      return *this;
    }
    const bool is_inner = word == ">";
    if (is_inner) words >> word;
    Call(ThreadOf(word), is_inner, &words);
    return *this;
  }

  // The recorder left out so many calls here, since its file reached its limit: what follows is in the ring.
  Script& LeaveOut(int calls) {
    Line("ring at=65536 size=65536 count=1");
    text_.resize(65536, '\0');
    Line("segment n=2");
    num_calls_ += calls;
    return *this;
  }

  const std::string& text() const { return text_; }
  Diagnosis Diagnose() const { return Diagnosis(text_); }

 private:
  void Line(std::string line) {
    for (char& c : line) c = c == ' ' ? '\t' : c;
    text_ += line + "\n";
  }

  int ThreadOf(const std::string& name) {
    if (threads_.count(name) == 0) {
      const int id = static_cast<int>(threads_.size()) + 1;
      threads_[name] = id;
      Line("thread id=" + std::to_string(id) + " os=" + std::to_string(70 + id) + " name=" + name);
    }
    return threads_[name];
  }

  void Call(int thread, bool is_inner, std::istringstream* words) {
    std::string function, word, fields, result = "0", stream, nodes;
    *words >> function;
    const int number = ++num_calls_;
    while (*words >> word) {
      if (word == "->") {
        *words >> result;
      } else if (word[0] == '+') {
        const size_t at = word.find('@');
        const std::string graph = at != std::string::npos ? word.substr(at + 1) : std::to_string(num_graphs_);
        nodes += "node graph=" + graph + " id=" + std::to_string(++num_nodes_) + " type=" + word.substr(1, at - 1) +
                 " call=" + std::to_string(number) + "\n";
      } else if (word.compare(0, 3, "at=") == 0) {
        fields += " stack=" + std::to_string(places_.at(word.substr(3)));
      } else {
        if (word.compare(0, 7, "stream=") == 0) stream = word.substr(7);
        fields += " " + word;
      }
    }
    if (function == "cuStreamBeginCapture" && result == "0") graphs_[stream] = ++num_graphs_;
    if (function == "cuStreamEndCapture" && result == "0") fields += " graph=" + std::to_string(graphs_[stream]);
    std::istringstream lines(nodes);
    for (std::string node; std::getline(lines, node);) Line(node);
    const bool has_times = fields.find(" t=") != std::string::npos;
    const std::string times =
        has_times ? "" : " t=" + std::to_string(10 * number) + " end=" + std::to_string(10 * number + 5);
    Line("call n=" + std::to_string(number) + times + " thread=" + std::to_string(thread) + " function=" + function +
         " result=" + result + (is_inner ? " depth=1" : "") + fields);
  }

  std::string text_;
  std::map<std::string, int> threads_, places_, graphs_;
  int num_frames_ = 0, num_stacks_ = 0, num_calls_ = 0, num_nodes_ = 0, num_graphs_ = 0;
};

inline Diagnosis Diagnose(std::initializer_list<std::string> lines) { return Script().Run(lines).Diagnose(); }

}  // namespace script

#endif  // GCAP_TEST_DOCTOR_ANALYSE_SCRIPT_H_
