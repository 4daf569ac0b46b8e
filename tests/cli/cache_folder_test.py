# SPDX-License-Identifier: Apache-2.0
"""`hearth cache` on the folder of an application's compilation cache: it predicts what the next
compilation does, and changes nothing."""

import fcntl
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from caching_test import CachingTest, OTHER_TOKEN, TOKEN


class CacheFolderTest(CachingTest):
    def cacheCommand(self, *arguments, **environment):
        return self.json("cache", *arguments, "--cache-dir", self.cache,
                         env={**self.environment, **environment})

    def explain(self, *arguments, token=TOKEN, model=None, **environment):
        result = self.cacheCommand("explain", model or self.tflite, "--token", token, *arguments,
                                   **environment)
        self.assertEqual(result["path"], str(self.cache))
        [signature] = result["signatures"]
        [part] = signature["parts"]
        self.assertEqual(part["state"], signature["state"])
        self.assertEqual(bool(part["reason"]), part["state"] != "hit")
        return part

    def sets(self, **environment):
        return self.cacheCommand("ls", **environment)["sets"]

    def files(self):
        """The model cache and the data cache of the only set of files."""
        return sorted(path for path in self.cache.iterdir() if path.is_file())

    def prepare(self):
        """Writes valid files; the outputs of the run do not matter here."""
        for path in self.files():
            path.unlink()
        self.bench()
        self.assertEqual(self.bench()["start"]["cache"], "hit")
        self.assertEqual(self.explain()["code"], "hit")

    def expectMiss(self, code, **options):
        """Expects a miss, both predicted and real, and that the next compilation repairs the
        files."""
        part = self.explain(**options)
        self.assertEqual((part["state"], part["code"]), ("miss", code))
        self.assertNotEqual(self.bench()["start"]["cache"], "hit")
        self.assertEqual(self.bench()["start"]["cache"], "hit")
        self.assertEqual(self.explain()["state"], "hit")


