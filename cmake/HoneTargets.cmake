# hone_library(NAME [PLAIN] [APART] SOURCES a.cc ... DEPS hone_base ...): one layer, one static library. PLAIN: its
# sources include only what they name. APART: each is an object of its own, of which programs take some, unless the
# caller groups them.
# hone_test_library(NAME SOURCES a_testing.cc ... DEPS hone_base ...): what several programs of tests share.
# hone_test(NAME SOURCES a_test.cc ... [SLOW topic.behaviour ...] DEPS ...): one GoogleTest program, label "unit" unless
# LABEL says otherwise. SLOW: those of its tests that take more than a second, as patterns of GoogleTest's filter; they
# run as NAME_slow, label "slow", and the others as NAME.

add_library(hone_options INTERFACE)
# -Wno-restrict, -Wno-maybe-uninitialized: gcc 12 warns falsely about std::string (gcc bug 105651) and
# absl::InlinedVector; clang does not know them.
target_compile_options(hone_options INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
                       -Wno-restrict -Wno-maybe-uninitialized $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-warning-option>)
target_include_directories(hone_options INTERFACE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")

# What a wrong input could make of a bug: addresses that programs resolve are read-only once they run.
target_link_options(hone_options INTERFACE -Wl,-z,relro,-z,now)

# Apart from hone_options: CMake puts the options of what a target links after its own, so that a target which must stay
# free of instrumentation could not take back what it is given here.
add_library(hone_sanitizers INTERFACE)
if(HONE_SANITIZE)
  target_compile_options(hone_sanitizers INTERFACE
    -fsanitize=${HONE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(hone_sanitizers INTERFACE -fsanitize=${HONE_SANITIZE})
endif()

# Sanitizers make tests several times slower.
function(hone_timeout result seconds)
  if(HONE_SANITIZE)
    math(EXPR seconds "5 * ${seconds}")
  endif()
  set(${result} ${seconds} PARENT_SCOPE)
endfunction()

# For code whose own speed does not matter: a release builds it with -O1, in three quarters of the time.
function(hone_compile_fast name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# For programs that no user gets: LLVM's linker takes a ninth of the time that the system's takes for a test with all of
# Hone in it. The system's links them where there is no other, and with sanitizers.
cmake_path(GET LLVM_LIBRARY PARENT_PATH folder)
find_program(HONE_FAST_LINKER ld.lld HINTS "${folder}/../bin")
function(hone_link_fast name)
  if(HONE_FAST_LINKER AND NOT HONE_SANITIZE)
    cmake_path(GET HONE_FAST_LINKER PARENT_PATH folder)
    target_link_options(${name} PRIVATE -fuse-ld=lld "-B${folder}")
  endif()
endfunction()

# What most sources include of the standard library, fmt and GoogleTest is parsed once for all libraries and once for
# all tests, which takes a fifth off the time of a build. A source still names all headers that it needs: the presets
# asan and tidy build without these (CMAKE_DISABLE_PRECOMPILE_HEADERS).
set(HONE_COMMON_HEADERS <fmt/format.h> <fmt/ranges.h> <algorithm> <atomic> <functional> <map> <memory> <optional> <set>
    <span> <string> <string_view> <unordered_map> <variant> <vector>)
set(CMAKE_PCH_WARN_INVALID OFF)  # where the options of a target do not fit, the headers are parsed again
file(WRITE "${PROJECT_BINARY_DIR}/no_code.cc" "")
add_library(hone_library_headers OBJECT "${PROJECT_BINARY_DIR}/no_code.cc")
target_link_libraries(hone_library_headers PRIVATE hone_options hone_sanitizers fmt::fmt)
target_precompile_headers(hone_library_headers PRIVATE ${HONE_COMMON_HEADERS})
if(NOT HONE_SANITIZE)
  target_compile_options(hone_library_headers PRIVATE -fstack-protector-strong)
endif()
if(BUILD_TESTING)
  # A program, as tests are: code for programs and for libraries differs.
  add_executable(hone_test_headers "${PROJECT_BINARY_DIR}/no_code.cc")
  target_link_libraries(hone_test_headers PRIVATE hone_options hone_sanitizers fmt::fmt GTest::gtest_main)
  target_precompile_headers(hone_test_headers PRIVATE ${HONE_COMMON_HEADERS} <gtest/gtest.h>)
  hone_compile_fast(hone_test_headers)
endif()

# gcc 12 warns falsely about the insides of std::string where they come from precompiled headers: it forgets that these
# are the system's.
function(hone_reuse_headers name from)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_precompile_headers(${name} REUSE_FROM ${from})
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow
                           -Wno-stringop-overread>)
  endif()
endfunction()

# hone_translate_together(NAME [LIBRARY] SOURCES a.cc ...): several of these sources of a target in one run of the
# compiler, half of whose time is headers and templates. Which ones, scripts/unity_groups.py says; those of a LIBRARY
# are optimised more, so fewer at once. A source with options or definitions of its own is translated by itself (CMake),
# and any source is to stand alone: the presets dev, asan, tsan and tidy build each by itself. Where a release build
# finds a name twice, configure it again: the groups are made anew.
option(HONE_UNITY "translate several sources of a library or a test at once" OFF)
if(HONE_UNITY)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  hone_require(Python3_FOUND python3)
endif()
function(hone_translate_together name)
  cmake_parse_arguments(arg "LIBRARY" "" "SOURCES" ${ARGN})
  list(LENGTH arg_SOURCES count)
  if(NOT HONE_UNITY OR count LESS 2)
    return()
  endif()
  set(sources ${arg_SOURCES})
  set(options "")
  if(arg_LIBRARY)
    set(options --most-bytes 60000)
  endif()
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/unity_groups.py" ${options} ${sources}
                  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  list(GET sources 0 first)  # what tells these groups from those of another call for the same target
  string(MAKE_C_IDENTIFIER "${name}_${first}" prefix)
  foreach(source group IN ZIP_LISTS sources groups)
    list(APPEND members_${group} ${source})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    list(LENGTH members_${group} count)
    if(count GREATER 1)
      set_source_files_properties(${members_${group}} PROPERTIES UNITY_GROUP "${prefix}_${group}")
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# The linker takes an object as a whole: what hone-serve takes of a library is not translated together with the rest, of
# which much needs LLVM.
function(hone_translate_library_together name)
  set(board "")
  set(others "")
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src/hone")
    if(path IN_LIST HONE_BOARD_SOURCES)
      list(APPEND board ${source})
    else()
      list(APPEND others ${source})
    endif()
  endforeach()
  hone_translate_together(${name} LIBRARY SOURCES ${board})
  hone_translate_together(${name} LIBRARY SOURCES ${others})
endfunction()

function(hone_library name)
  cmake_parse_arguments(arg "PLAIN;APART" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  if(NOT arg_APART)
    hone_translate_library_together(${name} ${arg_SOURCES})
  endif()
  if(NOT arg_PLAIN)
    hone_reuse_headers(${name} hone_library_headers)
  endif()
  if(NOT HONE_SANITIZE)  # a buffer on the stack that is written past its end ends the program before the function returns
    target_compile_options(${name} PRIVATE -fstack-protector-strong)
  endif()
  target_link_libraries(${name} PUBLIC hone_options hone_sanitizers ${arg_DEPS})
endfunction()

function(hone_test_library name)
  hone_library(${name} ${ARGN})
  hone_compile_fast(${name})
endfunction()

function(hone_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;SLOW;DEPS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 400)
  endif()
  hone_timeout(timeout ${arg_TIMEOUT})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE hone_options hone_sanitizers ${arg_DEPS} GTest::gtest_main)
  hone_reuse_headers(${name} hone_test_headers)
  hone_translate_together(${name} SOURCES ${arg_SOURCES})
  hone_compile_fast(${name})
  hone_link_fast(${name})
  if(NOT arg_SLOW)
    add_test(NAME ${name} COMMAND ${name})
  else()
    list(JOIN arg_SLOW ":" slow)
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-${slow})
    add_test(NAME ${name}_slow COMMAND ${name} --gtest_filter=${slow})
    set_tests_properties(${name}_slow PROPERTIES LABELS slow TIMEOUT ${timeout} FAIL_REGULAR_EXPRESSION "Running 0 tests")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${timeout})
endfunction()

# Runs the tests of CUDA of a program once more, with the driver of runtime/device/fake_cuda.cc. None may be skipped.
# LABEL: "unit" unless it is given.
function(hone_test_with_fake_cuda name)
  cmake_parse_arguments(arg "" "LABEL" "" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  add_dependencies(${name} hone_fake_cuda)
  add_test(NAME ${name}_fake_cuda COMMAND ${name} --gtest_filter=*uda*-*without_a_driver*)
  set_tests_properties(${name}_fake_cuda PROPERTIES LABELS ${arg_LABEL} TIMEOUT 400 FAIL_REGULAR_EXPRESSION "SKIPPED;Running 0 tests"
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hone_fake_cuda>")
endfunction()
