# How a test program is built for every MPI at hand, and in which ways it is run. What is run is in CMakeLists.txt.

# Registers one run, mpi.<name>.<mpi>.np<ranks>.<how>, or nothing where what the run takes is not built. An MPI that has
# another's ABI, GAPLESS_TEST_ABI_<mpi>, runs the programs compiled for that one. `how` is
#   plain              the program itself, without gapless
#   gapless            gapless preloaded, as it is
#   packed, slots      gapless made to pack whatever it can, or to use slots
#   rings              gapless made to send long messages through rings
#   headerless         gapless that sends no headers
#   ucx                Open MPI with UCX, which is what Open MPI chooses by itself on InfiniBand
#   funneled, serialized, threads    packed, with MPI initialised for threads at that level (threads: MPI_THREAD_MULTIPLE)
#   half               packed in the first half of the ranks, and no gapless in the others
#   half_pieces        the same with gapless free to choose, tests named InPieces alone, and long messages in the pieces that
#                      Open MPI makes of them by itself
#   tcp, shm           messages by that fabric; impatient: by tcp, and copied out at once; usual_tcp: by tcp, with senders that
#                      wait for their receivers as long as they usually do
#   reaches, refuses   messages by a provider that reaches GPU memory, or that says so and registers none
# and with the simulated GPU
#   simulated          gapless as it is; simulated_tcp: by tcp; simulated_threads: with MPI_THREAD_MULTIPLE; half_simulated: in
#                      the first half of the ranks, and no gapless in the others; simulated_pieces: tests named InPieces
#                      alone, and long messages in the pieces that MPI libraries make of them
#   pipelined          messages of GPU memory in segments
#   direct             messages from GPU to GPU; unmapped, unexported: the same where GPU memory is refused to peers; unlocked:
#                      where page-locked memory is, too; usual_direct: with senders that wait for their receivers as long as
#                      they usually do
#   predicted          the same where the model chooses it, with little memory
#   aware              the CPU may touch the GPU's memory, so that the library reads it, and is said to, and messages are packed
#                      there; aware_direct: the same, from GPU to GPU; aware_predicted: as the model chooses
function(gapless_register_mpi_run name mpi ranks how timeout)
  set(abi ${mpi})
  if(DEFINED GAPLESS_TEST_ABI_${mpi})
    set(abi ${GAPLESS_TEST_ABI_${mpi}})
  endif()
  set(target mpi-${name}-${abi})
  if(NOT TARGET ${target})
    return()
  endif()
  if(how STREQUAL ucx AND NOT mpi STREQUAL openmpi)
    return()
  endif()
  set(launch ${GAPLESS_TEST_PREFIX_${mpi}}/bin/mpiexec -n ${ranks} ${GAPLESS_TEST_RUNNER})
  set(labels mpi ${how})
  if(NOT how STREQUAL plain)
    if(NOT TARGET gapless-shim OR NOT TARGET gapless-${abi})
      return()
    endif()
    list(APPEND launch env LD_PRELOAD=$<TARGET_FILE:gapless-shim> GAPLESS_TEST_EXPECT=1)
  endif()
  if(how MATCHES "^(packed|slots)(_threads)?$")
    list(APPEND launch GAPLESS_SCHEME=${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2)
      list(APPEND ARGN --threads)
    endif()
    set(labels mpi gapless)
  endif()
  if(how STREQUAL rings)
    list(APPEND launch GAPLESS_SCHEME=direct)
    set(labels mpi gapless)
  endif()
  if(how STREQUAL ucx)
    # Shared memory is not among what Open MPI chooses UCX for by itself.
    list(APPEND launch OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
      UCX_TLS=self,posix,cma UCX_WARN_UNUSED_ENV_VARS=n)
    set(labels mpi gapless)
  endif()
  if(how MATCHES "^(funneled|serialized|threads)$")
    list(APPEND launch GAPLESS_SCHEME=packed)
    list(APPEND ARGN --${how})
    set(labels mpi gapless)
  endif()
  if(how MATCHES "^(simulated_)?(tcp|shm)$|^(reaches|refuses)$")
    set(fabric ${CMAKE_MATCH_2})
    if(NOT fabric)
      if(NOT TARGET gapless-gpu-provider)
        return()
      endif()
      set(fabric cxi)
      list(APPEND launch FI_PROVIDER_PATH=$<TARGET_FILE_DIR:gapless-gpu-provider> GAPLESS_TEST_GPU_PROVIDER=${how})
    endif()
    # A send waits for its receiver as long as that takes, so that what is counted is what the schemes do. Where a scheme
    # is forced from the start, a datatype's first use goes by it too.
    list(APPEND launch GAPLESS_ALL_RANKS=1 GAPLESS_FABRIC=${fabric} GAPLESS_FABRIC_NEIGHBOURS=1
      GAPLESS_FABRIC_PATIENCE=600000 GAPLESS_SCHEME=fabric-pipelined GAPLESS_TEST_FABRIC=all)
    set(labels mpi gapless)
  endif()
  if(how MATCHES "^(impatient|usual_tcp)$")
    list(APPEND launch GAPLESS_FABRIC=tcp GAPLESS_FABRIC_NEIGHBOURS=1 GAPLESS_SCHEME=fabric-pipelined
      GAPLESS_TEST_FABRIC=all)
    set(labels mpi gapless)
  endif()
  if(how STREQUAL impatient)
    list(APPEND launch GAPLESS_FABRIC_PATIENCE=0)
  endif()
  if(how STREQUAL headerless)
    list(APPEND launch GAPLESS_HEADERS=0)
    set(labels mpi gapless)
  endif()
  if(how MATCHES
     "^(simulated(_threads|_tcp|_pieces)?|reaches|refuses|pipelined|aware|((usual|aware)_)?direct|(aware_)?predicted|unmapped|unexported|unlocked)$")
    if(NOT TARGET gapless-simulated-device)
      return()
    endif()
    list(APPEND launch GAPLESS_DEVICE_PLUGIN=$<TARGET_FILE:gapless-simulated-device> GAPLESS_ALL_RANKS=1)
    set(labels mpi gapless)
  endif()
  if(how STREQUAL simulated_threads)
    list(APPEND ARGN --threads)
  endif()
  if(how STREQUAL half_simulated)
    if(NOT TARGET gapless-simulated-device)
      return()
    endif()
    list(APPEND launch GAPLESS_DEVICE_PLUGIN=$<TARGET_FILE:gapless-simulated-device>)
  endif()
  if(how STREQUAL pipelined)
    list(APPEND launch GAPLESS_SCHEME=pipelined)
  endif()
  if(how MATCHES "^((aware_)?direct|unmapped|unexported|unlocked)$")
    # 1 MiB of exported memory, so that some messages find no room in it. On the host it is a quarter of the pool.
    set(pool 1048576)
    if(how MATCHES "^un")
      set(pool 4194304)
    endif()
    list(APPEND launch GAPLESS_SCHEME=direct GAPLESS_POOL_BYTES=${pool} GAPLESS_PULL_PATIENCE=100000)
  endif()
  if(how STREQUAL usual_direct)
    list(APPEND launch GAPLESS_SCHEME=direct)
  endif()
  if(how STREQUAL predicted)
    list(APPEND launch GAPLESS_POOL_BYTES=1048576 GAPLESS_PULL_PATIENCE=100000)
  endif()
  if(how STREQUAL unmapped)
    list(APPEND launch GAPLESS_TEST_SIMULATED_FAIL=open:0:-1)
  elseif(how STREQUAL unexported)
    list(APPEND launch GAPLESS_TEST_SIMULATED_FAIL=export:0:-1)
  elseif(how STREQUAL unlocked)
    list(APPEND launch "GAPLESS_TEST_SIMULATED_FAIL=open:0:-1,lock:0:-1")
  endif()
  if(how MATCHES "^aware")
    list(APPEND launch GAPLESS_GPU_AWARE=1 GAPLESS_TEST_SIMULATED_READABLE=1)
  endif()
  if(how STREQUAL aware)
    list(APPEND launch GAPLESS_SCHEME=device)
  endif()
  set(test mpi.${name}.${mpi}.np${ranks}.${how})
  set(program $<TARGET_FILE:${target}> ${ARGN})
  if(how MATCHES "_pieces$")
    list(TRANSFORM launch REPLACE "^env$" "env;OMPI_MCA_btl_sm_eager_limit=4096;OMPI_MCA_btl_sm_max_send_size=32768")
    list(APPEND program --gtest_filter=*InPieces)
  endif()
  # UCX never ends a send that is cancelled, without gapless, too.
  if(how STREQUAL ucx)
    list(APPEND program --gtest_filter=-*Cancelled*)
  endif()
  if(how STREQUAL simulated_pieces)
    list(APPEND launch MPIR_CVAR_CH4_CMA_ENABLE=0)
  endif()
  if(how STREQUAL half)
    list(APPEND launch GAPLESS_SCHEME=packed)
  endif()
  if(how MATCHES "^half")
    set(labels mpi gapless)
    math(EXPR others "${ranks} / 2")
    list(TRANSFORM launch REPLACE "^${ranks}$" ${others})
    list(APPEND program : -n ${others} ${program})
  endif()
  add_test(NAME ${test} COMMAND ${launch} ${program})
  # Each test has its own directory of jobs: a directory that a killed job leaves there names its launcher by process id, and
  # Open MPI refuses to start where the next launcher of that id finds it.
  set_tests_properties(${test} PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS ${ranks}
    ENVIRONMENT "${GAPLESS_TEST_MPI_ENVIRONMENT};PRTE_MCA_prte_tmpdir_base=${GAPLESS_TEST_JOBS}/${test}")
  # Where MPICH begins again after its last session UCX at times takes its own address for wrong, without gapless, too.
  if(name STREQUAL sessions)
    set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "UCX  ERROR failed to unpack address")
  endif()
