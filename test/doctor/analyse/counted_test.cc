// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Calls that are counted in one line are found what they are found in lines of their own: recordings that are drawn at
// random are written both ways, as the recorder would, and their findings are compared.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/doctor/analyse/script.h"

namespace {

using script::Diagnosis;

constexpr char kBegin[] =
    "gcap-events\tversion=3\tpid=7\ttime=100\tprogram=test\n"
    "stream\tid=1\twhat=nonblocking\nstream\tid=2\twhat=nonblocking\nstream\tid=3\twhat=blocking\n"
    "stream\tid=4\twhat=legacy\nthread\tid=1\tos=71\tname=main\nthread\tid=2\tos=72\tname=other\n"
    "frame\tid=1\tmodule=libtorch.so\toffset=0x1\tfunction=begin\npyframe\tid=2\tfile=a.py\tline=1\tfunction=f\n"
    "frame\tid=3\tmodule=libcudnn.so\toffset=0x3\tfunction=cudnnSetDropoutDescriptor\n"
    "stack\tid=1\tc=1\tpy=2\nstack\tid=2\tc=3\n";

struct Call {
  std::string fields;  // without its number and its times
  std::string node;    // "" for none
  bool is_counted;     // by a recorder, with others that are the same
};

// Whatever a program does: most of it would not be answered so.
class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 30; ++i) Step();
  }

  std::string Plain() const {
    std::string text = kBegin;
    for (size_t i = 0; i < calls_.size(); ++i) text += calls_[i].node + Line(i, "");
    return text + "end\tt=100000\n";
  }

  // As doctor/record/repeats.c counts.
  std::string Counted() const {
    std::string text = kBegin;
    std::map<std::string, std::vector<size_t>> held;
    const auto write = [&] {
      for (auto& [fields, calls] : held) {
        if (calls.empty()) continue;
        text += Line(calls.back(), calls.size() == 1 ? ""
                                                     : "\tcount=" + std::to_string(calls.size()) +
                                                           "\tfirst=" + std::to_string(calls[0] + 1) +
                                                           "\tsince=" + std::to_string(10 * calls[0]));
        calls.clear();
      }
    };
    for (size_t i = 0; i < calls_.size(); ++i) {
      const auto found = held.find(calls_[i].fields);
      if (calls_[i].is_counted && found != held.end()) {
        found->second.push_back(i);
        continue;
      }
      write();
      const auto is_answer = [](const std::string& fields) { return fields.find("status=") != std::string::npos; };
      if (!calls_[i].is_counted) held.clear();
      for (auto at = held.begin(); at != held.end();) {
        at = is_answer(calls_[i].fields) && !is_answer(at->first) ? held.erase(at) : std::next(at);
      }
      text += calls_[i].node + Line(i, "");
      if (calls_[i].is_counted) held[calls_[i].fields];
    }
    write();
    return text + "end\tt=100000\n";
  }

  size_t num_calls() const { return calls_.size(); }

 private:
  int Draw(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  std::string Number(int count) { return std::to_string(1 + Draw(count)); }

  std::string Line(size_t i, const std::string& count) const {
    return "call\tn=" + std::to_string(i + 1) + "\tt=" + std::to_string(10 * i) +
           "\tend=" + std::to_string(10 * i + 5) + count + calls_[i].fields + "\n";
  }

  std::string Fields(const std::string& function, const std::string& result, const std::string& rest) {
    return "\tthread=" + Number(2) + "\tfunction=" + function + "\tresult=" + result + "\tstack=" + Number(2) + rest;
  }

  Call Repeated() {
    // Work on a stream of a capture makes a node.
    const std::string stream = "\tstream=" + Number(2), beside = "\tstream=" + std::to_string(3 + Draw(2));
    switch (Draw(8)) {
      case 0: return {Fields("cuLaunchKernel", "0", beside + "\tkernel=k"), "", true};
      case 1: return {Fields("cuMemcpyHtoDAsync", "0", beside + "\tbytes=8\thost=pageable"), "", true};
      case 2: return {Fields("cuEventQuery", "600", "\tevent=" + Number(2)), "", true};
      case 3: return {Fields("cuStreamIsCapturing", "0", stream + "\tstatus=active"), "", true};
      case 4: return {Fields("cuStreamIsCapturing", "0", stream + "\tstatus=none"), "", true};
      case 5: return {Fields("cuCtxSynchronize", "0", ""), "", true};
      case 6: return {Fields("cuMemAlloc", "0", "\tbytes=64"), "", true};
      default: return {Fields("cuPointerGetAttribute", "0", ""), "", true};
    }
  }

  Call Other() {
    const std::string stream = "\tstream=" + Number(2), event = "\tevent=" + Number(2);
    const std::string graph = Number(2);
    static const char* const modes[] = {"global", "thread_local", "relaxed"};
    switch (Draw(9)) {
      case 0: return {Fields("cuStreamBeginCapture", "0", stream + "\tmode=" + modes[Draw(3)]), "", false};
      case 1: return {Fields("cuStreamBeginCapture", "0", stream + "\tmode=global"), "", false};
      case 2: return {Fields("cuStreamEndCapture", "0", stream + "\tgraph=" + graph), "", false};
      case 3: return {Fields("cuStreamEndCapture", Draw(2) == 0 ? "901" : "904", stream), "", false};
      case 4: return {Fields("cuEventRecord", "0", stream + event), "", false};
      case 5: return {Fields("cuStreamWaitEvent", "0", stream + event), "", false};
      case 6: return {Fields("cuStreamSynchronize", "900", stream), "", false};
      case 7:
        return {Fields("cuThreadExchangeStreamCaptureMode", "0", std::string("\tmode=") + modes[Draw(3)]), "", false};
      default: {
        const std::string node = "node\tgraph=" + graph + "\tid=" + std::to_string(calls_.size() + 1) +
                                 "\ttype=kernel\tcall=" + std::to_string(calls_.size() + 1) + "\n";
        return {Fields("cuLaunchKernel", "0", stream), node, false};
      }
    }
  }

  void Step() {
    if (Draw(2) == 0) {
      calls_.push_back(Other());
      return;
    }
    std::vector<Call> loop;
    for (int i = Draw(3); i >= 0; --i) loop.push_back(Repeated());
    for (int i = Draw(6); i >= 0; --i) calls_.insert(calls_.end(), loop.begin(), loop.end());
  }

  std::mt19937 random_;
  std::vector<Call> calls_;
};

