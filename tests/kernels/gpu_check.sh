#!/usr/bin/env bash
# Builds the CUDA kernels and tests and measures them on this machine's first GPU.
set -euo pipefail

usage() {
  cat <<'END'
usage: gpu_check.sh [--build FOLDER] [--out FOLDER] [--build-only]

Builds kernels/ for the first CUDA device, runs the K tests on it and measures stream ceilings,
decode, prefill and copies. Needs the CUDA toolkit, CMake, Ninja, Highway and GoogleTest, and no
network; made for less than 6 minutes on a machine with one H200 and 16 cores.

  --build FOLDER  where to build; default: build/gpu beside the sources
  --out FOLDER    where gpu_check.json, gpu_check.txt and one log per test program go; default: the
                  build folder
  --build-only    stop after the build; needs no device

Exit status: 0 all passed, 1 a build, test or measurement failed, 2 wrong command line,
3 no CUDA device, 4 no CUDA toolkit.
END
}

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$root/build/gpu"
out=""
build_only=false
while (($# > 0)); do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --build-only) build_only=true ;;
    --build | --out)
      (($# > 1)) || { echo "$1 needs a folder" >&2; exit 2; }
      if [[ $1 == --build ]]; then build="$2"; else out="$2"; fi
      shift ;;
    *) echo "unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
out="${out:-$build}"

# The driver's word first: a build takes minutes.
if ! $build_only && ! { command -v nvidia-smi && nvidia-smi -L; } >/dev/null 2>&1; then
  echo "no CUDA device: nvidia-smi finds none" >&2
  exit 3
fi
if ! command -v "${CUDACXX:-nvcc}" >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
  echo "no CUDA toolkit: nvcc is neither in PATH nor in /usr/local/cuda/bin" >&2
  exit 4
fi

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUIRE_KERNELS_ONLY=ON \
  -DQUIRE_CUDA=ON -DBUILD_TESTING=ON || exit 1
cmake --build "$build" --target quire_gpu_check -j "${JOBS:-$(nproc)}" || exit 1
if $build_only; then
  echo "built in $build"
  exit 0
fi

mkdir -p "$out"
failures=0
status=0

# run NAME SECONDS COMMAND...: the log goes to NAME.log, its end on failure to the terminal.
run() {
  local name="$1" seconds="$2"
  shift 2
  status=0
  timeout "$seconds" "$@" >"$out/$name.log" 2>&1 || status=$?
  if ((status == 3)); then
    grep -h "no CUDA device" "$out/$name.log" >&2 || echo "no CUDA device" >&2
    exit 3
  fi
  if ((status == 0)); then
    echo "passed  $name"
  else
    echo "FAILED  $name (exit status $status)"
    tail -n 20 "$out/$name.log"
    failures=$((failures + 1))
  fi
}

# First what is cheap and shows whether anything works at all.
for part in arguments checksum write move csr_table decode append cascade limits; do
  run "$part" 60 "$build/tests/kernels/gpu/kernel_${part}_cuda_test"
done
run gpu_check 150 "$build/tests/kernels/gpu/quire-gpu-bench" --json "$out/gpu_check.json"
sed '1,/^$/d' "$out/gpu_check.log" >"$out/gpu_check.txt"
cat "$out/gpu_check.txt"
echo "$failures failures; results in $out/gpu_check.json and $out/gpu_check.txt"
((failures == 0))
