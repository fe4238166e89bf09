#!/bin/sh
# killed_peer.sh COMMAND...: runs a job one of whose ranks dies in the middle of a message. The job must end by itself
# within its limit, with an error, and leave neither a process nor a file of gapless behind.
limit=50
GAPLESS_TEST_KILLED_PEER=$$
export GAPLESS_TEST_KILLED_PEER
timeout "$limit" "$@"
status=$?
if [ "$status" -eq 0 ] || [ "$status" -eq 124 ]; then
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
