#!/bin/bash
# Makes sure of what pip cannot install: a C++20 compiler, GoogleTest and Python's venv module.
# Installs what is missing through apt where that is possible, and otherwise names the packages and stops.
set -euo pipefail

missing=()
compiles() { echo "$1" | "${CXX:-g++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }

compiles '#include <span>' || missing+=(g++)
compiles '#include <gtest/gtest.h>' || missing+=(libgtest-dev)
command -v cc >/dev/null || missing+=(gcc)
"${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
  echo "Installing ${missing[*]} with apt-get" >&2
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "gapless needs these packages (Debian and Ubuntu names): ${missing[*]}" >&2
  echo "Install them, for example: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