class ExplainTest(CacheFolderTest):
    def testFilesThatAreMissingOrEmpty(self):
        part = self.explain()
        self.assertEqual((part["state"], part["code"]), ("miss", "no-files"))
        self.assertEqual([file["exists"] for file in part["files"]], [False, False])
        self.assertEqual(list(self.cache.iterdir()), [])
        self.expectMiss("no-files")
        part = self.explain()
        self.assertEqual([file["name"] for file in part["files"]],
                         [path.name for path in self.files()])
        self.assertTrue(all(path.name.startswith(part["key"]) for path in self.files()))
        self.assertEqual(part["device"], "hearth-cpu")
        self.assertTrue(part["same_model"])
        self.assertEqual(self.explain(token=OTHER_TOKEN)["code"], "no-files")
        self.files()[1].unlink()
        self.expectMiss("incomplete")
        for path in self.files():
            path.write_bytes(b"")
        self.expectMiss("empty")

    def testFilesThatChanged(self):
        self.prepare()
        model, data = self.files()
        for path in (model, data):
            good = path.read_bytes()
            path.write_bytes(good + b"x")
            self.expectMiss("wrong-size")
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
            self.expectMiss("wrong-bytes")

    def testAByteThatChangedInAFileOfTheSameSize(self):
        for mode in ("read-write", "off"):
            self.environment["HEARTH_STORE_MODE"] = mode
            self.prepare()
            for path in self.files():
                good = path.read_bytes()
                for position in (0, len(good) // 3, len(good) - 1):
                    wrong = bytearray(good)
                    wrong[position] ^= 0x80
                    path.write_bytes(wrong)
                    part = self.explain()
                    self.assertEqual((part["state"], part["code"]), ("miss", "wrong-bytes"))
                    self.assertIn("not what was written", part["reason"])
                    path.write_bytes(good)
                    self.assertEqual(self.explain()["code"], "hit")
                path.write_bytes(wrong)
                self.expectMiss("wrong-bytes")

    def testFilesOfAnotherKey(self):
        self.prepare()
        other = self.explain(token=OTHER_TOKEN)["key"]
        for path in self.files():
            path.rename(self.cache / (other + path.name[64:]))
        part = self.explain(token=OTHER_TOKEN)
        self.assertEqual((part["state"], part["code"]), ("miss", "other-key"))
        self.assertNotEqual(self.bench(token=OTHER_TOKEN)["start"]["cache"], "hit")

    def testFilesOfAnotherBuild(self):
        self.prepare()
        part = self.explain(HEARTH_PACKING_SALT="x")
        self.assertEqual((part["state"], part["code"]), ("miss", "other-build"))
        [known] = self.sets(HEARTH_PACKING_SALT="x")
        self.assertTrue(known["verified"])
        self.assertIsNone(known["device"])
        self.assertNotEqual(self.bench(environment={"HEARTH_PACKING_SALT": "x"})["start"]["cache"],
                            "hit")

    def testAMapThatIsGoneOrDamaged(self):
        self.prepare()
        [state] = (self.folder / "state").rglob("cache-map.sqlite")
        state.write_bytes(b"damaged" * 1000)
        self.assertEqual(self.explain()["code"], "no-map")
        self.assertEqual(state.read_bytes(), b"damaged" * 1000)
        self.expectMiss("no-map")
        state.unlink()
        self.expectMiss("no-map")

    def testSegmentsThatAreGone(self):
        self.prepare()
        self.json("cache", "rm", "--all", env=self.environment)
        self.expectMiss("segment-missing")
        part = self.explain(HEARTH_STORE_MODE="off")
        self.assertEqual((part["state"], part["code"]), ("miss", "segment-missing"))

    def testWhatACompilationDoesNotNotice(self):
        self.prepare()
        part = self.explain(model=self.model("person_detect"))
        self.assertEqual((part["state"], part["same_model"]), ("hit", False))
        text = self.succeed("cache", "explain", self.model("person_detect"), "--cache-dir",
                            self.cache, "--token", TOKEN, env=self.environment)
        self.assertIn("another model", text)

    def testOtherDevicesAndLocks(self):
        self.prepare()
        part = self.explain("--device", "nnapi-reference")
        self.assertEqual((part["state"], part["code"]), ("uncached", "no-caching"))
        self.assertEqual(part["files"], [])
        self.assertEqual(self.explain("--device", "hearth-cpu")["state"], "hit")
        with open(self.files()[0], "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            part = self.explain()
            # A reader does not wait for a lock.
            self.assertEqual(part["state"], "hit")
            self.assertEqual([entry["locked"] for entry in part["files"]], [True, False])
        self.files()[0].chmod(0)
        if os.geteuid() != 0:
            self.assertEqual(self.explain()["code"], "unreadable")
        self.files()[0].unlink()
        (self.cache / (part["files"][0]["name"])).mkdir()
        self.assertEqual(self.explain()["code"], "incomplete")

    def testNothingIsChanged(self):
        self.prepare()
        self.files()[0].write_bytes(b"wrong")
        (self.cache / "notes.txt").write_bytes(b"mine")

        def snapshot():
            return {path: (path.stat().st_mtime_ns, path.stat().st_ino,
                           path.read_bytes() if path.is_file() else None)
                    for path in self.folder.rglob("*")}

        before = snapshot()
        for token in (TOKEN, OTHER_TOKEN):
            self.explain(token=token)
        self.sets()
        self.hearth("cache", "verify", "--cache-dir", self.cache, env=self.environment)
        self.assertEqual(snapshot(), before)


class ListTest(CacheFolderTest):
    def testSetsAndOtherFiles(self):
        self.assertEqual(self.cacheCommand("ls"),
                         {"path": str(self.cache), "sets": [], "others": []})
        self.assertIn("No cache files", self.succeed("cache", "ls", "--cache-dir", self.cache))
        self.prepare()
        self.bench(token=OTHER_TOKEN)
        (self.cache / "notes.txt").write_bytes(b"mine")
        (self.cache / ("A" * 64 + "3" + "0")).write_bytes(b"no kind")
        (self.cache / ("A" * 64 + "1" + "00")).write_bytes(b"no index")
        (self.cache / ("B" * 64 + "1" + "0")).symlink_to("notes.txt")
        (self.cache / ("C" * 64 + "1" + "0")).write_bytes(b"a model cache alone")
        result = self.cacheCommand("ls")
        self.assertEqual(result["others"], sorted(
            ["notes.txt", "A" * 64 + "30", "A" * 64 + "100", "B" * 64 + "10"]))
        by_code = {}
        for found in result["sets"]:
            by_code.setdefault(found["code"], []).append(found)
        self.assertEqual({code: len(sets) for code, sets in by_code.items()},
                         {"verified": 2, "incomplete": 1})
        for found in by_code["verified"]:
            self.assertEqual(found["device"], "hearth-cpu")
            self.assertEqual(found["user"], os.geteuid())
            self.assertEqual(len(found["build"]), 64)
            self.assertEqual([file["kind"] for file in found["files"]], ["model", "data"])
            self.assertGreater(found["files"][0]["bytes"], 0)
            self.assertRegex(found["last_used"], r"^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual({found["key"] for found in by_code["verified"]},
                         {self.explain()["key"], self.explain(token=OTHER_TOKEN)["key"]})
        text = self.succeed("cache", "ls", "--cache-dir", self.cache, env=self.environment)
        self.assertIn("verified", text)
        self.assertIn("notes.txt is no cache file", text)

    def testVerifyFailsWhereAFileChanged(self):
        self.prepare()
        result = self.cacheCommand("verify")
        self.assertEqual(result["sets"], 1)
        self.assertEqual(result["bytes"], sum(path.stat().st_size for path in self.files()))
        self.assertIn("1 sets", self.succeed("cache", "verify", "--cache-dir", self.cache,
                                             env=self.environment))
        content = bytearray(self.files()[1].read_bytes())
        content[0] ^= 1
        self.files()[1].write_bytes(content)
        sentence = self.refuse(1, "cache", "verify", "--cache-dir", self.cache,
                               env=self.environment)
        self.assertIn("1 of 1 sets", sentence)
        self.assertEqual(self.files()[1].read_bytes(), content)

    def testRefusesWhatIsWrong(self):
        self.refuse(2, "cache", "explain", self.tflite, "--token", TOKEN, env=self.environment)
        for token in ("5a", "zz" * 32):
            self.refuse(2, "cache", "explain", self.tflite, "--cache-dir", self.cache, "--token",
                        token, env=self.environment)
        self.refuse(2, "cache", "ls", "--cache-dir", self.cache, "--store", self.folder)
        self.refuse(2, "cache", "stat", "--cache-dir", self.cache)
        self.refuse(2, "cache", "explain", self.tflite, "--cache-dir", self.cache, "--device",
                    "none", env=self.environment)
        for command in ("ls", "verify"):
            sentence = self.refuse(1, "cache", command, "--cache-dir", self.folder / "none")
            self.assertIn("none", sentence)


if __name__ == "__main__":
    unittest.main()
