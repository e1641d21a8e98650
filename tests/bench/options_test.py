#!/usr/bin/env python3
"""Options of quire-bench: what --help shows, and what is refused before anything is measured."""

import subprocess
import sys
import unittest

BAD_OPTION = 2
program = ""


def run(*flags):
    return subprocess.run([program, *flags], capture_output=True, text=True, timeout=50)


class OptionsTest(unittest.TestCase):

    def test_help_names_flags_and_workloads(self):
        for flag in ("--help", "-h"):
            shown = run(flag)
            self.assertEqual(shown.returncode, 0)
            for word in ("--workload", "--cases", "--calls", "--traces", "--smoke", "socket_decode",
                         "worker_program"):
                self.assertIn(word, shown.stdout)

    def test_bad_options_are_named_and_nothing_runs(self):
        for flags, problem in (((), "nothing to run"),
                               (("--no_such_flag",), "--no_such_flag"),
                               (("word",), "word"),
                               (("--workload=zzz",), "--workload=zzz"),
                               (("--workload=family", "--all"), "--workload"),
                               (("--workload=socket_decode", "--cases=zzz"), "--cases=zzz"),
                               (("--all", "--cases=zzz"), "--cases=zzz"),
                               (("--smoke", "--cases=1024/"), "--cases=1024/"),
                               (("--workload=family", "--cases=64/"), "--cases"),
                               (("--workload=socket_decode", "--calls=-1"), "--calls"),
                               (("--workload=socket_decode", "--calls=many"), "--calls")):
            with self.subTest(flags):
                result = run(*flags)
                self.assertEqual(result.returncode, BAD_OPTION, result.stdout + result.stderr)
                self.assertIn(problem, result.stderr)
                self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
