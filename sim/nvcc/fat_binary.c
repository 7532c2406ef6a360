// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads fat binaries.
//
// The idea: a fat binary is a header and entries, each a header and a payload: an ELF file of machine code for one
// device, or PTX, compressed or not. An ELF file has a section .nv.info.<kernel> for each kernel: attributes, of which
// one for each parameter gives its place and size. Parameters are the same for all devices, so the first file that has
// the kernel will do. Nothing is decompressed. No offset or size is believed before it has been compared with what it
// is a part of. No state.
#include "sim/nvcc/fat_binary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/die.h"
#include "sim/base/heap.h"

#define WRAPPER_MAGIC 0x466243b1u
#define CODE_MAGIC 0xba55ed50u

typedef struct wrapper {
  uint32_t magic;
  uint32_t version;  // 1; 2 where nvcc linked device code
  const void* code;
  const void* linked;
} wrapper_t;

typedef struct code_header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t entries_bytes;
} code_header_t;

#define ENTRY_ELF 2

typedef struct entry {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
} entry_t;

typedef struct elf_header {
  unsigned char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, segments, sections;
  uint32_t flags;
  uint16_t header_bytes, segment_bytes, num_segments, section_bytes, num_sections, names;
} elf_header_t;

typedef struct elf_section {
  uint32_t name, type;
  uint64_t flags, address, offset, bytes;
  uint32_t link, info;
  uint64_t alignment, item_bytes;
} elf_section_t;

// A run of bytes that a part is looked for in.
typedef struct bytes {
  const unsigned char* at;
  size_t count;
} bytes_t;

static _Noreturn void damaged(const char* what) {
  gcap_sim_die("a fat binary is damaged: %s; was the object compiled by nvcc, and whole?", what);
}

// The part must lie in the whole. Files need not be aligned, so structs are copied out.
static void read_at(bytes_t whole, uint64_t offset, void* out, size_t count, const char* what) {
  if (offset > whole.count || count > whole.count - offset) damaged(what);
  memcpy(out, whole.at + offset, count);
}

static bytes_t part(bytes_t whole, uint64_t offset, uint64_t count, const char* what) {
  if (offset > whole.count || count > whole.count - offset) damaged(what);
  return (bytes_t){whole.at + offset, (size_t)count};
}

// --- The entries ----------------------------------------------------------------------------------------------------

// All entries; the header itself says how long they are.
static bytes_t entries_of(const void* code) {
  code_header_t header;
  memcpy(&header, code, sizeof(header));
  if (header.magic != CODE_MAGIC) {
    gcap_sim_die("a fat binary is damaged: it begins with 0x%08x, expected 0x%08x", header.magic, CODE_MAGIC);
  }
  if (header.version != 1 || header.header_bytes != sizeof(header)) {
    gcap_sim_die(
        "a fat binary has version %u and a header of %u bytes, expected 1 and %zu: that nvcc is not known here",
        header.version, header.header_bytes, sizeof(header));
  }
  return (bytes_t){(const unsigned char*)code + sizeof(header), (size_t)header.entries_bytes};
}

// Takes the next entry off `*rest`; false when there is none.
static bool next_entry(bytes_t* rest, entry_t* out, bytes_t* out_payload) {
  if (rest->count == 0) return false;
  read_at(*rest, 0, out, sizeof(*out), "an entry is cut short");
  if (out->header_bytes < sizeof(*out)) damaged("an entry's header is too short");
  *out_payload = part(*rest, out->header_bytes, out->payload_bytes, "an entry reaches beyond the end");
  const size_t whole = out->header_bytes + out_payload->count;
  *rest = (bytes_t){rest->at + whole, rest->count - whole};
  return true;
}

const void* gcap_sim_fat_binary_open(const void* wrapper) {
  wrapper_t w;
  if (wrapper == NULL) damaged("there is none");
  memcpy(&w, wrapper, sizeof(w));
  if (w.magic != WRAPPER_MAGIC) {
    gcap_sim_die("a fat binary is damaged: its wrapper begins with 0x%08x, expected 0x%08x", w.magic, WRAPPER_MAGIC);
  }
  if (w.version != 1 && w.version != 2) {
    gcap_sim_die("a fat binary's wrapper has version %u, expected 1 or 2: that nvcc is not known here", w.version);
  }
  if (w.code == NULL) damaged("its wrapper points to no code");
  bytes_t rest = entries_of(w.code), payload;
  entry_t entry;
  while (next_entry(&rest, &entry, &payload)) continue;
  return w.code;
}

// --- ELF ------------------------------------------------------------------------------------------------------------

