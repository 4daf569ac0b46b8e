# SPDX-License-Identifier: Apache-2.0
"""`hearth cache`: what it lists, checks and removes, and the keys of docs/cli.md."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import CommandTest, DataTest, HEARTH

MODELS = ("mobilenet_v1_0.25_128_quant", "person_detect")


class EmptyStoreTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.environment = {**os.environ, "HEARTH_STORE": str(self.store)}

    def cache(self, *arguments):
        return self.json("cache", *arguments, env=self.environment)

    def testAStoreThatIsNotThereIsEmptyAndStaysSo(self):
        self.assertEqual(self.cache("path"), {"path": str(self.store), "exists": False})
        self.assertEqual(self.cache("ls"), {"path": str(self.store), "plans": [], "tables": [], "facts": []})
        stat = self.cache("stat")
        self.assertFalse(stat["exists"])
        self.assertEqual(stat["bytes"], 0)
        self.assertEqual(self.cache("verify")["segments"], 0)
        self.assertEqual(self.cache("prune", "--max-size", "0")["bytes_freed"], 0)
        self.assertEqual(self.cache("rm", "--all")["plans"], 0)
        self.assertFalse(self.store.exists())
        for command in ("ls", "stat", "verify", "prune", "path"):
            self.assertTrue(self.succeed("cache", command, env=self.environment))

    def testTheFlagCountsBeforeTheVariable(self):
        other = self.folder / "other"
        self.assertEqual(self.succeed("cache", "path", "--store", other, env=self.environment),
                         f"{other}\n")

    def testRefusesWhatIsWrong(self):
        for arguments in (
                ("fly",), ("ls", "x"), ("rm",), ("rm", "--all", "abcd"), ("rm", "abcd"),
                ("prune", "--max-size", "x"), ("prune", "--max-size", "-1"),
                ("prune", "--older-than", "5"), ("prune", "--older-than", "5y"),
                ("stat", "--weight-cache", "f"), ("ls", "--weight-cache", "f", "--store", "s")):
            self.refuse(2, "cache", *arguments, env=self.environment)
        self.assertIn("cache fly", self.refuse(2, "cache", "fly"))
        self.assertIn("explain", self.succeed("cache", env=self.environment))  # its help
        wrong = {**self.environment, "HEARTH_STORE_MODE": "fast"}
        self.assertIn("HEARTH_STORE_MODE", self.refuse(2, "cache", "ls", env=wrong))
        self.store.write_bytes(b"no folder")
        for command in ("ls", "stat", "verify", "prune"):
            self.assertIn("not-a-folder", self.refuse(1, "cache", command, env=self.environment))
        for command in ("ls", "verify"):
            self.refuse(1, "cache", command, "--weight-cache", self.folder / "none")
            self.refuse(1, "cache", command, "--weight-cache", self.store)


class WarmForTest(DataTest):
    """Packing for other processors. In place of qemu stands a script that makes the packings those of
    another processor by its name."""

    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        emulators = self.folder / "bin"
        emulators.mkdir()
        for architecture in ("aarch64", "x86_64"):
            emulator = emulators / f"qemu-{architecture}"
            emulator.write_text('#!/bin/sh\n[ "$1" = -cpu ] || exit 9\nexport HEARTH_PACKING_SALT=$2\n'
                                'shift 2\nexec "$@"\n')
            emulator.chmod(0o755)
        self.environment = {**os.environ, "HEARTH_STORE": str(self.store),
                            "PATH": f"{emulators}:{os.environ['PATH']}"}

    def state(self, processor, *arguments):
        environment = {**self.environment, "HEARTH_PACKING_SALT": processor}
        [start] = self.json("cache", "explain", self.model(MODELS[1]), *arguments,
                            env=environment)["signatures"]
        return start["state"]

    def testEachTargetFindsItsOwnInOneStore(self):
        result = self.json("cache", "warm", "--for", "arm64-dotprod,arm64-cortex-a53", "--program", HEARTH,
                           self.model(MODELS[1]), env=self.environment)
        self.assertEqual([target["for"] for target in result["targets"]],
                         ["arm64-dotprod", "arm64-cortex-a53"])
        for target in result["targets"]:
            self.assertEqual(target["model"], str(self.model(MODELS[1])))
            self.assertEqual([start["state"] for start in target["signatures"]], ["warm"])
            self.assertGreater(target["signatures"][0]["packed_bytes"], 0)
        self.assertEqual(self.state("cortex-a76"), "warm")
        self.assertEqual(self.state("cortex-a53"), "warm")
        self.assertNotEqual(self.state("cortex-a72"), "warm")

    def testABundleIsOfOneTarget(self):
        bundle = self.folder / "model.bundle"
        text = self.succeed("cache", "warm", "--for", "arm64-i8mm", "--program", HEARTH, "--weight-cache",
                            bundle, self.model(MODELS[1]), env=self.environment)
        self.assertIn("arm64-i8mm:\n", text)
        self.assertEqual(self.state("neoverse-v1", "--weight-cache", bundle), "warm")
        self.assertNotEqual(self.state("cortex-a76", "--weight-cache", bundle), "warm")
        self.assertIn("--store", self.refuse(2, "cache", "warm", "--for", "arm64-i8mm,arm64-dotprod",
                                             "--program", HEARTH, "--weight-cache", bundle,
                                             self.model(MODELS[1]), env=self.environment))

    def testRefusesWhatItCannotPackFor(self):
        def refuse(code, *arguments, **environment):
            return self.refuse(code, "cache", "warm", *arguments, self.model(MODELS[1]),
                               env={**self.environment, **environment})
        self.assertIn("arm64-dotprod", refuse(2, "--for", "arm64-dotproduct"))
        self.assertIn("--for", refuse(2, "--program", HEARTH))
        self.assertIn("--custom-operators", refuse(2, "--for", "x86-64-v3", "--custom-operators", "x.so"))
        arguments = ("--for", "arm64-dotprod", "--program", HEARTH)
        self.assertIn("qemu-user", refuse(1, *arguments, PATH=str(self.folder)))
        self.assertIn("exit code 3", refuse(1, *arguments, PATH=self.emulatorThatOnly("exit 3")))
        self.assertIn("no JSON", refuse(1, "--json", *arguments, PATH=self.emulatorThatOnly("echo 1")))
        self.assertFalse(self.store.exists())

    def emulatorThatOnly(self, line):
        """A folder with an emulator that runs a line of shell."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        emulator = folder / "qemu-aarch64"
        emulator.write_text(f"#!/bin/sh\n{line}\n")
        emulator.chmod(0o755)
        return str(folder)


