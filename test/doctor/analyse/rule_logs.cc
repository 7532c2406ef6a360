// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rule_logs.cc: compares what is found in logs of the simulator with what their names tell: rNN_mistake.log and
// rNN_repair.log of the blocks of docs/rules/. Exceptions say why.
//   rule_logs NUMBER LOG...      NUMBER: how many logs there must be, at least
#include <stdio.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "test/doctor/analyse/script.h"

namespace {

// Another finding than the block's own rule; "" for none.
const std::map<std::string, std::string> kOthers =
    {
        {"broken_capture", "R6"},                         // an example of four mistakes
        {"r5_mistake", "R11"},                            // the call that broke the capture, which R5 is not about
        {"r7_mistake", ""},                               // the page's condition is not met here
        {"r10_mistake", "R11"},   {"r18_mistake", "R6"},  // a stream that joined, and never came back
        {"r25_mistake", ""},                              // an order that no call tells
        {"r27_mistake", ""},     // what was freed too early no call tells, as with the next ones
        {"r31_mistake", "R29"},  // the leak is that of an allocation node
        {"r31_repair", "R29"},   // which eager work frees
        {"r32_mistake", "-"},    // the flags are not recorded
        {"r34_mistake", ""},      {"r37_mistake", ""},    {"r39_mistake", ""},
        {"r40_mistake", ""},      {"r41_mistake", ""},    {"r43_mistake", ""},  // legal on this version
        {"r44_mistake", ""},                               // the log does not have the library's nodes
        {"r48_mistake", ""},      {"r52_mistake", "R26"},  // the engine's allocation
        {"r56_mistake", ""},      {"r57_mistake", ""},    {"r61_mistake", ""},
        {"r8_mistake", "R64"},  // which tells why the graph is empty
};

std::string Expected(const std::string& block) {
  const auto other = kOthers.find(block);
  if (other != kOthers.end()) return other->second;
  return block.find("_mistake") != std::string::npos ? "R" + block.substr(1, block.find('_') - 1) : "";
}

// Whether the rule is among the errors and warnings; "" for none of them, "-" for one without a rule.
bool HasRule(const script::Diagnosis& d, const std::string& rule) {
  if (rule.empty()) return d.NumSerious() == 0;
  for (size_t i = 0; i < d->num_findings; ++i) {
    const gcap_doctor_finding_t* f = &d->findings[i];
    if (f->severity != GCAP_DOCTOR_SEVERITY_NOTE && d.Rule(f) == (rule == "-" ? "" : rule)) return true;
  }
  return false;
}

bool Check(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const script::Diagnosis d(text.str());
  std::string block = path.substr(path.rfind('/') + 1);
  block = block.substr(0, block.find('.'));
  if (d->num_captures != 0 && HasRule(d, Expected(block))) return true;
  printf("FAILED: %s: expected '%s', found:\n%s", block.c_str(), Expected(block).c_str(), d.All().c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  int failed = 0;
  for (int i = 2; i < argc; ++i) failed += Check(argv[i]) ? 0 : 1;
  printf("%d logs, %d failed\n", argc - 2, failed);
  return failed != 0 || argc < 3 || argc - 2 < std::stoi(argv[1]);
}
