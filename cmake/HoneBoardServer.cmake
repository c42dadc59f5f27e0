# hone-serve as one file for a board: all of it is linked statically but glibc, as a model's library is loaded by glibc's
# loader. `hone deploy` copies it. Its target, hone_board_MACHINE, is not part of `all`.

# What the linker takes of Hone's libraries for hone-serve, and for another machine is compiled for it; a source that is missing here is an undefined symbol.
set(HONE_BOARD_SOURCES
  artifact/elf_inspect.cc artifact/elf_object.cc artifact/loaded_model.cc artifact/model.cc
  backend/executable.cc backend/loading/c_functions.cc backend/loading/load.cc backend/loading/loaded_object.cc
  backend/loading/relocate.cc
  base/allocation.cc base/clock.cc base/file.cc base/hash.cc base/input_file.cc base/installation.cc base/log.cc
  base/memory_bound.cc base/options.cc base/output_file.cc base/printable.cc base/temporary_name.cc base/wire.cc
  base/worker_child.cc base/worker_program.cc
  ir/expr.cc ir/scalar.cc ir/stmt.cc
  measure/arena.cc measure/candidate.cc measure/core_state.cc measure/counter_events.cc measure/counters.cc
  measure/device_candidate.cc measure/device_memory.cc measure/flush.cc measure/gpu_clocks.cc measure/host_load.cc
  measure/local_runner.cc measure/operands.cc measure/protocol.cc measure/sweep.cc measure/timing.cc measure/verify.cc
  measure/worker.cc measure/worker_operands.cc measure/worker_process.cc
  remote/connect_message.cc remote/grpc/relay.cc remote/grpc/server.cc remote/machine_file.cc remote/model_host.cc
  remote/model_messages.cc remote/model_process.cc remote/names.cc remote/operand_digest.cc remote/operand_store.cc
  remote/protocol.cc remote/service.cc remote/session.cc remote/turns.cc
  runtime/cpu_budget.cc runtime/device/code.cc runtime/device/cuda.cc runtime/device/cuda_api.cc
  runtime/device/cuda_code.cc runtime/device/cuda_events.cc runtime/device/device.cc runtime/device/opencl.cc
  runtime/device/opencl_api.cc runtime/device/watchdog.cc runtime/placement.cc runtime/pool.cc runtime/process_id.cc
  target/arm_id.cc target/cgroup.cc target/cpu_devices.cc target/cpuid.cc target/gpu_devices.cc target/gpu_table.cc target/key_text.cc
  target/machine_table.cc target/target.cc target/topology.cc
  tensor/dtype.cc tensor/half.cc tensor/tensor.cc
  trial/statistics.cc trial/timing.cc)

# Sets RESULT to files that include these sources, several of which one run of the compiler translates together.
function(hone_board_groups RESULT)
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/unity_groups.py" ${HONE_BOARD_SOURCES}
                  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/src/hone" OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  set(names "")
  foreach(source group IN ZIP_LISTS HONE_BOARD_SOURCES groups)
    string(STRIP "${group}" group)
    string(APPEND text_${group} "#include \"hone/${source}\"\n")
    list(APPEND names ${group})
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(files "")
  foreach(group ${names})
    set(file "${PROJECT_BINARY_DIR}/board/group_${group}.cc")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${text_${group}}" @ONLY)
    list(APPEND files "${file}")
  endforeach()
  set(${RESULT} ${files} PARENT_SCOPE)
endfunction()

# hone_board_program(MACHINE CXX program LIBRARIES folder OBJECTS files [ARCHIVES files])
# Links it of objects, of archives of Hone and of those of Debian in LIBRARIES.
function(hone_board_program MACHINE)
  cmake_parse_arguments(arg "" "CXX;LIBRARIES" "OBJECTS;ARCHIVES" ${ARGN})
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tools/share/hone/boards/${MACHINE}")
  file(GLOB absl "${arg_LIBRARIES}/libabsl_*.a")  # the archives of a package, which name each other
  set(archives ${absl})
  foreach(library grpc++ grpc gpr upb address_sorting protobuf re2 cares ssl crypto hwloc z)
    list(APPEND archives "${arg_LIBRARIES}/lib${library}.a")
  endforeach()
  # What Debian's archives ask for is looked for in those behind them, not in Hone's: many objects have templates of the
  # standard library, and some of these need LLVM.
  set(program "${PROJECT_BINARY_DIR}/tools/share/hone/boards/${MACHINE}/hone-serve")
  add_custom_command(OUTPUT "${program}"
    COMMAND ${arg_CXX} -pie -static-libstdc++ -static-libgcc -Wl,--gc-sections,--as-needed,-z,relro,-z,now,-s ${arg_OBJECTS}
            -Wl,--start-group ${arg_ARCHIVES} -Wl,--end-group -Wl,--start-group ${archives} -Wl,--end-group
            -ldl -lpthread -lm -o "${program}"
    DEPENDS ${arg_OBJECTS} ${arg_ARCHIVES} COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(hone_board_${MACHINE} DEPENDS "${program}")
  install(PROGRAMS "${program}" DESTINATION "share/hone/boards/${MACHINE}" OPTIONAL)
endfunction()

# hone_board_server(MACHINE CXX program FLAGS ... LIBRARIES folder GENERATED folder)
# CXX compiles for the machine, and LIBRARIES has Debian's archives for it.
function(hone_board_server MACHINE)
  cmake_parse_arguments(arg "" "CXX;LIBRARIES;GENERATED" "FLAGS" ${ARGN})
  set(folder "${PROJECT_BINARY_DIR}/board/${MACHINE}")
  set(flags -std=c++20 -O2 -DNDEBUG -fPIE -fvisibility=hidden -ffunction-sections -fdata-sections -fstack-protector-strong
            -DFMT_HEADER_ONLY "-DHONE_VERSION=\"${PROJECT_VERSION}\"" "-DHONE_INSTALL_PREFIX=\"\"" -w ${arg_FLAGS}
            -I "${PROJECT_SOURCE_DIR}/src" -I "${PROJECT_SOURCE_DIR}/include" -isystem "${arg_GENERATED}")
  set(sources "${arg_GENERATED}/remote.pb.cc" "${arg_GENERATED}/remote.grpc.pb.cc" "${PROJECT_SOURCE_DIR}/tools/serve/main.cc"
              "${PROJECT_SOURCE_DIR}/tools/hone/serve_options.cc" "${PROJECT_SOURCE_DIR}/tools/serve/no_udev.cc")
  hone_board_groups(groups)
  set(objects "")
  foreach(source ${sources} ${groups})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE object)
    string(REPLACE "/" "_" object "${object}")
    set(object "${folder}/${object}.o")
    add_custom_command(OUTPUT "${object}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${arg_CXX} ${flags} -MD -MF "${object}.d" -c "${source}" -o "${object}"
      DEPENDS "${source}" "${arg_GENERATED}/remote.pb.h" DEPFILE "${object}.d" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  file(MAKE_DIRECTORY "${folder}")
  hone_board_program(${MACHINE} CXX "${arg_CXX}" LIBRARIES "${arg_LIBRARIES}" OBJECTS ${objects})
endfunction()
