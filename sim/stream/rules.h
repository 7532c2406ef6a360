// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rules.h: the rules of stream capture, by their place in the table.
#ifndef GCAP_SIM_STREAM_RULES_H_
#define GCAP_SIM_STREAM_RULES_H_

#include "cuda_runtime_api.h"

typedef enum gcap_sim_rule {
#define CAPTURE_RULE(id, name, code, situation, remedy)
#define CAPTURE_GATE(id, name, code, situation, remedy) GCAP_SIM_RULE_##name,
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
} gcap_sim_rule_t;

// The rule's number in the table: "R16".
const char* gcap_sim_rule_id(gcap_sim_rule_t rule);
cudaError_t gcap_sim_rule_code(gcap_sim_rule_t rule);
const char* gcap_sim_rule_situation(gcap_sim_rule_t rule);
const char* gcap_sim_rule_remedy(gcap_sim_rule_t rule);

#endif  // GCAP_SIM_STREAM_RULES_H_
