# SPDX-License-Identifier: Apache-2.0
"""`hearth run` with the weight store: what it keeps, shares, notices and reports."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import HEARTH, ROOT, CommandTest, DataTest


def readFacts(path):
    """Keys and values in the file of a blob cache."""
    content, facts = path.read_bytes(), {}
    position = 64
    while position < len(content):
        keySize, valueSize = struct.unpack_from("<II", content, position)
        position += 16
        value = position + keySize
        facts[content[position:value]] = content[value:value + valueSize]
        position = value + valueSize
    return facts


def writeFacts(path, facts):
    """Writes a blob cache's file with these, and a valid digest."""
    entries = b"".join(struct.pack("<IIq", len(key), len(value), time.time_ns()) + key + value
                       for key, value in sorted(facts.items()))
    head = struct.pack("<8sIIQ8x", b"HRTHBLB\n", 1, len(facts), len(entries))
    path.write_bytes(head + hashlib.sha256(head + entries).digest() + entries)


class StoreTest(DataTest):

    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.own = self.folder / "model.tflite"
        shutil.copyfile(self.model("mobilenet_v1_0.75_192_quant"), self.own)

    def start(self, *arguments, store=True, environment=None):
        """The start report of a run, and the classes that it printed."""
        arguments = [*arguments, "--random-input", "7", "--top", "3"]
        if store:
            arguments += ["--store", str(self.store)]
        result = self.json("run", self.own, *arguments, env={**os.environ, **(environment or {})})
        return result["start"], [(one["index"], one["score"]) for one in result["top"]]

    def cache(self, *arguments, environment=None):
        return self.json("cache", *arguments, "--store", self.store,
                         env={**os.environ, **(environment or {})})

    def testTheSecondStartIsWarm(self):
        cold, classes = self.start()
        self.assertEqual(cold["state"], "cold")
        self.assertEqual(cold["reason"], "first start of this model")
        self.assertGreater(cold["packed_bytes"], 2_000_000)
        for _ in range(2):
            warm, again = self.start()
            self.assertEqual(warm["state"], "warm", warm)
            self.assertEqual(warm["packed_bytes"], 0)
            self.assertEqual(again, classes)

    def testTruncatedWhileInUse(self):
        _, classes = self.start()
        command = [HEARTH, "run", self.own, "--random-input", "7", "--top", "3", "--store", self.store,
                   "--repeat", "1500", "--json"]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            maps = pathlib.Path(f"/proc/{process.pid}/maps")
            while "/segments/" not in maps.read_text():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            time.sleep(0.3)
            for segment in (self.store / "segments").rglob("*"):
                if segment.is_file():
                    os.chmod(segment, 0o600)
                    os.truncate(segment, 0)
            self.assertIsNone(process.poll(), "It is to be truncated while the model runs.")
            output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        result = json.loads(output)
        self.assertEqual([(one["index"], one["score"]) for one in result["top"]], classes)
        self.assertEqual(result["start"]["reason"], "segment corrupt")
        self.assertGreater(result["start"]["repaired_bytes"], 1_000_000)
        # Pages that this process did not read are checked by the next start.
        self.hearth("run", self.own, "--random-input", "7", "--store", self.store)
        warm, again = self.start()
        self.assertEqual(warm["state"], "warm", warm)
        self.assertEqual(again, classes)

    def found(self, **environment):
        """The facts that a start determines about the machine, and the classes that it printed."""
        trace = self.folder / "trace.json"
        _, classes = self.start(environment={"HEARTH_TRACE": str(trace), **environment})
        names = {event["name"] for event in json.loads(trace.read_text())}
        self.assertIn("load packed weights", names)
        return names & {"self-test", "build identity", "probe packings"}, classes

    def testTheMachineIsTestedOnce(self):
        shutil.copyfile(self.model("mobilenet_v2_quantized_1x3x224x224"), self.own)
        everything, classes = self.found()
        # Probing depends on the CPU: not every CPU has kernels that read XNNPACK's packed weights.
        self.assertLessEqual({"self-test", "build identity"}, everything)
        self.assertEqual(self.found(), (set(), classes))
        self.assertEqual(self.found(HEARTH_PACKING_SALT="another"), (everything, classes))
        (self.store / "machine.blobs").unlink()
        self.assertEqual(self.found(), (everything, classes))
        self.assertEqual(self.found(), (set(), classes))

    def testFactsThatAreWrongOrOfAnotherMachineAreNotBelieved(self):
        shutil.copyfile(self.model("mobilenet_v2_quantized_1x3x224x224"), self.own)
        path = self.store / "machine.blobs"
        everything, classes = self.found()
        probes = everything & {"probe packings"}
        kind = b"hearth-cpu self-test\0"

        def expect(change, names):
            """Expects a start to determine these after `change` of the self-test's key and value."""
            facts = readFacts(path)
            [key] = [key for key in facts if key.startswith(kind)]
            newKey, value = change(key, bytearray(facts.pop(key)))
            writeFacts(path, {**facts, newKey: bytes(value)})
            self.assertEqual(self.found(), (names, classes))
            # The start corrects it for the next one.
            self.assertEqual(self.found(), (set(), classes))
            path.unlink()
            self.assertEqual(self.found(), (everything, classes))

        def marked(position, mark):
            def change(key, value):
                value[position] = mark
                return key, value
            return change

        tested = {"self-test"} | probes
        # The marks are 1 for the test and 3 for the products, which had 1 and 2 in earlier formats.
        for mark in (0, 4, 255):
            expect(marked(0, mark), tested)
            expect(marked(2, mark), probes)
        for mark in (1, 2):
            expect(marked(2, mark), probes)
        for length in (1, 31, 33):
            expect(lambda key, value: (key, (value + value)[:length]), tested)
        expect(lambda key, value: (key[:-1] + bytes([key[-1] ^ 1]), value), tested)

    def testAnotherCpuAndBackLiveSideBySide(self):
        _, classes = self.start()
        other = {"HEARTH_PACKING_SALT": "another"}
        cold, again = self.start(environment=other)
        self.assertEqual((cold["state"], cold["reason"]), ("cold", "packing changed"))
        self.assertEqual(again, classes)
        self.assertEqual(self.start()[0]["state"], "warm")
        self.assertEqual(self.start(environment=other)[0]["state"], "warm")

    def testTwoVersionsShareAStoreWithRoomForBoth(self):
        old, new = ({"HEARTH_PACKING_SALT": version} for version in ("old", "new"))
        _, classes = self.start(environment=old)
        for version, state in ((new, "cold"), (old, "warm"), (new, "warm"), (old, "warm")):
            start, again = self.start(environment=version)
            self.assertEqual((start["state"], again), (state, classes))
            # Neither removes what the other has stored.
            self.cache("prune", environment=version)
        # At the same time, from an empty store.
        for fresh in (True, False):
            if fresh:
                shutil.rmtree(self.store)
            command = [HEARTH, "run", self.own, "--random-input", "7", "--top", "3", "--json",
                       "--store", self.store, "--threads", "1"]
            processes = [subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                                          env={**os.environ, **version})
                         for version in (old, new) * 3]
            results = [json.loads(process.communicate()[0]) for process in processes]
            self.assertEqual({process.returncode for process in processes}, {0})
            states = sorted(result["start"]["state"] for result in results)
            self.assertEqual(states, ["cold"] * 2 * fresh + ["warm"] * (6 - 2 * fresh))
            for result in results:
                self.assertEqual([(one["index"], one["score"]) for one in result["top"]], classes)

    def testTwoVersionsInAStoreWithRoomForOneAreBothRight(self):
        old, new = ({"HEARTH_PACKING_SALT": version} for version in ("old", "new"))
        _, classes = self.start(environment=old)
        limit = self.cache("stat")["bytes"] + 20_000
        for version in (new, old, new, new, old, old):
            start, again = self.start("--store-size", limit, environment=version)
            self.assertEqual(again, classes)
            self.assertIn(start["state"], ("cold", "warm"), start)
            self.assertLessEqual(self.cache("stat")["bytes"], limit)

    def testTheRewrittenModelIsNoticed(self):
        _, before = self.start()
        data = bytearray(self.own.read_bytes())
        # Weights fill the file except its last tenth.
        begin = len(data) // 4
        for i in range(begin, begin + 50_000):
            data[i] ^= 0x55
        times = self.own.stat()
        # The size and modification time stay the same; the file is changed in place, and by
        # renaming.
        self.own.write_bytes(data)
        os.utime(self.own, ns=(times.st_atime_ns, times.st_mtime_ns))
        changed, after = self.start()
        self.assertEqual((changed["state"], changed["reason"]), ("cold", "model changed"))
        expected, fresh = self.start("--store-mode", "off", store=False)
        self.assertEqual(expected["state"], "uncached")
        self.assertEqual(after, fresh)
        self.assertNotEqual(after, before)

    def testSwitchedOffItWritesNothing(self):
        start, _ = self.start("--store-mode", "off")
        self.assertEqual(start["state"], "uncached")
        self.assertRegex(start["reason"], "^off: ")
        self.assertFalse(self.store.exists())

    def testAFolderThatCannotBeUsedIsNoFailure(self):
        self.store.write_text("a file")
        start, _ = self.start()
        self.assertEqual(start["state"], "uncached")
        self.assertRegex(start["reason"], "^not-a-folder: ")
        self.assertEqual(self.store.read_text(), "a file")

    def testOneFileInPlaceOfTheStore(self):
        cache = self.folder / "weights"
        cold, classes = self.start("--weight-cache", cache, store=False)
        self.assertEqual(cold["state"], "cold", cold)
        self.assertEqual(cache.stat().st_mode & 0o777, 0o600)
        warm, again = self.start("--weight-cache", cache, store=False)
        self.assertEqual(warm["state"], "warm", warm)
        self.assertEqual(again, classes)
        # Another model replaces the file; no start may give wrong results.
        other = {"HEARTH_PACKING_SALT": "another"}
        self.assertEqual(
            self.start("--weight-cache", cache, store=False, environment=other)[0]["state"], "cold")
        replaced, again = self.start("--weight-cache", cache, store=False, environment=other)
        self.assertEqual(replaced["state"], "warm")
        self.assertEqual(again, classes)

    def testEveryStartIsReported(self):
        report = self.folder / "report.jsonl"
        for _ in range(2):
            self.start(environment={"HEARTH_REPORT": str(report)})
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        self.assertEqual([line["start"]["state"] for line in lines], ["cold", "warm"])
        for line in lines:
            self.assertEqual(line["model"], str(self.own))
            self.assertEqual(line["device"], "hearth-cpu")
            self.assertGreater(line["pid"], 0)
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def testProcessesThatStartAtOnceAreAllRight(self):
        for count in (2, 4, 16):
            shutil.rmtree(self.store, ignore_errors=True)
            command = [HEARTH, "run", self.own, "--random-input", "7", "--top", "3", "--json",
                       "--store", self.store, "--threads", "1"]
            processes = [subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
                         for _ in range(count)]
            results = [json.loads(process.communicate()[0]) for process in processes]
            self.assertEqual({process.returncode for process in processes}, {0})
            states = [result["start"]["state"] for result in results]
            # One process builds, the others wait for it.
            self.assertEqual(sorted(states), ["cold"] + ["warm"] * (count - 1))
            tops = [[(one["index"], one["score"]) for one in result["top"]] for result in results]
            self.assertTrue(all(top == tops[0] for top in tops))


