#!/usr/bin/env python3
"""Prints the results that have a goal as a Markdown table, or writes it into the README.

    quire-bench --all --json out.json
    results_table.py out.json
    results_table.py out.json --update    # replaces the table in README.md beside this file
"""

import json
import pathlib
import re
import sys

README = pathlib.Path(__file__).parent / "README.md"
HEAD = "| result | value | goal | |\n|---|---|---|---|\n"


def number(value):
    """Three significant digits, without an exponent."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def row(result):
    sign = ">=" if result["at_least"] else "<="
    verdict = "reached" if result["reached"] else "MISSED"
    return (f"| {result['name']} | {number(result['value'])} {result['unit']} "
            f"| {sign} {result['goal']:g} | {verdict} |\n")


def table(results):
    return HEAD + "".join(row(result) for result in results if "goal" in result)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--update"]):
        sys.exit(__doc__)
    text = table(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    if not sys.argv[2:]:
        print(text, end="")
        return
    old = README.read_text()
    new, count = re.subn(re.escape(HEAD) + r"(?:\|.*\n)*", lambda _: text, old, count=1)
    if count == 0:
        sys.exit(f"{README} has no table that begins with {HEAD.splitlines()[0]}")
    README.write_text(new)


if __name__ == "__main__":
    main()
