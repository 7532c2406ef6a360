// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor vet: becomes Python, since who reads the source of tests is written in Python (doctor/wheel).
//
// The idea: the console script of the wheel calls vet itself. The command proper finds the package beside it where it
// lies in a wheel, and else takes what python3 has. Locking: none.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "doctor/command/installed.h"
#include "doctor/command/options.h"

// Its arguments: the folder of the package or "", and those of vet.
static const char kProgram[] =
    "import sys\n"
    "folder, *arguments = sys.argv[1:]\n"
    "if folder: sys.path.insert(0, folder)\n"
    "try:\n"
    "    from gcap_doctor import vet\n"
    "except ImportError as error:\n"
    "    print(f'gcap-doctor: vet: {sys.executable} has no package gcap_doctor with vet ({error}): install the wheel "
    "of '\n"
    "          'gcap-doctor', file=sys.stderr)\n"
    "    sys.exit(3)\n"
    "sys.exit(vet.main(arguments))\n";

int gcap_doctor_vet(char** arguments) {
  int count = 0;
  while (arguments[count] != NULL) ++count;
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  const char* package = gcap_doctor_installed_package(&heap);
  const char** command = gcap_doctor_heap_alloc(&heap, (size_t)(count + 5) * sizeof(*command));
  const char* head[] = {"python3", "-c", kProgram, package != NULL ? package : ""};
  memcpy(command, head, sizeof(head));
  memcpy(command + 4, arguments, (size_t)(count + 1) * sizeof(*command));
  execvp(command[0], (char**)command);
  gcap_doctor_say("vet: cannot start python3, which it needs: %s", strerror(errno));
  gcap_doctor_heap_deinit(&heap);
  return GCAP_DOCTOR_EXIT_FILE;
}
