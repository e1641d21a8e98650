"""Includes follow the order that cache_service/README.md states, and the engine stays pure."""

import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "cache_service", "README.md")
SOURCE = re.compile(r"\.(cc|h|cu|cuh)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
# What the engine may not see, by include and by symbol.
FOREIGN = re.compile(r"^(grpc|google/|prometheus|cuda|quire/v1|proto/|kernels/)|\.pb\.h$")
FOREIGN_SYMBOL = re.compile(r"\b(grpc(_[a-z]|::)|google::protobuf|prometheus::|cuda[A-Z])")


def sources(folder):
    for parent, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if SOURCE.search(name):
                path = os.path.join(parent, name)
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, ROOT), INCLUDE.findall(file.read())


def stated_order():
    """Rows "| `folder` | may use |" of the README's table, as {folder: set of folders}."""
    rows = {}
    with open(README, encoding="utf-8") as file:
        for line in file:
            row = re.match(r"\|\s*`([a-z_/]+)`\s*\|([^|]*)\|", line)
            if row:
                rows[row.group(1).rstrip("/")] = set(re.findall(r"`([a-z_/]+)`", row.group(2)))
    return rows


def folder_of(path):
    """cache_service/rpc/x.h -> cache_service/rpc; files of cache_service itself -> main."""
    parts = path.split("/")
    if parts[0] == "cache_service":
        return "main" if len(parts) == 2 else parts[1]
    if path.startswith("quire/v1/") or path.startswith("google/rpc/"):
        return "proto"
    return parts[0] if parts[0] in ("proto", "kernels", "worker", "tests") else None


class IncludeOrderTest(unittest.TestCase):

    def test_readme_states_every_folder(self):
        folders = {entry.name for entry in os.scandir(os.path.join(ROOT, "cache_service"))
                   if entry.is_dir()}
        self.assertEqual(folders | {"main"}, set(stated_order()))

    def test_order_has_no_circle(self):
        order = stated_order()

        def reach(folder, seen):
            for below in order.get(folder, ()):
                self.assertNotIn(below, seen, f"{folder} and {below} use each other")
                reach(below, seen | {below})

        for folder in order:
            reach(folder, {folder})

    def test_includes_follow_the_order(self):
        order = stated_order()
        seen = 0
        for path, includes in sources("cache_service"):
            here = folder_of(path)
            for include in includes:
                there = folder_of(include)
                if there is None or there == here:
                    continue
                seen += 1
                self.assertIn(there, order[here], f"{path} includes {include}")
        self.assertGreater(seen, 50)

    def test_worker_and_kernels_never_include_the_server(self):
        # A worker shares the clock and the errors of base, nothing else.
        for folder, allowed in (("worker", "cache_service/base/"), ("kernels", "kernels/")):
            for path, includes in sources(folder):
                for include in includes:
                    self.assertFalse(include.startswith("cache_service/") and
                                     not include.startswith(allowed),
                                     f"{path} includes {include}")

    def test_engine_and_base_include_nothing_foreign(self):
        files = 0
        for folder in ("cache_service/engine", "cache_service/base"):
            for path, includes in sources(folder):
                files += 1
                for include in includes:
                    self.assertIsNone(FOREIGN.search(include), f"{path} includes {include}")
        self.assertGreater(files, 20)


class LinkTest(unittest.TestCase):
    """Looks into the libraries themselves: a forward declaration would escape the scan above."""

    libraries = []

    def test_libraries_need_nothing_foreign(self):
        self.assertEqual(len(self.libraries), 2)
        for library in self.libraries:
            symbols = subprocess.run(["nm", "--demangle", library], capture_output=True, text=True,
                                     check=True).stdout
            self.assertIn("quire::", symbols)
            found = FOREIGN_SYMBOL.search(symbols)
            self.assertIsNone(found, f"{library}: {found}")


if __name__ == "__main__":
    LinkTest.libraries = [argument for argument in sys.argv[1:] if argument.endswith(".a")]
    unittest.main(argv=sys.argv[:1], verbosity=2)
