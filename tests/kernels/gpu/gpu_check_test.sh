#!/usr/bin/env bash
# gpu_check_test.sh SCRIPT: what gpu_check.sh says where it cannot run.
set -euo pipefail

script="$1"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failures=0

# expect STATUS TEXT ARGUMENT...
expect() {
  local want="$1" text="$2" status=0 output
  shift 2
  output="$(PATH="$folder:$PATH" "$script" "$@" 2>&1)" || status=$?
  if [[ $status != "$want" || $output != *"$text"* ]]; then
    echo "FAILED: '$*' ended with $status, wanted $want and '$text': $output"
    failures=$((failures + 1))
  fi
}

# A driver that finds no device, before any real one in PATH.
printf '#!/bin/sh\nexit 9\n' >"$folder/nvidia-smi"
chmod +x "$folder/nvidia-smi"
expect 0 "Exit status: 0 all passed" --help
expect 2 "unknown argument --fast" --fast
expect 2 "--out needs a folder" --out
expect 3 "no CUDA device" --build "$folder/build"
[[ ! -e $folder/build ]] || { echo "FAILED: it built without a device"; failures=$((failures + 1)); }
((failures == 0))
