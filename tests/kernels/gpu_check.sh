#!/usr/bin/env bash
# Builds the CUDA kernels and tests and measures them on this machine's first GPU.
set -euo pipefail

usage() {
  cat <<'END'
usage: gpu_check.sh [--build FOLDER] [--out FOLDER] [--build-only | --profile]

Builds kernels/ for the first CUDA device, runs the K tests on it and measures stream ceilings,
decode, prefill, writes and copies. Needs the CUDA toolkit, CMake, Ninja, Highway and GoogleTest, and
no network; made for less than 6 minutes on a machine with one H200 and 16 cores.

  --build FOLDER  where to build; default: build/gpu beside the sources
  --out FOLDER    where gpu_check.json, gpu_check.txt and one log per test program go; default: the
                  build folder
  --build-only    stop after the build; needs no device
  --profile       afterwards profile one decode call with ncu, or else nsys, into profile.txt. Says so
                  where there is neither or they may not; that is no failure.

Exit status: 0 all passed, 1 a build, test or measurement failed, 2 wrong command line or a folder
that cannot be written, 3 no CUDA device, 4 no CUDA toolkit.
END
}

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$root/build/gpu"
out=""
build_only=false
profile=false
while (($# > 0)); do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --build-only) build_only=true ;;
    --profile) profile=true ;;
    --build | --out)
      [[ -n "${2:-}" ]] || { echo "$1 needs a folder" >&2; exit 2; }
      if [[ $1 == --build ]]; then build="$2"; else out="$2"; fi
      shift ;;
    *) echo "unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
out="${out:-$build}"

# What can be known before a build of minutes, is. The driver's word first.
if ! $build_only && ! { command -v nvidia-smi && nvidia-smi -L; } >/dev/null 2>&1; then
  echo "no CUDA device: nvidia-smi finds none" >&2
  exit 3
fi
cuda="${CUDA_HOME:-/usr/local/cuda}"
PATH="$PATH:$cuda/bin"
if ! nvcc="$(command -v nvcc)"; then
  echo "no CUDA toolkit: nvcc is neither in PATH nor in $cuda/bin" >&2
  exit 4
fi
for folder in "$build" "$out"; do
  if ! mkdir -p "$folder" 2>/dev/null || [[ ! -w $folder ]]; then
    echo "cannot write to $folder" >&2
    exit 2
  fi
done

echo "building with $nvcc"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUIRE_KERNELS_ONLY=ON \
  -DQUIRE_CUDA=ON -DBUILD_TESTING=ON || exit 1
cmake --build "$build" --target quire_gpu_check -j "${JOBS:-$(nproc)}" || exit 1
if $build_only; then
  echo "built in $build"
  exit 0
fi

bench="$build/tests/kernels/gpu/quire-gpu-bench"
failures=0

# run NAME SECONDS COMMAND...: the log goes to NAME.log, its end on failure to the terminal.
run() {
  local name="$1" seconds="$2" status=0
  shift 2
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

# One decode launch, or the times of all kernels of that call where counters are not allowed.
profile_decode() {
  local tried=""
  if command -v ncu >/dev/null; then
    tried="ncu"
    timeout 60 ncu --kernel-name regex:DecodeKernel --launch-skip 1 --launch-count 1 \
      --set detailed "$bench" --one-decode >"$out/profile.txt" 2>&1 &&
      grep -q DecodeKernel "$out/profile.txt" && return
  fi
  if command -v nsys >/dev/null; then
    tried="${tried:+$tried, }nsys"
    timeout 60 nsys profile --stats=true --force-overwrite=true --output "$out/profile" \
      "$bench" --one-decode >"$out/profile.txt" 2>&1 &&
      grep -q DecodeKernel "$out/profile.txt" && return
  fi
  if [[ -z $tried ]]; then
    echo "no profile: neither ncu nor nsys is in PATH or in $cuda/bin"
  else
    echo "no profile: $tried failed, see $out/profile.txt"
  fi
  return 1
}

# First what is cheap and shows whether anything works at all.
for part in arguments checksum write move csr_table decode append cascade limits; do
  run "$part" 60 "$build/tests/kernels/gpu/kernel_${part}_cuda_test"
done
run gpu_check 150 "$bench" --json "$out/gpu_check.json"
sed '1,/^$/d' "$out/gpu_check.log" >"$out/gpu_check.txt"
cat "$out/gpu_check.txt"
if $profile && profile_decode; then echo "profile in $out/profile.txt"; fi
echo "$failures failures; results in $out/gpu_check.json and $out/gpu_check.txt"
((failures == 0))
