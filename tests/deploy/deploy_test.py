"""Scripts, manifests and the dashboard: they parse, agree with each other and explain misuse."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=50, **options
    )


def scripts():
    candidates = [ROOT / ".ci/run", *DEPLOY.rglob("*.sh"), *(ROOT / "tests").rglob("*.sh")]
    return sorted(candidates)


def manifest():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes/quire-sidecar.yaml").read_text()))


def flags_of_server():
    """Every field of the configuration is a flag of its name."""
    proto = (ROOT / "proto/quire/v1/server_config.proto").read_text()
    return set(re.findall(r"^\s*(?:repeated |optional )?[\w.]+ (\w+) = \d+;", proto, re.MULTILINE))


COMMANDS = (DEPLOY / "quickstart.sh", DEPLOY / "install_packages.sh", ROOT / "tests/run.sh", ROOT / ".ci/run")


class ScriptsTest(unittest.TestCase):
    def test_shellcheck_finds_nothing(self):
        result = run("shellcheck", *scripts())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_are_executable_and_strict(self):
        for path in scripts():
            with self.subTest(path=path):
                self.assertTrue(path.stat().st_mode & 0o100)
                self.assertIn("set -euo pipefail", path.read_text())

    def test_help_works_from_any_directory(self):
        for path in COMMANDS:
            with self.subTest(path=path):
                result = run(path, "--help", cwd="/")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("Usage:", result.stdout)

    def test_unknown_option_is_named(self):
        for path in COMMANDS:
            with self.subTest(path=path):
                result = run(path, "--frobnicate")
                self.assertEqual(result.returncode, 1)
                self.assertIn("unknown", result.stderr)
                self.assertIn("--frobnicate", result.stderr)


class QuickstartTest(unittest.TestCase):
    def refused(self, *arguments):
        result = run(DEPLOY / "quickstart.sh", *arguments)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_seconds_must_be_a_positive_number(self):
        for value in ("0", "-1", "soon", "1.5", ""):
            with self.subTest(value=value):
                self.assertIn("--seconds", self.refused("--seconds", value))

    def test_options_need_their_value(self):
        for option in ("--seconds", "--json", "--programs"):
            for value in ((), ("",)):
                with self.subTest(option=option, value=value):
                    self.assertIn(f"{option} needs a value", self.refused(option, *value))

    def test_summary_file_must_be_writable(self):
        self.assertIn("/nonexistent", self.refused("--json", "/nonexistent/summary.json"))


FAKE_SERVER = """#!/usr/bin/python3
import http.server, socket, sys
flags = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'quire_prefix_tokens_queried_total{pool="p"} 1000\\n'
                         b'quire_prefix_tokens_hit_total{pool="p",source="whole"} 600\\n'
                         b'quire_prefix_tokens_hit_total{pool="p",source="partial"} 30\\n'
                         b'quire_blocks{pool="p",state="free"} 7\\n'
                         b'quire_blocks{pool="p",state="idle"} 5\\n'
                         b'quire_copy_on_write_copies_total{pool="p"} 4\\n'
                         b'quire_blocks_evicted_total{pool="p",reason="dead"} 2\\n')
    def log_message(self, *_): pass
