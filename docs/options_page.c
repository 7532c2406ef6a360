// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Prints docs/options.md: the options that lib/options/table.c and kit/session/run_options.c list, with their defaults,
// and the words around them.
//
//   ./bazelw run //docs:options_page >docs/options.md

#include <stdio.h>

#include "gcap/options.h"
#include "kit/session/run_options.h"
#include "lib/options/inner.h"

static const char introduction[] =
    "# Options\n"
    "\n"
    "<!-- Printed by docs/options_page.c from lib/options/table.c and kit/session/run_options.c. Do not edit. -->\n"
    "\n"
    "Options are pairs of texts, as hosts pass them. Those of a runtime or an execution provider (EP) go into\n"
    "`gcap_options_parse` or `gcap_options_parse_for_ep` ([options.h](../include/gcap/options.h)), those of a run "
    "into\n"
    "`gcap_run_options_parse` ([run_options.h](../include/gcap/kit/run_options.h)). Where ONNX Runtime has a key, "
    "name, "
    "default\n"
    "and meaning are its own. All keys of its CUDA EP and its CUDA plugin are accepted. A value that would switch on "
    "what\n"
    "gcap does not have is refused, and the message says what; an unknown key is refused, and the message names the "
    "nearest\n"
    "one. If one pair is refused, no option is changed.\n"
    "\n"
    "## Prefixes\n"
    "\n"
    "A provider option's key may have a prefix: `ep.<name>.`, with the name of the EP in any case, or `ep.cuda.`. If "
    "an\n"
    "option is given by several names, the first of this list decides, whatever the order of the pairs:\n"
    "\n"
    "1. `ep.<name>.key`, then `ep.<name>.alias`\n"
    "2. `ep.cuda.key`, then `ep.cuda.alias`\n"
    "3. `key`, then `alias`\n"
    "\n"
    "Of one name given twice the last value counts. Every value is checked, also one that does not count. A key with "
    "the\n"
    "prefix of another EP is ignored, with a line in the log, since a host gives one configuration to all its EPs. "
    "Without\n"
    "an EP (`gcap_options_parse`) it is an unknown key. Run options have no prefix.\n"
    "ONNX Runtime passes on some of the run options ([ort.md](ort.md)).\n"
    "\n"
    "## What follows from other options\n"
    "\n"
    "`gcap_options_get` returns what is in force, of one key or of all:\n"
    "\n"
    "- `user_compute_stream` other than 0: `has_user_compute_stream` is 1. The contrary, `has_user_compute_stream` 1 "
    "without\n"
    "  a `user_compute_stream`, is refused as a pointer that was forgotten; to mean the legacy default stream, give "
    "0.\n"
    "- a user stream, or external memory (`gpu_external_alloc`): `use_ep_level_unified_stream` is 1.\n"
    "- `use_ep_level_unified_stream` 1: `graph.scope` is `session`.\n"
    "\n"
    "A user stream and external memory may be combined. ONNX Runtime refuses that. But an application whose memory "
    "pool is\n"
    "in the order of a stream, such as PyTorch, must lend both: the memory is right on that stream alone.\n"
    "\n"
    "With `graph.scope` `session` all threads share one stream and one set of graphs, and take turns: 8 threads with "
    "20 ids\n"
    "keep 20 graphs, not 160.\n"
    "\n"
    "## Columns\n"
    "\n"
    "*Used by*: gcap itself, or the kernels of an EP, which read `gcap_kernel_options_t`; *nobody*: only the default "
    "is\n"
    "allowed, or the option is ignored, and the meaning says why. *Of*: ONNX Runtime, or gcap alone.\n"
    "\n";

// Of a row with a field.
static void print_default(const gcap_option_t* row, const void* fields) {
  char value[GCAP_OPTIONS_MAX_PATH_BYTES];
  gcap_text_t text;
  gcap_text_init(&text, value, sizeof(value));
  gcap_option_value_print(row->kind, (const char*)fields + row->offset, &text);
  if (value[0] == '\0') {
    printf("nothing");
  } else {
    printf("`%s`", value);
  }
}

static void print_row(const gcap_option_t* row, const void* fields) {
  static const char* const users[] = {"gcap", "kernels", "nobody", "nobody"};
  printf("| `%s`", row->key);
  for (size_t i = 0; i < GCAP_OPTION_MAX_ALIASES && row->aliases[i] != NULL; ++i)
    printf(", also `%s`", row->aliases[i]);
  const bool only_default = row->use == GCAP_OPTION_USE_REFUSED;
  printf(" | %s | ", only_default ? "0" : gcap_option_value_allowed(row->kind));
  if (gcap_option_has_field(row)) {
    print_default(row, fields);
  } else {
    printf("%s", only_default ? "`0`" : "nothing");
  }
  printf(" | %s%s | %s | %s |\n", only_default ? "refused: " : "", row->meaning, users[row->use],
         row->of_onnx_runtime ? "ONNX Runtime" : "gcap");
}

static void print_table(const char* title, const gcap_option_table_t* table, const void* fields) {
  printf("## %s\n\n| key | allowed | default | meaning | used by | of |\n|---|---|---|---|---|---|\n", title);
  for (size_t i = 0; i < table->num_rows; ++i) print_row(&table->rows[i], fields);
}

int main(void) {
  gcap_options_t options;
  gcap_options_init(&options);
  gcap_run_options_t run_options;
  gcap_run_options_init(&run_options);
  printf("%s", introduction);
  print_table("Provider options", &gcap_provider_option_table, &options);
  printf("\n");
  print_table("Run options", &gcap_run_option_table, &run_options);
  return 0;
}
