"""quire-server as its users start it: sockets, memory, signals, exit statuses."""

import os
import resource
import signal
import socket
import subprocess
import time
import unittest
import urllib.request

import server_process
from server_process import ServerTestCase, run_server

BAD_OPTION = 2
COULD_NOT_START = 1
# 4096 bytes a block: 4 tokens, 2 heads, K and V, 64 fp32.
LAYOUT = "dtype: DTYPE_FP32 kv_heads: 2 head_dim: 64 layer_windows: 0"


class StartTest(ServerTestCase):

    def refused(self, text, *flags):
        result = run_server(*self.flags(*flags))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(text, result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_pool_too_small_for_one_sequence(self):
        sizes = ((f"--layout={LAYOUT}", "--block_tokens=4", "--device_memory_bytes=40KiB"),
                 # Before a worker tells the layout, the smallest blocks there are count.
                 ("--block_tokens=4", "--device_memory_bytes=40KiB"),
                 ("--block_tokens=4", "--memory=worker", "--block_count=10"))
        for size in sizes:
            for more in ((), ("--check_config",)):
                with self.subTest(size, more=more):
                    self.refused("cannot hold one sequence of 41 tokens, which needs 11", *size,
                                 "--max_sequence_tokens=41", *more)
            shown = run_server(*self.flags(*size, "--max_sequence_tokens=40", "--check_config"))
            self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_pool_without_one_block(self):
        for layout in ((), (f"--layout={LAYOUT}",)):
            self.refused("device_memory_bytes", *layout, "--block_tokens=4",
                         "--device_memory_bytes=4095")

    def test_ranks_that_do_not_fit_together(self):
        there = os.statvfs(self.folder)
        share = there.f_bavail * there.f_frsize // 3
        self.refused("device_memory_bytes: the pool files of all ranks, 4 in all, need ",
                     "--ranks=4", f"--device_memory_bytes={share}")

    def test_file_beyond_the_limit_of_its_user(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

        result = run_server(*self.flags(), before=limit)
        self.assertEqual(result.returncode, COULD_NOT_START)
        self.assertIn("device_memory_bytes", result.stderr)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_socket_of_another_program(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.socket)
            other.listen()
            result = run_server(*self.flags())
            self.assertEqual(result.returncode, COULD_NOT_START)
            self.assertIn("another program listens there", result.stderr)
            self.assertEqual(os.listdir(self.folder), ["s"])

    def test_a_signal_during_the_start_ends_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            def send():
                # Kept back, it is there from the program's first moment on.
                signal.pthread_sigmask(signal.SIG_BLOCK, {number})
                os.kill(os.getpid(), number)

            with self.subTest(number):
                result = run_server(*self.flags(), before=send)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("ended", result.stdout)
                self.assertNotIn("ready", result.stdout)
                self.assertEqual(os.listdir(self.folder), [])

    def test_socket_path_too_long(self):
        self.refused("unix_socket", f"--unix_socket={self.folder}/{'s' * 107}")

    def test_second_server_on_a_socket(self):
        first = self.start()
        files = self.pool_files()
        result = run_server(*self.flags())
        self.assertEqual(result.returncode, COULD_NOT_START)
        self.assertIn("another server", result.stderr)
        self.assertEqual(self.pool_files(), files)
        self.assertTrue(os.path.exists(self.socket))
        self.assertEqual(run_server("--check_health", f"--unix_socket={self.socket}").returncode, 0)
        first.signal(signal.SIGTERM)
        self.assertEqual(first.wait(), 0)

    def test_metrics_port_in_use(self):
        first = self.start()
        self.socket = self.path("t")
        result = run_server(*self.flags(f"--metrics_address=127.0.0.1:{first.port('metrics')}"))
        self.assertEqual(result.returncode, COULD_NOT_START)
        self.assertIn(f"metrics_address: cannot listen on 127.0.0.1:{first.port('metrics')}: "
                      "Address already in use", result.stderr)

    def test_tcp_port_in_use(self):
        first = self.start("--tcp_address=127.0.0.1:0")
        self.socket = self.path("t")
        result = run_server(*self.flags(f"--tcp_address=127.0.0.1:{first.port('tcp')}"))
        self.assertEqual(result.returncode, COULD_NOT_START)
        self.assertIn(f"tcp_address: cannot listen on 127.0.0.1:{first.port('tcp')}: "
                      "Address already in use", result.stderr)
        self.assertFalse(os.path.exists(self.socket))


class LifeTest(ServerTestCase):

    def test_says_what_holds_and_where_it_listens(self):
        server = self.start("--tcp_address=127.0.0.1:0", "--block_tokens=32")
        text = "".join(server.output)
        self.assertIn("block_tokens: 32", text)
        self.assertIn("device_memory_bytes: 1048576", text)
        self.assertIn(f"unix={self.socket}", server.ready)
        self.assertGreater(server.port("tcp"), 0)

    def test_signals_end_it_in_order(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                server = self.start()
                self.assertEqual(len(self.pool_files()), 1)
                server.signal(number)
                self.assertEqual(server.wait(), 0)
                # Neither pool files, socket nor lock file.
                self.assertEqual(os.listdir(self.folder), [])

    def test_a_terminal_that_goes_is_no_signal_under_nohup(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        server = self.start()
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
            masks = dict(line.split(":\t") for line in file if line.startswith("Sig"))
        hangup = 1 << (signal.SIGHUP - 1)
        self.assertTrue(int(masks["SigIgn"], 16) & hangup)
        self.assertFalse(int(masks["SigBlk"], 16) & hangup)

    def test_as_many_files_as_may_be(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        server = self.start()
        self.assertEqual(resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE),
                         (hard, hard))

    def test_output_without_a_file_goes_nowhere(self):
        def close_standard_files():
            for number in range(3):
                os.close(number)

        process = subprocess.Popen([server_process.BINARY, *self.flags()],
                                   preexec_fn=close_standard_files)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while self.health() != 0:
            self.assertLess(time.monotonic(), deadline)
        for number in range(3):
            file = os.readlink(f"/proc/{process.pid}/fd/{number}")
            # A library may have opened one before the program began.
            self.assertTrue(file == "/dev/null" or file.startswith("anon_inode:"), file)
        process.terminate()
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_pool_file_of_another_version_is_unlinked_unread(self):
        left = self.path("quire-default-00000000deadbeef-rank0.pool")
        with open(left, "wb") as file:
            file.write(b"QURPOOL9" + (99).to_bytes(4, "little") * 100)
        self.start()
        self.assertFalse(os.path.exists(left))
        self.assertEqual(len(self.pool_files()), 1)

    def test_killed_server_is_followed_by_a_clean_one(self):
        first = self.start()
        left = self.pool_files()
        first.signal(signal.SIGKILL)
        first.wait()
        self.assertTrue(os.path.exists(self.socket))
        self.assertEqual(self.pool_files(), left)
        self.start()
        now = self.pool_files()
        self.assertEqual(len(now), 1)
        self.assertNotEqual(now, left)

    def test_pool_files_have_mode_and_space(self):
        self.start("--memory_mode=0640", "--ranks=2")
        self.assertEqual(len(self.pool_files()), 2)
        for name in self.pool_files():
            info = os.stat(self.path(name))
            self.assertEqual(info.st_mode & 0o777, 0o640)
            self.assertGreaterEqual(info.st_blocks * 512, 1 << 20)

    def test_a_pool_file_cut_short_is_reported_and_survived(self):
        server = self.start()
        os.truncate(self.path(self.pool_files()[0]), 5000)
        line = server.process.stdout.readline()
        self.assertIn("has 5000 bytes instead of", line)
        self.assertEqual(self.health(), 0)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        # Once, not at each look.
        self.assertNotIn("instead of", server.output[-1])

    def health(self, *more):
        return run_server("--check_health", f"--unix_socket={self.socket}", *more).returncode

    def test_health_probe_needs_a_server(self):
        self.assertEqual(self.health(), 1)
        self.assertEqual(self.health("--unix_socket=none", "--tcp_address=127.0.0.1:0"), BAD_OPTION)
        server = self.start()
        self.assertEqual(self.health(), 0)
        server.signal(signal.SIGKILL)
        server.wait()
        self.assertEqual(self.health(), 1)

    def test_health_probe_does_not_wait_for_a_server_that_hangs(self):
        server = self.start()
        server.signal(signal.SIGSTOP)
        start = time.monotonic()
        self.assertEqual(self.health(), 1)
        self.assertLess(time.monotonic() - start, 20)
        server.signal(signal.SIGCONT)
        deadline = time.monotonic() + 30
        while self.health() != 0:
            self.assertLess(time.monotonic(), deadline)


class MetricsTest(ServerTestCase):

    def test_promtool_accepts_the_metrics(self):
        server = self.start(f"--layout={LAYOUT}", "--block_tokens=4")
        url = f"http://127.0.0.1:{server.port('metrics')}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            text = answer.read()
        self.assertIn(b'quire_blocks{pool="default",tier="device",state="free"} 256', text)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, timeout=60,
                                 capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertEqual(checked.stdout + checked.stderr, b"")

    def test_scrapes_do_not_disturb(self):
        server = self.start()
        url = f"http://127.0.0.1:{server.port('metrics')}/metrics"
        start = time.monotonic()
        for _ in range(50):
            with urllib.request.urlopen(url, timeout=30) as answer:
                self.assertEqual(answer.status, 200)
        self.assertLess(time.monotonic() - start, 30)

    def test_connections_that_send_nothing_keep_no_scrape_waiting(self):
        server = self.start()
        port = server.port("metrics")
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for half in idle[::2]:
            half.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        url = f"http://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(url, timeout=20) as answer:
            self.assertIn(b"quire_blocks", answer.read())
        for connection in idle:
            connection.close()


if __name__ == "__main__":
    print("server:", server_process.BINARY)
    unittest.main(verbosity=2)
