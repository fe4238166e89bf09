#!/bin/sh
# A variant takes everything of MPI from the shim at run time and exports two C functions, beside those that a calibration
# calls and the counts that tests read.
#   check_variant_symbols.sh NM VARIANT
nm=$1
variant=$2
needed=$("$nm" -D --undefined-only "$variant" | grep -E ' _?(P?MPI|ompi|MPIR|MPIX)_') && {
  echo "$variant needs symbols of an MPI library:"
  echo "$needed"
  exit 1
}
exported=$("$nm" -D --defined-only "$variant" | awk '$2 == "T" && $3 !~ /^gapless_(measure_|(exchanges|reductions)_by_messages$|reduction_kernels$|operations_looked_at$|receives_(looked_at|promoted|short_persistent)$|messages_given$|kind_of_datatype$)/ { print $3 }' | sort | tr '\n' ' ')
[ "$exported" = "gapless_additions_open gapless_variant_open " ] || {
  echo "$variant exports: $exported"
  exit 1
}
