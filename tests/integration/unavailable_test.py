"""Why is a block not available? One worker holds, one has not completed, one is dead but still maps."""

import fcntl
import mmap
import multiprocessing
import os
import re
import struct
import time
import unittest
import urllib.request

from reflection_client import Client
from server_process import ServerTestCase

CACHE = "quire.v1.CacheService"
ADMIN = "quire.v1.AdminService"
# 4096 bytes a block: 4 tokens, 2 heads, K and V, 64 fp32.
SHAPE = {"dtype": 1, "kv_heads": 2, "head_dim": 64, "layer_windows": [0]}
F_OFD_SETLK = getattr(fcntl, "F_OFD_SETLK", 37)


def map_region(path, lock_offset):
    """Maps a region as a worker does: through the description that holds the lease's lock."""
    descriptor = os.open(path, os.O_RDWR)
    # struct flock of 64-bit Linux: type, whence, start, length, process.
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, lock_offset, 1, 0)
    fcntl.fcntl(descriptor, F_OFD_SETLK, lock)
    mapping = mmap.mmap(descriptor, 4096)
    os.close(descriptor)
    return mapping


def hang_with_region(path, lock_offset, mapped):
    """A worker process that maps its region and then does nothing any more."""
    mapping = map_region(path, lock_offset)
    mapped.set()
    time.sleep(600)
    mapping.close()


class Worker:

    def __init__(self, client, name, incarnation=1):
        self.client = client
        self.lease = client.call(CACHE, "AttachWorker", worker=name, incarnation=incarnation,
                                 model_fingerprint="m", layout=SHAPE)
        self.region = self.lease.regions[0]
        self.number = 0

    def step(self, *operations, completed=0):
        self.number += 1
        answer = self.client.call(CACHE, "Step", step={
            "lease_id": self.lease.lease_id, "epoch": self.lease.epoch, "step": self.number,
            "applied_step": self.number - 1, "completed_step": completed,
            "operations": operations}).answer
        assert not answer.failures, str(answer)
        return answer

    def begin(self, tokens, first, **fields):
        return self.step({"begin": {"sequence": 1, "tokens": range(first, first + tokens), **fields}})


class UnavailableTest(ServerTestCase):

    def metrics(self, name):
        """Values of a metric by its labels, those of the pool left out."""
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            text = answer.read().decode()
        rows = {}
        for labels, value in re.findall(rf"^quire_{name}{{(.*)}} (\S+)$", text, re.MULTILINE):
            pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            self.assertEqual((pairs.pop("pool"), pairs.pop("tier")), ("default", "device"))
            rows[tuple(sorted(pairs.items()))] = float(value)
        return rows

    def blocks_of(self, worker):
        return {reason: self.metrics("worker_blocks").get((("reason", reason), ("worker", worker)))
                for reason in ("held", "claimed", "fenced", "quarantined")}

    def unavailable(self):
        pool = self.client.call(ADMIN, "GetPool").pool
        rows = {(row.worker, row.incarnation): row for row in pool.unavailable}
        return pool, rows

    def start_dead_worker(self):
        """Its lease has ended while its process still maps the pool."""
        worker = Worker(self.client, "dead")
        mapped = multiprocessing.Event()
        process = multiprocessing.Process(
            target=hang_with_region, args=(worker.region.path, worker.region.lock_offset, mapped))
        process.start()
        self.addCleanup(process.join)
        self.addCleanup(process.kill)
        self.assertTrue(mapped.wait(30))
        worker.begin(5, 200)
        self.client.call(ADMIN, "EndWorker", worker="dead")
        return process

    def test_each_reason_is_seen_with_its_worker(self):
        server = self.start("--block_tokens=4", "--device_memory_bytes=80KiB")
        self.url = f"http://127.0.0.1:{server.port('metrics')}/metrics"
        self.client = Client(f"unix:{self.socket}")
        self.addCleanup(self.client.close)

        holder = Worker(self.client, "holder")
        holding = map_region(holder.region.path, holder.region.lock_offset)
        self.addCleanup(holding.close)
        holder.begin(9, 1, reserve_tokens=16)
        fencer = Worker(self.client, "fencer")
        fencing = map_region(fencer.region.path, fencer.region.lock_offset)
        self.addCleanup(fencing.close)
        fencer.begin(6, 100)
        fencer.step({"finish": {"sequence": 1}})
        dead = self.start_dead_worker()
        time.sleep(0.05)

        pool, rows = self.unavailable()
        self.assertEqual((rows["holder", 1].held, rows["holder", 1].claimed), (3, 1))
        self.assertEqual((rows["fencer", 1].held, rows["fencer", 1].fenced), (0, 2))
        self.assertEqual(rows["dead", 1].quarantined, 2)
        self.assertGreater(rows["dead", 1].quarantined_for.ToNanoseconds(), 0)
        self.assertFalse(rows["fencer", 1].HasField("quarantined_for"))
        counts = pool.blocks
        self.assertEqual((counts.free, counts.filling, counts.fenced, counts.quarantined),
                         (13, 3, 2, 2))
        self.assertEqual(pool.claimed_blocks, 1)

        self.assertEqual(self.blocks_of("holder"),
                         {"held": 3, "claimed": 1, "fenced": 0, "quarantined": 0})
        self.assertEqual(self.blocks_of("fencer"),
                         {"held": 0, "claimed": 0, "fenced": 2, "quarantined": 0})
        self.assertEqual(self.blocks_of("dead"),
                         {"held": 0, "claimed": 0, "fenced": 0, "quarantined": 2})
        self.assertGreater(self.metrics("worker_quarantine_age_seconds")[(("worker", "dead"),)], 0)
        self.assertGreater(self.metrics("worker_completed_age_seconds")[(("worker", "fencer"),)], 0)
        self.assertEqual(self.metrics("blocks")[(("group", "0"), ("state", "quarantined"))], 2)
        self.assertEqual(self.metrics("sequences")[(("tenant", ""),)], 1)

        # Completion ends the fence, the end of the process ends the quarantine.
        fencer.step(completed=2)
        dead.kill()
        deadline = time.monotonic() + 30
        while self.unavailable()[0].blocks.quarantined and time.monotonic() < deadline:
            time.sleep(0.05)
        pool, rows = self.unavailable()
        self.assertEqual((pool.blocks.fenced, pool.blocks.quarantined), (0, 0))
        self.assertEqual(rows["fencer", 1].fenced, 0)
        self.assertNotIn(("dead", 1), rows)
        self.assertEqual(pool.blocks.free, 17)
        self.assertEqual(len(self.client.call(ADMIN, "AuditPool").findings), 0)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    unittest.main(verbosity=2)
