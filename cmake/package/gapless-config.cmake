# What find_package(gapless) reads. Paths are relative to this file, so that an installation may be moved.
# gapless::gapless stands between a program and its MPI library; a program names the target before MPI::MPI_C.
# gapless::core has the C API of gapless/gapless.h, which needs no MPI.
get_filename_component(_gapless_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_gapless_target gapless core)
  if(NOT TARGET gapless::${_gapless_target})
    add_library(gapless::${_gapless_target} SHARED IMPORTED)
    set_target_properties(gapless::${_gapless_target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_gapless_prefix}/include")
  endif()
endforeach()
set_target_properties(gapless::core PROPERTIES IMPORTED_LOCATION "${_gapless_prefix}/lib/libgapless-core.so")
# libgapless.so has most functions of MPI: linkers would leave out the MPI library, whose functions gapless calls.
set_target_properties(gapless::gapless PROPERTIES
  IMPORTED_LOCATION "${_gapless_prefix}/lib/libgapless.so" INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed")
unset(_gapless_prefix)
unset(_gapless_target)
