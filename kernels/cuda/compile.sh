#!/bin/sh
# compile.sh LOG COMMAND...: runs a compiler, keeps what it says in LOG, and says it again on failure.
log="$1"
shift
"$@" >"$log" 2>&1 && exit 0
cat "$log"
rm -f "$log"
exit 1
