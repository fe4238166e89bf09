#!/bin/sh
# leftover_files.sh COMMAND...: runs a job that must end well, and whose ranks must leave no file with
# their process's number in /dev/shm, where a fabric's provider has such files.
# leftover_files.sh --rank PROGRAM...: what the launcher starts as one rank.
if [ "$1" = --rank ]; then
  shift
  echo $$ >>"$GAPLESS_TEST_PROCESSES"
  exec "$@"
fi
GAPLESS_TEST_PROCESSES=$(mktemp)
export GAPLESS_TEST_PROCESSES
trap 'rm -f "$GAPLESS_TEST_PROCESSES"' EXIT
"$@" || exit 1
left=
ranks=0
for process in $(cat "$GAPLESS_TEST_PROCESSES"); do
  ranks=$((ranks + 1))
  left="$left$(find /dev/shm -name "$process:*")"
done
if [ "$ranks" -ne 2 ] || [ -n "$left" ]; then
  echo "$ranks ranks have left: $left"
  exit 1
fi