endfunction()

# Sets `result` to those of the ranks given at which a program is run. The standard ABI is another compilation for the library
# that MPICH's own ABI is tested with at all ranks, and without gapless only the program itself is tested: one number does.
function(gapless_ranks_of_run result mpi how)
  set(ranks ${ARGN})
  if((mpi STREQUAL abi OR how MATCHES "^(plain|ucx|half|half_pieces|half_simulated)$") AND 2 IN_LIST ranks)
    set(ranks 2)
  endif()
  if(mpi STREQUAL abi AND how MATCHES "^half")
    set(ranks "")
  endif()
  set(${result} ${ranks} PARENT_SCOPE)
endfunction()

# gapless_mpi_test(<room>/<name>[.c] [SOURCES <file>...] [ARGUMENTS <argument>...] [RANKS <n>...] [RUNS <how>...]
#                  [TIMEOUT <seconds>] [NO_MAIN])
# Builds mpi-<name>-<mpi> from <room>/<name>.cpp, or .c, and SOURCES, and registers its runs. NO_MAIN: the program brings its
# own main().
function(gapless_mpi_test source)
  cmake_parse_arguments(test NO_MAIN TIMEOUT "SOURCES;ARGUMENTS;RANKS;RUNS" ${ARGN})
  get_filename_component(name ${source} NAME_WE)
  if(NOT source MATCHES "\\.c$")
    string(APPEND source .cpp)
  endif()
  if(NOT test_RANKS)
    set(test_RANKS ${GAPLESS_MPI_TEST_RANKS})
  endif()
  if(NOT test_RUNS)
    set(test_RUNS plain gapless)
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 60)
  endif()
  foreach(mpi IN LISTS GAPLESS_TEST_MPIS)
    set(target mpi-${name}-${mpi})
    add_executable(${target} ${source} ${test_SOURCES})
    set_target_properties(${target} PROPERTIES GAPLESS_TEST_ARGUMENTS "${test_ARGUMENTS}")
    if(test_NO_MAIN)
      target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
      target_link_libraries(${target} PRIVATE mpi-${mpi} ${CMAKE_DL_LIBS})
    else()
      target_link_libraries(${target} PRIVATE mpi-test-support-${mpi})
      target_precompile_headers(${target} REUSE_FROM mpi-test-support-${mpi})
    endif()
    foreach(how IN LISTS test_RUNS)
      gapless_ranks_of_run(ranks_of_run ${mpi} ${how} ${test_RANKS})
      foreach(ranks IN LISTS ranks_of_run)
        gapless_register_mpi_run(${name} ${mpi} ${ranks} ${how} ${test_TIMEOUT} ${test_ARGUMENTS})
      endforeach()
    endforeach()
  endforeach()