std::string All(const Diagnosis& d) {
  std::string all;
  for (size_t i = 0; i < d->num_findings; ++i) {
    const gcap_doctor_finding_t* finding = &d->findings[i];
    all += std::to_string(d.Call(finding)) + " " + std::to_string(d.Other(finding)) + " x" +
           std::to_string(finding->count) + " " + std::to_string(finding->is_certain) + " ";
  }
  return all + "\n" + d.All();
}

TEST(Counted, CallsAreFoundWhatTheyAreFoundOneByOne) {
  size_t num_findings = 0, num_lines = 0, num_calls = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    const Program program(seed);
    const Diagnosis plain(program.Plain()), counted(program.Counted());
    ASSERT_EQ(plain.recording()->num_calls, program.num_calls());
    ASSERT_EQ(counted.recording()->damage.lines, 0u) << counted.recording()->damage.reason;
    ASSERT_EQ(gcap_doctor_recording_count_calls(counted.recording()), program.num_calls());
    ASSERT_EQ(All(counted), All(plain)) << "seed " << seed << "\n" << program.Plain();
    num_findings += plain->num_findings;
    num_lines += counted.recording()->num_calls;
    num_calls += program.num_calls();
  }
  EXPECT_GT(num_findings, 600u);  // the comparison is of something
  EXPECT_LT(num_lines * 3, num_calls * 2);
}

TEST(Counted, WorkBesideACaptureIsFoundAsOftenAsItWasMade) {
  const Diagnosis d(std::string(kBegin) +
                    "call\tn=1\tthread=1\tfunction=cuStreamBeginCapture\tresult=0\tstream=1\tmode=global\n"
                    "call\tn=2\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=2\n"
                    "call\tn=999\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=2\tcount=996\tfirst=3\n"
                    "call\tn=1000\tthread=1\tfunction=cuStreamEndCapture\tresult=0\tstream=1\tgraph=1\n");
  const gcap_doctor_finding_t* finding = d.Find(GCAP_DOCTOR_FINDING_ESCAPED);
  ASSERT_NE(finding, nullptr) << d.All();
  EXPECT_EQ(finding->count, 997u);
  EXPECT_EQ(d.Call(finding), 2u);
}

}  // namespace
