// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The file of a module on this machine: whether there is anything to ask about it, and its build id.
//
// The idea: the heads of the file's sections and segments are read, and no more. Each size is checked, since the file
// may be any file of that name. Locking: none.
#include "doctor/symbols/module.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  kMaxLinkedBytes = 64 << 20,  // of a module whose debug information may lie elsewhere
  kMaxHeads = 4096,            // of sections, and of segments
  kMaxNoteBytes = 1 << 16,     // of a segment of notes
};

static bool starts_with(const char* text, const char* start) { return strncmp(text, start, strlen(start)) == 0; }

// A part of the file; NULL where it cannot be read. Freed by free().
static void* read_part(int fd, uint64_t offset, size_t bytes) {
  void* part = malloc(bytes + 1);
  if (part != NULL && pread(fd, part, bytes, (off_t)offset) == (ssize_t)bytes) return part;
  free(part);
  return NULL;
}

// Whether the sections name any symbols that are not exported, or lines.
static bool has_symbols(int fd, const Elf64_Ehdr* head, off_t bytes) {
  if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shnum > kMaxHeads || head->e_shstrndx >= head->e_shnum) {
    return false;
  }
  bool has = false;
  Elf64_Shdr* sections = read_part(fd, head->e_shoff, head->e_shnum * sizeof(*sections));
  for (size_t i = 0; sections != NULL && i < head->e_shnum && !has; ++i) {
    char name[16] = "";
    off_t at = (off_t)(sections[head->e_shstrndx].sh_offset + sections[i].sh_name);
    if (pread(fd, name, sizeof(name) - 1, at) <= 0) continue;
    has = sections[i].sh_type == SHT_SYMTAB || starts_with(name, ".debug_line") || starts_with(name, ".zdebug_line") ||
          (starts_with(name, ".gnu_debuglink") && bytes < kMaxLinkedBytes);
  }
  free(sections);
  return has;
}

static void read_build(int fd, const Elf64_Ehdr* head, char* out) {
  if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phnum > kMaxHeads) return;
  Elf64_Phdr* segments = read_part(fd, head->e_phoff, head->e_phnum * sizeof(*segments));
  for (size_t i = 0; segments != NULL && i < head->e_phnum && out[0] == '\0'; ++i) {
    if (segments[i].p_type != PT_NOTE || segments[i].p_filesz > kMaxNoteBytes) continue;
    unsigned char* notes = read_part(fd, segments[i].p_offset, segments[i].p_filesz);
    if (notes != NULL) gcap_doctor_build_id_find(notes, segments[i].p_filesz, segments[i].p_align, out);
    free(notes);
  }
  free(segments);
}

void gcap_doctor_module_look(const char* path, gcap_doctor_module_file_t* out) {
  *out = (gcap_doctor_module_file_t){0};
  struct stat about;
  Elf64_Ehdr head;
  const int fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (fd < 0) return;
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
      memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64) {
    if (has_symbols(fd, &head, about.st_size)) out->bytes = about.st_size;
    read_build(fd, &head, out->build);
  }
  close(fd);
}
