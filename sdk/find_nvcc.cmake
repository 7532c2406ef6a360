# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Sets CMAKE_CUDA_COMPILER to the nvcc that Bazel would take too, and refuses one that is too old before CMake tries it.
# The first that is set or there decides: what CMake itself knows (CMAKE_CUDA_COMPILER, CUDACXX), GCAP_CUDA_ROOT,
# CUDA_HOME, CUDA_PATH, nvcc on PATH, /usr/local/cuda. A variable that points to no toolkit is an error.

set(nvcc "${CMAKE_CUDA_COMPILER}")
set(nvcc_from "CMAKE_CUDA_COMPILER")
if(NOT nvcc)
  set(nvcc "$ENV{CUDACXX}")
  set(nvcc_from "CUDACXX")
endif()
foreach(variable IN ITEMS GCAP_CUDA_ROOT CUDA_HOME CUDA_PATH)
  if(NOT nvcc AND NOT "$ENV{${variable}}" STREQUAL "")
    set(nvcc "$ENV{${variable}}/bin/nvcc")
    set(nvcc_from "${variable}")
  endif()
endforeach()
if(NOT nvcc)
  find_program(GCAP_NVCC nvcc HINTS /usr/local/cuda/bin)
  set(nvcc "${GCAP_NVCC}")
  set(nvcc_from "the search")
endif()
if(NOT nvcc)
  message(FATAL_ERROR
    "gcap: GCAP_CUDA is ON, and no CUDA toolkit was found: expected nvcc on PATH or in /usr/local/cuda/bin, or "
    "GCAP_CUDA_ROOT (or CUDA_HOME, or CUDA_PATH) set to the root of a toolkit")
endif()
execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET RESULT_VARIABLE nvcc_failed)
if(nvcc_failed OR NOT nvcc_says MATCHES "release ([0-9]+\\.[0-9]+)")
  message(FATAL_ERROR
    "gcap: ${nvcc_from} says that nvcc is '${nvcc}': expected one that runs and tells its release")
endif()
if(CMAKE_MATCH_1 VERSION_LESS 13.0)
  message(FATAL_ERROR
    "gcap: the CUDA toolkit of ${nvcc} is ${CMAKE_MATCH_1}: expected 13.0 or newer, whose declarations gcap has")
endif()
set(CMAKE_CUDA_COMPILER "${nvcc}")
# As //bazel:cuda_archs: machine code for each and PTX for the highest.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
