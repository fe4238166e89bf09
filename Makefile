# Everything from nothing: `make demo`, `make test`. Needs python3 and make; tools and MPI libraries go into build/, and
# requirements/system.sh installs missing system packages by apt-get, as root or by sudo -n.
# `make help` lists the targets. With an MPI of your own: cmake --preset default && cmake --build --preset default.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# JOBS says how much is done at once: several targets configure the same build tree.
.NOTPARALLEL:

PYTHON ?= python3
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
NAME ?= all
CUDA ?= AUTO
ENDPOINTS ?= ON

export PATH := $(CURDIR)/build/env/bin:$(PATH):/usr/local/cuda/bin
export PYTHONPATH := $(CURDIR)/python
# Where the machine has ccache, another checkout of the same sources compiles hardly anything again, wherever it lies.
ifneq ($(shell command -v ccache),)
export CMAKE_C_COMPILER_LAUNCHER ?= ccache
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
export CMAKE_CUDA_COMPILER_LAUNCHER ?= ccache
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
export CCACHE_SLOPPINESS ?= pch_defines,time_macros,include_file_mtime,include_file_ctime,locale
endif
# The bundled Open MPI is run by whoever runs make, which in containers is root, on however many cores there are.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

stamps := build/.stamps
environments := $(stamps)/env $(stamps)/mpich $(stamps)/openmpi
prefixes := -DGAPLESS_MPICH_PREFIX=$(CURDIR)/build/mpich -DGAPLESS_OPENMPI_PREFIX=$(CURDIR)/build/openmpi \
  -DGAPLESS_INTEL_PREFIX=$(CURDIR)/build/intel
# nvcc on PATH or in /usr/local/cuda is found by itself; one that pip installed into build/env has to be named.
nvcc_wheel = $(firstword $(wildcard build/env/lib/python3*/site-packages/nvidia/cu*/bin/nvcc))
cuda = $(if $(shell command -v nvcc),,$(addprefix -DGAPLESS_CUDA_COMPILER=$(CURDIR)/,$(nvcc_wheel)))
# Portable, so that what the tests run is what `make wheel` and `make install` hand out.
configure = cmake --preset default -DGAPLESS_ENDPOINTS=$(ENDPOINTS) -DGAPLESS_PORTABLE=ON -DGAPLESS_CUDA=$(CUDA) $(prefixes) $(cuda) --log-level=WARNING
manylinux := manylinux_2_28_$(shell uname -m)
c_sources = git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.cuh'
python_sources := cmake python src tests bench examples bin/gapless

.PHONY: help build test test-roce test-programs tsan unit sanitize lint format docs demo bench libraries install wheel clean distclean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

$(stamps)/system: requirements/system.sh
	@mkdir -p $(@D)
	@PYTHON=$(PYTHON) requirements/system.sh
	@touch $@

# Each environment is made once and brought up to date when its list of requirements changes.
$(environments) $(stamps)/intel $(stamps)/wheel: $(stamps)/%: requirements/%.txt | $(stamps)/system
	@mkdir -p $(@D)
	@echo "Setting up build/$*"
	@[ -x build/$*/bin/python ] || $(PYTHON) -m venv build/$*
	@build/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

build: $(environments)  ## compile the libraries, tests and examples into build/default
	@$(configure)
	@cmake --build --preset default -j $(JOBS)

# What is built or tested where the machine has it.
$(stamps)/fortran $(stamps)/fabric $(stamps)/programs: $(stamps)/%: requirements/system.sh
	@mkdir -p $(@D)
	@requirements/system.sh $*
	@touch $@

test: $(stamps)/fortran $(stamps)/fabric $(stamps)/programs $(stamps)/intel lint build unit sanitize  ## format and lint checks, every test, and those without MPI again under sanitizers

# Minutes in an emulated machine, so it is no part of `make test`.
test-roce: $(environments) $(stamps)/fabric  ## raw verbs on an RDMA device in software, in a kernel under QEMU
	@$(configure)
	@cmake --build --preset default -j $(JOBS) --target test_verbs
	@tests/fabric/roce/run.sh build/default

test-programs: $(environments) $(stamps)/fortran $(stamps)/programs  ## more of the real programs than `make test` runs
	@$(configure)
	@cmake --build --preset default -j $(JOBS) --target libraries
	@GAPLESS_TEST_PROGRAMS_LONG=1 ctest --preset default -L programs

