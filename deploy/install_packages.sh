#!/usr/bin/env bash
# Installs the Debian packages of the given sections of packages.txt.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
readonly list="$here/packages.txt"

usage() {
  cat <<'EOF'
Usage: deploy/install_packages.sh [--print] SECTION...

Installs the Debian 12 packages of one or more sections of deploy/packages.txt
(build, run, test, tools). Does nothing, quickly, when all of them are there.
Works as root, or through sudo.

  --print  print the package names and stop
  --help   this text
EOF
}

fail() {
  echo "install_packages: $*" >&2
  exit 1
}

packages_of() {
  awk -v want="$1" '
    /^\[.*\]$/ { inside = ($0 == "[" want "]"); found = found || inside; next }
    inside && NF && $1 !~ /^#/ { print $1 }
    END { exit !found }' "$list"
}

missing_of() {
  local name
  for name in "$@"; do
    # The status column reads "install ok installed"; virtual and unknown packages print nothing.
    dpkg-query -W -f='${Status}\n' "$name" 2>/dev/null | grep -q 'ok installed$' || echo "$name"
  done
}

# While this policy stands, installing a package starts no daemon.
readonly policy=/usr/sbin/policy-rc.d

# Runs a command and shows what it printed only if it failed.
apt_quietly() {
  local output
  output="$("$@" 2>&1)" || {
    printf '%s\n' "$output" >&2
    fail "this command failed: $*"
  }
}

install_missing() {
  local -a root=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null || fail "needs root: install sudo, or run as root: apt-get install $*"
    root=(sudo)
  fi
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
    # shellcheck disable=SC2064  # The commands are fixed now, not when the trap runs.
    trap "${root[*]} rm -f $policy" EXIT
    "${root[@]}" chmod 755 "$policy"
  fi
  apt_quietly "${root[@]}" apt-get update -qq
  apt_quietly "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

main() {
  local print="" section names
  local -a sections=() packages=() missing=()
  while (($#)); do
    case "$1" in
      --print) print=yes ;;
      --help | -h) usage; exit 0 ;;
      -*) usage >&2; fail "unknown option $1" ;;
      *) sections+=("$1") ;;
    esac
    shift
  done
  ((${#sections[@]})) || { usage >&2; fail "name at least one section"; }
  for section in "${sections[@]}"; do
    names="$(packages_of "$section")" || fail "no section '$section' in $list"
    mapfile -t -O "${#packages[@]}" packages <<<"$names"
  done
  if [[ $print ]]; then
    printf '%s\n' "${packages[@]}"
    exit 0
  fi
  command -v dpkg-query >/dev/null ||
    fail "this is not Debian; install the equivalents of: ${packages[*]}"
  names="$(missing_of "${packages[@]}")"
  [[ $names ]] || exit 0
  mapfile -t missing <<<"$names"
  echo "Installing ${#missing[@]} Debian packages and what they need: ${missing[*]}"
  install_missing "${missing[@]}"
}

main "$@"
