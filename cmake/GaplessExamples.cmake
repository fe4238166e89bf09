# gapless_example(<name> SOURCES <file>... [OPTIONS <option>...] [DEPENDS <file or target>...])
# Compiles a program of MPI once per MPI, by that MPI's own mpicc, as a user would: bin/NAME-mpich, bin/NAME-openmpi and, for
# the MPI 5 standard ABI, bin/NAME-abi. GAPLESS_EXAMPLE_TARGETS then holds the targets that were made.
function(gapless_example name)
  cmake_parse_arguments(example "" "" "SOURCES;OPTIONS;DEPENDS" ${ARGN})
  list(TRANSFORM example_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(targets "")
  foreach(kind mpich openmpi abi)
    string(TOUPPER ${kind} upper)
    set(mpicc ${GAPLESS_${upper}_PREFIX}/bin/mpicc)
    if(kind STREQUAL abi)
      set(mpicc ${GAPLESS_MPICH_PREFIX}/bin/mpicc_abi)
    endif()
    if(NOT EXISTS ${mpicc})
      continue()
    endif()
    set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}-${kind})
    add_custom_command(
      OUTPUT ${program}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
      COMMAND ${mpicc} -std=gnu11 -O2 -g -Wall -Wextra ${example_SOURCES} -o ${program} ${example_OPTIONS}
      DEPENDS ${example_SOURCES} ${example_DEPENDS}
      COMMENT "Compiling ${name} with ${mpicc}"
      VERBATIM)
    add_custom_target(${name}-${kind}-example ALL DEPENDS ${program})
    list(APPEND targets ${name}-${kind}-example)
  endforeach()
  set(GAPLESS_EXAMPLE_TARGETS ${targets} PARENT_SCOPE)
endfunction()
