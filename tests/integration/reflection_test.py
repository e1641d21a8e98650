"""An independent client, by reflection only: lists, attaches, begins, reads, peeks, audits."""

import unittest

from reflection_client import Client, error_info, grpc
from server_process import ServerTestCase

CACHE = "quire.v1.CacheService"
ADMIN = "quire.v1.AdminService"
NO_BLOCK = 0xFFFFFFFF
LAYOUT = {"dtype": "DTYPE_FP32", "kv_heads": 2, "head_dim": 64, "layer_windows": [0]}


class ReflectionTest(ServerTestCase):

    def setUp(self):
        super().setUp()
        self.start("--block_tokens=4", "--device_memory_bytes=40KiB")
        self.client = Client(f"unix:{self.socket}")
        self.addCleanup(self.client.close)

    def cache(self, name, **fields):
        return self.client.call(CACHE, name, **fields)

    def admin(self, name, **fields):
        return self.client.call(ADMIN, name, **fields)

    def attach(self):
        return self.cache("AttachWorker", worker="tool", incarnation=1, model_fingerprint="m",
                          layout=LAYOUT, map_memory=False, lock_step=True)

    def step(self, lease, number, *operations):
        return self.cache("Step", step={
            "lease_id": lease.lease_id, "epoch": lease.epoch, "step": number,
            "operations": operations}).answer

    def test_services_are_listed(self):
        self.assertLessEqual({CACHE, ADMIN, "grpc.health.v1.Health"}, set(self.client.services()))

    def test_health_is_serving(self):
        for service in ("", CACHE, ADMIN):
            answer = self.client.call("grpc.health.v1.Health", "Check", service=service)
            self.assertEqual(answer.status, 1)

    def test_a_sequence_from_begin_to_audit(self):
        self.assertFalse(self.admin("GetPool").pool.layout_known)
        lease = self.attach()
        self.assertEqual(lease.block_count, 10)
        self.assertEqual(len(lease.regions), 0)
        begun = self.step(lease, 1, {"begin": {"sequence": 7, "tokens": range(1, 7)}})
        self.assertEqual(begun.begins[0].length, 6)
        self.assertEqual(len(begun.table[0].blocks), 2)
        committed = self.step(lease, 2, {"commit": {
            "sequence": 7, "start_length": 6, "committed_length": 6}})
        self.assertEqual(len(committed.failures), 0)

        table = self.cache("GetBlockTable", lease_id=lease.lease_id, epoch=lease.epoch,
                           sequences=[7]).tables[0]
        self.assertEqual((table.committed, table.length), (6, 6))
        self.assertEqual(list(table.groups[0].blocks), list(begun.table[0].blocks))
        self.assertNotIn(NO_BLOCK, table.groups[0].blocks)
        seen = self.admin("GetSequence", worker="tool", handle=7).sequence
        self.assertEqual(list(seen.groups[0].blocks), list(table.groups[0].blocks))

        # Without mapped memory nothing is published, so others find nothing.
        peek = self.cache("PeekPrefix", tokens=range(1, 7))
        self.assertEqual([(tier.tier, tier.reusable_tokens) for tier in peek.tiers],
                         [("device", 0)])
        audit = self.admin("AuditPool")
        self.assertEqual(len(audit.findings), 0)
        self.assertEqual(audit.blocks_checked, 10)
        self.assertEqual([worker.name for worker in self.admin("ListWorkers").workers], ["tool"])

    def test_streams_work_as_well(self):
        lease = self.attach()
        answers = self.client.stream(CACHE, "StreamSteps", [
            {"step": {"lease_id": lease.lease_id, "epoch": lease.epoch, "step": number}}
            for number in (1, 2, 9)])
        first, second, refused = answers
        self.assertEqual((first.answer.step, second.answer.step), (1, 2))
        self.assertEqual(refused.refusal.step, 9)
        self.assertEqual(refused.refusal.code, grpc.StatusCode.ABORTED.value[0])

    def test_refusals_explain_themselves(self):
        with self.assertRaises(grpc.RpcError) as refused:
            self.cache("AttachWorker", worker="w", model_fingerprint="m")
        self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        info = error_info(refused.exception)
        self.assertEqual((info.reason, info.domain), ("INVALID_ARGUMENT", "quire"))
        self.assertEqual(info.metadata["field"], "layout")

    def test_layouts_of_pool_and_worker_are_both_named(self):
        self.attach()
        with self.assertRaises(grpc.RpcError) as refused:
            self.cache("AttachWorker", worker="other", incarnation=1, model_fingerprint="m",
                       layout={**LAYOUT, "dtype": "DTYPE_BF16"})
        info = error_info(refused.exception)
        self.assertEqual(info.reason, "LAYOUT_MISMATCH")
        self.assertIn("f32", info.metadata["pool_layout"].lower().replace("fp32", "f32"))
        self.assertIn("bf16", info.metadata["worker_layout"].lower())


if __name__ == "__main__":
    unittest.main(verbosity=2)
