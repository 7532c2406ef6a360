// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Labels. A thread has one text, in which its open labels stand one behind the other; to open a label adds to the text,
// to close one cuts the text where the label began. So a call that is noted copies one text, whatever is open. Labels
// beyond kMaxOpen are counted, so that each close has its open.
//
// Where the toolkit has NVTX, a label is an NVTX range too, which profilers and gcap-doctor hear of; NVTX is a header,
// and asks nobody where no tool listens. Locking: none, labels are their thread's alone.

#include "lib/capture/label.h"

#include <stdint.h>
#include <string.h>

#include "gcap/capture.h"

#if defined(GCAP_NVTX) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(text) ((void)(text))
#define nvtxRangePop() ((void)0)
#endif

enum { kMaxOpen = 64 };

static _Thread_local struct {
  char text[GCAP_LABELS_BYTES];
  uint64_t num_open;
  uint8_t begins[kMaxOpen];  // where in the text the label was added
} labels;

static void open_label(const char* label) {
  if (labels.num_open < kMaxOpen) {
    const size_t length = strlen(labels.text);
    labels.begins[labels.num_open] = (uint8_t)length;
    gcap_text_t text;
    gcap_text_init(&text, labels.text + length, sizeof(labels.text) - length);
    gcap_text_add(&text, "%s%s", length == 0 ? "" : " > ", label);
  }
  ++labels.num_open;
  (void)nvtxRangePushA(label);
}

void gcap_label(const char* label) {
  if (label != NULL) {
    open_label(label);
    return;
  }
  if (labels.num_open == 0) return;
  --labels.num_open;
  if (labels.num_open < kMaxOpen) labels.text[labels.begins[labels.num_open]] = '\0';
  (void)nvtxRangePop();
}

const char* gcap_labels_open(void) { return labels.text; }

void gcap_labels_add(gcap_text_t* text, const char* open) {
  if (open[0] != '\0') gcap_text_add(text, " in label '%s'", open);
}