class CacheTest(DataTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.environment = {**os.environ, "HEARTH_STORE": str(self.store)}
        for name in ("HEARTH_STORE_MODE", "HEARTH_STORE_SIZE"):
            self.environment.pop(name, None)

    def cache(self, *arguments):
        return self.json("cache", *arguments, env=self.environment)

    def start(self, name, *arguments):
        result = self.json("bench", self.model(name), "--repeat", 1, *arguments,
                           env=self.environment)
        return result["start"]["state"]

    def plans(self):
        return [plan for plan in self.cache("ls")["plans"] if plan["segments"] > 0]

    def testListsAndRemovesModels(self):
        for name in MODELS:
            self.assertEqual(self.start(name), "cold")
        plans = self.plans()
        self.assertEqual({plan["model"] for plan in plans},
                         {f"{name}.tflite" for name in MODELS})
        for plan in plans:
            self.assertEqual(plan["device"], "hearth-cpu")
            self.assertEqual(len(plan["key"]), 64)
            self.assertGreaterEqual(plan["bytes"], plan["own_bytes"])
            self.assertGreater(plan["own_bytes"], 0)
            self.assertFalse(plan["in_use"] or plan["corrupt"])
            self.assertRegex(plan["created"], r"^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        text = self.succeed("cache", "ls", env=self.environment)
        for name in MODELS:
            self.assertIn(name, text)
        stat = self.cache("stat")
        self.assertEqual(stat["plans"], len(plans))
        self.assertEqual(stat["orphans"], 0)
        self.assertEqual(self.cache("verify")["segments"], stat["segments"])

        removed = self.cache("rm", f"{MODELS[1]}.tflite")
        self.assertGreater(removed["bytes_freed"], 0)
        self.assertEqual([plan["model"] for plan in self.plans()], [f"{MODELS[0]}.tflite"])
        self.assertEqual(self.start(MODELS[0]), "warm")
        self.assertEqual(self.start(MODELS[1]), "cold")
        key = next(plan["key"] for plan in self.plans() if MODELS[1] in plan["model"])
        self.assertEqual(self.cache("rm", key[:16])["plans"], 1)
        self.cache("rm", "--all")
        self.assertEqual(self.cache("ls")["plans"], [])
        self.assertEqual(self.start(MODELS[0]), "cold")

    def testPrunesByAgeAndSize(self):
        for name in MODELS:
            self.start(name)
        self.assertEqual(self.cache("prune", "--older-than", "1h")["plans"], 0)
        self.assertEqual(len(self.plans()), 2)
        old = next(plan for plan in self.plans() if MODELS[0] in plan["model"])
        os.utime(self.store / "stamps" / old["key"], (1e9, 1e9))
        self.assertEqual(self.cache("prune", "--older-than", "52w")["plans"], 1)
        self.assertEqual([plan["model"] for plan in self.plans()], [f"{MODELS[1]}.tflite"])
        report = self.cache("prune", "--max-size", "0")
        self.assertEqual(report["bytes"], 0)
        self.assertEqual(self.cache("stat")["bytes"], 0)

    def testVerifyFindsAndRemovesAFlippedBit(self):
        self.start(MODELS[0])
        segments = list((self.store / "segments").glob("*/*"))
        segment = segments[0]
        content = bytearray(segment.read_bytes())
        content[1000] ^= 4
        segment.chmod(0o600)
        segment.write_bytes(content)
        # The warning in the log names the object.
        quiet = {**self.environment, "HEARTH_LOG": "error"}
        sentence = self.refuse(1, "cache", "verify", env=quiet)
        self.assertIn(f"1 of {len(segments)} segments", sentence)
        self.assertFalse(segment.exists())
        self.assertEqual(self.cache("verify")["segments"], len(segments) - 1)
        self.assertEqual(self.start(MODELS[0]), "cold")
        self.assertEqual(self.start(MODELS[0]), "warm")

    def testFactsOfDriversAreKeptApart(self):
        self.start(MODELS[0])
        facts = self.cache("ls")["facts"]
        self.assertEqual({fact["kind"] for fact in facts},
                         {"hearth-cpu packing", "hearth-cpu self-test"})
        stat = self.cache("stat")
        self.assertEqual((stat["facts"], stat["facts_corrupt"]), (2, False))
        self.assertEqual(self.cache("verify")["facts"], 2)
        listed = self.succeed("cache", "ls", "--all", env=self.environment)
        self.assertIn("hearth-cpu packing", listed)
        # What other models can take is listed with the plans.
        self.assertIn("hearth-cpu packings", listed)
        # Removing them would not help: they do not count towards the store's size.
        self.assertEqual(self.cache("prune", "--max-size", "0")["bytes"], 0)
        self.assertEqual(self.cache("stat")["facts"], 2)
        file = self.store / "machine.blobs"
        content = bytearray(file.read_bytes())
        content[70] ^= 1
        file.chmod(0o600)
        file.write_bytes(content)
        self.assertTrue(self.cache("stat")["facts_corrupt"])
        self.assertIn("facts", self.refuse(1, "cache", "verify", env=self.environment))
        self.assertFalse(file.exists())
        self.assertEqual(self.cache("verify")["facts"], 0)
        # The next start determines them again.
        self.start(MODELS[0])
        self.assertEqual(self.cache("stat")["facts"], 2)
        self.cache("rm", "--all")
        self.assertFalse(file.exists())

    def testReadOnlyModeRemovesNothing(self):
        self.start(MODELS[0])
        self.environment["HEARTH_STORE_MODE"] = "read-only"
        for arguments in (("prune", "--max-size", "0"), ("rm", "--all")):
            sentence = self.refuse(1, "cache", *arguments, env=self.environment)
            self.assertIn("read-only", sentence)
        self.assertEqual(len(self.plans()), 1)

    def testExplainsTheNextStart(self):
        model = self.folder / "model.tflite"
        shutil.copyfile(self.model(MODELS[0]), model)

        def next(*arguments, **environment):
            result = self.json("cache", "explain", model, *arguments,
                               env={**self.environment, **environment})
            self.assertEqual(result["model"], str(model))
            [start] = result["signatures"]
            return start["state"], start["reason"]

        self.assertEqual(next(), ("cold", "there is no store yet"))
        self.assertFalse(self.store.exists())
        [start] = self.cache("warm", model)["signatures"]
        self.assertEqual(start["state"], "warm")
        self.assertGreater(start["packed_bytes"], 100_000)
        self.assertEqual(next(), ("warm", ""))
        [start] = self.cache("warm", model)["signatures"]
        self.assertEqual((start["state"], start["packed_bytes"]), ("warm", 0))
        self.assertEqual(next(HEARTH_PACKING_SALT="x"), ("cold", "packing changed"))
        content = bytearray(model.read_bytes())
        content[len(content) // 2] ^= 1
        model.write_bytes(content)
        plans = self.plans()
        self.assertEqual(next(), ("cold", "model changed"))
        self.assertEqual(self.plans(), plans)
        self.assertEqual(next("--device", "nnapi-reference")[0], "uncached")
        self.assertEqual(next(HEARTH_STORE_MODE="off")[0], "uncached")
        self.assertIn("model changed", self.succeed("cache", "explain", model,
                                                    env=self.environment))
        self.refuse(2, "cache", "explain", model, "--signature", "x", env=self.environment)
        self.refuse(2, "cache", "warm", self.folder / "none", env=self.environment)
        read_only = {**self.environment, "HEARTH_STORE_MODE": "read-only"}
        self.assertIn("read-only", self.refuse(1, "cache", "warm", model, env=read_only))

    def testAnotherShapeIsMadeWarm(self):
        arguments = self.model(MODELS[0]), "--shape", "2,128,128,3"
        self.assertEqual(self.cache("explain", *arguments)["signatures"][0]["state"], "cold")
        [start] = self.cache("warm", *arguments)["signatures"]
        self.assertEqual(start["state"], "warm")
        self.assertGreater(start["packed_bytes"], 100_000)
        [start] = self.cache("explain", *arguments)["signatures"]
        self.assertEqual((start["state"], start["reason"]), ("warm", ""))
        report = self.json("bench", *arguments, "--repeat", "0", env=self.environment)
        self.assertEqual(report["start"]["state"], "warm")
        self.assertIn("no input", self.refuse(2, "cache", "explain", arguments[0], "--shape",
                                              "none=2,128,128,3", env=self.environment))
        self.refuse(2, "cache", "explain", *arguments, "--cache-dir", self.folder,
                    env=self.environment)

    def testABundleKeepsWhatWasMeasured(self):
        def start():
            return self.json("bench", self.model(MODELS[0]), "--weight-cache",
                             self.folder / "model.bundle", "--repeat", 500, "--tuning", "on",
                             env=self.environment)["start"]

        self.assertIn(start()["tuning"]["state"], ("measuring", "measured"))
        # A process that was too busy to measure leaves this to the next one.
        starts = [start() for _ in range(4)]
        self.assertEqual({found["state"] for found in starts}, {"warm"})
        self.assertEqual(starts[-1]["tuning"]["state"], "recalled")
        self.assertEqual(starts[-1]["tuning"]["executions"], 0)
        self.assertEqual(self.cache("explain", self.model(MODELS[0]), "--weight-cache",
                                    self.folder / "model.bundle")["signatures"][0]["state"], "warm")

    def testUntilTunedLeavesTheChoiceToTheNextStart(self):
        for place in ((), ("--weight-cache", self.folder / "tuned.bundle")):
            def bench(*words):
                return self.json("bench", self.model(MODELS[0]), "--until-tuned", "--repeat", 3,
                                 *place, *words, env=self.environment)

            first = bench()
            self.assertEqual(first["start"]["tuning"]["state"], "measured")
            # The command ends as soon as the second stage has begun.
            runs = first["inference_ms"]["runs"]
            self.assertGreater(runs, 24)
            self.assertGreaterEqual(runs, first["start"]["tuning"]["executions"] - 1)
            second = bench()
            self.assertEqual(second["start"]["tuning"]["state"], "recalled")
            self.assertEqual(second["start"]["tuning"]["changed_steps"],
                             first["start"]["tuning"]["changed_steps"])
            self.assertEqual(second["inference_ms"]["runs"], 3)
            other = bench("--device", "nnapi-reference")
            self.assertEqual(other["start"]["tuning"]["state"], "off")
            self.assertEqual(other["inference_ms"]["runs"], 3)
        self.refuse(2, "bench", self.model(MODELS[0]), "--until-tuned", "--tuning", "off")
        self.refuse(2, "run", self.model(MODELS[0]), "--until-tuned")

    def testABundleIsListedAndChecked(self):
        bundle = self.folder / "model.bundle"
        self.assertEqual(self.start(MODELS[0], "--weight-cache", bundle), "cold")
        self.assertEqual(self.start(MODELS[0], "--weight-cache", bundle), "warm")
        listed = self.cache("ls", "--weight-cache", bundle)["plans"]
        self.assertEqual([plan["model"] for plan in listed], [f"{MODELS[0]}.tflite"])
        self.assertGreater(self.cache("verify", "--weight-cache", bundle)["bytes"], 0)
        content = bytearray(bundle.read_bytes())
        content[5000] ^= 1
        bundle.write_bytes(content)
        self.refuse(1, "cache", "verify", "--weight-cache", bundle, env=self.environment)
        self.assertFalse(self.store.exists())


if __name__ == "__main__":
    unittest.main()
