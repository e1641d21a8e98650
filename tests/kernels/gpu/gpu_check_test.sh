#!/usr/bin/env bash
# gpu_check_test.sh SCRIPT: every way through gpu_check.sh, with stand-ins for the driver, the
# toolkit, the build and the programs that it makes.
set -euo pipefail

script="$1"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failures=0
# Only what the script needs is in PATH: no toolkit, driver or profiler of this machine.
export CUDA_HOME="$folder/cuda"
mkdir "$folder/bin"
for tool in bash sh basename cat cp dirname env grep mkdir nproc sed tail timeout; do
  ln -s "$(command -v "$tool")" "$folder/bin/$tool"
done

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# stand_in NAME LINES: a program in PATH.
stand_in() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}

# expect STATUS TEXT ARGUMENT...
expect() {
  local want="$1" text="$2" status=0
  shift 2
  output="$(PATH="$folder/bin" "$script" "$@" 2>&1)" || status=$?
  [[ $status == "$want" && $output == *"$text"* ]] ||
    fail "'$*' ended with $status, wanted $want and '$text': $output"
}

expect 0 "Exit status: 0 all passed" --help
expect 2 "unknown argument --fast" --fast
expect 2 "--out needs a folder" --out
expect 2 "--build needs a folder" --build ""

build="$folder/build"
stand_in nvidia-smi "exit 9"
expect 3 "no CUDA device" --build "$build"
stand_in nvidia-smi "echo 'GPU 0: stand-in'"
expect 4 "no CUDA toolkit" --build "$build"
[[ ! -e $build ]] || fail "it built without a device or toolkit"

stand_in nvcc "exit 0"
: >"$folder/file"
expect 2 "cannot write to $folder/file/out" --build "$build" --out "$folder/file/out"
expect 2 "cannot write to $folder/file" --build "$folder/file"

stand_in cmake "exit 1"
expect 1 "building with" --build "$build"

# The build makes programs that say their name and end with what $folder/status.NAME says.
cat >"$folder/program" <<END
#!/bin/sh
name="\$(basename "\$0")"
printf 'as it goes\n\n%s measured\n' "\$name"
if [ "\$1" = --json ]; then echo '{}' >"\$2"; fi
exit "\$(cat "$folder/status.\$name" 2>/dev/null || echo 0)"
END
chmod +x "$folder/program"
stand_in cmake "[ \"\$1\" = --build ] || exit 0
mkdir -p \"\$2/tests/kernels/gpu\"
for part in arguments checksum write move csr_table decode append cascade limits; do
  cp '$folder/program' \"\$2/tests/kernels/gpu/kernel_\${part}_cuda_test\"
done
cp '$folder/program' \"\$2/tests/kernels/gpu/quire-gpu-bench\""

expect 0 "built in $build" --build "$build" --build-only
[[ $output != *passed* ]] || fail "--build-only ran something"
expect 0 "0 failures; results in $folder/out/gpu_check.json" --build "$build" --out "$folder/out"
[[ $output != *profile* ]] || fail "it profiled unasked"
[[ "$(cat "$folder/out/gpu_check.txt")" == "quire-gpu-bench measured" ]] || fail "no table"
[[ -e $folder/out/gpu_check.json ]] || fail "no JSON"

expect 0 "no profile: neither ncu nor nsys is in PATH" --build "$build" --profile
stand_in ncu "echo 'ERR_NVGPUCTRPERM'; exit 1"
expect 0 "no profile: ncu failed" --build "$build" --profile
stand_in nsys "echo 'DecodeKernel 12 us'"
expect 0 "profile in $build/profile.txt" --build "$build" --profile
grep -q "12 us" "$build/profile.txt" || fail "the profile is not that of nsys"
stand_in ncu "echo 'DecodeKernel, counters'"
expect 0 "profile in $build/profile.txt" --build "$build" --profile
grep -q counters "$build/profile.txt" || fail "the profile is not that of ncu"

echo 1 >"$folder/status.kernel_write_cuda_test"
expect 1 "FAILED  write (exit status 1)" --build "$build"
[[ $output == *"passed  limits"* && $output == *"1 failures"* ]] || fail "one failure ended the run"
echo 1 >"$folder/status.quire-gpu-bench"
expect 1 "2 failures" --build "$build"
echo 3 >"$folder/status.kernel_arguments_cuda_test"
expect 3 "no CUDA device" --build "$build"
((failures == 0))