endfunction()

# gapless_killed_neighbour_run(<program> <who dies> <how> <variable>=<value>...): a survivor of a message on this node.
function(gapless_killed_neighbour_run program who how)
  string(REPLACE " " "_" name "killed_${who}")
  foreach(mpi IN LISTS GAPLESS_TEST_MPIS)
    if(mpi STREQUAL abi OR NOT TARGET gapless-${mpi} OR NOT TARGET mpi-${program}-${mpi})
      continue()
    endif()
    add_test(NAME mpi.${name}.${mpi}.np2.${how} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/headers/killed_peer.sh --survivor
      ${GAPLESS_TEST_PREFIX_${mpi}}/bin/mpiexec -n 2 sh ${CMAKE_CURRENT_SOURCE_DIR}/headers/killed_peer.sh --rank
      env LD_PRELOAD=$<TARGET_FILE:gapless-shim> GAPLESS_TEST_EXPECT=1 GAPLESS_SCHEME=${how} "GAPLESS_TEST_WHO_DIES=${who}" ${ARGN}
      $<TARGET_FILE:mpi-${program}-${mpi}> --gtest_filter=*.KilledPeer*)
    set_tests_properties(mpi.${name}.${mpi}.np2.${how} PROPERTIES
      LABELS "mpi;gapless" TIMEOUT 60 PROCESSORS 2 ENVIRONMENT "${GAPLESS_TEST_MPI_ENVIRONMENT}")
  endforeach()
