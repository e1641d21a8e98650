"""Prints the totals of one or more JUnit files as ctest writes them.

Lists what failed, why tests were skipped and what took longest; the last line is
"N passed, N failed, N skipped". The exit status is 0 only if nothing failed and something passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

SLOW_SHOWN = 5
SKIPS_SHOWN = 20


def read_cases(paths):
    cases = []
    for path in paths:
        try:
            cases += ElementTree.parse(path).getroot().iter("testcase")
        except (OSError, ElementTree.ParseError) as error:
            print(f"cannot read {path}: {error}", file=sys.stderr)
            return None
    return cases


def was_skipped(case):
    """Skipped by its own word; a program that could not be started has failed."""
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP_")


def skip_reason(case):
    """The line with which the test says why, or what ctest noted."""
    output = case.findtext("system-out") or ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        # GoogleTest prints "file:line: Skipped" and then the reason.
        if line.endswith(": Skipped") and index + 1 < len(lines):
            return lines[index + 1]
        # unittest prints "test (name) ... skipped 'reason'".
        if match := re.search(r"\.\.\. skipped '(.*)'$", line):
            return match[1]
    for line in lines:
        if line.lower().startswith("skip"):
            return line
    return "no reason printed"


def main(paths):
    cases = read_cases(paths)
    if cases is None:
        return 1
    skipped = [case for case in cases if was_skipped(case)]
    failed = [case for case in cases if case.get("status") != "run" and case not in skipped]
    passed = len(cases) - len(failed) - len(skipped)

    slowest = sorted(cases, key=lambda case: -float(case.get("time") or 0))[:SLOW_SHOWN]
    if slowest and float(slowest[0].get("time") or 0) >= 1:
        print("Longest:")
        for case in slowest:
            print(f"  {float(case.get('time') or 0):7.1f} s  {case.get('name')}")
    if skipped:
        print("Skipped:")
        for case in skipped[:SKIPS_SHOWN]:
            print(f"  {case.get('name')}: {skip_reason(case)}")
        if len(skipped) > SKIPS_SHOWN:
            print(f"  and {len(skipped) - SKIPS_SHOWN} more")
    if failed:
        print("Failed:")
        for case in failed:
            print(f"  {case.get('name')}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
