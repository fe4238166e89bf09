#!/bin/bash
# Makes sure of what pip cannot install. `requirements/system.sh build` (the default): a C++20 compiler, GoogleTest,
# nlohmann's JSON and Python's venv module, without which nothing can be built. `requirements/system.sh fortran`: a distribution's MPICH and
# Open MPI with Fortran, whose programs the tests run; without them the other tests still run.
# `requirements/system.sh fabric`: libfabric and libibverbs with their headers; without them gapless is built without
# these two fabrics. `requirements/system.sh programs`: ScaLAPACK's testers and parallel HDF5 for both MPIs,
# and FFTW for mpi4py-fft, which the tests run where they are.
# Installs what is missing through apt where that is possible, and otherwise names the packages.
set -euo pipefail

missing=()
purpose=${1:-build}
compiles() { echo "$1" | "${CXX:-g++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }

case $purpose in
build)
  compiles '#include <span>' || missing+=(g++)
  compiles '#include <gtest/gtest.h>' || missing+=(libgtest-dev)
  compiles '#include <nlohmann/json.hpp>' || missing+=(nlohmann-json3-dev)
  command -v cc >/dev/null || missing+=(gcc)
  "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  ;;
fortran)
  command -v gfortran >/dev/null || missing+=(gfortran)
  command -v mpif90.mpich >/dev/null || missing+=(mpich libmpich-dev)
  command -v mpif90.openmpi >/dev/null || missing+=(openmpi-bin libopenmpi-dev)
  ;;
fabric)
  compiles '#include <rdma/fabric.h>' || missing+=(libfabric-dev)
  compiles '#include <infiniband/verbs.h>' || missing+=(libibverbs-dev)
  ;;
programs)
  ls /usr/lib/*/scalapack/*-tests >/dev/null 2>&1 || missing+=(scalapack-mpi-test)
  command -v h5pcc.mpich >/dev/null || missing+=(libhdf5-mpich-dev)
  command -v h5pcc.openmpi >/dev/null || missing+=(libhdf5-openmpi-dev)
  compiles '#include <fftw3.h>' || missing+=(libfftw3-dev)
  ;;
*)
  echo "system.sh: expected build, fortran, fabric or programs, not $purpose" >&2
  exit 2
  ;;
esac
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
install() {
  command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null || return 1
  echo "Installing ${missing[*]} with apt-get" >&2
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
if ! install; then
  if [ "$purpose" = fortran ]; then
    echo "The Fortran programs are not tested: ${missing[*]} could not be installed" >&2
    exit 0
  fi
  if [ "$purpose" = fabric ]; then
    echo "Fabrics are built and tested without ${missing[*]}, which could not be installed" >&2
    exit 0
  fi
  if [ "$purpose" = programs ]; then
    echo "Real programs are not tested: ${missing[*]} could not be installed" >&2
    exit 0
  fi
  echo "gapless needs these packages (Debian and Ubuntu names): ${missing[*]}" >&2
  echo "Install them, for example: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
