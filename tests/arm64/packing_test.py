# SPDX-License-Identifier: Apache-2.0
"""The command for x86-64 and the one for ARM64, which qemu-user runs as several processors: weights that one
machine packs for the boards of another architecture, and a store that both use."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from command import HEARTH, ROOT, DataTest  # noqa: E402

BOARD_HEARTH = ROOT / "build" / "arm64" / "bin" / "hearth"
CROSS_ROOT = pathlib.Path(os.environ.get("HEARTH_CACHE_DIR", "/nowhere")) / "arm64"
QEMU = CROSS_ROOT / "tools" / "usr" / "bin" / "qemu-aarch64"
MODEL = "mobilenet_v1_0.25_128_quant"
# Of signed numbers: with dot product its weights lie otherwise in memory, those of the other model lie the same.
SIGNED_MODEL = "person_detect"
# Names of --for, with qemu's names of processors that are like those and of one that is not. The first has no
# dot product.
TARGETS = {"arm64-cortex-a53": ("cortex-a53", "cortex-a76"), "arm64-dotprod": ("cortex-a76", "cortex-a72")}


def segments(store):
    """Hashes of what a store holds of weights, by their names."""
    return {path.name.removesuffix(".new"): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (store / "segments").rglob("*") if path.is_file()}


class BoardTest(DataTest):
    """Base of tests with a command for this machine and one for boards."""

    def setUp(self):
        for path in (pathlib.Path(HEARTH), BOARD_HEARTH, QEMU):
            if not path.exists():
                self.skipTest(f"There is no {path}: ./dev test --arch arm64 makes it.")
        super().setUp()
        self.store = self.folder / "store"
        self.environment = {**os.environ, "PATH": f"{QEMU.parent}:{os.environ['PATH']}",
                            "QEMU_LD_PREFIX": str(CROSS_ROOT / "sysroot"), "HEARTH_STORE": str(self.store)}

    def here(self, *arguments):
        """The JSON object that the command for this machine prints."""
        return self.json(*arguments, env=self.environment)

    def board(self, processor, *arguments, timeout=300, **variables):
        """The JSON object that the command for boards prints as a processor."""
        run = subprocess.run([QEMU, "-cpu", processor, BOARD_HEARTH, *map(str, arguments), "--json"],
                             capture_output=True, text=True, timeout=timeout, check=False,
                             env={**self.environment, **variables})
        self.assertEqual((run.returncode, run.stderr), (0, ""), f"{processor}: {arguments}")
        return json.loads(run.stdout)

    def start(self, processor, *arguments, model=MODEL, **variables):
        """How a model starts on a board, and the bytes of its output for random numbers."""
        folder = self.folder / "outputs"
        folder.mkdir(exist_ok=True)
        result = self.board(processor, "run", self.model(model), "--random-input", 3, "--output-dir", folder,
                            *arguments, **variables)
        return result["start"], (folder / "output_0.npy").read_bytes()

    def explain(self, show, *arguments):
        """State and reason of the next start, as `show` (self.here, or self.board for a processor) says."""
        [start] = show("cache", "explain", self.model(MODEL), *arguments)["signatures"]
        return start["state"], start["reason"]


class PackingForBoardsTest(BoardTest):

    def pack(self, names, *arguments, model=MODEL):
        result = self.here("cache", "warm", "--for", names, "--program", BOARD_HEARTH, *arguments,
                           self.model(model))
        for target in result["targets"]:
            self.assertGreater(target["signatures"][0]["packed_bytes"], 0)

    def testBoardsStartWarmFromTheStoreThatThisMachineMade(self):
        self.pack(",".join(TARGETS))
        for name, (processor, _) in TARGETS.items():
            with self.subTest(name):
                start, output = self.start(processor)
                self.assertEqual((start["state"], start["packed_bytes"]), ("warm", 0))
                cold, expected = self.start(processor, HEARTH_STORE=str(self.folder / processor))
                self.assertEqual(cold["state"], "cold")
                self.assertGreater(cold["packed_bytes"], 0)
                self.assertEqual(output, expected)
        # A processor that none of them is like packs for itself.
        state, reason = self.explain(lambda *arguments: self.board("neoverse-v1", *arguments))
        self.assertEqual(state, "cold")
        self.assertIn("i8mm", reason)

    def testBoardsStartWarmFromAReadOnlySystemStore(self):
        image = self.folder / "image"
        self.pack("arm64-dotprod", "--store", image)
        before = segments(image)
        start, _ = self.start("cortex-a76", HEARTH_SYSTEM_STORES=str(image))
        self.assertEqual((start["state"], start["packed_bytes"]), ("warm", 0))
        self.assertEqual(segments(image), before)
        self.assertFalse((self.store / "segments").exists() and segments(self.store))

    def testTheBytesAreThoseThatTheBoardPacks(self):
        # Small packings lie in a segment in the order in which threads make them.
        kept = {}
        for name, (processor, _) in TARGETS.items():
            self.pack(name, "--store", self.folder / name, "--threads", 1, model=SIGNED_MODEL)
            self.start(processor, "--threads", 1, model=SIGNED_MODEL,
                       HEARTH_STORE=str(self.folder / processor))
            packed = segments(self.folder / name)
            self.assertTrue(packed)
            self.assertEqual(packed, segments(self.folder / processor))
            kept[name] = packed
        self.assertNotEqual(*kept.values())

    def testABundleServesOneKindOfProcessorAndSaysWhich(self):
        for name, (processor, other) in TARGETS.items():
            with self.subTest(name):
                bundle = self.folder / f"{name}.bundle"
                self.pack(name, "--weight-cache", bundle)
                start, _ = self.start(processor, "--weight-cache", bundle)
                self.assertEqual((start["state"], start["packed_bytes"]), ("warm", 0))
                for show in (self.here, lambda *arguments, cpu=other: self.board(cpu, *arguments)):
                    state, reason = self.explain(show, "--weight-cache", bundle)
                    self.assertEqual(state, "cold")
                    self.assertRegex(reason, "^the bundle is packed for arm64")


class SharedStoreTest(BoardTest):
    """One store folder of machines of two architectures."""

    def setUp(self):
        super().setUp()
        self.shows = {"x86-64": self.here,
                      "arm64": lambda *arguments: self.board("cortex-a76", *arguments)}

    def plans(self, show):
        """What each plan is packed for, by its key."""
        return {plan["key"]: plan["details"] for plan in show("cache", "ls")["plans"]
                if plan["segments"] != 0}

    def testEachArchitecturePacksItsOwnAndKeepsTheOthers(self):
        self.here("cache", "warm", self.model(MODEL))
        [own] = self.plans(self.here)
        self.assertEqual(self.explain(self.shows["arm64"]), ("cold", "packed for x86-64, not for arm64"))
        start, output = self.start("cortex-a76")
        self.assertEqual((start["state"], start["reason"]), ("cold", "packed for x86-64, not for arm64"))
        self.assertGreater(start["packed_bytes"], 0)
        _, expected = self.start("cortex-a76", "--store-mode", "off")
        self.assertEqual(output, expected)
        for name, show in self.shows.items():
            with self.subTest(name):
                self.assertEqual(self.explain(show), ("warm", ""))
                plans = self.plans(show)
                self.assertEqual(len(plans), 2)
                self.assertRegex(plans.pop(own), "^packed for x86-64")
                self.assertRegex(*plans.values(), "^packed for arm64 with .*dotprod")

    def testEachChecksAndCollectsTheOthers(self):
        for keeper, collector in (("x86-64", "arm64"), ("arm64", "x86-64")):
            with self.subTest(collector):
                for show in self.shows.values():
                    show("cache", "warm", self.model(MODEL))
                [key] = [key for key, details in self.plans(self.shows[collector]).items()
                         if details.startswith(f"packed for {keeper}")]
                # It fails where anything is wrong.
                self.assertEqual(self.shows[collector]("cache", "verify")["segments"], len(segments(self.store)))
                self.shows[collector]("cache", "rm", key)
                self.assertEqual(self.explain(self.shows[keeper])[0], "cold")
                self.assertEqual(self.explain(self.shows[collector]), ("warm", ""))
                self.shows[collector]("cache", "rm", "--all")
                self.assertFalse(segments(self.store))
                shutil.rmtree(self.store)


if __name__ == "__main__":
    unittest.main()
