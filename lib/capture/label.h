// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// label.h: the labels that a thread has open (gcap_label), as one text.
#ifndef GCAP_LIB_CAPTURE_LABEL_H_
#define GCAP_LIB_CAPTURE_LABEL_H_

#include "lib/internal/text.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of the text, whose end is left out if it is longer: enough for three or four labels, one in the other.
#define GCAP_LABELS_BYTES 96

// The calling thread's open labels, the outermost first: "decoder > layer 3"; "" for none. Until the thread's next
// gcap_label.
const char* gcap_labels_open(void);

// Writes the labels of a call or a step behind the call in a message; nothing for "".
void gcap_labels_add(gcap_text_t* text, const char* labels);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_CAPTURE_LABEL_H_
