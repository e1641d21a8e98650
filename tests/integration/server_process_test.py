"""quire-server as its users start it: options, sockets, memory, signals, exit statuses."""

import os
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


class OptionsTest(ServerTestCase):

    def refused(self, status, text, *flags, **variables):
        result = run_server(*self.flags(*flags), **variables)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(self.pool_files(), [])

    def test_help_and_version(self):
        shown = run_server("--help")
        self.assertEqual(shown.returncode, 0)
        for option in ("--unix_socket", "--device_memory_bytes", "QUIRE_BLOCK_TOKENS"):
            self.assertIn(option, shown.stdout)
        version = run_server("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^quire-server \d+\.\d+\.\d+")

    def test_bad_options_name_themselves(self):
        for flag in ("--block_tokens=17", "--block_tokens=1", "--block_tokens=512",
                     "--block_tokens=many", "--device_memory_bytes=12furlongs",
                     "--device_memory_bytes=99999999TiB", "--watermark=x", "--memory=tape",
                     "--drain_deadline=soon", "--unix_socket_mode=0999", "--pool=a/b",
                     "--memory_group=no-such-group", "--block_count=7", "--max_message_bytes=1",
                     "--max_message_bytes=2GiB", "--tls_key=/k", "--tcp_address=nowhere",
                     "--layout=dtype"):
            name = flag[2:].split("=")[0]
            with self.subTest(flag):
                self.refused(BAD_OPTION, name, flag)

    def test_unknown_flags_and_words_are_refused(self):
        for flag in ("--no_such_flag=1", "--no_such_flag", "--nocheck_heath", "word",
                     "--check_config=maybe", "--block_tokens"):
            with self.subTest(flag):
                self.refused(BAD_OPTION, flag.split("=")[0], flag)

    def test_refusals_say_the_numbers(self):
        long_path = f"{self.folder}/{'s' * 107}"
        for flag, numbers in (("--block_tokens=17", ("17", "256")), ("--ranks=1025", ("1024",)),
                              ("--max_message_bytes=100", ("100", "4096", "1073741824")),
                              (f"--unix_socket={long_path}", (str(len(long_path)), "107")),
                              ("--max_leases=70000", ("70000", "65000")),
                              ("--default_lease=11m", ("660 s", "600 s")),
                              ("--watermark=1.5", ("1.5",))):
            for more in ((), ("--check_config",)):
                with self.subTest(flag, more=more):
                    result = run_server(*self.flags(flag, *more))
                    self.assertEqual(result.returncode, BAD_OPTION)
                    self.assertIn(flag[2:].split("=")[0], result.stderr)
                    for number in numbers:
                        self.assertIn(number, result.stderr)

    def test_a_zero_that_is_given_is_not_the_default(self):
        for name in ("block_tokens", "ranks", "device_memory_bytes", "max_sequence_tokens",
                     "max_message_bytes", "max_steps_in_flight", "max_operations_per_step",
                     "max_sequences_per_worker", "max_leases", "default_lease", "max_lease",
                     "retry_interval"):
            with self.subTest(name):
                self.refused(BAD_OPTION, name, "--check_config", f"--{name}=0")
        self.refused(BAD_OPTION, "block_count", "--memory=worker", "--block_count=0",
                     "--device_memory_bytes=")
        for name in ("watermark", "window_slack_tokens", "max_pins", "content_checks_per_run",
                     "content_sample", "stream_grace", "fence_timeout", "drain_deadline"):
            with self.subTest(name):
                result = run_server(*self.flags("--check_config", f"--{name}=0"))
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_zero_flag_wins_over_the_file(self):
        config = self.path("config")
        with open(config, "w", encoding="utf-8") as file:
            file.write("pools { watermark: 0.5 }\n")
        shown = run_server(f"--unix_socket={self.socket}", "--check_config", "--watermark=0",
                           f"--config_file={config}")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertNotIn("watermark", shown.stdout)

    def test_flag_wins_over_variable_over_file(self):
        config = self.path("config")
        with open(config, "w", encoding="utf-8") as file:
            file.write("pools { block_tokens: 4 ranks: 2 watermark: 0.5 }\n")
        shown = run_server(*self.flags("--check_config", f"--config_file={config}", "--ranks=3"),
                           QUIRE_RANKS="5", QUIRE_BLOCK_TOKENS="8")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("ranks: 3", shown.stdout)
        self.assertIn("block_tokens: 8", shown.stdout)
        self.assertIn("watermark: 0.5", shown.stdout)
        self.assertEqual(self.pool_files(), [])

    def test_bad_variable_is_refused(self):
        self.refused(BAD_OPTION, "block_tokens", QUIRE_BLOCK_TOKENS="17")

    def test_bad_configuration_file_is_refused_with_its_line(self):
        config = self.path("config")
        with open(config, "w", encoding="utf-8") as file:
            file.write("pools {\n  block_tokes: 4\n}\n")
        self.refused(BAD_OPTION, f"{config}: 2:", f"--config_file={config}")
        self.refused(BAD_OPTION, "/nowhere", "--config_file=/nowhere")
        self.refused(BAD_OPTION, self.folder, f"--config_file={self.folder}")

    def test_flags_of_a_pool_need_exactly_one(self):
        config = self.path("config")
        with open(config, "w", encoding="utf-8") as file:
            file.write('pools { pool: "a" } pools { pool: "b" }\n')
        self.refused(BAD_OPTION, "one pool", f"--config_file={config}")
        with open(config, "w", encoding="utf-8") as file:
            file.write('pools { pool: "a" } pools { pool: "a" }\n')
        result = run_server(f"--config_file={config}", f"--unix_socket={self.socket}")
        self.assertEqual(result.returncode, BAD_OPTION)
        self.assertIn("two pools", result.stderr)


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
                 ("--block_tokens=4", "--memory=worker", "--block_count=10",
                  "--device_memory_bytes="))
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

    def test_full_memory_folder(self):
        self.refused("device_memory_bytes", "--device_memory_bytes=1000TiB")

    def test_read_only_memory_folder(self):
        self.refused("memory_directory", "--memory_directory=/proc")

    def test_missing_memory_folder(self):
        self.refused("memory_directory", "--memory_directory=/nowhere")

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
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                server = self.start()
                self.assertEqual(len(self.pool_files()), 1)
                server.signal(number)
                self.assertEqual(server.wait(), 0)
                # Neither pool files, socket nor lock file.
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
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
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
