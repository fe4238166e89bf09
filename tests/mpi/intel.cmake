# Intel MPI has MPICH's ABI, so the programs that are compiled for MPICH run on it as they are, two ranks each. Left out is what
# Intel MPI 2021.18 does wrong by itself (docs/troubleshooting.md).
if(NOT GAPLESS_INTEL_PREFIX OR NOT EXISTS ${GAPLESS_INTEL_PREFIX}/lib/libmpi.so.12)
  message(STATUS "MPI tests: no Intel MPI in '${GAPLESS_INTEL_PREFIX}', not tested")
  return()
endif()
set(GAPLESS_TEST_PREFIX_intel ${GAPLESS_INTEL_PREFIX})
set(GAPLESS_TEST_ABI_intel mpich)

# gapless_intel_runs(<how> <program>... [FILTER <tests>])
function(gapless_intel_runs how)
  cmake_parse_arguments(run "" FILTER "" ${ARGN})
  list(APPEND GAPLESS_TEST_MPI_ENVIRONMENT LD_LIBRARY_PATH=${GAPLESS_INTEL_PREFIX}/lib I_MPI_FABRICS=shm I_MPI_PIN=0
    I_MPI_THREAD_YIELD=3)
  foreach(name IN LISTS run_UNPARSED_ARGUMENTS)
    set(arguments)
    if(TARGET mpi-${name}-mpich)
      get_target_property(arguments mpi-${name}-mpich GAPLESS_TEST_ARGUMENTS)
    endif()
    if(run_FILTER)
      list(APPEND arguments --gtest_filter=${run_FILTER})
    endif()
    gapless_register_mpi_run(${name} intel 2 ${how} 120 ${arguments})
  endforeach()
endfunction()

set(anything collectives errors exchanges first_uses known_wrong_data lifetimes mixed_ends nesting partitioned persistent pieces
  point_to_point probes progress random_types requests static_objects threads tried_ways truncation turns)
gapless_intel_runs(gapless ${anything})
gapless_intel_runs(packed ${anything})
gapless_intel_runs(slots exchanges mixed_ends persistent point_to_point probes progress requests truncation)
gapless_intel_runs(slots slots FILTER -*.ReceivesTooShortForAHeader:*.ReceivesOfDatatypesWithoutBytes)
gapless_intel_runs(rings rings)
gapless_intel_runs(headerless rings requests)
gapless_intel_runs(half collectives mixed_ends persistent point_to_point requests)
gapless_intel_runs(simulated deferred device_files device_memory device_nonblocking device_one_sided device_reset
  device_threads exchanges exchanges_without_memory first_uses_on_gpu guarded mixed_ends partitioned persistent probes progress)
gapless_intel_runs(direct direct exchanges mixed_ends persistent probes pulls)
gapless_intel_runs(packed host_collectives FILTER -*.PersistentOnesPackAtEachStart)
