"""A server process that gets less memory than a pool's tables take."""

import resource
import unittest

from reflection_client import Client, error_info, grpc
from server_process import BINARY, ServerTestCase, run_server

CACHE = "quire.v1.CacheService"
ADMIN = "quire.v1.AdminService"

# Tables of more than 100 GiB, of which nothing is used before the limit refuses them.
HUGE = 'pool: "huge" memory: POOL_MEMORY_WORKER block_count: 2000000000 max_sequence_tokens: 512'
SMALL = 'pool: "small" memory: POOL_MEMORY_WORKER block_count: 64 max_sequence_tokens: 512'
LIMIT = 3 << 30


def limit_memory(pid=0):
    resource.prlimit(pid, resource.RLIMIT_AS, (LIMIT, LIMIT))


def has_sanitizer():
    with open(BINARY, "rb") as program:
        return b"__asan_init" in program.read()


@unittest.skipIf(has_sanitizer(), "a sanitizer needs the whole address space")
class MemoryLimitTest(ServerTestCase):

    def config(self, *pools):
        path = self.path("config")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"pools {{ {pool} }}\n" for pool in pools))
        return [f"--unix_socket={self.socket}", "--metrics_address=none", f"--config_file={path}"]

    def flags(self, *more):
        return self.config(HUGE, SMALL)

    def attach(self, client, pool):
        return client.call(CACHE, "AttachWorker", worker="w", incarnation=1, pool=pool,
                           model_fingerprint="m", lock_step=True)

    def test_an_attach_that_finds_no_memory_is_refused_and_the_server_goes_on(self):
        server = self.start()
        limit_memory(server.process.pid)
        client = Client(f"unix:{self.socket}")
        self.addCleanup(client.close)
        for _ in range(3):
            with self.assertRaises(grpc.RpcError) as refused:
                self.attach(client, "huge")
            self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            info = error_info(refused.exception)
            self.assertEqual(info.reason, "LIMIT_EXCEEDED")
            self.assertEqual(dict(info.metadata), {"field": "server_memory", "limit": str(LIMIT)})
        self.assertFalse(client.call(ADMIN, "GetPool", pool="huge").pool.layout_known)
        self.assertEqual(self.attach(client, "small").block_count, 64)
        self.assertEqual(len(client.call(ADMIN, "AuditPool", pool="small").findings), 0)
        self.assertIsNone(server.process.poll())

    def test_a_start_that_finds_no_memory_says_so(self):
        known = HUGE + " layout { dtype: DTYPE_FP16 kv_heads: 2 head_dim: 64 layer_windows: 0 }"
        refused = run_server(*self.config(known), before=limit_memory)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("memory of this process is too small", refused.stderr)


if __name__ == "__main__":
    unittest.main()
