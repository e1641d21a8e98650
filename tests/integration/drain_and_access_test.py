"""A server process under signals while sequences run, with tokens, and with TLS."""

import os
import queue
import shutil
import signal
import subprocess
import time
import unittest

from reflection_client import Client, error_info, grpc
from server_process import ServerTestCase, run_server

CACHE = "quire.v1.CacheService"
ADMIN = "quire.v1.AdminService"


class WorkerTestCase(ServerTestCase):
    """A pool of ids only, and one worker with one sequence."""

    def flags(self, *more):
        return super().flags("--memory=worker", "--block_count=16", *more)

    def connect(self):
        client = Client(f"unix:{self.socket}")
        self.addCleanup(client.close)
        return client

    def begin(self, client):
        self.lease = client.call(CACHE, "AttachWorker", worker="w", incarnation=1,
                                 model_fingerprint="m", lock_step=True)
        self.number = 0
        self.step(client, {"begin": {"sequence": 1, "tokens": range(20)}})

    def step(self, client, *operations):
        self.number += 1
        return client.call(CACHE, "Step", step={
            "lease_id": self.lease.lease_id, "epoch": self.lease.epoch, "step": self.number,
            "operations": operations}).answer

    def health(self):
        return run_server("--check_health", f"--unix_socket={self.socket}").returncode


class DrainTest(WorkerTestCase):

    def test_sequences_go_on_after_a_signal_and_their_end_is_the_servers(self):
        server = self.start()
        client = self.connect()
        self.begin(client)
        self.assertEqual(self.health(), 0)
        server.signal(signal.SIGTERM)
        while self.health() == 0:
            time.sleep(0.05)
        self.assertIsNone(server.process.poll())
        refused = self.step(client, {"begin": {"sequence": 2, "tokens": [1]}})
        self.assertEqual(refused.failures[0].error.reason, 18)
        self.assertEqual(len(self.step(client, {"extend": {
            "sequence": 1, "start_length": 20, "slots": 40}}).failures), 0)
        self.step(client, {"finish": {"sequence": 1}})
        self.assertEqual(server.wait(), 0)

    def test_deadline_ends_what_still_runs(self):
        server = self.start("--drain_deadline=1s")
        self.begin(self.connect())
        start = time.monotonic()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertGreaterEqual(time.monotonic() - start, 1)

    def test_streams_are_told_and_the_next_server_takes_the_socket_at_once(self):
        server = self.start("--drain_deadline=1s")
        client = self.connect()
        self.begin(client)
        asked = queue.SimpleQueue()
        asked.put({"step": {"lease_id": self.lease.lease_id, "epoch": self.lease.epoch, "step": 2}})
        answers = client.stream(CACHE, "StreamSteps", iter(asked.get, None))
        self.assertEqual(next(answers).answer.step, 2)
        start = time.monotonic()
        server.signal(signal.SIGTERM)
        with self.assertRaises(grpc.RpcError) as told:
            next(answers)
        asked.put(None)
        self.assertEqual(told.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(error_info(told.exception).reason, "DRAINING")
        self.assertEqual(server.wait(), 0)
        self.assertLess(time.monotonic() - start, 20)
        self.start()
        self.assertEqual(self.health(), 0)
        again = self.connect()
        # Nobody has attached to the new one yet, and it knows that the lease is of an old epoch.
        with self.assertRaises(grpc.RpcError) as restarted:
            again.call(CACHE, "RenewLease", lease_id=self.lease.lease_id, epoch=self.lease.epoch)
        self.assertEqual(error_info(restarted.exception).reason, "EPOCH_MISMATCH")
        self.begin(again)
        self.assertEqual(len(again.call(ADMIN, "AuditPool").findings), 0)

    def test_a_server_that_drains_keeps_its_socket(self):
        server = self.start("--drain_deadline=1h")
        self.begin(self.connect())
        server.signal(signal.SIGTERM)
        while self.health() == 0:
            time.sleep(0.05)
        second = run_server(*self.flags())
        self.assertEqual(second.returncode, 1)
        self.assertIn("another server", second.stderr)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)

    def test_second_signal_ends_at_once(self):
        server = self.start("--drain_deadline=1h")
        self.begin(self.connect())
        server.signal(signal.SIGTERM)
        while self.health() == 0:
            time.sleep(0.05)
        server.signal(signal.SIGINT)
        self.assertEqual(server.wait(), 0)

    def test_drain_by_call_ends_the_process(self):
        server = self.start()
        client = self.connect()
        self.begin(client)
        answer = client.call(ADMIN, "Drain", deadline={"seconds": 60})
        self.assertEqual(answer.sequences_running, 1)
        self.step(client, {"finish": {"sequence": 1}})
        self.assertEqual(server.wait(), 0)


class AccessTest(WorkerTestCase):

    def test_tokens_give_rights_and_tenant(self):
        with open(self.path("tokens"), "w", encoding="utf-8") as file:
            file.write("worker-token-0123 acme worker\nadmin-token-01234 * admin\n")
        self.start(f"--token_file={self.path('tokens')}")
        client = self.connect()
        # Reflection and health are open, everything else is not.
        for token, code in ((None, grpc.StatusCode.UNAUTHENTICATED),
                            ("wrong-token-01234", grpc.StatusCode.UNAUTHENTICATED),
                            ("worker-token-0123", grpc.StatusCode.PERMISSION_DENIED)):
            with self.subTest(token), self.assertRaises(grpc.RpcError) as refused:
                client.call(ADMIN, "ListPools", token=token)
            self.assertEqual(refused.exception.code(), code)
            self.assertEqual(error_info(refused.exception).domain, "quire")
        self.assertEqual(len(client.call(ADMIN, "ListPools", token="admin-token-01234").pools), 1)

    def make_certificate(self, certificate, key):
        """False where there is no program to make one."""
        if shutil.which("openssl") is None:
            return False
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-days", "1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True, timeout=60)
        return True

    def test_tcp_with_tls(self):
        certificate, key = self.path("certificate"), self.path("key")
        if not self.make_certificate(certificate, key):
            self.skipTest("no openssl program to make a certificate")
        server = self.start("--tcp_address=localhost:0", f"--tls_certificate={certificate}",
                            f"--tls_key={key}")
        with open(certificate, "rb") as file:
            client = Client(f"localhost:{server.port('tcp')}", certificate=file.read())
        self.addCleanup(client.close)
        self.assertEqual(len(client.call(ADMIN, "ListPools").pools), 1)

    def refused_pair(self, certificate, key, text):
        for more in ((), ("--check_config",)):
            result = run_server(*self.flags("--tcp_address=127.0.0.1:0",
                                            f"--tls_certificate={certificate}",
                                            f"--tls_key={key}", *more))
            self.assertEqual(result.returncode, 2)
            self.assertIn(text, result.stderr)
            self.assertFalse(os.path.exists(self.socket))

    def test_files_that_are_no_pem_are_named(self):
        for name in ("certificate", "key", "other-key"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("not a PEM file\n")
        certificate, key = self.path("certificate"), self.path("key")
        self.refused_pair(certificate, key, "tls_certificate: " + certificate)
        self.refused_pair("/nowhere", key, "tls_certificate: /nowhere: cannot be read")
        if not self.make_certificate(certificate, key):
            self.skipTest("no openssl program to make a certificate")
        self.refused_pair(certificate, certificate, "tls_key: " + certificate)
        self.make_certificate(self.path("other"), self.path("other-key"))
        self.refused_pair(certificate, self.path("other-key"), "is not the key of")


if __name__ == "__main__":
    unittest.main(verbosity=2)