static bool is_elf(const entry_t* entry, bytes_t payload) {
  static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', 2};  // of 64 bits
  return entry->kind == ENTRY_ELF && payload.count >= sizeof(elf_header_t) &&
         memcmp(payload.at, ident, sizeof(ident)) == 0;
}

static elf_section_t section_at(bytes_t file, const elf_header_t* header, size_t index) {
  elf_section_t section;
  const uint64_t offset = header->sections + (uint64_t)index * sizeof(section);
  if (offset < header->sections) damaged("its machine code has no table of sections");
  read_at(file, offset, &section, sizeof(section), "the sections of its machine code reach beyond the end");
  return section;
}

static bool is_called(bytes_t names, uint32_t name, const char* prefix, const char* rest) {
  const size_t head = strlen(prefix), tail = strlen(rest) + 1;
  if (name > names.count || head + tail > names.count - name) return false;
  return memcmp(names.at + name, prefix, head) == 0 && memcmp(names.at + name + head, rest, tail) == 0;
}

// The section <prefix><rest>; false when the file lacks it.
static bool find_section(bytes_t file, const char* prefix, const char* rest, elf_section_t* out) {
  elf_header_t header;
  read_at(file, 0, &header, sizeof(header), "its machine code is cut short");
  if (header.section_bytes != sizeof(elf_section_t)) damaged("the sections of its machine code have a wrong size");
  const elf_section_t names_section = section_at(file, &header, header.names);
  const bytes_t names =
      part(file, names_section.offset, names_section.bytes, "the names of its sections are cut short");
  for (size_t i = 0; i < header.num_sections; ++i) {
    *out = section_at(file, &header, i);
    if (is_called(names, out->name, prefix, rest)) return true;
  }
  return false;
}

// The attributes of the kernel, or those of all kernels where it is NULL; false when the file lacks them.
static bool find_info(bytes_t file, const char* kernel, bytes_t* out) {
  elf_section_t section;
  if (!find_section(file, kernel != NULL ? ".nv.info." : ".nv.info", kernel != NULL ? kernel : "", &section))
    return false;
  *out = part(file, section.offset, section.bytes, "what it tells of a kernel reaches beyond the end");
  return true;
}

// --- Parameters -----------------------------------------------------------------------------------------------------

#define FORMAT_HALF 3   // the attribute's value is in its head
#define FORMAT_SIZED 4  // it follows, and the head has its size
#define ATTRIBUTE_PARAM 0x17
#define ATTRIBUTE_LARGE_PARAM 0x45  // of kernels whose parameters need the wider size
#define ATTRIBUTE_ALL_PARAMS 0x19   // the bytes of all parameters
#define PARAM_BYTES_SHIFT 18
#define LARGE_PARAM_BYTES_MASK 0xffffu

typedef struct attribute {
  uint8_t format;
  uint8_t id;
  uint16_t value;
  bytes_t sized;
} attribute_t;

typedef struct param {
  uint32_t unused;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t bytes;  // in the upper bits; in the lower ones of a large parameter
} param_t;

// Takes the next attribute off `*rest`; false when there is none.
static bool next_attribute(bytes_t* rest, attribute_t* out) {
  static const char* what = "what it tells of a kernel is cut short";
  if (rest->count == 0) return false;
  const size_t head = offsetof(attribute_t, value) + sizeof(out->value);
  read_at(*rest, 0, out, head, what);
  const size_t sized = out->format == FORMAT_SIZED ? out->value : 0;
  out->sized = part(*rest, head, sized, what);
  *rest = (bytes_t){rest->at + head + sized, rest->count - head - sized};
  return true;
}

static bool is_param(const attribute_t* attribute) {
  return attribute->format == FORMAT_SIZED &&
         (attribute->id == ATTRIBUTE_PARAM || attribute->id == ATTRIBUTE_LARGE_PARAM);
}

static gcap_sim_params_t params_create(bytes_t info) {
  attribute_t attribute;
  gcap_sim_params_t params = {0};
  for (bytes_t rest = info; next_attribute(&rest, &attribute);) params.count += is_param(&attribute);
  params.bytes = gcap_sim_calloc(params.count + 1, sizeof(size_t));
  params.offsets = gcap_sim_calloc(params.count + 1, sizeof(size_t));
  return params;
}

