# SPDX-License-Identifier: Apache-2.0
"""Random processes share stores: none may crash, hang, compute wrong results or leave files behind.

Each round starts some sessions (soak_session.cc) with endings, limits, faults, signals and crash
points drawn from a seed, and meanwhile or between rounds replaces models, cuts and flips files of
the store, prunes and removes it. A few rounds by default; HEARTH_TEST_LONG=1 makes it an hour,
HEARTH_SOAK_SECONDS any other time, HEARTH_TEST_SEED repeats a run.
"""

import dataclasses
import mmap
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEARTH_BUILD", ROOT / "build/release"))
SESSION = BUILD / "bin/soak_session"
LIBRARY = BUILD / "lib/libhearth.so"
HEARTH = BUILD / "bin/hearth"

sys.path.insert(0, str(ROOT / "bench"))

from workloads import networks, quantize, tflite_writer  # noqa: E402
from workloads.generate import calibrationSample  # noqa: E402
from workloads.graph import Graph  # noqa: E402
from workloads.weights import bell  # noqa: E402

HANG_SECONDS = 180
LEFTOVER_SECONDS = 61  # PruneOptions::leftoversOlderThan
MOST_FAILURES = 5
ENDINGS = ["return"] * 6 + ["exit", "exit", "quick", "_exit", "kill", "thread"]
CRASH_POINTS = ["blob_cache.after_write", "bundle.after_payload", "bundle.before_rename",
                "object.after_create", "object.before_rename", "object.after_rename",
                "plan.after_write", "segment.after_write", "segment.after_tail",
                "segment.after_sync", "segment.after_mark", "collector.after_segment"]
FAULTS = ["pwrite:ENOSPC:{}:*", "pwrite:EIO:{}", "pwrite:short:{}", "write:ENOSPC:{}:*",
          "open:EMFILE:{}", "mmap:ENOMEM:{}", "rename:EIO:{}", "fsync:EIO:{}", "pread:EIO:{}",
          "read:EINTR:{}", "pread:short:{}", "fallocate:ENOSPC:{}:*", "link:EACCES:{}"]


def dense(seed):
    """Fully connected layers; the larger ones have segments of their own."""
    graph = Graph("dense")
    x = graph.addInput("x", (1, 256))
    for name, outputs in (("wide", 1536), ("middle", 512), ("narrow", 64)):
        inputs = graph.shape(x)[1]
        x = graph.fullyConnected(name, x, bell(seed, name, (outputs, inputs), inputs ** -0.5),
                                 bell(seed, name + "/bias", (outputs,), 0.1), 0)
    graph.outputs = [x]
    return graph


def image(seed):
    """8-bit convolutions, some of them depthwise."""
    graph = networks.mobilenetV2(32, 10, [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2)], seed)
    return quantize.toInt8(graph, [calibrationSample(graph.shape(graph.inputs[0]), seed)])


def writeModel(make, path, seed):
    """Writes a version of a model; the name of its output contains the version."""
    graph = make(seed)
    graph.tensors[graph.outputs[0]].name = path.stem
    tflite_writer.write(graph, path)


@dataclasses.dataclass
class Session:
    """A running process, and the reasons for which it may end abnormally."""
    process: subprocess.Popen
    description: str
    begin: float
    mayBeKilled: bool


class SoakTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-soak-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.models = self.folder / "models"
        self.expected = self.folder / "expected"
        (self.models / "versions").mkdir(parents=True)
        self.expected.mkdir()
        names = []
        for make in (dense, image):
            for version in (1, 2):
                names.append(f"{make.__name__}{version}")
                writeModel(make, self.models / "versions" / f"{names[-1]}.tflite", version)
            self.replaceModel(make.__name__, 1)
        wanted = [word for name in names for word in ("--expect", name)]
        subprocess.run(self.command() + wanted, check=True, timeout=HANG_SECONDS,
                       env=self.environment())
        seed = os.environ.get("HEARTH_TEST_SEED") or str(random.SystemRandom().randrange(1 << 32))
        print(f"HEARTH_TEST_SEED={seed}", flush=True)
        self.random = random.Random(int(seed))
        self.counts = {}

    def command(self):
        return [str(SESSION), "--library", str(LIBRARY), "--models", str(self.models),
                "--expected", str(self.expected)]

    def environment(self, **more):
        """The environment, without the caller's settings of stores."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("HEARTH_")}
        return {**kept, "XDG_CACHE_HOME": str(self.folder / "cache"),
                "XDG_STATE_HOME": str(self.folder / "state"), **more}

    def replaceModel(self, name, version):
        new = self.models / f"{name}.new"
        shutil.copyfile(self.models / "versions" / f"{name}{version}.tflite", new)
        new.replace(self.models / f"{name}.tflite")

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def startSession(self, store, isDamaged):
        ending = self.random.choice(ENDINGS)
        words = ["--store", str(store), "--seed", str(self.random.randrange(1 << 40)),
                 "--ending", ending]
        variables, limits, mayBeKilled = {}, [], ending == "kill"
        kind = self.random.randrange(8)
        if kind == 0:
            words.append("--limited")
            fault = self.random.choice(FAULTS).format(self.random.randrange(1, 60))
            variables["HEARTH_FAULT"] = fault
            self.count("with " + fault.split(":")[0] + " failing")
        elif kind == 1:
            point = self.random.choice(CRASH_POINTS)
            variables["HEARTH_CRASH_AT"] = f"{point}:{self.random.randrange(1, 4)}"
            mayBeKilled = True
            self.count("killed at a crash point")
        elif kind == 2:
            words.append("--limited")
            limits.append(self.random.choice([
                f"--fsize={self.random.randrange(1 << 12, 1 << 23)}",
                f"--nofile={self.random.randrange(12, 40)}",
                f"--as={self.random.randrange(90 << 20, 400 << 20)}"]))
            self.count("with a low limit")
        elif kind == 3:
            words.append("--signals")
            self.count("with signals")
        if isDamaged:
            words.append("--damaged")
        self.count("ended by " + ending)
        command = self.command() + words
        if limits:
            command = ["prlimit", *limits, *command]
        description = " ".join([f"{name}={value}" for name, value in variables.items()] + command)
        process = subprocess.Popen(command, env=self.environment(**variables),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        return Session(process, description, time.monotonic(), mayBeKilled)

    def finish(self, session):
        remaining = HANG_SECONDS - (time.monotonic() - session.begin)
        try:
            output, _ = session.process.communicate(timeout=max(1, remaining))
        except subprocess.TimeoutExpired:
            where = self.describeThreads(session.process.pid)
            os.killpg(session.process.pid, signal.SIGKILL)
            output, _ = session.process.communicate()
            self.fail(f"{session.description} hangs.\n{where}\n{output.decode(errors='replace')}")
        code = session.process.returncode
        if code == 0 or (code == -signal.SIGKILL and session.mayBeKilled):
            self.killRest(session, mayRemain=code != 0)
            return
        self.killRest(session, mayRemain=True)
        self.fail(f"{session.description} ends with {code}.\n{output.decode(errors='replace')}")

    def killRest(self, session, mayRemain):
        """Kills children that a killed session left; a session that ends by itself leaves none
        running."""
        try:
            os.killpg(session.process.pid, 0)
            remains = True
        except ProcessLookupError:
            remains = False
        # A session that exits in one thread may leave a running child of another thread.
        deadline = time.monotonic() + HANG_SECONDS
        while remains and time.monotonic() < deadline:
            try:
                os.killpg(session.process.pid, signal.SIGKILL if mayRemain else 0)
                time.sleep(0.01)
                os.killpg(session.process.pid, 0)
            except ProcessLookupError:
                remains = False
        self.assertFalse(remains, f"A child of {session.description} hangs.")

    @staticmethod
    def describeThreads(pid):
        """What the threads of a hanging process wait for."""
        lines = []
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            try:
                lines.append(f"{task.name} {(task / 'comm').read_text().strip()} "
                             f"{(task / 'wchan').read_text()}")
            except OSError:
                pass
        if shutil.which("gdb"):
            shown = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 24"],
                                   capture_output=True, text=True, check=False, timeout=60)
            lines.append(shown.stdout)
        return "\n".join(lines)

    @staticmethod
    def objects(store):
        found = [path for path in store.rglob("*") if path.is_file()]
        found += store.parent.glob(store.name + "-*.bundle")
        return sorted(found)

    def flip(self, store):
        """Writes some wrong bytes into files that no process has mapped."""
        for path in self.objects(store):
            if self.random.randrange(3):
                continue
            content = bytearray(path.read_bytes())
            if not content:
                continue
            for _ in range(self.random.randrange(1, 5)):
                content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
            os.chmod(path, 0o600)
            path.write_bytes(content)
            self.count("files with flipped bits")

    def cut(self, store):
        """Truncates files that sessions may have mapped.

        By whole pages, since a process is not told of zeros in the page where its file now ends; and
        not while they are written (docs/weight-store.md).
        
        """
        for path in self.objects(store):
            if path.parent == store / "tmp" or self.random.randrange(6):
                continue
            try:
                os.chmod(path, 0o600)
                size = self.random.randrange(path.stat().st_size + 1)
                os.truncate(path, size // mmap.PAGESIZE * mmap.PAGESIZE)
                self.count("files cut")
            except OSError:
                pass  # removed by another process

    def disturb(self, store, isDamaged):
        """Does one of the things that may happen to a store or a model while they are in use."""
        kind = self.random.randrange(6)
        if kind < 2:
            self.replaceModel(self.random.choice(["dense", "image"]), self.random.choice([1, 2]))
            self.count("models replaced")
        elif kind == 2:
            command = [str(HEARTH), "cache", self.random.choice(["prune", "ls", "verify"]),
                       "--store", str(store)]
            run = subprocess.run(command, env=self.environment(), capture_output=True, text=True,
                                 check=False, timeout=HANG_SECONDS)
            # Another process may use the store, which may not exist yet or hold wrong files.
            self.assertGreaterEqual(run.returncode, 0, f"{command}: {run.stderr}")
            self.count("hearth cache")
        elif kind == 3 and self.random.randrange(4) == 0:
            shutil.rmtree(store, ignore_errors=True)
            self.count("stores removed")
        elif kind == 4 and isDamaged:
            self.cut(store)

    def round(self, store, isDamaged):
        if isDamaged and self.random.randrange(2):
            self.flip(store)
        sessions = []
        try:
            for _ in range(self.random.randrange(1, 5)):
                sessions.append(self.startSession(store, isDamaged))
                if self.random.randrange(2):
                    time.sleep(self.random.random() * 0.1)
                    self.disturb(store, isDamaged)
            while sessions:
                session = sessions.pop()
                try:
                    self.finish(session)
                except BaseException:
                    self.killRest(session, mayRemain=True)
                    raise
        finally:
            for session in sessions:
                os.killpg(session.process.pid, signal.SIGKILL)
                session.process.communicate()
        for own in self.models.glob("own-*"):
            own.unlink()  # of a session that was killed

    def expectOrder(self, store):
        """Starts without disturbance find a complete store, and no file is left that does not
        belong there."""
        clean = self.environment()
        for seed in range(3):
            subprocess.run(self.command() + ["--store", str(store), "--seed", str(seed)], check=True,
                           env=clean, timeout=HANG_SECONDS)
        prune = [str(HEARTH), "cache", "prune", "--store", str(store)]
        subprocess.run(prune, check=True, env=clean, timeout=HANG_SECONDS, capture_output=True)
        if list((store / "tmp").iterdir()):
            # Files of a killed process count as being written until they are a minute old.
            time.sleep(LEFTOVER_SECONDS)
            subprocess.run(prune, check=True, env=clean, timeout=HANG_SECONDS, capture_output=True)
        subprocess.run([str(HEARTH), "cache", "verify", "--store", str(store)], check=True, env=clean,
                       timeout=HANG_SECONDS, capture_output=True)
        self.assertEqual(list((store / "tmp").iterdir()), [])
        for path in self.objects(store):
            self.assertEqual(path.stat().st_mode & 0o077, 0, f"Others may use {path}.")

    def testNothingCrashesHangsOrIsWrong(self):
        standard = "3600" if os.environ.get("HEARTH_TEST_LONG") == "1" else "25"
        seconds = float(os.environ.get("HEARTH_SOAK_SECONDS", standard))
        rounds, failures, begin = 0, [], time.monotonic()
        stores = [(self.folder / "whole", False), (self.folder / "damaged", True)]
        while time.monotonic() - begin < seconds or rounds < 2 * len(stores):
            try:
                self.round(*stores[rounds % len(stores)])
            except AssertionError as failure:
                failures.append(str(failure))
                if len(failures) == MOST_FAILURES:
                    break
            rounds += 1
        self.assertEqual(failures, [], "\n\n".join(failures))
        # The other store may still contain wrong bytes that no start has read.
        self.expectOrder(stores[0][0])
        print(f"{rounds} rounds in {time.monotonic() - begin:.0f} s:", flush=True)
        for what, count in sorted(self.counts.items()):
            print(f"{count:6} {what}", flush=True)
        self.assertGreaterEqual(rounds, 2 * len(stores))


if __name__ == "__main__":
    unittest.main()
