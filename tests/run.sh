#!/usr/bin/env bash
# Installs what is missing, builds one preset and runs its tests.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root
readonly venv="$root/build/venv"
readonly known_labels=" unit conformance rpc integration kernel gpu bench fuzz simulation chaos "

usage() {
  cat <<'EOF'
Usage: tests/run.sh [OPTIONS]

Installs the Debian packages, configures, builds and runs all tests in parallel.

  --preset NAME   dev (default), release, asan, tsan, clang, tidy, cuda or coverage
  --label NAME    only tests with this label (may be repeated): unit, conformance, rpc,
                  integration, kernel, gpu, bench, fuzz, simulation or chaos
  --tests REGEX   only tests whose names match
  --jobs N        build and test jobs (default: number of cores)
  --junit FILE    where the results go (default: build/PRESET/junit.xml)
  --no-install    use what is installed; do not ask apt or pip
  --help          this text

Ends with one line "N passed, N failed, N skipped"; the exit status is 0 only if
nothing failed and something ran.
EOF
}

fail() {
  echo "tests/run.sh: $*" >&2
  exit 1
}

heading() {
  printf '\n== %s\n' "$*"
}

install_packages() {
  local -a sections=(build run test)
  case "$1" in clang | tidy | coverage) sections+=(tools) ;; esac
  "$root/deploy/install_packages.sh" "${sections[@]}"
}

# Independent test clients from PyPI live in their own environment under build/.
install_python_clients() {
  local requirements="$root/tests/requirements.txt" stamp="$venv/requirements.txt"
  [[ -f $requirements ]] || return 0
  cmp -s "$requirements" "$stamp" && return 0
  echo "Installing the test clients of tests/requirements.txt"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$stamp"
}

# The programs of one label can be built alone only where they start no other program.
build_targets() {
  [[ $* == unit ]] && echo tests_unit || echo all
}

main() {
  local preset=dev jobs tests="" junit="" install=yes
  local -a labels=() select=()
  jobs="$(nproc)"
  while (($#)); do
    case "$1" in
      --preset | --label | --tests | --jobs | --junit)
        (($# > 1)) || fail "$1 needs a value"
        case "$1" in
          --preset) preset="$2" ;;
          --label) labels+=("$2") ;;
          --tests) tests="$2" ;;
          --jobs) jobs="$2" ;;
          --junit) junit="$2" ;;
        esac
        shift
        ;;
      --no-install) install="" ;;
      --help | -h) usage; exit 0 ;;
      *) usage >&2; fail "unknown option $1" ;;
    esac
    shift
  done
  [[ $jobs =~ ^[1-9][0-9]*$ ]] || fail "--jobs needs a positive number, not '$jobs'"
  local label
  for label in "${labels[@]}"; do
    [[ $label && $known_labels == *" $label "* ]] || fail "no label '$label'; there are:${known_labels% }"
  done
  grep -q "\"name\": \"$preset\", \"inherits\"" "$root/CMakePresets.json" ||
    fail "no preset '$preset' in CMakePresets.json"
  junit="$(realpath -m "${junit:-$root/build/$preset/junit.xml}")"
  cd "$root"

  if [[ $install ]]; then
    heading "Packages"
    install_packages "$preset"
    install_python_clients
  fi
  export QUIRE_TEST_PYTHON=python3
  [[ ! -x $venv/bin/python3 ]] || export QUIRE_TEST_PYTHON="$venv/bin/python3"

  heading "Build: preset $preset, $jobs jobs"
  cmake --preset "$preset" -DBUILD_TESTING=ON
  cmake --build --preset "$preset" --parallel "$jobs" --target "$(build_targets "${labels[@]}")"

  heading "Tests: preset $preset, $jobs jobs"
  ((${#labels[@]} == 0)) || select+=(--label-regex "^($(IFS='|' && echo "${labels[*]}"))\$")
  [[ -z $tests ]] || select+=(--tests-regex "$tests")
  rm -f "$junit"
  local status=0
  ctest --preset "$preset" --parallel "$jobs" --output-junit "$junit" \
    --no-tests=error "${select[@]}" || status=$?

  heading "Summary: preset $preset"
  python3 tests/junit_summary.py "$junit" || status=1
  exit "$status"
}

main "$@"
