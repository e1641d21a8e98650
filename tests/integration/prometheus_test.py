"""A real Prometheus scrapes a real server and answers with the hit rate."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from reflection_client import Client
from server_process import ServerTestCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "deploy", "prometheus")

for program in ("prometheus", "promtool"):
    if shutil.which(program) is None:
        print(f"SKIPPED: no {program}; it is in the Debian package prometheus")
        sys.exit(77)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ConfigurationTest(unittest.TestCase):

    def test_promtool_accepts_configuration_and_rules(self):
        for check, name in (("config", "prometheus.yml"), ("rules", "quire.rules.yml")):
            with self.subTest(name):
                result = subprocess.run(
                    ["promtool", "check", check, os.path.join(RULES, name)], timeout=60,
                    capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn("SUCCESS", result.stdout)


class ScrapeTest(ServerTestCase):

    def start_prometheus(self, target):
        with open(os.path.join(RULES, "prometheus.yml"), encoding="utf-8") as file:
            config = file.read()
        self.assertIn("127.0.0.1:9400", config)
        config = config.replace("127.0.0.1:9400", target).replace("5s", "200ms")
        with open(self.path("prometheus.yml"), "w", encoding="utf-8") as file:
            file.write(config)
        shutil.copy(os.path.join(RULES, "quire.rules.yml"), self.folder)
        self.api = f"127.0.0.1:{free_port()}"
        process = subprocess.Popen(
            ["prometheus", f"--config.file={self.path('prometheus.yml')}",
             f"--storage.tsdb.path={self.path('data')}", f"--web.listen-address={self.api}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def query(self, expression):
        """The value of an instant query; waits until there is one."""
        url = f"http://{self.api}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    result = json.load(answer)["data"]["result"]
                if result:
                    return float(result[0]["value"][1])
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        self.fail(f"no value for {expression}")
        return None

    def run_workload(self):
        """Two prompts of 48 tokens with 32 in common, by a worker with its own memory."""
        client = Client(f"unix:{self.socket}")
        self.addCleanup(client.close)
        service = "quire.v1.CacheService"
        lease = client.call(service, "AttachWorker", worker="w", incarnation=1,
                            model_fingerprint="m", lock_step=True)
        prompts = [list(range(1, 49)), list(range(1, 33)) + list(range(100, 116))]
        step = 0
        for handle, prompt in enumerate(prompts):
            for operation in (
                    {"begin": {"sequence": handle, "tokens": prompt}},
                    {"commit": {"sequence": handle, "start_length": 48, "committed_length": 48}}):
                step += 1
                answer = client.call(service, "Step", step={
                    "lease_id": lease.lease_id, "epoch": lease.epoch, "step": step,
                    "operations": [operation]}).answer
                self.assertEqual(len(answer.failures), 0, str(answer))

    def test_hit_rate_is_what_the_workload_says(self):
        server = self.start("--memory=worker", "--block_count=64")
        self.run_workload()
        self.start_prometheus(f"127.0.0.1:{server.port('metrics')}")
        rate = self.query("sum(quire_prefix_tokens_hit_total) / "
                          "sum(quire_prefix_tokens_queried_total)")
        self.assertAlmostEqual(rate, 32 / 96)
        self.assertEqual(self.query('up{job="quire"}'), 1)
        self.assertEqual(self.query("sum(quire_blocks)"), 64)
        self.assertEqual(self.query('quire_rpc_duration_seconds_count{method="Step"}'), 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