static void read_places(bytes_t info, const char* kernel, gcap_sim_params_t* params) {
  attribute_t attribute;
  for (bytes_t rest = info; next_attribute(&rest, &attribute);) {
    if (attribute.format == FORMAT_HALF && attribute.id == ATTRIBUTE_ALL_PARAMS) {
      params->offsets[params->count] = attribute.value;
    }
    if (!is_param(&attribute)) continue;
    param_t param;
    read_at(attribute.sized, 0, &param, sizeof(param), "what it tells of a parameter is cut short");
    if (param.ordinal >= params->count) {
      gcap_sim_die("a fat binary is damaged: kernel `%s` has %zu parameters, and one is number %u", kernel,
                   params->count, param.ordinal);
    }
    params->bytes[param.ordinal] =
        attribute.id == ATTRIBUTE_PARAM ? param.bytes >> PARAM_BYTES_SHIFT : param.bytes & LARGE_PARAM_BYTES_MASK;
    params->offsets[param.ordinal] = param.offset;
  }
}

// False when there are parameters, and all in a form that is not known here.
static bool read_params(bytes_t info, const char* kernel, gcap_sim_params_t* out) {
  gcap_sim_params_t params = params_create(info);
  read_places(info, kernel, &params);
  for (size_t i = 0; i < params.count; ++i) {
    if (params.bytes[i] != 0 && params.offsets[i] + params.bytes[i] <= params.offsets[i + 1]) continue;
    gcap_sim_die("a fat binary is damaged: parameter %zu of kernel `%s` has %zu bytes at %zu, and the next is at %zu",
                 i, kernel, params.bytes[i], params.offsets[i], params.offsets[i + 1]);
  }
  if (params.count > 0 || params.offsets[0] == 0) {
    *out = params;
    return true;
  }
  free(params.bytes);
  free(params.offsets);
  return false;
}

bool gcap_sim_fat_binary_params(const void* code, const char* kernel, gcap_sim_params_t* out) {
  bytes_t rest = entries_of(code), payload, info;
  entry_t entry;
  while (next_entry(&rest, &entry, &payload)) {
    if (!is_elf(&entry, payload) || !find_info(payload, kernel, &info)) continue;
    if (read_params(info, kernel, out)) return true;
  }
  return false;
}

// --- Variables ------------------------------------------------------------------------------------------------------

#define SECTION_SYMBOLS 2
#define SECTION_RELOCATIONS_ADDED 4  // each of three words; of both kinds the first word is the place
#define SECTION_NO_BITS 8            // all zero, and not in the file
#define SECTION_RELOCATIONS 9        // each of two words

typedef struct elf_symbol {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, bytes;
} elf_symbol_t;

// The symbol of that name in a table of symbols.
static bool find_symbol(bytes_t file, const elf_header_t* header, const elf_section_t* table, const char* name,
                        elf_symbol_t* out) {
  const elf_section_t names_section = section_at(file, header, table->link);
  const bytes_t names = part(file, names_section.offset, names_section.bytes, "its symbols' names are cut short");
  const bytes_t symbols = part(file, table->offset, table->bytes, "its symbols are cut short");
  for (size_t at = 0; at + sizeof(*out) <= symbols.count; at += sizeof(*out)) {
    read_at(symbols, at, out, sizeof(*out), "its symbols are cut short");
    if (out->section != 0 && out->section < header->num_sections && is_called(names, out->name, "", name)) return true;
  }
  return false;
}

// The number of the symbol of that name in the file's table; false when there is none.
static bool find_symbol_number(bytes_t file, const char* name, size_t* out) {
  elf_section_t table;
  if (!find_section(file, ".symtab", "", &table)) return false;
  elf_header_t header;
  read_at(file, 0, &header, sizeof(header), "its machine code is cut short");
  const elf_section_t names_section = section_at(file, &header, table.link);
  const bytes_t names = part(file, names_section.offset, names_section.bytes, "its symbols' names are cut short");
  const bytes_t symbols = part(file, table.offset, table.bytes, "its symbols are cut short");
  for (*out = 0; (*out + 1) * sizeof(elf_symbol_t) <= symbols.count; ++*out) {
    elf_symbol_t symbol;
    read_at(symbols, *out * sizeof(symbol), &symbol, sizeof(symbol), "its symbols are cut short");
    if (is_called(names, symbol.name, "", name)) return true;
  }
  return false;
}

// Do the variable's contents depend on where the linker puts something?
static bool is_relocated(bytes_t file, const elf_header_t* header, const elf_symbol_t* symbol) {
  for (size_t i = 0; i < header->num_sections; ++i) {
    const elf_section_t section = section_at(file, header, i);
    const bool with_addend = section.type == SECTION_RELOCATIONS_ADDED;
    if ((!with_addend && section.type != SECTION_RELOCATIONS) || section.info != symbol->section) continue;
    const size_t step = (with_addend ? 3 : 2) * sizeof(uint64_t);
    const bytes_t entries = part(file, section.offset, section.bytes, "its relocations are cut short");
    for (size_t at = 0; at < entries.count; at += step) {
      uint64_t place;
      read_at(entries, at, &place, sizeof(place), "its relocations are cut short");
      if (place >= symbol->value && place - symbol->value < symbol->bytes) return true;
    }
  }
  return false;
}

