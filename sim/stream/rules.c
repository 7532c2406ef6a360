// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The gates among the project's capture rules as data, for the gates of the simulator and its messages.
#include "sim/stream/rules.h"

#include "cuda_runtime_api.h"

static const struct {
  const char* id;
  cudaError_t code;
  const char* situation;
  const char* remedy;
} rules[] = {
#define CAPTURE_RULE(id, name, code, situation, remedy)
#define CAPTURE_GATE(id, name, code, situation, remedy) {#id, code, situation, remedy},
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
};

const char* gcap_sim_rule_id(gcap_sim_rule_t rule) { return rules[rule].id; }

cudaError_t gcap_sim_rule_code(gcap_sim_rule_t rule) { return rules[rule].code; }

const char* gcap_sim_rule_situation(gcap_sim_rule_t rule) { return rules[rule].situation; }

const char* gcap_sim_rule_remedy(gcap_sim_rule_t rule) { return rules[rule].remedy; }
