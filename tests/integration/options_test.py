"""Options of quire-server: what is refused, by which name, and what --check_config finds."""

import os
import signal
import socket
import tempfile
import unittest

from server_process import ServerTestCase, run_server

BAD_OPTION = 2


def give_up():
    """In a server's process: a start that succeeds ends by itself."""
    signal.alarm(10)


class OptionsTestCase(ServerTestCase):

    def refused(self, status, text, *flags, plain=False, **variables):
        """With `plain` no flags but those given and the socket."""
        more = (f"--unix_socket={self.socket}", *flags) if plain else self.flags(*flags)
        result = run_server(*more, **variables)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(self.pool_files(), [])

    def config(self, text):
        """The flag for a configuration file."""
        # Not in the folder whose names are compared.
        with tempfile.NamedTemporaryFile("w", delete=False, encoding="utf-8") as file:
            file.write(text)
        self.addCleanup(os.unlink, file.name)
        return f"--config_file={file.name}"


class OptionsTest(OptionsTestCase):

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
                     "--layout=dtype", "--unix_socket= ", "--unix_socket=\t"):
            name = flag[2:].split("=")[0]
            with self.subTest(flag):
                self.refused(BAD_OPTION, name, flag)

    def test_a_number_out_of_range_is_a_number(self):
        for flag, limit in (("--block_tokens=-1", (1 << 32) - 1),
                            ("--block_tokens=4294967296", (1 << 32) - 1),
                            ("--max_pins=4294967297", (1 << 32) - 1),
                            ("--device_memory_bytes=18446744073709551616", (1 << 64) - 1),
                            ("--device_memory_bytes=99999999TiB", (1 << 64) - 1)):
            name, value = flag[2:].split("=")
            with self.subTest(flag):
                self.refused(BAD_OPTION, f"{name}: {value} is not from 0 to {limit}", flag)
        for flag in ("--block_tokens=1e3", "--max_leases=0x10", "--device_memory_bytes=MiB"):
            with self.subTest(flag):
                self.refused(BAD_OPTION, "not a whole number", flag)

    def test_unknown_flags_and_words_are_refused(self):
        for flag in ("--no_such_flag=1", "--no_such_flag", "--nocheck_heath", "word",
                     "--check_config=maybe", "--block_tokens"):
            with self.subTest(flag):
                self.refused(BAD_OPTION, flag.split("=")[0], flag)

    def test_only_one_check_at_a_time(self):
        for more in ({}, {"QUIRE_CHECK_CONFIG": "true"}):
            flags = ("--check_health",) if more else ("--check_config", "--check_health")
            with self.subTest(flags):
                self.refused(BAD_OPTION, "check_health: not together with check_config", *flags,
                             **more)

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
        self.refused(BAD_OPTION, "block_count", "--memory=worker", "--block_count=0")
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

    def test_an_empty_value_is_not_the_default(self):
        for name in ("pool", "unix_socket", "unix_socket_mode", "metrics_address", "tcp_address",
                     "token_file", "memory_directory", "memory_group", "layout", "ranks",
                     "drain_deadline", "config_file", "check_config"):
            with self.subTest(name):
                self.refused(BAD_OPTION, f"--{name}: needs a value", f"--{name}=")
                # A bool takes no word behind it.
                if name != "check_config":
                    self.refused(BAD_OPTION, f"--{name}: needs a value", f"--{name}", "")
                variable = f"QUIRE_{name.upper()}"
                self.refused(BAD_OPTION, f"{variable}: needs a value", **{variable: ""})

    def test_empty_text_in_the_file_is_not_the_default(self):
        for text, name in (('pools { pool: "" }', "pool"), ('token_file: ""', "token_file"),
                           ('pools { memory_group: "" }', "memory_group")):
            with self.subTest(text):
                config = self.config(text)
                self.refused(BAD_OPTION, f"{name}: needs a value", config, plain=True)

    def test_durations_of_the_file_are_valid(self):
        for text, name in (("drain_deadline { seconds: 1 nanos: -1 }", "drain_deadline"),
                           ("pools { max_lease { seconds: 1 nanos: 1000000000 } }", "max_lease"),
                           ("pools { retry_interval { seconds: 999999999999 } }", "retry_interval"),
                           ("pools { stream_grace { seconds: -1 } }", "stream_grace")):
            with self.subTest(text):
                self.refused(BAD_OPTION, f"{name}: ", self.config(text), plain=True)
        for flag in ("--drain_deadline=inf", "--max_lease=-inf", "--retry_interval=2h"):
            with self.subTest(flag):
                self.refused(BAD_OPTION, flag[2:].split("=", maxsplit=1)[0], flag)

    def test_options_of_something_absent_are_refused(self):
        self.refused(BAD_OPTION, "tls_certificate: only with a tcp_address",
                     "--tls_certificate=/c", "--tls_key=/k")
        for flag in ("--memory_directory=/dev/shm", "--memory_mode=0600", "--memory_group=0"):
            name = flag[2:].split("=", maxsplit=1)[0]
            with self.subTest(name):
                self.refused(BAD_OPTION, f"{name}: a pool of worker memory has no files",
                             "--memory=worker", "--block_count=9", flag)


    def test_files_without_end_are_not_read_without_end(self):
        for name in ("config_file", "token_file", "tls_certificate"):
            flags = () if name != "tls_certificate" else ("--tls_key=/dev/zero",
                                                          "--tcp_address=127.0.0.1:0")
            with self.subTest(name):
                self.refused(BAD_OPTION, f"{name}: /dev/zero: larger than 1048576 bytes",
                             f"--{name}=/dev/zero", *flags)


