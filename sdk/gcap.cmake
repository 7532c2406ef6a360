# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What a program links, and gcap_add_kernels: the same for a project that gcap is a part of and for an installed gcap.
# The includer defines the libraries gcap::gcap, gcap::gcap_shared, gcap::sim, gcap::ops_sim and, if gcap was built for
# GPUs, gcap::ops_cuda.
#
#   gcap::gcap                      libgcap.a: the core, the kit, and the adapter to ONNX Runtime
#   gcap::base, gcap::graph, ...    the same library by the name of a module: a linker takes of it what is called
#   gcap::gcap_shared               libgcap.so: the core and the kit
#   gcap::ops                       the operators
#   gcap::cuda_runtime              the CUDA runtime of the build: the simulator, or with GCAP_CUDA NVIDIA's
#   gcap::cublas, gcap::cublaslt, gcap::cudnn   likewise
#   gcap::cuda_headers              their declarations; comes with each of the above
#   gcap::sim                       the simulator

if(CMAKE_CUDA_COMPILER)
  set(gcap_cuda_default ON)
else()
  set(gcap_cuda_default OFF)
endif()
option(GCAP_CUDA "Programs are for a GPU, with NVIDIA's CUDA runtime; else for the simulator. ON where the project has \
enabled the language CUDA" ${gcap_cuda_default})

if(GCAP_CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR
      "gcap: GCAP_CUDA is ON, and the project '${CMAKE_PROJECT_NAME}' has not enabled the language CUDA: expected "
      "project(... LANGUAGES C CUDA) or enable_language(CUDA) before gcap")
  endif()
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
    message(FATAL_ERROR
      "gcap: the CUDA toolkit of ${CMAKE_CUDA_COMPILER} is ${CMAKE_CUDA_COMPILER_VERSION}: expected 13.0 or newer, "
      "whose declarations gcap has")
  endif()
  find_package(CUDAToolkit REQUIRED)
endif()

set(gcap_modules base buckets stream capture contents verify graph allocator scratch options runtime fields model shape ep cpu_ep session check ort)
foreach(name IN LISTS gcap_modules ITEMS cuda_headers cuda_runtime cublas cublaslt cudnn ops)
  add_library(gcap::${name} INTERFACE IMPORTED ${gcap_scope})
endforeach()
foreach(name IN LISTS gcap_modules)
  target_link_libraries(gcap::${name} INTERFACE gcap::gcap)
endforeach()
if(GCAP_CUDA)
  # NVIDIA's targets are seen in one folder alone, their files in all. cublasLt.h wants a header of cccl.
  target_include_directories(gcap::cuda_headers INTERFACE ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_INCLUDE_DIRS}/cccl)
  target_link_directories(gcap::cuda_headers INTERFACE ${CUDAToolkit_LIBRARY_DIR})
  target_link_libraries(gcap::cuda_runtime INTERFACE gcap::cuda_headers cudart_static pthread rt ${CMAKE_DL_LIBS})
  foreach(library IN ITEMS cublas cublasLt cudnn)
    string(TOLOWER ${library} name)
    target_link_libraries(gcap::${name} INTERFACE gcap::cuda_headers ${library})
  endforeach()
  # Only who links the operators hears that they are not there: CMake names a target that does not exist.
  set(gcap_missing gcap::ops_for_GPUs_of_a_gcap_that_was_installed_with_GCAP_CUDA_ON)
  target_link_libraries(gcap::ops INTERFACE $<IF:$<TARGET_EXISTS:gcap::ops_cuda>,gcap::ops_cuda,${gcap_missing}>)
else()
  target_include_directories(gcap::cuda_headers INTERFACE $<TARGET_PROPERTY:gcap::sim,INTERFACE_INCLUDE_DIRECTORIES>)
  foreach(name IN ITEMS cuda_runtime cublas cublaslt cudnn)
    target_link_libraries(gcap::${name} INTERFACE gcap::sim)
  endforeach()
  target_link_libraries(gcap::ops INTERFACE gcap::ops_sim)
endif()

# gcap_add_kernels(TARGET KERNEL.cu... TWINS KERNEL_twin.c...): compiles kernels into the target: with GCAP_CUDA the .cu
# files by nvcc, else their CPU twins, which register themselves with the simulator (gcap_sim.h).
function(gcap_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TWINS")
  if(NOT TARGET ${target} OR NOT arg_UNPARSED_ARGUMENTS OR NOT arg_TWINS)
    message(FATAL_ERROR
      "gcap_add_kernels(${target} ${ARGN}): expected (TARGET KERNEL.cu... TWINS KERNEL_twin.c...) with a target that "
      "exists")
  endif()
  if(GCAP_CUDA)
    target_sources(${target} PRIVATE ${arg_UNPARSED_ARGUMENTS})
  else()
    target_sources(${target} PRIVATE ${arg_TWINS})
    # Twins stand for a GPU: fast also where the build is not optimised.
    set_property(SOURCE ${arg_TWINS} APPEND PROPERTY COMPILE_OPTIONS -O3)
  endif()
  target_link_libraries(${target} PRIVATE gcap::cuda_headers)
endfunction()
