// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// FORWARD(name): the function `name` is the one that gcap_sim_entry_<name> points to. link.sh writes the names.
//
// A jump leaves the caller's stack, arguments and return address as they are, whatever the function's type: the
// simulator sees the program's own call. The registers are those that a linker's own jumps may overwrite.
#if defined(__x86_64__)
#define JUMP_TO(entry) movq entry@GOTPCREL(%rip), %r11; jmp *(%r11)
#elif defined(__aarch64__)
#define JUMP_TO(entry) adrp x16, :got:entry; ldr x16, [x16, :got_lo12:entry]; ldr x16, [x16]; br x16
#else
#error "sim/shared/forward.S has jumps for x86-64 and aarch64: add this machine's"
#endif

#define FORWARD(name)             \
  .globl name;                    \
  .type name, STT_FUNC;           \
  .balign 16;                     \
  name:                           \
  .cfi_startproc;                 \
  JUMP_TO(gcap_sim_entry_##name); \
  .cfi_endproc;                   \
  .size name, . - name

  .section .note.GNU-stack, "", %progbits
  .text