host, port = flags["metrics_address"].split(":")
server = http.server.HTTPServer((host, int(port)), Metrics)
listener = socket.socket(socket.AF_UNIX)
listener.bind(flags["unix_socket"])
print(f"quire-server ready: unix={flags['unix_socket']} tcp_port=1 metrics_port={server.server_port}", flush=True)
server.serve_forever()
"""

FAKE_WORKER = """#!/bin/sh
sleep {seconds}
for argument; do case "$argument" in --json=*) out="${{argument#--json=}}" ;; esac; done
echo '{{"requests": 12, "generated_tokens": 345, "tokens_per_second": 17.25, "internal_waste": 0.25, "verification": "{verdict}"}}' > "$out"
"""


class QuickstartRunTest(unittest.TestCase):
    """The script around programs that only pretend."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.program("quire-server", FAKE_SERVER)
        self.program("quire-worker", FAKE_WORKER.format(seconds=1.5, verdict="identical"))

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments):
        command = [DEPLOY / "quickstart.sh", "--no-install", "--programs", self.folder, *arguments]
        return subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "TMPDIR": str(self.temporary)},
            # A shell cannot trap what is ignored when it starts, as in a background job.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def finish(self, process):
        output, errors = process.communicate(timeout=40)
        return process.returncode, output, errors

    def servers(self):
        """Process ids of the fake servers of this test."""
        mark = str(self.folder / "quire-server").encode()
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue  # ended meanwhile
        return found

    def test_summary_on_screen_and_in_file(self):
        summary = self.folder / "summary.json"
        status, output, errors = self.finish(self.start("--seconds", "1", "--json", summary))
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(output, r"prefix hit rate +63 %")
        self.assertRegex(output, r"internal waste +25 %")
        self.assertRegex(output, r"verification +identical")
        self.assertIn("grpcurl", output)
        self.assertIn("curl -s", output)
        written = json.loads(summary.read_text())
        self.assertEqual(written["prefix_hit_rate"], 0.63)
        self.assertEqual((written["copies"], written["evictions"], written["requests"]), (4, 2, 12))
        self.assertEqual(self.servers(), [])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_keep_leaves_the_server(self):
        status, output, _ = self.finish(self.start("--keep"))
        self.assertEqual(status, 0)
        (pid,) = self.servers()
        self.assertIn(f"kill {pid}", output)
        os.kill(pid, signal.SIGTERM)

    def test_other_text_is_a_failure(self):
        self.program("quire-worker", FAKE_WORKER.format(seconds=0, verdict="different"))
        status, output, errors = self.finish(self.start("--keep"))
        self.assertEqual(status, 1)
        self.assertRegex(output, r"verification +different")
        self.assertIn("different", errors)
        self.assertEqual(self.servers(), [])

    def test_server_that_ends_is_explained(self):
        self.program("quire-server", "#!/bin/sh\necho pool is too small\nexit 1\n")
        status, _, errors = self.finish(self.start())
        self.assertEqual(status, 1)
        self.assertIn("pool is too small", errors)
        self.assertIn("quire-server ended at once", errors)

    def test_worker_that_fails_is_explained(self):
        self.program("quire-worker", "#!/bin/sh\necho no such model\nexit 3\n")
        status, _, errors = self.finish(self.start())
        self.assertEqual(status, 1)
        self.assertIn("no such model", errors)
        self.assertIn("status 3", errors)
        self.assertEqual(self.servers(), [])

    def test_missing_program_is_named(self):
        (self.folder / "quire-worker").unlink()
        status, _, errors = self.finish(self.start())
        self.assertEqual(status, 1)
        self.assertIn("no program quire-worker", errors)
        self.assertEqual(self.servers(), [])

    def test_several_run_at_once(self):
        processes = [self.start() for _ in range(4)]
        for status, _, errors in [self.finish(process) for process in processes]:
            self.assertEqual(status, 0, errors)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_interrupt_ends_everything(self):
        self.program("quire-worker", "#!/bin/sh\nexec sleep 100\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                process = self.start("--keep")
                for line in process.stdout:
                    if "Chat workload" in line:
                        break
                process.send_signal(number)
                status, _, _ = self.finish(process)
                self.assertEqual(status, 128 + number)
                self.assertEqual(self.servers(), [])
                self.assertEqual(list(self.temporary.iterdir()), [])


class RunScriptTest(unittest.TestCase):
    def refused(self, *arguments):
        result = run(ROOT / "tests/run.sh", "--no-install", *arguments)
        self.assertEqual(result.returncode, 1)
        return result.stderr

    def test_unknown_preset_is_named(self):
        self.assertIn("no preset 'fast'", self.refused("--preset", "fast"))

    def test_jobs_must_be_a_positive_number(self):
        self.assertIn("--jobs", self.refused("--jobs", "many"))

    def test_labels_are_those_of_the_tests(self):
        used = set()
        for lists in (ROOT / "tests").rglob("CMakeLists.txt"):
            code = re.sub(r"#.*", "", lists.read_text())
            for words in re.findall(r"\bLABELS ((?:[a-z]+ ?)+)", code):
                used.update(words.split())
        self.assertIn("unit", used)
        for label in used:
            # Far enough to find the preset wrong.
            with self.subTest(label):
                refusal = self.refused("--label", label, "--preset", "fast")
                self.assertIn("no preset 'fast'", refusal)
                self.assertNotIn("label", refusal)
        for label in ("frobnicate", "uni", "", "unit rpc"):
            with self.subTest(label):
                refusal = self.refused("--label", "unit", "--label", label)
                self.assertIn(f"no label '{label}'; there are: unit ", refusal)


class SummaryTest(unittest.TestCase):
    def summary(self, *cases):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write("<testsuite>" + "".join(cases) + "</testsuite>")
            file.flush()
            return run("python3", ROOT / "tests/junit_summary.py", file.name)

    def test_counts_and_gives_reasons(self):
        result = self.summary(
            '<testcase name="A.Good" status="run" time="0.1"/>',
            '<testcase name="A.Bad" status="fail" time="0.1"><failure message=""/></testcase>',
            '<testcase name="A.Gone" status="notrun"><skipped message="Unable to find executable"/>'
            "</testcase>",
            '<testcase name="A.Left" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
            "<system-out>a_test.cc:3: Skipped\nno traces here\n</system-out></testcase>",
        )
        self.assertEqual(result.stdout.splitlines()[-1], "1 passed, 2 failed, 1 skipped")
        self.assertIn("A.Left: no traces here", result.stdout)
        self.assertIn("  A.Bad\n  A.Gone\n", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(self.summary().returncode, 1)


class PackagesTest(unittest.TestCase):
    def test_sections_list_packages_once(self):
        for section in ("build", "run", "server", "worker", "test", "tools"):
            with self.subTest(section=section):
                result = run(DEPLOY / "install_packages.sh", "--print", section)
                names = result.stdout.split()
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(names)
                self.assertEqual(names, sorted(set(names)))

    def test_unknown_section_is_named(self):
        result = run(DEPLOY / "install_packages.sh", "--print", "everything")
        self.assertEqual(result.returncode, 1)
        self.assertIn("everything", result.stderr)


class KubernetesTest(unittest.TestCase):
    def setUp(self):
        self.pod = manifest()[0]["spec"]["template"]["spec"]
        (self.server,) = self.pod["initContainers"]
        (self.worker,) = self.pod["containers"]

    def test_server_is_a_native_sidecar_with_probes(self):
        self.assertEqual(self.server["restartPolicy"], "Always")
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertIn(probe, self.server)

    def test_both_share_socket_and_pool(self):
        memory = {
            volume["name"] for volume in self.pod["volumes"] if volume["emptyDir"].get("medium") == "Memory"
        }
        self.assertEqual(memory, {"socket", "pool"})
        for container in (self.server, self.worker):
            self.assertLessEqual(memory, {mount["name"] for mount in container["volumeMounts"]})

    def test_server_flags_exist(self):
        known = flags_of_server() | {"check_health"}
        for argument in self.server["args"] + self.server["startupProbe"]["exec"]["command"][1:]:
            self.assertIn(argument.removeprefix("--").split("=")[0], known)

    def test_pool_fits_its_volume_and_the_memory_limit(self):
        (pool,) = [
            int(argument.split("=")[1])
            for argument in self.server["args"]
            if argument.startswith("--device_memory_bytes=")
        ]
        (volume,) = [volume for volume in self.pod["volumes"] if volume["name"] == "pool"]
        self.assertLess(pool, int(volume["emptyDir"]["sizeLimit"].removesuffix("Mi")) << 20)
        self.assertLess(pool, int(self.server["resources"]["limits"]["memory"].removesuffix("Gi")) << 30)

    def test_manifest_follows_the_schema(self):
        validate = ROOT / "build/venv/bin/kubernetes-validate"
        if not validate.exists():
            self.skipTest("kubernetes-validate of tests/requirements.txt is not installed")
        result = run(validate, "--strict", "-k", "1.29", DEPLOY / "kubernetes/quire-sidecar.yaml")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_nobody_is_root(self):
        self.assertTrue(self.pod["securityContext"]["runAsNonRoot"])
        for container in (self.server, self.worker):
            self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])