endfunction()

# gapless_killed_peer_run(<mpi> <who dies> <patience in ms> <filter> <launcher's option>): a survivor of a message by a fabric.
function(gapless_killed_peer_run mpi who patience filter option)
  if(NOT mpi IN_LIST GAPLESS_TEST_MPIS OR NOT TARGET gapless-${mpi})
    return()
  endif()
  string(REPLACE " " "_" test "mpi.killed_${who}.${mpi}.np2.tcp")
  add_test(NAME ${test} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/headers/killed_peer.sh --survivor
    ${GAPLESS_TEST_PREFIX_${mpi}}/bin/mpiexec ${option} -n 2 env LD_PRELOAD=$<TARGET_FILE:gapless-shim>
    GAPLESS_TEST_EXPECT=1 GAPLESS_FABRIC=tcp GAPLESS_FABRIC_NEIGHBOURS=1 GAPLESS_FABRIC_PATIENCE=${patience}
    GAPLESS_SCHEME=fabric-pipelined "GAPLESS_TEST_WHO_DIES=${who}" $<TARGET_FILE:mpi-fabric-${mpi}>
    --gtest_filter=${filter})
  set_tests_properties(${test} PROPERTIES
    LABELS "mpi;gapless" TIMEOUT 60 PROCESSORS 2 ENVIRONMENT "${GAPLESS_TEST_MPI_ENVIRONMENT}")
endfunction()

# gapless_fabric_files_run(<mpi>)
# Registers a run of messages by a fabric whose provider has files, none of which may be left.
function(gapless_fabric_files_run mpi)
  if(NOT mpi IN_LIST GAPLESS_TEST_MPIS OR NOT TARGET gapless-${mpi})
    return()
  endif()
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/headers/leftover_files.sh)
  add_test(NAME mpi.fabric_files.${mpi}.np2.shm COMMAND sh ${script} ${GAPLESS_TEST_PREFIX_${mpi}}/bin/mpiexec -n 2
    sh ${script} --rank env LD_PRELOAD=$<TARGET_FILE:gapless-shim> GAPLESS_TEST_EXPECT=1 GAPLESS_ALL_RANKS=1
    GAPLESS_FABRIC=shm GAPLESS_FABRIC_NEIGHBOURS=1 GAPLESS_FABRIC_PATIENCE=600000 GAPLESS_SCHEME=fabric-pipelined
    GAPLESS_TEST_FABRIC=all $<TARGET_FILE:mpi-fabric-${mpi}> --gtest_filter=*.ManyMessagesAreInOrder)
  set_tests_properties(mpi.fabric_files.${mpi}.np2.shm PROPERTIES
    LABELS "mpi;gapless" TIMEOUT 60 PROCESSORS 2 ENVIRONMENT "${GAPLESS_TEST_MPI_ENVIRONMENT}")
