# Options, compiler settings, and where the MPI headers are. Each variant of the MPI layer needs only headers of its ABI:
# GAPLESS_MPICH_INCLUDE_DIR, GAPLESS_OPENMPI_INCLUDE_DIR and GAPLESS_ABI_INCLUDE_DIR. A variant without headers is not built.

option(GAPLESS_BUILD_TESTS "Build the tests" ON)
option(GAPLESS_BUILD_BENCHMARKS "Build the benchmarks" ON)
option(GAPLESS_BUILD_EXAMPLES "Build the examples" ON)
option(GAPLESS_WERROR "Treat warnings as errors" OFF)
set(GAPLESS_SANITIZE "" CACHE STRING "Sanitizers for core and its tests, e.g. address;undefined")
set(GAPLESS_CUDA AUTO CACHE STRING "Build the CUDA plugin: ON, OFF, or AUTO (when nvcc is found)")
set_property(CACHE GAPLESS_CUDA PROPERTY STRINGS AUTO ON OFF)

# The three ABIs, each with a directory that holds its header and, for tests and examples, an MPI to compile and run with.
set(GAPLESS_MPICH_PREFIX "" CACHE PATH "Prefix of an MPICH (include/mpi.h, bin/mpicc); also gives include/mpi_abi.h if present")
set(GAPLESS_OPENMPI_PREFIX "" CACHE PATH "Prefix of an Open MPI")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# One flat directory, so that libraries find each other through $ORIGIN in the build tree as when installed.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_BUILD_RPATH $ORIGIN)
set(CMAKE_INSTALL_RPATH $ORIGIN)

add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wall> $<$<COMPILE_LANGUAGE:C,CXX>:-Wextra>)
if(GAPLESS_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(GAPLESS_SANITIZE)
  string(REPLACE ";" "," _sanitizers "${GAPLESS_SANITIZE}")
  add_compile_options(-fsanitize=${_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${_sanitizers})
endif()

set(GAPLESS_MPICH_INCLUDE_DIR "${GAPLESS_MPICH_PREFIX}/include" CACHE PATH "Directory of MPICH's mpi.h")
set(GAPLESS_ABI_INCLUDE_DIR "${GAPLESS_MPICH_PREFIX}/include" CACHE PATH "Directory of mpi_abi.h (MPI 5 standard ABI)")
set(GAPLESS_OPENMPI_INCLUDE_DIR "${GAPLESS_OPENMPI_PREFIX}/include" CACHE PATH "Directory of Open MPI's mpi.h")
