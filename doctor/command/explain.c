// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor explain and report: what was recorded, in words and in files.
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "doctor/command/cases.h"
#include "doctor/command/installed.h"
#include "doctor/command/options.h"
#include "rules/rules.h"

// --- The page of a rule ----------------------------------------------------------------------------------------------

// "r11" and "11" are R11 too.
static const gcap_rule_t* find_rule(gcap_doctor_heap_t* heap, const char* name) {
  const char* number = name[0] == 'R' || name[0] == 'r' ? name + 1 : name;
  return gcap_rule_by_id(gcap_doctor_heap_print(heap, "R%s", number));
}

static int say_no_rule(const char* name) {
  size_t count;
  const gcap_rule_t* rules = gcap_rules(&count);
  gcap_doctor_say("explain: --rule is '%s': expected %s to %s", name, rules[0].id, rules[count - 1].id);
  return GCAP_DOCTOR_EXIT_MISUSE;
}

// Where no pages are installed, what the table says.
static void print_row(const gcap_rule_t* rule) {
  printf("%s: %s\n", rule->id, rule->situation);
  if (rule->code != 0) printf("the call answers: %s (%d)\n", rule->code_name, rule->code);
  printf("remedy: %s\n", rule->remedy);
}

static int explain_rule(const char* name) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  const gcap_rule_t* rule = find_rule(&heap, name);
  int code = rule != NULL ? GCAP_DOCTOR_EXIT_HEALTHY : say_no_rule(name);
  const char* page = rule != NULL ? gcap_doctor_installed_rule_page(&heap, rule->id) : NULL;
  FILE* file = page != NULL ? fopen(page, "re") : NULL;
  char bytes[4096];
  for (size_t n; file != NULL && (n = fread(bytes, 1, sizeof(bytes), file)) != 0;) fwrite(bytes, 1, n, stdout);
  if (file != NULL) fclose(file);
  if (rule != NULL && file == NULL) print_row(rule);
  gcap_doctor_heap_deinit(&heap);
  return code;
}

// --- Files -----------------------------------------------------------------------------------------------------------

static bool add_files(gcap_doctor_cases_t* cases, const gcap_doctor_options_t* options) {
  for (int i = 0; i < options->num_rest; ++i) {
    if (!gcap_doctor_cases_add(cases, options->rest[i])) return false;
  }
  gcap_doctor_cases_finish(cases);
  return true;
}

static bool flushed(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return true;
  gcap_doctor_say("cannot write all of standard output: %s", strerror(errno));
  return false;
}

int gcap_doctor_explain(const gcap_doctor_options_t* options) {
  if (options->rule != NULL) {
    if (options->num_rest == 0) return explain_rule(options->rule);
    gcap_doctor_say("explain: --rule takes no file: '%s' is one too many", options->rest[0]);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  if (options->num_rest == 0) {
    gcap_doctor_say("explain: no file: expected files of events, '-' for standard input, or --rule ID");
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  gcap_doctor_cases_t cases;
  gcap_doctor_cases_init(&cases);
  int code = GCAP_DOCTOR_EXIT_FILE;
  if (add_files(&cases, options)) {
    if (options->print_json) {
      gcap_doctor_cases_print_json(stdout, &cases);
    } else {
      gcap_doctor_cases_print(stdout, &cases, options->colour);
    }
    if (flushed()) code = gcap_doctor_cases_exit_code(&cases);
  }
  gcap_doctor_cases_deinit(&cases);
  return code;
}

int gcap_doctor_report(const gcap_doctor_options_t* options) {
  bool writes = false;
  for (int i = 0; i < GCAP_DOCTOR_NUM_OUTPUTS; ++i) writes = writes || options->outputs[i] != NULL;
  if (options->num_rest == 0 || !(writes || options->text)) {
    gcap_doctor_say(options->num_rest == 0 ? "report: no file: expected files of events, or '-' for standard input"
                                           : "report: no report is asked for: expected --html FILE, --json FILE, --dot "
                                             "FILE, --trace FILE, --sarif FILE, --junit FILE or --text");
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  gcap_doctor_cases_t cases;
  gcap_doctor_cases_init(&cases);
  int code = GCAP_DOCTOR_EXIT_FILE;
  if (add_files(&cases, options) && gcap_doctor_cases_write(&cases, options)) {
    if (options->text) gcap_doctor_cases_print(stdout, &cases, options->colour);
    if (flushed()) code = gcap_doctor_cases_exit_code(&cases);
  }
  gcap_doctor_cases_deinit(&cases);
  return code;
}
