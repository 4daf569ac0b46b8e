# SPDX-License-Identifier: Apache-2.0
"""NNAPI's compilation caching between processes: `hearth bench --api nnapi --cache-dir`."""

import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from command import DataTest, HEARTH

NOBODY = 65534
TOKEN = "5a" * 32
OTHER_TOKEN = "5b" * 32
POINTS = ("cache_files.before_data", "cache_files.after_data", "cache_files.after_model")
RANDOM_KILLS = 200 if os.environ.get("HEARTH_TEST_LONG") == "1" else 20


class CachingTest(DataTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.cache.mkdir()
        self.environment = {**os.environ, "HEARTH_STORE": str(self.folder / "store"),
                            "XDG_STATE_HOME": str(self.folder / "state")}
        for name in ("HEARTH_STORE_MODE", "HEARTH_PACKING_SALT", "HEARTH_CRASH_AT", "HEARTH_FAULT"):
            self.environment.pop(name, None)
        self.tflite = self.model("mobilenet_v1_0.25_128_quant")

    def command(self, token=TOKEN, cache=None):
        return [HEARTH, "bench", str(self.tflite), "--api", "nnapi", "--repeat", "0", "--json",
                "--cache-dir", str(cache or self.cache), "--token", token]

    def bench(self, environment=None, **options):
        run = subprocess.run(self.command(**options), capture_output=True, text=True, timeout=300,
                             check=False, env={**self.environment, **(environment or {})})
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def expectedOutputs(self):
        return self.json("bench", self.tflite, "--api", "nnapi", "--repeat", 0,
                         env=self.environment)["outputs_sha256"]

    def expectMissThenHit(self, outputs, **options):
        first = self.bench(**options)
        second = self.bench(**options)
        self.assertNotEqual(first["start"]["cache"], "hit")
        self.assertEqual(second["start"]["cache"], "hit")
        self.assertEqual(second["start"]["packed_bytes"], 0)
        self.assertEqual([first["outputs_sha256"], second["outputs_sha256"]], [outputs] * 2)


class ProcessesTest(CachingTest):
    def testTheNextProcessComesFromTheCache(self):
        outputs = self.expectedOutputs()
        self.expectMissThenHit(outputs)
        self.assertEqual(len(list(self.cache.iterdir())), 2)
        self.expectMissThenHit(outputs, token=OTHER_TOKEN)
        self.assertEqual(self.bench()["start"]["cache"], "hit")

    def testOneRuntimeKeepsTheFilesOfBothInterfaces(self):
        def start(*words):
            return self.json(*words, env=self.environment)["start"]
        words = ["run", self.tflite, "--random-input", 1, "--cache-dir", self.cache, "--token"]
        self.assertNotEqual(start(*words, TOKEN)["cache"], "hit")
        first = start(*words, TOKEN)
        self.assertEqual((first["cache"], first["packed_bytes"]), ("hit", 0))
        self.assertEqual(self.bench()["start"]["cache"], "hit")
        self.assertNotEqual(start(*words, OTHER_TOKEN)["cache"], "hit")

    def testWithoutAStoreTheDataCacheHoldsAll(self):
        self.environment["HEARTH_STORE_MODE"] = "off"
        self.expectMissThenHit(self.expectedOutputs())
        self.assertGreater(sum(path.stat().st_size for path in self.cache.iterdir()), 400_000)
        # Weights that are in the files do not need the store.
        self.environment["HEARTH_STORE_MODE"] = "read-write"
        self.assertEqual(self.bench()["start"]["cache"], "hit")

    def testSixteenProcessesAtOnce(self):
        outputs = self.expectedOutputs()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for result in pool.map(lambda _: self.bench(), range(16)):
                self.assertEqual(result["outputs_sha256"], outputs)
        first = self.bench()
        second = self.bench()
        self.assertEqual(second["start"]["cache"], "hit")
        self.assertEqual([first["outputs_sha256"], second["outputs_sha256"]], [outputs] * 2)


class KillTest(CachingTest):
    def testAtEveryCrashPoint(self):
        outputs = self.expectedOutputs()
        for point in POINTS:
            for path in self.cache.iterdir():
                path.unlink()
            run = subprocess.run(self.command(), capture_output=True, timeout=300, check=False,
                                 env={**self.environment, "HEARTH_CRASH_AT": point})
            self.assertEqual(run.returncode, -signal.SIGKILL, point)
            first = self.bench()
            second = self.bench()
            self.assertEqual(second["start"]["cache"], "hit", point)
            self.assertEqual([first["outputs_sha256"], second["outputs_sha256"]], [outputs] * 2)

    def testAtRandomInstants(self):
        outputs = self.expectedOutputs()
        begin = time.monotonic()
        self.bench()
        lasts = time.monotonic() - begin
        generator = random.Random(1)
        for number in range(RANDOM_KILLS):
            for path in self.cache.iterdir():
                path.unlink()
            with subprocess.Popen(self.command(), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=self.environment) as process:
                time.sleep(generator.uniform(0, lasts))
                process.kill()
            first = self.bench()
            self.assertEqual(first["outputs_sha256"], outputs, number)
            second = self.bench()
            self.assertEqual(second["start"]["cache"], "hit", number)
            self.assertEqual(second["outputs_sha256"], outputs, number)


class BuildsTest(CachingTest):
    def testAnUpdateIsAMissOnce(self):
        outputs = self.expectedOutputs()
        self.expectMissThenHit(outputs)
        self.environment["HEARTH_PACKING_SALT"] = "update"
        self.expectMissThenHit(outputs)

    def testBuildsSideBySideKeepTheirMaps(self):
        outputs = self.expectedOutputs()
        folders = {}
        for salt in ("one", "two"):
            folders[salt] = self.folder / salt
            folders[salt].mkdir()
            self.environment["HEARTH_PACKING_SALT"] = salt
            self.expectMissThenHit(outputs, cache=folders[salt])
        for _ in range(3):
            for salt, folder in folders.items():
                self.environment["HEARTH_PACKING_SALT"] = salt
                self.assertEqual(self.bench(cache=folder)["start"]["cache"], "hit")
        # Files of one build mean nothing to a build that has never written the same.
        self.environment["HEARTH_PACKING_SALT"] = "three"
        self.expectMissThenHit(outputs, cache=folders["two"])


class RightsTest(CachingTest):
    def expectUncached(self, outputs, **options):
        for _ in range(2):
            result = self.bench(**options)
            self.assertNotEqual(result["start"]["cache"], "hit")
            self.assertEqual(result["outputs_sha256"], outputs)
        return result["start"]["cache"]

    def testAMapThatCannotBeWritten(self):
        outputs = self.expectedOutputs()
        (self.folder / "state").write_text("no folder", encoding="utf-8")
        self.assertIn("cache map", self.expectUncached(outputs))

    @unittest.skipIf(os.geteuid() != 0, "Only root can become another user.")
    def testFilesWithoutPermission(self):
        outputs = self.expectedOutputs()
        self.expectMissThenHit(outputs)
        for folder in (self.folder, self.cache):
            folder.chmod(0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, NOBODY, NOBODY)
        run = subprocess.run(self.command(), capture_output=True, text=True, timeout=300,
                             check=False, user=NOBODY, group=NOBODY, extra_groups=[],
                             env={**self.environment, "HEARTH_STORE": str(home / "store"),
                                  "XDG_STATE_HOME": str(home / "state")})
        if run.returncode != 0 and "Permission" in run.stderr:
            self.skipTest("Another user may not read the test's folders.")
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads(run.stdout)
        self.assertNotEqual(result["start"]["cache"], "hit")
        self.assertEqual(result["outputs_sha256"], outputs)
        # The owner's files are unchanged.
        self.assertEqual(self.bench()["start"]["cache"], "hit")

    def testThingsThatStandInTheWay(self):
        outputs = self.expectedOutputs()
        self.expectMissThenHit(outputs)
        files = sorted(self.cache.iterdir())
        elsewhere = self.folder / "elsewhere"
        for path in files:
            good = path.read_bytes()
            for plant in (lambda p: os.mkfifo(p), lambda p: p.mkdir(),
                          lambda p: p.symlink_to(elsewhere), lambda p: p.symlink_to(p)):
                path.unlink()
                plant(path)
                self.expectUncached(outputs)
                self.assertFalse(elsewhere.exists())
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()
                path.write_bytes(good)
                path.chmod(0o600)
        self.assertEqual(self.bench()["start"]["cache"], "hit")

    def testAHardLinkToAnotherFileIsLeftAlone(self):
        outputs = self.expectedOutputs()
        self.expectMissThenHit(outputs)
        victim = self.folder / "victim"
        for path in sorted(self.cache.iterdir()):
            good = path.read_bytes()
            # This holds for valid content, too: a file with another link may not be written.
            for content in (b"mine", good):
                victim.write_bytes(content)
                path.unlink()
                os.link(victim, path)
                self.expectUncached(outputs)
                self.assertEqual(victim.read_bytes(), content)
                victim.unlink()
                path.write_bytes(good)
                path.chmod(0o600)
        self.assertEqual(self.bench()["start"]["cache"], "hit")

    def testAFolderThatVanishes(self):
        outputs = self.expectedOutputs()
        self.cache.rmdir()
        self.expectUncached(outputs)
        self.assertFalse(self.cache.exists())


class CommandLineTest(CachingTest):
    def testWrongTokens(self):
        for token in ("5a", "zz" * 32, "5a" * 33):
            self.refuse(2, "bench", self.tflite, "--api", "nnapi", "--cache-dir", self.cache,
                        "--token", token)
        self.refuse(2, "bench", self.tflite, "--token", TOKEN)

    def testSaysWhatItMeasures(self):
        result = self.bench()
        for key in ("libraries_ms", "file_ms", "model_ms", "finish_ms", "first_inference_ms"):
            self.assertGreater(result[key], 0, key)
        text = self.succeed("bench", self.tflite, "--api", "nnapi", "--repeat", 2,
                            "--cache-dir", self.cache, "--token", TOKEN, env=self.environment)
        self.assertIn("Compilation_finish", text)
        self.assertIn("hit", text)


if __name__ == "__main__":
    unittest.main()