class SystemdTest(unittest.TestCase):
    def test_unit_verifies(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        unit = (DEPLOY / "systemd/quire-server.service").read_text()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "quire-server.service")
            # The program is not installed where tests run.
            path.write_text(unit.replace("/usr/bin/quire-server", "/bin/true"))
            result = run("systemd-analyze", "verify", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")

    def test_configuration_is_a_server_config(self):
        with (DEPLOY / "systemd/server.textproto").open() as file:
            result = run(
                "protoc",
                f"-I{ROOT}/proto",
                "--encode=quire.v1.ServerConfig",
                "quire/v1/server_config.proto",
                stdin=file,
                cwd=ROOT / "proto",
                errors="replace",
            )
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_stop_timeout_covers_the_drain(self):
        unit = (DEPLOY / "systemd/quire-server.service").read_text()
        config = (DEPLOY / "systemd/server.textproto").read_text()
        timeout = int(re.search(r"TimeoutStopSec=(\d+)", unit)[1])
        drain = int(re.search(r"drain_deadline { seconds: (\d+) }", config)[1])
        self.assertGreater(timeout, drain)


class DashboardTest(unittest.TestCase):
    def setUp(self):
        self.dashboard = json.loads((DEPLOY / "grafana/quire.json").read_text())

    def expressions(self):
        for panel in self.dashboard["panels"]:
            for target in panel.get("targets", []):
                yield panel["title"], target["expr"]

    def assert_exported(self, where, text):
        sources = "".join(path.read_text() for path in (ROOT / "cache_service/metrics").glob("*.cc"))
        for name in re.findall(r"\bquire_(\w+)", text):
            with self.subTest(where=where, metric=name):
                self.assertIn(f'"{name.removesuffix("_bucket")}"', sources)

    def test_metrics_are_exported(self):
        for title, expression in self.expressions():
            self.assert_exported(title, expression)

    def test_alerts_use_exported_metrics(self):
        rules = yaml.safe_load((DEPLOY / "prometheus/quire.rules.yml").read_text())
        for group in rules["groups"]:
            for rule in group["rules"]:
                self.assert_exported(rule.get("alert") or rule["record"], rule["expr"])

    def test_guide_names_exported_metrics(self):
        guide = (DEPLOY / "README.md").read_text()
        self.assert_exported("README.md", guide.replace("`quire_`", ""))

    def test_expressions_are_promql(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        rules = {"groups": [{"name": "panels", "rules": []}]}
        for index, (_, expression) in enumerate(self.expressions()):
            plain = expression.replace("$__rate_interval", "1m")
            rules["groups"][0]["rules"].append({"record": f"panel:{index}", "expr": plain})
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(rules, file)
            file.flush()
            result = run("promtool", "check", "rules", file.name)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_panels_do_not_overlap(self):
        taken = {}
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken[x, y] = panel["title"]


class ContainerTest(unittest.TestCase):
    def test_final_stages_run_as_user(self):
        text = (DEPLOY / "container/Containerfile").read_text()
        for stage in text.split("\nFROM ")[1:]:
            if " AS server" in stage or " AS worker" in stage:
                self.assertIn("\nUSER 10000:10000\n", stage)

    def test_server_flags_exist(self):
        text = (DEPLOY / "container/Containerfile").read_text()
        for flag in re.findall(r'"--(\w+)=', text):
            self.assertIn(flag, flags_of_server())


if __name__ == "__main__":
    unittest.main(verbosity=2)
