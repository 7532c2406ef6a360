// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rule_words.h: the one sentence that names a rule, for who prints it with tables of its own.
#ifndef GCAP_RULES_RULE_WORDS_H_
#define GCAP_RULES_RULE_WORDS_H_

// A format of printf for the rule's id, its situation, its remedy, and its id without the "R", which names its page.
#define GCAP_RULE_WORDS "rule %s: %s; remedy: %s; see docs/rules/r%s.md"

#endif  // GCAP_RULES_RULE_WORDS_H_
