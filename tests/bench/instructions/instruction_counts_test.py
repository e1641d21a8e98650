#!/usr/bin/env python3
"""Counts the instructions of core operations under callgrind and compares them with a golden file.

A count more than ten percent above or below the golden one fails: above, something became slower;
below, the golden file should keep what was won. Counts depend on the compiler, which Debian 12
fixes, and hardly on the machine.

    instruction_counts_test.py PROGRAM             compare
    instruction_counts_test.py PROGRAM --update    write the golden file
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).parent / "instruction_counts.json"
OPERATIONS = ("advance_256", "begin_cached_32k", "begin_cold_8k", "evict_64", "fork_32k_4")
BAND = 0.10
SKIPPED = 77


def count(program, operation):
    """Instructions between entry and exit of MeasuredOperation."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               "--toggle-collect=MeasuredOperation", program, operation]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or found is None or int(found[1]) == 0:
        sys.exit(f"{operation}: valgrind failed\n{run.stderr}")
    return int(found[1])


def outside(counts, golden):
    """Names of operations whose count left the band; prints a line for each operation."""
    names = []
    for name, instructions in counts.items():
        change = instructions / golden[name] - 1 if name in golden else float("inf")
        verdict = "ok" if abs(change) <= BAND else "OUTSIDE the band"
        print(f"{name:20} {instructions:>10} golden {golden.get(name, 0):>10} {change:+7.1%} {verdict}")
        if abs(change) > BAND:
            names.append(name)
    return names


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    counts = {operation: count(sys.argv[1], operation) for operation in OPERATIONS}
    if sys.argv[2:] == ["--update"]:
        GOLDEN.write_text(json.dumps(counts, indent=2) + "\n")
        print(f"wrote {GOLDEN}")
        return 0
    if not outside(counts, json.loads(GOLDEN.read_text())):
        return 0
    print(f"If the change is wanted: {sys.argv[0]} {sys.argv[1]} --update")
    return 1


if __name__ == "__main__":
    sys.exit(main())