class SeveralProcesses(CommandTest):
    """The memory that several processes take together when they start cold at the same time."""

    MEGABYTES = 400
    OPTIONS = ()  # of the generator

    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.own = self.folder / "model.tflite"
        subprocess.run([sys.executable, ROOT / "bench/workloads/generate.py", "mlp", self.own,
                        "--megabytes", str(self.MEGABYTES), *self.OPTIONS], check=True,
                       stdout=subprocess.DEVNULL)

    def peak(self, count):
        """The largest sum of PSS in KiB, and the results."""
        shutil.rmtree(self.store, ignore_errors=True)
        command = [HEARTH, "bench", self.own, "--random-input", "7", "--json", "--repeat", "3",
                   "--store", self.store, "--threads", "2"]
        processes = [subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
                     for _ in range(count)]
        peak = 0
        while any(process.poll() is None for process in processes):
            # At one instant: otherwise pages could be counted both before and after another process
            # maps them.
            for process in processes:
                process.send_signal(signal.SIGSTOP)
            try:
                for process in processes:
                    while self.isRunning(process.pid):
                        time.sleep(0.0002)
                peak = max(peak, sum(self.pss(process.pid) for process in processes))
            finally:
                for process in processes:
                    process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        results = [json.loads(process.communicate()[0]) for process in processes]
        self.assertEqual({process.returncode for process in processes}, {0})
        return peak, results

    @staticmethod
    def isRunning(pid):
        """Whether a process exists and is not stopped."""
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] not in "TtZXx"

    @staticmethod
    def pss(pid):
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")),
                    0)


