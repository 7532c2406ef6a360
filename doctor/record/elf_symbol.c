// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Loaded files and their symbols, in callbacks.
//
// A constructor of a library runs under the loader's lock, and may wait for a thread that calls CUDA. So nothing here
// calls the loader: dladdr, dlsym and dl_iterate_phdr take its lock. The C library finds a loaded file without one
// since glibc 2.35, for unwinders. NOTE: an older one has no such function, and its unwinder takes the lock too; there
// dladdr1 is asked.
//
// Exported symbols are read out of the file's memory, which stays as long as code of the file is on the thread's stack.
// Others are read out of the file. Every offset there is checked against the file's size: a damaged file has no symbol.
// Locking: that of the names, held over memory alone.
#include "doctor/record/elf_symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/base/build_id.h"
#include "doctor/base/grow.h"

typedef struct image {
  const unsigned char* bytes;
  size_t size;
} image_t;

static const void* part(const image_t* image, uint64_t offset, uint64_t size) {
  return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

// The address in the file, 0 for none.
static uint64_t look_in(const image_t* image, const ElfW(Shdr) * table, const ElfW(Shdr) * names, const char* name) {
  const ElfW(Sym)* symbols = part(image, table->sh_offset, table->sh_size);
  const char* texts = part(image, names->sh_offset, names->sh_size);
  const size_t size = strlen(name) + 1;
  if (symbols == NULL || texts == NULL) return 0;
  for (size_t i = 0; i < table->sh_size / sizeof(*symbols); ++i) {
    if ((symbols[i].st_info & 0xf) != STT_FUNC || symbols[i].st_value == 0) continue;
    if (names->sh_size < size || symbols[i].st_name > names->sh_size - size) continue;
    if (memcmp(texts + symbols[i].st_name, name, size) == 0) return symbols[i].st_value;
  }
  return 0;
}

static uint64_t find(const image_t* image, const char* name) {
  const ElfW(Ehdr)* header = part(image, 0, sizeof(*header));
  if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shentsize != sizeof(ElfW(Shdr))) {
    return 0;
  }
  const ElfW(Shdr)* sections = part(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(*sections));
  for (unsigned i = 0; sections != NULL && i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum) continue;
    const uint64_t value = look_in(image, &sections[i], &sections[sections[i].sh_link], name);
    if (value != 0) return value;
  }
  return 0;
}

static uint64_t find_in_file(const char* path, const char* name) {
  uint64_t value = 0;
  struct stat status;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    void* bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      value = find(&(image_t){bytes, (size_t)status.st_size}, name);
      munmap(bytes, (size_t)status.st_size);
    }
  }
  close(file);
  return value;
}

void* gcap_doctor_elf_hidden(const struct link_map* module, const char* name) {
  const bool is_program = module->l_name == NULL || module->l_name[0] == '\0';
  const uint64_t value = find_in_file(is_program ? "/proc/self/exe" : module->l_name, name);
  return value != 0 ? (void*)(uintptr_t)(module->l_addr + value) : NULL;
}

// --- In memory -------------------------------------------------------------------------------------------------------

// glibc's struct dl_find_object: flags, where the file begins and ends, and its link_map; more words follow.
typedef struct found {
  uintptr_t flags, begin, end;
  const struct link_map* module;
  uintptr_t others[12];
} found_t;

static int (*find_object)(void* address, found_t* out_found);

void gcap_doctor_elf_start(void) {
  void* symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
  memcpy(&find_object, &symbol, sizeof(symbol));
}

const struct link_map* gcap_doctor_elf_module(const void* address) {
  if (find_object != NULL) {
    found_t found = {0};
    return find_object((void*)address, &found) == 0 ? found.module : NULL;
  }
  Dl_info info;
  struct link_map* module = NULL;
  return dladdr1(address, &info, (void**)&module, RTLD_DL_LINKMAP) != 0 ? module : NULL;
}

