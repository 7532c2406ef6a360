// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// build_id.h: the build id in an ELF file's notes, for the command and for the recorder. Two files with one id are one
// build: the linker computes the id of all that it writes.
#ifndef GCAP_DOCTOR_BASE_BUILD_ID_H_
#define GCAP_DOCTOR_BASE_BUILD_ID_H_

#include <elf.h>
#include <stddef.h>
#include <string.h>

enum {
  GCAP_DOCTOR_MAX_BUILD_ID = 64,                                 // bytes; linkers write 8 to 32
  GCAP_DOCTOR_BUILD_ID_TEXT = 2 * GCAP_DOCTOR_MAX_BUILD_ID + 1,  // of its text
};

// Writes the id as hexadecimal digits into `out`, which has GCAP_DOCTOR_BUILD_ID_TEXT bytes, and "" where the notes
// have none. `notes` are the `bytes` bytes of a segment of notes that is aligned to `align`.
static inline void gcap_doctor_build_id_find(const unsigned char* notes, size_t bytes, size_t align, char* out) {
  static const char kDigits[] = "0123456789abcdef";
  const size_t unit = align == 8 ? 8 : 4;
  out[0] = '\0';
  for (size_t at = 0; at <= bytes && bytes - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr head;
    memcpy(&head, notes + at, sizeof(head));
    const size_t name = at + sizeof(head);
    const size_t id = (name + head.n_namesz + unit - 1) / unit * unit;
    if (id > bytes || head.n_descsz > bytes - id) return;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof(ELF_NOTE_GNU) && head.n_descsz != 0 &&
        head.n_descsz <= GCAP_DOCTOR_MAX_BUILD_ID && memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
      for (size_t i = 0; i < head.n_descsz; ++i) {
        *out++ = kDigits[notes[id + i] >> 4];
        *out++ = kDigits[notes[id + i] & 15];
      }
      *out = '\0';
      return;
    }
    at = (id + head.n_descsz + unit - 1) / unit * unit;
  }
}

#endif  // GCAP_DOCTOR_BASE_BUILD_ID_H_
