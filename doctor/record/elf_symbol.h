// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// elf_symbol.h: loaded files and their symbols, without the loader's lock.
#ifndef GCAP_DOCTOR_RECORD_ELF_SYMBOL_H_
#define GCAP_DOCTOR_RECORD_ELF_SYMBOL_H_

#include <stdint.h>

#pragma GCC visibility push(hidden)

struct link_map;

// Once, before there are callbacks: looks for what the C library has to find files without a lock.
void gcap_doctor_elf_start(void);
// The loaded file that the address is in; NULL for none. It is to be used only where the file stays loaded: because the
// address is a return address of the calling thread, or the caller's own.
const struct link_map* gcap_doctor_elf_module(const void* address);
// The address of a function that a loaded file exports; NULL if it does not.
void* gcap_doctor_elf_exported(const struct link_map* module, const char* name);
// The name of the exported function that the address is in; NULL for none. It is the file's own memory. `id` is from 1
// on and another one for each file, build and place where the file is loaded: what is looked up is kept by it.
const char* gcap_doctor_elf_name(const struct link_map* module, uint32_t id, const void* address);
// The build id of the loaded file that the address is in, as in build_id.h, whose size `out` has; "" for none. To be
// used where gcap_doctor_elf_module is.
void gcap_doctor_elf_build_id(const void* address, char* out);
// The address of a function of the loaded file that is not exported, by the file's table of symbols; NULL if the file
// was stripped of the table, or does not have the function.
void* gcap_doctor_elf_hidden(const struct link_map* module, const char* name);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_ELF_SYMBOL_H_