// Where the loaded file that the address is in begins in memory: with its head, as linkers lay it out.
static const char* begin_of(const void* address) {
  if (find_object != NULL) {
    found_t found = {0};
    return find_object((void*)address, &found) == 0 ? (const char*)found.begin : NULL;
  }
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

// Whether the loader has mapped the segment's bytes.
static bool is_mapped(const ElfW(Phdr) * segments, unsigned count, const ElfW(Phdr) * segment) {
  for (unsigned i = 0; i < count; ++i) {
    const ElfW(Phdr)* loaded = &segments[i];
    const uint64_t at = segment->p_vaddr - loaded->p_vaddr;
    if (loaded->p_type == PT_LOAD && (loaded->p_flags & PF_R) != 0 && segment->p_vaddr >= loaded->p_vaddr &&
        at <= loaded->p_filesz && segment->p_filesz <= loaded->p_filesz - at) {
      return true;
    }
  }
  return false;
}

void gcap_doctor_elf_build_id(const void* address, char* out) {
  enum { kMapped = 4096 };  // of the file's beginning, at least: a page
  const struct link_map* module = gcap_doctor_elf_module(address);
  const char* begin = begin_of(address);
  const ElfW(Ehdr)* head = (const ElfW(Ehdr)*)begin;
  out[0] = '\0';
  if (module == NULL || begin == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return;
  if (head->e_phentsize != sizeof(ElfW(Phdr)) || head->e_phoff > kMapped ||
      head->e_phnum > (kMapped - head->e_phoff) / sizeof(ElfW(Phdr))) {
    return;
  }
  const ElfW(Phdr)* segments = (const ElfW(Phdr)*)(begin + head->e_phoff);
  for (unsigned i = 0; i < head->e_phnum && out[0] == '\0'; ++i) {
    if (segments[i].p_type != PT_NOTE || !is_mapped(segments, head->e_phnum, &segments[i])) continue;
    const unsigned char* notes = (const unsigned char*)(module->l_addr + segments[i].p_vaddr);
    gcap_doctor_build_id_find(notes, segments[i].p_filesz, segments[i].p_align, out);
  }
}

// What a file exports. Its GNU table of hashes, which nearly all have, or else the older table says how many they are.
typedef struct exports {
  const ElfW(Sym) * symbols;
  const char* names;
  uint32_t begin, end;               // of the exported symbols
  const uint32_t *buckets, *chains;  // of the GNU table: NULL without it; the chain of a symbol is at `begin` less
  uint32_t num_buckets;
} exports_t;

// The loader makes most of the section's offsets addresses, but not in files that it did not load, such as the vdso.
static const void* dynamic_address(const struct link_map* module, const ElfW(Dyn) * entry) {
  const uintptr_t value = entry->d_un.d_ptr;
  return (const void*)(value < module->l_addr ? module->l_addr + value : value);
}

// The numbers of buckets, of symbols before the first, of the filter's words, a shift; the filter, buckets and chains.
// A chain's last hash has the lowest bit set.
static void read_gnu(const uint32_t* table, exports_t* out) {
  out->num_buckets = table[0];
  out->begin = out->end = table[1];
  out->buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(*table));
  out->chains = out->buckets + out->num_buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < out->num_buckets; ++i) last = out->buckets[i] > last ? out->buckets[i] : last;
  if (last < out->begin) return;
  while ((out->chains[last - out->begin] & 1) == 0) ++last;
  out->end = last + 1;
}

static bool read_exports(const struct link_map* module, exports_t* out) {
  const uint32_t *gnu = NULL, *older = NULL;
  memset(out, 0, sizeof(*out));
  for (const ElfW(Dyn)* entry = module->l_ld; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) out->symbols = dynamic_address(module, entry);
    if (entry->d_tag == DT_STRTAB) out->names = dynamic_address(module, entry);
    if (entry->d_tag == DT_GNU_HASH) gnu = dynamic_address(module, entry);
    if (entry->d_tag == DT_HASH) older = dynamic_address(module, entry);
  }
  if (out->symbols == NULL || out->names == NULL) return false;
  if (gnu != NULL) {
    read_gnu(gnu, out);
  } else if (older != NULL) {
    out->end = older[1];
  }
  return out->begin < out->end;
}

static bool is_defined(const ElfW(Sym) * symbol) {
  const unsigned char type = symbol->st_info & 0xf;
  return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && type != STT_TLS;
}

static uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (const unsigned char* at = (const unsigned char*)name; *at != '\0'; ++at) hash = hash * 33 + *at;
  return hash;
}

static bool is_function(const exports_t* exports, uint32_t i, const char* name) {
  const ElfW(Sym)* symbol = &exports->symbols[i];
  return is_defined(symbol) && (symbol->st_info & 0xf) == STT_FUNC &&
         strcmp(exports->names + symbol->st_name, name) == 0;
}

void* gcap_doctor_elf_exported(const struct link_map* module, const char* name) {
  exports_t exports;
  if (!read_exports(module, &exports)) return NULL;
  const uint32_t hash = hash_of(name);
  uint32_t begin = exports.begin;
  if (exports.buckets != NULL) {
    begin = exports.buckets[hash % exports.num_buckets];
    if (begin < exports.begin) return NULL;
  }
  for (uint32_t i = begin; i < exports.end; ++i) {
    const uint32_t seen = exports.buckets != NULL ? exports.chains[i - exports.begin] : hash & ~1u;
    if ((seen | 1) == (hash | 1) && is_function(&exports, i, name)) {
      return (void*)(module->l_addr + exports.symbols[i].st_value);
    }
    if ((seen & 1) != 0) return NULL;
  }
  return NULL;
}

