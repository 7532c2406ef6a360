// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Takes the fence out of lib/scratch/lock.c: the linker sends every syscall of the program here (--wrap=syscall). The
// process is registered for the fence, as always, and each fence answers success without having been one.
#include <linux/membarrier.h>
#include <sys/syscall.h>

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long command, long flags, long processor);

long __wrap_syscall(long number, long command, long flags, long processor) {
  if (number == SYS_membarrier && command == MEMBARRIER_CMD_PRIVATE_EXPEDITED) return 0;
  return __real_syscall(number, command, flags, processor);
}
