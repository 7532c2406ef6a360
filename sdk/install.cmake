# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What is installed, and where. //:sdk makes a tarball of the same (sdk/BUILD.bazel). Nothing of it names the prefix, so
# the prefix can be moved.

include(GNUInstallDirs)

# Before anything is copied. A trial, since what the permissions say is not what a file system does.
install(CODE "set(gcap_include \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(CODE [[
  set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  set(trial "${folder}/${gcap_include}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E make_directory "${trial}" ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_COMMAND} -E touch "${trial}/.gcap_trial" ERROR_QUIET RESULT_VARIABLE failed)
    file(REMOVE "${trial}/.gcap_trial")
  endif()
  if(failed)
    message(FATAL_ERROR
      "gcap: the prefix '${folder}' cannot be written to: expected a folder that this user may make or change; give "
      "another one by cmake --install BUILD --prefix FOLDER")
  endif()
]])

install(TARGETS gcap_gcap gcap_sim gcap_ops_sim gcap_shared)
if(GCAP_CUDA)
  install(TARGETS gcap_ops_cuda)
endif()
install(DIRECTORY include/gcap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# A folder of their own: beside gcap's they would hide NVIDIA's.
install(DIRECTORY sim/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gcap-sim
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# What makes shared libraries of the simulator, and its manual.
install(FILES sim/README.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gcap/sim)
install(FILES sim/shared/link.sh sim/shared/forward.S DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gcap/sim/shared)
# The command finds the library and the pages from its own folder.
install(TARGETS gcap_doctor gcap_doctor_command)
install(DIRECTORY docs/rules DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gcap/doctor FILES_MATCHING PATTERN "*.md")
install(DIRECTORY doctor/python DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gcap/doctor FILES_MATCHING PATTERN "*.py")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/gcap)

set(GCAP_VERSION ${PROJECT_VERSION})
file(RELATIVE_PATH GCAP_INCLUDE ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(packages gcap gcap-shared gcap-ops-sim gcapsim)
if(GCAP_CUDA)
  list(APPEND packages gcap-ops-cuda)
endif()
foreach(package IN LISTS packages)
  configure_file(sdk/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
foreach(file IN ITEMS gcapConfig.cmake gcapConfigVersion.cmake)
  configure_file(sdk/${file}.in ${file} @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gcap)
endforeach()
install(FILES sdk/gcap.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gcap)
