# hone_add_model(NAME MODEL [SHARED] [PREFIX p] [OPTIONS ...]): a library NAME, compiled by Hone from
# the ONNX file MODEL when that changes. What links it includes "NAME.h" and calls p_create,
# p_run, ... (p is NAME if not given). Static, unless SHARED is said; OPTIONS go to `hone compile`.
find_program(HONE_PROGRAM hone REQUIRED DOC "the program hone")

function(hone_add_model name model)
  cmake_parse_arguments(arg "SHARED" "PREFIX" "OPTIONS" ${ARGN})
  if(NOT arg_PREFIX)
    set(arg_PREFIX "${name}")
  endif()
  get_filename_component(model "${model}" ABSOLUTE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  file(MAKE_DIRECTORY "${folder}")
  if(arg_SHARED)
    set(library "${folder}/${name}.so")
  else()
    set(library "${folder}/${name}.a")
  endif()
  add_custom_command(OUTPUT "${library}" "${folder}/${name}.h"
    COMMAND "${HONE_PROGRAM}" compile "${model}" -o "${library}" --header --prefix "${arg_PREFIX}" ${arg_OPTIONS}
    DEPENDS "${model}" "${HONE_PROGRAM}" COMMENT "Compiling the model ${name}" VERBATIM)
  add_custom_target(${name}_compiled DEPENDS "${library}" "${folder}/${name}.h")

  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_compiled)
  target_include_directories(${name} INTERFACE "${folder}")
  if(arg_SHARED)  # "-l:" names the file: a program then looks for it by that name, not by its path
    target_link_directories(${name} INTERFACE "${folder}")
    target_link_libraries(${name} INTERFACE "-l:${name}.so" "-Wl,-rpath,${folder}")
  else()
    target_link_libraries(${name} INTERFACE "${library}" pthread m)
  endif()
endfunction()