class UnknownBatchMemoryTest(SeveralProcesses):
    MEGABYTES = 100
    OPTIONS = ("--any-batch",)

    def testTenProcessesWithAnUnknownBatchTakeTheMemoryOfOne(self):
        alone, [result] = self.peak(1)
        self.assertEqual(result["start"]["shapes"], 1)
        self.assertGreaterEqual(result["start"]["packed_bytes"], self.MEGABYTES << 20)
        activations = result["memory"]["activation_bytes"] // 1024
        together, results = self.peak(10)
        starts = [result["start"] for result in results]
        self.assertEqual(sorted(start["state"] for start in starts), ["cold"] + ["warm"] * 9)
        for start in starts:
            if start["state"] == "warm":
                self.assertEqual(start["packed_bytes"], 0)
                self.assertGreaterEqual(start["mapped_bytes"], self.MEGABYTES << 20)
        self.assertLessEqual(together, 1.3 * alone + 10 * (6 * 1024 + activations),
                             f"one takes {alone} KiB")


class MemoryTest(SeveralProcesses):

    def testPackingTakesTheMemoryOfAFewParts(self):
        _, [result] = self.peak(1)
        self.assertEqual(result["start"]["state"], "cold")
        self.assertGreaterEqual(result["start"]["packed_bytes"], self.MEGABYTES << 20)
        # Layers of 64 MiB are packed in parts of 32. Each of two threads holds one part, from as
        # many bytes of the model; the writing thread holds the last 16 MiB or one part.
        parts = 5 * 33 * 1024
        others = 40 * 1024
        self.assertLessEqual(result["memory"]["start_peak_rss_kib"],
                             parts + others + result["memory"]["activation_bytes"] // 1024)

    def testTenProcessesTakeTheMemoryOfOne(self):
        alone, [result] = self.peak(1)
        self.assertGreaterEqual(result["start"]["packed_bytes"], self.MEGABYTES << 20)
        activations = result["memory"]["activation_bytes"] // 1024
        for count in (2, 10):
            together, results = self.peak(count)
            states = sorted(result["start"]["state"] for result in results)
            self.assertEqual(states, ["cold"] + ["warm"] * (count - 1))
            limit = 1.3 * alone + count * (6 * 1024 + activations)
            self.assertLessEqual(together, limit, f"{count} processes, one takes {alone} KiB")


if __name__ == "__main__":
    unittest.main()