class PlacesTest(OptionsTestCase):
    """What is wrong with this machine is found out without a start, and at a start at once."""

    def wrong(self, text, *flags):
        for more in ((), ("--check_config",)):
            with self.subTest(text, more=more):
                self.refused(BAD_OPTION, text, *flags, *more)

    def test_folders_of_pool_files(self):
        self.wrong("memory_directory: /nowhere/", "--memory_directory=/nowhere")
        self.wrong("memory_directory: /proc/", "--memory_directory=/proc")
        self.wrong("memory_directory: ", f"--memory_directory={__file__}")
        self.assertEqual(os.listdir(self.folder), [])

    def test_sockets(self):
        self.wrong("is not a socket", f"--unix_socket={self.folder}")
        with open(self.socket, "w", encoding="utf-8") as file:
            file.write("precious")
        self.wrong("is not a socket")
        os.unlink(self.socket)
        os.mkdir(f"{self.socket}.lock")
        self.wrong(f"{self.socket}.lock exists and is not a file")
        os.rmdir(f"{self.socket}.lock")
        self.wrong("unix_socket", "--unix_socket=/nowhere/at/all")
        self.wrong("unix_socket", f"--unix_socket={__file__}/s")
        self.wrong("unix_socket: /proc/x.sock: cannot make a socket in /proc",
                   "--unix_socket=/proc/x.sock")
        self.wrong("unix_socket: /proc/sub/x.sock: cannot make a socket in /proc",
                   "--unix_socket=/proc/sub/x.sock")
        self.assertEqual(os.listdir(self.folder), [])

    def test_addresses(self):
        for name in ("tcp_address", "metrics_address"):
            self.wrong(f"{name}: cannot listen on 192.0.2.1:0", f"--{name}=192.0.2.1:0")
            self.wrong(f"{name}: cannot listen on no-such-host.invalid:1",
                       f"--{name}=no-such-host.invalid:1")

    def test_metrics_and_tcp_on_one_port(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for tcp, metrics in (("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"),
                             ("127.0.0.1", "0.0.0.0"), ("localhost", "127.0.0.1")):
            self.wrong(f"metrics_address: {metrics}:{port}: the port of tcp_address, {tcp}:{port}",
                       f"--tcp_address={tcp}:{port}", f"--metrics_address={metrics}:{port}")

    def test_metrics_where_the_http_library_cannot_listen(self):
        # With or without IPv6: what a start takes passes the check, and nothing else.
        started = run_server(*self.flags("--metrics_address=[::1]:0"), before=give_up)
        checked = run_server(*self.flags("--metrics_address=[::1]:0", "--check_config"))
        if "ready" in started.stdout:
            self.assertEqual(checked.returncode, 0, checked.stderr)
        else:
            self.assertEqual(started.returncode, BAD_OPTION, started.stderr)
            self.wrong("metrics_address: cannot listen on [::1]:0", "--metrics_address=[::1]:0")

    def test_memory_beyond_all_machines(self):
        most = 1 << 47
        for size in (most + 1, (1 << 62) - 4096, 1 << 63, (1 << 64) - 1):
            self.wrong(f"device_memory_bytes: {size} is more than a process can map, {most}",
                       f"--device_memory_bytes={size}")

    def test_memory_of_all_ranks_and_pools_beyond_the_folder(self):
        whole = os.statvfs(self.folder)
        share = whole.f_blocks * whole.f_frsize // 3
        for flags in (("--ranks=4",), (self.config(
                f'pools {{ pool: "a" ranks: 2 device_memory_bytes: {share} '
                f'memory_directory: "{self.folder}" }} '
                f'pools {{ pool: "b" ranks: 2 device_memory_bytes: {share} '
                f'memory_directory: "{self.folder}" }}'),)):
            plain = flags[0].startswith("--config_file")
            size = () if plain else (f"--device_memory_bytes={share}",)
            for more in ((), ("--check_config",)):
                with self.subTest(flags, more=more):
                    self.refused(BAD_OPTION, "device_memory_bytes: the pool files of all ranks, "
                                 "4 in all, need ", *flags, *size, *more, plain=plain)

    def test_what_a_running_server_has_is_no_mistake(self):
        server = self.start("--tcp_address=127.0.0.1:0")
        files = sorted(os.listdir(self.folder))
        shown = run_server(*self.flags(f"--tcp_address=127.0.0.1:{server.port('tcp')}",
                                       "--check_config"))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), files)
        self.assertEqual(run_server("--check_health", f"--unix_socket={self.socket}").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
