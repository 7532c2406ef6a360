// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A library whose constructor, under the loader's lock, waits for a thread that works. What the thread does is a
// function whose address is in the environment.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void start(void) {
  const char* address = getenv("GCAP_TEST_WORK");
  if (address == NULL) return;
  const uintptr_t number = (uintptr_t)strtoull(address, NULL, 16);
  void* (*work)(void*);
  memcpy(&work, &number, sizeof(work));
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) == 0) pthread_join(thread, NULL);
}
