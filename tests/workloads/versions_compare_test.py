# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/versions with a stub in place of the program."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import stub_programs  # noqa: E402

# A start takes 100 ms and writes 1000 KiB of packed weights; with another version in the store 20 ms and
# 200 KiB; with the same one 2 ms and nothing.
STUB = """
import hashlib, json, pathlib, sys
model, store = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[4])
store.mkdir(exist_ok=True)
known = {{file.name for file in store.iterdir()}}
version = hashlib.sha256(model.read_bytes()).hexdigest()
if "broken" in {fault!r}:
    sys.exit("It broke.")
ready, packed = (2, 0) if version in known else (20, 200) if known else (100, 1000)
if packed:
    (store / version).write_bytes(bytes(packed << 10))
print(json.dumps({{"start": {{"state": "cold" if packed else "warm", "reason": "", "prepare_ms": ready,
                             "packed_bytes": packed << 10, "mapped_bytes": (1000 - packed) << 10,
                             "hashed_bytes": 0}}}}))
"""


class VersionsTest(stub_programs.StubTest):
    def setUp(self):
        super().setUp()
        self.compare = stub_programs.load("versions")
        self.compare.SECONDS_UNTIL_OLD = 0
        self.model = self.folder / "model.tflite"
        self.model.write_bytes(bytes(range(256)) * 100)
        self.measureOnly(self.compare, self.model)

    def compared(self, *words, fault=""):
        stub = self.pythonProgram("stub", STUB, fault=fault)
        return self.captured(self.compare.main, ["--hearth", stub, *words])

    def testEachKindOfStartIsShown(self):
        figures = self.folder / "figures.json"
        code, output = self.compared("--rounds", 2, "--json", figures)
        self.assertEqual(code, 0)
        self.assertIn("cold | 100 (100–100) | – | 1.0 | 0.0 | 1.0 |", output)
        self.assertIn("changed | 20 (20–20) | 0.200 | 0.2 | 0.8 | 0.2 |", output)
        self.assertIn("warm | 2 (2–2) | 0.020 | 0.0 | 1.0 | 0.0 |", output)
        samples = json.loads(figures.read_text())["rows"][0]["samples"]
        self.assertEqual([len(samples[state]) for state in ("cold", "changed", "warm")], [2, 2, 2])

    def testTheNewVersionDiffersInItsMiddleOnly(self):
        new = self.folder / "new.tflite"
        self.compare.makeNewVersion(self.model, new)
        old = self.model.read_bytes()
        changed = [i for i, byte in enumerate(new.read_bytes()) if byte != old[i]]
        self.assertEqual(changed, list(range(len(old) // 2,
                                             len(old) // 2 + self.compare.CHANGED_BYTES)))

    def testAProgramThatFailsIsSaid(self):
        code, output = self.compared("--rounds", 1, fault="broken")
        self.assertEqual(code, 1)
        self.assertIn("It broke.", output)

    def testArguments(self):
        self.checkRows(self.compare.main, "mobilenet_v2_f32")


if __name__ == "__main__":
    unittest.main()
