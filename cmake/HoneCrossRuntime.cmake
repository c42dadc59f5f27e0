# The runtime of another machine than this one, made by Debian's cross compiler: what hone_artifact carries to link
# libraries for it.

# Sets RESULT to stubs of the libc and libm that COMPILER links with, which are made in FOLDER.
function(hone_cross_stubs RESULT COMPILER FOLDER)
  file(MAKE_DIRECTORY "${FOLDER}")
  string(REGEX REPLACE "g\\+\\+$" "" prefix "${COMPILER}")
  set(stubs "${FOLDER}/libc.so.6" "${FOLDER}/libm.so.6")
  add_custom_command(OUTPUT ${stubs}
    COMMAND "${PROJECT_SOURCE_DIR}/scripts/make_stubs.sh" "${prefix}" "${FOLDER}"
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/make_stubs.sh" VERBATIM)
  set(${RESULT} ${stubs} PARENT_SCOPE)
endfunction()

# Sets RESULT to the archive and the stubs of libc and libm of MACHINE, or to nothing without a compiler.
function(hone_cross_runtime RESULT MACHINE)
  string(TOUPPER "HONE_${MACHINE}_CXX" compiler)
  find_program(${compiler} ${MACHINE}-linux-gnu-g++)
  if(NOT ${compiler})
    message(STATUS "no ${MACHINE}-linux-gnu-g++: libraries for ${MACHINE} cannot be linked")
    set(${RESULT} "" PARENT_SCOPE)
    return()
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${MACHINE}")
  hone_cross_stubs(stubs "${${compiler}}" "${folder}")
  set(flags -std=c++20 ${HONE_RUNTIME_ARCHIVE_FLAGS} ${HONE_RUNTIME_FLAGS_${MACHINE}} -DNDEBUG -I "${PROJECT_SOURCE_DIR}/src")
  set(objects "")
  foreach(source ${HONE_RUNTIME_SOURCES})
    string(REPLACE "/" "_" object "${source}")
    set(object "${folder}/${object}.o")
    add_custom_command(OUTPUT "${object}"
      COMMAND ${${compiler}} ${flags} -MD -MF "${object}.d" -c "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${object}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${source}" DEPFILE "${object}.d" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(archive "${folder}/libhone_runtime_embedded.a")
  string(REGEX REPLACE "g\\+\\+$" "" prefix "${${compiler}}")
  add_custom_command(OUTPUT "${archive}" COMMAND ${CMAKE_COMMAND} -E rm -f "${archive}"
    COMMAND ${prefix}ar rcs "${archive}" ${objects} DEPENDS ${objects} VERBATIM)
  set(${RESULT} "${archive}" ${stubs} PARENT_SCOPE)
endfunction()