endfunction()

# gapless_register_gpu_run(<name> <mpi> <ranks> [ARGUMENTS <argument>...] [VARIABLES <variable>=<value>...])
# Registers a run of mpi-<name>-<mpi> on a real GPU, with those variables.
function(gapless_register_gpu_run name mpi ranks)
  cmake_parse_arguments(run "" "" "ARGUMENTS;VARIABLES" ${ARGN})
  if(NOT TARGET gapless-cuda)
    return()
  endif()
  add_test(NAME mpi.${name}.${mpi}.np${ranks}.gpu
    COMMAND ${GAPLESS_TEST_PREFIX_${mpi}}/bin/mpiexec -n ${ranks} env GAPLESS_TEST_EXPECT=1 GAPLESS_TEST_GPU=1
      LD_PRELOAD=$<TARGET_FILE:gapless-shim> ${run_VARIABLES} $<TARGET_FILE:mpi-${name}-${mpi}> ${run_ARGUMENTS})
  set_tests_properties(mpi.${name}.${mpi}.np${ranks}.gpu PROPERTIES
    LABELS gpu TIMEOUT 120 PROCESSORS ${ranks} ENVIRONMENT "${GAPLESS_TEST_MPI_ENVIRONMENT}"
    SKIP_REGULAR_EXPRESSION "GPU tests: libcuda.so.1")
endfunction()

# gapless_gpu_mpi_test(<room>/<name> [ONLY_SIMULATED] [SOURCES <file>...] [ARGUMENTS <argument>...] [VARIABLES <variable>=<value>...])
# Buffers in GPU memory, which the libraries at hand cannot read. Everywhere on the simulated GPU; label `gpu`: on a real one,
# with those variables, and then at 2 ranks, and with little memory on the simulated one.
function(gapless_gpu_mpi_test source)
  cmake_parse_arguments(test ONLY_SIMULATED "" "SOURCES;ARGUMENTS;VARIABLES" ${ARGN})
  get_filename_component(name ${source} NAME)
  foreach(mpi IN LISTS GAPLESS_TEST_MPIS)
    if(NOT TARGET gapless-shim OR NOT TARGET gapless-${mpi} OR NOT TARGET gapless-simulated-device)
      continue()
    endif()
    set(target mpi-${name}-${mpi})
    add_executable(${target} ${source}.cpp support/gpu.cpp ${test_SOURCES})
    set_target_properties(${target} PROPERTIES GAPLESS_TEST_ARGUMENTS "${test_ARGUMENTS}")
    target_link_libraries(${target} PRIVATE mpi-test-support-${mpi})
    target_precompile_headers(${target} REUSE_FROM mpi-test-support-${mpi})
    gapless_ranks_of_run(ranks_of_run ${mpi} simulated ${GAPLESS_MPI_TEST_RANKS})
    set(how simulated)
    if(test_VARIABLES)
      set(ranks_of_run 2)
      set(how predicted)
    endif()
    foreach(ranks IN LISTS ranks_of_run)
      gapless_register_mpi_run(${name} ${mpi} ${ranks} ${how} 120 ${test_ARGUMENTS})
      if(NOT test_ONLY_SIMULATED)
        gapless_register_gpu_run(${name} ${mpi} ${ranks} ARGUMENTS ${test_ARGUMENTS} VARIABLES ${test_VARIABLES})
      endif()
    endforeach()
  endforeach()
endfunction()

# Other schemes than those that are chosen on the simulated GPU. A persistent send that is pipelined is no launch with others.
function(gapless_scheme_runs how)
  foreach(mpi IN LISTS GAPLESS_TEST_MPIS)
    foreach(name IN LISTS ARGN)
      gapless_register_mpi_run(${name} ${mpi} 2 ${how} 120)
    endforeach()
  endforeach()
endfunction()
