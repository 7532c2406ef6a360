// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the table of symbols out of the file of a library, since the loader maps the exported ones alone. Every offset
// is checked against the file's size: a damaged file has no symbol. Locking: none.
#include "doctor/record/elf_symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

void* gcap_elf_symbol(const void* near, const char* name) {
  Dl_info info;
  struct link_map* map = NULL;
  if (dladdr1(near, &info, (void**)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return NULL;
  const bool is_program = map->l_name == NULL || map->l_name[0] == '\0';
  const uint64_t value = find_in_file(is_program ? "/proc/self/exe" : map->l_name, name);
  return value != 0 ? (void*)(uintptr_t)(map->l_addr + value) : NULL;
}
