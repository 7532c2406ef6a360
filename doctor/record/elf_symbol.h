// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// elf_symbol.h: symbols that a loaded file has and does not export.
#ifndef GCAP_DOCTOR_RECORD_ELF_SYMBOL_H_
#define GCAP_DOCTOR_RECORD_ELF_SYMBOL_H_

#pragma GCC visibility push(hidden)

// The address of a function in the loaded file that `near` is in, by the file's table of symbols; NULL if the file was
// stripped of the table, or does not have the function.
void* gcap_elf_symbol(const void* near, const char* name);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_ELF_SYMBOL_H_