# Minutes to compile anew, so it is no part of `make test`. The programs bring the sanitizer with them, which an MPI library
# that is preloaded or a launcher could not; of the MPI library itself, which is not compiled with it, nothing is said.
tsan: $(environments)  ## MPI programs with threads, on MPICH, under the thread sanitizer
	@cmake --preset tsan -DGAPLESS_MPICH_PREFIX=$(CURDIR)/build/mpich --log-level=WARNING
	@cmake --build --preset tsan -j $(JOBS) --target thread-programs
	@ctest --test-dir build/tsan -L '^threads$$' --output-on-failure --no-tests=error

unit: build wheel
	@ctest --preset default -j $(JOBS)

# Sanitizers cannot be preloaded under MPI launchers, so they run where the memory arithmetic is: the layers without MPI,
# kernels' arithmetic included. They bring a heap and a handler for bad accesses of their own, which some tests look at.
sanitized := base layout pack reduction device fabric transfer
sanitize: $(environments)
	@cmake --preset sanitize $(prefixes) --log-level=WARNING
	@cmake --build --preset sanitize -j $(JOBS) --target $(addprefix tests/,$(addsuffix /all,$(sanitized)))
	@for layer in $(sanitized); do \
	  ctest --test-dir build/sanitize/tests/$$layer --output-on-failure --no-tests=error -j $(JOBS) \
	    -LE gpu -E 'HostMemory|IsNotAskedAboutHeap|HostCannotTouchDeviceMemory'; done

lint: $(stamps)/env  ## check formatting (clang-format, ruff) and Python style
	@$(c_sources) | xargs -r build/env/bin/clang-format --dry-run -Werror
	@ruff check --quiet $(python_sources)
	@ruff format --check --quiet $(python_sources)

format: $(stamps)/env  ## format every source file
	@$(c_sources) | xargs -r build/env/bin/clang-format -i
	@ruff format --quiet $(python_sources)
	@ruff check --quiet --fix $(python_sources)

docs: $(stamps)/env  ## rewrite the generated parts of the documentation
	@build/env/bin/python -m gapless.documents

# The CUDA plugin takes longer to compile than all the rest, so here it is built only where a GPU can use it. No more are
# endpoints, which the halo exchange has none of, unless the build tree has them already.
demo: ENDPOINTS = $(if $(wildcard build/default/CMakeCache.txt),$(shell sed -n 's/^GAPLESS_ENDPOINTS:BOOL=//p' build/default/CMakeCache.txt),OFF)
demo: $(environments)  ## a halo exchange on MPICH and Open MPI, with and without gapless
	@$(configure)
	@targets=demo; \
	if [ "$(DEMO_CUDA)" = 1 ] || build/env/bin/python examples/demo.py --gpu-is-present; then targets+=" libraries"; fi; \
	echo "Compiling the libraries and the halo exchange; from nothing that takes some minutes"; \
	cmake --build --preset default -j $(JOBS) --target $$targets
	@build/env/bin/python examples/demo.py

bench: build  ## run a benchmark, e.g. make bench NAME=host_pack; without NAME, all of them
	@bin/gapless bench $(NAME)

libraries: $(environments)
	@$(configure)
	@cmake --build --preset default -j $(JOBS) --target libraries

install: libraries  ## install into PREFIX (default /usr/local)
	@cmake --install build/default --prefix "$(PREFIX)"

wheel: libraries $(stamps)/wheel  ## one wheel for every MPI, on Linux with glibc 2.28 or later, into dist
	@rm -rf dist build/default/wheel
	@build/wheel/bin/python -m pip wheel . --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  -w build/default/wheel --config-settings=cmake.source-dir=cmake/wheel \
	  --config-settings=cmake.define.GAPLESS_BUILD_TREE=$(CURDIR)/build/default
	@PATH=$(CURDIR)/build/wheel/bin:$$PATH; \
	auditwheel repair --plat $(manylinux) --only-plat -w dist build/default/wheel/*.whl 2>build/default/wheel/log || \
	  { cat build/default/wheel/log >&2; exit 1; }
	@ls -sh dist/*.whl

clean:  ## remove what was compiled, keep the installed tools and MPI libraries
	@rm -rf dist build/default build/release build/sanitize build/tsan

distclean:  ## remove build/ and dist/ altogether
	@rm -rf build dist