static bool read_contents(bytes_t file, const char* variable, void* out, size_t bytes) {
  elf_header_t header;
  elf_symbol_t symbol;
  read_at(file, 0, &header, sizeof(header), "its machine code is cut short");
  if (header.section_bytes != sizeof(elf_section_t)) damaged("the sections of its machine code have a wrong size");
  for (size_t i = 0; i < header.num_sections; ++i) {
    const elf_section_t table = section_at(file, &header, i);
    if (table.type != SECTION_SYMBOLS || !find_symbol(file, &header, &table, variable, &symbol)) continue;
    if (symbol.bytes != bytes || is_relocated(file, &header, &symbol)) return false;
    const elf_section_t section = section_at(file, &header, symbol.section);
    memset(out, 0, bytes);
    if (section.type == SECTION_NO_BITS) return true;
    const bytes_t data = part(file, section.offset, section.bytes, "its variables reach beyond the end");
    read_at(data, symbol.value, out, bytes, "a variable reaches beyond the end");
    return true;
  }
  return false;
}

bool gcap_sim_fat_binary_contents(const void* code, const char* variable, void* out, size_t bytes) {
  bytes_t rest = entries_of(code), payload;
  entry_t entry;
  while (next_entry(&rest, &entry, &payload)) {
    if (is_elf(&entry, payload) && read_contents(payload, variable, out, bytes)) return true;
  }
  return false;
}

// --- What a kernel takes --------------------------------------------------------------------------------------------

#define ATTRIBUTE_MAX_THREADS 0x05  // in each dimension
#define ATTRIBUTE_FRAME 0x11        // of all kernels: the number of a symbol, and its bytes of local memory
#define ATTRIBUTE_REGISTERS 0x2f    // likewise
// Where a block's memory has a part of the system's, a section stands for it, and each kernel's section has it too.
#define SYSTEM_SHARED_BYTES ((size_t)1 << 10)

static size_t max_threads_of(bytes_t info) {
  attribute_t attribute;
  uint32_t block[3];
  for (bytes_t rest = info; next_attribute(&rest, &attribute);) {
    if (attribute.format != FORMAT_SIZED || attribute.id != ATTRIBUTE_MAX_THREADS) continue;
    read_at(attribute.sized, 0, block, sizeof(block), "what it tells of a kernel is cut short");
    return (size_t)block[0] * block[1] * block[2];
  }
  return 0;
}

// What the attributes of all kernels tell of the one with that symbol.
static void read_counts(bytes_t info, size_t symbol, gcap_sim_needs_t* needs) {
  attribute_t attribute;
  uint32_t pair[2];
  for (bytes_t rest = info; next_attribute(&rest, &attribute);) {
    const bool is_frame = attribute.id == ATTRIBUTE_FRAME;
    if (attribute.format != FORMAT_SIZED || (!is_frame && attribute.id != ATTRIBUTE_REGISTERS)) continue;
    read_at(attribute.sized, 0, pair, sizeof(pair), "what it tells of kernels is cut short");
    if (pair[0] == symbol) *(is_frame ? &needs->local_bytes : &needs->registers) = pair[1];
  }
}

static gcap_sim_needs_t read_needs(bytes_t file, const char* kernel, bytes_t info) {
  gcap_sim_needs_t needs = {.max_threads = max_threads_of(info)};
  elf_section_t shared, system, constants;
  bytes_t all;
  size_t symbol;
  if (find_section(file, ".nv.shared.", kernel, &shared)) needs.shared_bytes = (size_t)shared.bytes;
  const bool has_system = find_section(file, ".nv.shared.reserved.0", "", &system);
  if (has_system && needs.shared_bytes >= SYSTEM_SHARED_BYTES) needs.shared_bytes -= SYSTEM_SHARED_BYTES;
  if (find_section(file, ".nv.constant3", "", &constants)) needs.const_bytes = (size_t)constants.bytes;
  if (find_info(file, NULL, &all) && find_symbol_number(file, kernel, &symbol)) read_counts(all, symbol, &needs);
  return needs;
}

gcap_sim_needs_t gcap_sim_fat_binary_needs(const void* code, const char* kernel) {
  bytes_t rest = entries_of(code), payload, info;
  entry_t entry;
  while (next_entry(&rest, &entry, &payload)) {
    if (is_elf(&entry, payload) && find_info(payload, kernel, &info)) return read_needs(payload, kernel, info);
  }
  return (gcap_sim_needs_t){0};
}
