// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The capture rules as data: rules.inc with its code, situation and remedy, for gates and messages.
#include "core.h"

static const struct {
  cudaError_t code;
  const char* situation;
  const char* remedy;
} rules[] = {
#define SIM_RULE(name, code, situation, remedy) {code, situation, remedy},
#include "rules.inc"
#undef SIM_RULE
};

cudaError_t sim_rule_code(sim_rule_t rule) { return rules[rule].code; }

const char* sim_rule_situation(sim_rule_t rule) { return rules[rule].situation; }

const char* sim_rule_remedy(sim_rule_t rule) { return rules[rule].remedy; }