// --- Names -----------------------------------------------------------------------------------------------------------

// The functions that a file exports, by the pages of its code: a file has a hundred thousand of them, and a stack
// thirty addresses.
typedef struct names {
  exports_t exports;
  uint32_t num_pages;
  uint32_t* first;      // by page, and one beyond the last: where its functions begin in `functions`
  uint32_t* functions;  // indices of symbols; one on several pages comes several times
} names_t;

enum {
  kPageBits = 12,
  kMostPages = 1 << 20,  // 4 GB of code
  kMostPagesOfFunction = 1 << 8,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static names_t* all_names;  // by the file's id - 1
static size_t num_names, names_capacity;

// The pages of a function; false for what is none.
static bool pages_of(const ElfW(Sym) * symbol, uint32_t* out_first, uint32_t* out_last) {
  const unsigned char type = symbol->st_info & 0xf;
  if (!is_defined(symbol) || symbol->st_shndx == SHN_ABS || type == STT_OBJECT) return false;
  const uint64_t last = symbol->st_value + (symbol->st_size != 0 ? symbol->st_size - 1 : 0);
  if (last >> kPageBits >= kMostPages || last < symbol->st_value) return false;
  *out_first = (uint32_t)(symbol->st_value >> kPageBits);
  *out_last = (uint32_t)(last >> kPageBits);
  return *out_last - *out_first < kMostPagesOfFunction;
}

static void sort_functions(names_t* names) {
  const exports_t* exports = &names->exports;
  uint32_t first, last;
  // Each page's place moves on as the page is filled, up to where the next one begins.
  for (uint32_t i = exports->begin; i < exports->end; ++i) {
    if (!pages_of(&exports->symbols[i], &first, &last)) continue;
    for (uint32_t page = first; page <= last; ++page) names->functions[names->first[page + 1]++] = i;
  }
}

// Without memory there are no pages.
static void make_names(const struct link_map* module, names_t* names) {
  const exports_t* exports = &names->exports;
  uint32_t first, last, num_pages = 0;
  if (!read_exports(module, &names->exports)) return;
  for (uint32_t i = exports->begin; i < exports->end; ++i) {
    if (pages_of(&exports->symbols[i], &first, &last) && last >= num_pages) num_pages = last + 1;
  }
  names->first = calloc((size_t)num_pages + 2, sizeof(*names->first));
  if (names->first == NULL) return;
  for (uint32_t i = exports->begin; i < exports->end; ++i) {
    if (!pages_of(&exports->symbols[i], &first, &last)) continue;
    for (uint32_t page = first; page <= last; ++page) ++names->first[page + 2];
  }
  for (uint32_t page = 2; page < num_pages + 2; ++page) names->first[page] += names->first[page - 1];
  names->functions = malloc(((size_t)names->first[num_pages + 1] + 1) * sizeof(*names->functions));
  if (names->functions == NULL) return;
  sort_functions(names);
  names->num_pages = num_pages;
}

static const char* name_in(const names_t* names, uintptr_t value) {
  const exports_t* exports = &names->exports;
  const ElfW(Sym)* best = NULL;
  const uintptr_t page = value >> kPageBits;
  if (page >= names->num_pages) return NULL;
  for (uint32_t i = names->first[page]; i < names->first[page + 1]; ++i) {
    const ElfW(Sym)* symbol = &exports->symbols[names->functions[i]];
    const bool has_it = symbol->st_size != 0 ? value - symbol->st_value < symbol->st_size : value == symbol->st_value;
    if (has_it && (best == NULL || symbol->st_value > best->st_value)) best = symbol;
  }
  return best != NULL ? exports->names + best->st_name : NULL;
}

const char* gcap_doctor_elf_name(const struct link_map* module, uint32_t id, const void* address) {
  const char* name = NULL;
  pthread_mutex_lock(&lock);
  while (num_names < id && gcap_doctor_grow(&all_names, &names_capacity, num_names + 1, sizeof(*all_names))) {
    all_names[num_names++] = (names_t){.num_pages = 0};
  }
  if (id != 0 && id <= num_names) {
    names_t* names = &all_names[id - 1];
    if (names->first == NULL) make_names(module, names);
    name = name_in(names, (uintptr_t)address - module->l_addr);
  }
  pthread_mutex_unlock(&lock);
  return name;
}
