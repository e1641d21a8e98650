#!/usr/bin/env bash
# cuda_gate.sh FOLDER: checks what ptxas and the assembler made of the kernels in FOLDER
# (build/cuda/kernels/cuda): no spills, registers within 120 / 184 / 255 at head sizes up to 64, up
# to 128 and above, for every architecture, and HMMA in every kernel that is meant to use tensor
# cores.
set -euo pipefail

folder="$1"
cuobjdump="${CUOBJDUMP:-cuobjdump}"
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# One line per kernel: file arch name head_dim registers spill_bytes.
list_kernels() {
  local log
  for log in "$folder"/*.ptxas; do
    awk -v file="$(basename "$log" .o.ptxas)" '
      /Compiling entry function/ {
        name = $0; sub(/.*function ./, "", name); sub(/. for.*/, "", name)
        arch = $0; sub(/.*for ./, "", arch); sub(/.$/, "", arch)
        dim = 0
        if (match(name, /ELi[0-9]+EE/)) dim = substr(name, RSTART + 3, RLENGTH - 5)
      }
      /bytes spill stores/ {
        match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART) + 0
        match($0, /[0-9]+ bytes spill loads/); spills = stores + substr($0, RSTART)
      }
      /Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/); print file, arch, name, dim, substr($0, RSTART + 5, RLENGTH - 5), spills
      }' "$log"
  done
}

check_registers() {
  local arch name dim registers spills cap
  while read -r _ arch name dim registers spills; do
    cap=255
    ((dim > 128)) || cap=184
    ((dim > 64 || dim == 0)) || cap=120
    ((spills == 0)) || fail "$name for $arch spills $spills bytes"
    ((registers <= cap)) || fail "$name for $arch uses $registers registers, allowed are $cap"
    kernels=$((kernels + 1))
  done < <(list_kernels)
}

check_tensor_cores() {
  local object kernel
  if ! command -v "$cuobjdump" >/dev/null; then
    echo "not checked: HMMA instructions, as there is no cuobjdump"
    return
  fi
  for object in "$folder"/attend_*.o; do
    while read -r kernel; do fail "no HMMA in $kernel"; done < <(
      "$cuobjdump" -sass "$object" | awk '
        /Function :/ { if (name != "" && !mma) print name; name = $3; mma = 0 }
        /HMMA/ { mma = 1 }
        END { if (name != "" && !mma) print name }')
  done
}

kernels=0
check_registers
check_tensor_cores
echo "$kernels kernels, $failures failures"
# Of 4 types, 2 kernels, 6 head sizes for 2 architectures there are 96; the others know no head size.
((kernels > 96 && failures == 0))
