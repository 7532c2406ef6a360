// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program for gcap-doctor run: it plays the recorder, by copying a file to where the recorder would write its events,
// with the run in the first line.
//
//     fake_program WORD...
//
//   copy FILE    to the file of events of this process
//   second FILE  to the second file of events of this process, as after exec()
//   fork FILE    the same in a child, which it waits for
//   print NAME   prints a variable of the environment
//   say TEXT     prints it
//   inject       loads what CUDA_INJECTION64_PATH names, as the driver does
//   read         prints what comes on standard input
//   wait         prints "waiting", then waits for a signal
//   trap         ends with 7 at SIGTERM from now on, and with 8 at SIGINT
//   kill N       sends itself the signal
//   exit N       ends
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void pour(FILE* in, FILE* out) {
  char bytes[4096];
  for (size_t n; (n = fread(bytes, 1, sizeof(bytes), in)) != 0;) fwrite(bytes, 1, n, out);
}

static void pour_of_run(FILE* in, FILE* out) {
  const char* run = getenv("GCAP_DOCTOR_RUN");
  char first[512];
  if (fgets(first, sizeof(first), in) != NULL) {
    first[strcspn(first, "\n")] = '\0';
    fprintf(out, "%s\trun=%s\n", first, run != NULL ? run : "none");
  }
  pour(in, out);
}

static void copy(const char* from, const char* number) {
  const char* prefix = getenv("GCAP_DOCTOR_EVENTS");
  char to[4096];
  snprintf(to, sizeof(to), "%s.%d%s.events", prefix != NULL ? prefix : "nowhere", (int)getpid(), number);
  FILE* in = fopen(from, "r");
  FILE* out = fopen(to, "w");
  if (in == NULL || out == NULL) {
    perror(in == NULL ? from : to);
    exit(99);
  }
  pour_of_run(in, out);
  fclose(in);
  fclose(out);
}

static void copy_in_child(const char* from) {
  pid_t pid = fork();
  if (pid == 0) {
    copy(from, "");
    _exit(0);
  }
  waitpid(pid, NULL, 0);
}

static void inject(void) {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = dlopen(path != NULL ? path : "", RTLD_NOW);
  void* symbol = library != NULL ? dlsym(library, "InitializeInjection") : NULL;
  int (*initialize)(void) = NULL;
  memcpy(&initialize, &symbol, sizeof(initialize));
  if (initialize == NULL) {
    fprintf(stderr, "no injection: %s\n", dlerror());
    exit(97);
  }
  printf("initialized: %d\n", initialize());
}

static void end(int number) { _exit(number == SIGTERM ? 7 : 8); }

// A word with a value. Returns whether there is such a word.
static int do_with(const char* word, const char* value) {
  if (strcmp(word, "copy") == 0) {
    copy(value, "");
  } else if (strcmp(word, "second") == 0) {
    copy(value, ".2");
  } else if (strcmp(word, "fork") == 0) {
    copy_in_child(value);
  } else if (strcmp(word, "print") == 0) {
    printf("%s=%s\n", value, getenv(value) != NULL ? getenv(value) : "");
  } else if (strcmp(word, "say") == 0) {
    puts(value);
  } else if (strcmp(word, "kill") == 0) {
    fflush(stdout);
    raise(atoi(value));
  } else if (strcmp(word, "exit") == 0) {
    exit(atoi(value));
  } else {
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "read") == 0) {
      pour(stdin, stdout);
    } else if (strcmp(argv[i], "inject") == 0) {
      inject();
    } else if (strcmp(argv[i], "trap") == 0) {
      signal(SIGTERM, end);
      signal(SIGINT, end);
    } else if (strcmp(argv[i], "wait") == 0) {
      puts("waiting");
      fflush(stdout);
      pause();
    } else if (i + 1 >= argc || !do_with(argv[i], argv[i + 1])) {
      fprintf(stderr, "%s: no such word\n", argv[i]);
      return 98;
    } else {
      ++i;
    }
  }
  return 0;
}
