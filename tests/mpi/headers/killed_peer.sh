#!/bin/sh
# killed_peer.sh [--survivor] [--within SECONDS] COMMAND...: runs a job one of whose ranks dies in the middle of a message.
# The job must end by itself within its limit, 50 s unless another one is given, with an error, and leave neither a process
# nor a file of gapless behind. With --survivor the launcher leaves the other rank alone, which must say in the file
# GAPLESS_TEST_SURVIVOR that it has come to its end: the launcher may be gone by then, and what it would print lost.
# killed_peer.sh --rank COMMAND...: what such a job's launcher starts as one rank. The launcher hears of a rank that has
# died only when another one has survived, and so leaves that alone.
if [ "$1" = --rank ]; then
  shift
  "$@"
  status=$?
  tenths=500
  while [ ! -s "$GAPLESS_TEST_SURVIVOR" ] && [ "$tenths" -gt 0 ]; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
  exit "$status"
fi
limit=50
is_survived=
if [ "$1" = --survivor ]; then
  is_survived=yes
  shift
fi
if [ "$1" = --within ]; then
  limit=$2
  shift 2
fi
GAPLESS_TEST_KILLED_PEER=$$
GAPLESS_TEST_SURVIVOR=$(mktemp)
export GAPLESS_TEST_KILLED_PEER GAPLESS_TEST_SURVIVOR
trap 'rm -f "$GAPLESS_TEST_SURVIVOR"' EXIT
timeout "$limit" "$@"
status=$?
[ "$status" -ne 77 ] || exit 77 # there is nothing to run the job on
if [ -n "$is_survived" ]; then
  tenths=$((limit * 10))
  while [ ! -s "$GAPLESS_TEST_SURVIVOR" ] && [ "$tenths" -gt 0 ]; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
  if [ ! -s "$GAPLESS_TEST_SURVIVOR" ]; then
    echo "the job ended with status $status, and nobody has survived"
    exit 1
  fi
elif [ "$status" -eq 0 ] || [ "$status" -eq 124 ]; then
  echo "the job ended with status $status"
  exit 1
fi
# The launcher may return before the last process has been reaped.
left=$(grep -lsz "^GAPLESS_TEST_KILLED_PEER=$$\$" /proc/[0-9]*/environ | grep -v "^/proc/$$/")
for process in $left; do
  folder=${process%/environ}
  for tenth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -d "$folder" ] && sleep 0.1
  done
  name=$(cat "$folder/comm" 2>/dev/null)
  if [ -n "$name" ] && [ "$name" != grep ]; then
    echo "process $folder ($name) is left"
    exit 1
  fi
done
if ls /dev/shm | grep -q gapless; then
  echo "files are left in /dev/shm"
  exit 1
fi
