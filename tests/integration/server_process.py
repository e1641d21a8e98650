"""A quire-server process for tests: started on sockets of its own, always ended."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

BINARY = os.environ.get("QUIRE_SERVER", "quire-server")
TIMEOUT_SECONDS = 60


def environment(**variables):
    """The test's environment without QUIRE_* of whoever runs it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("QUIRE_")}
    return {**clean, **variables}


def run_server(*flags, before=None, **variables):
    """Runs the server to its end; for starts that are refused. `before` acts in its process first."""
    return subprocess.run([BINARY, *flags], env=environment(**variables), timeout=TIMEOUT_SECONDS,
                          capture_output=True, text=True, check=False, preexec_fn=before)


class ServerProcess:
    """Ready when constructed; reads the ports from the line that says so."""

    def __init__(self, *flags, **variables):
        self.process = subprocess.Popen(
            [BINARY, *flags], env=environment(**variables), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self._watchdog = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        self._watchdog.start()
        self.output = []
        self.ready = None
        for line in self.process.stdout:
            self.output.append(line)
            if line.startswith("quire-server ready:"):
                self.ready = line
                break
        self._watchdog.cancel()
        if self.ready is None:
            self.stop()
            raise RuntimeError("the server did not start:\n" + "".join(self.output))

    def port(self, name):
        return int(re.search(rf"{name}_port=(\d+)", self.ready).group(1))

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Exit status; collects what was still printed."""
        rest, _ = self.process.communicate(timeout=TIMEOUT_SECONDS)
        self.output.append(rest)
        return self.process.returncode

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


class ServerTestCase(unittest.TestCase):
    """A folder of its own for each test, short enough for socket paths."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="quire-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = self.path("s")

    def path(self, name):
        return os.path.join(self.folder, name)

    def flags(self, *more):
        files = () if "--memory=worker" in more else (
            f"--memory_directory={self.folder}", "--device_memory_bytes=1MiB")
        return [f"--unix_socket={self.socket}", "--metrics_address=127.0.0.1:0", *files, *more]

    def start(self, *more, **variables):
        server = ServerProcess(*self.flags(*more), **variables)
        self.addCleanup(server.stop)
        return server

    def pool_files(self):
        return [name for name in os.listdir(self.folder) if name.endswith(".pool")]
