# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/versions with a stub in place of the program."""

import contextlib
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "versions"

# A start takes 100 ms and writes 1000 KiB of packed weights; with another version in the store 20 ms and
# 200 KiB; with the same one 2 ms and nothing.
STUB = """#!{python}
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


def load():
    spec = importlib.util.spec_from_file_location("versions_compare", FOLDER / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class VersionsTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.compare = load()
        self.compare.SECONDS_UNTIL_OLD = 0
        row = self.compare.ROWS[0]
        self.addCleanup(setattr, self.compare, "ROWS", self.compare.ROWS)
        self.model = self.folder / "model.tflite"
        self.model.write_bytes(bytes(range(256)) * 100)
        stubRow = type(row)(row.name, row.words)
        object.__setattr__(stubRow, "path", lambda cache, say: self.model)
        self.compare.ROWS = [stubRow]

    def run_(self, *words, fault=""):
        stub = self.folder / "stub"
        stub.write_text(STUB.format(python=sys.executable, fault=fault))
        stub.chmod(0o700)
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = self.compare.main(["--hearth", str(stub), *map(str, words)])
        return code, output.getvalue(), errors.getvalue()

    def testEachKindOfStartIsShown(self):
        figures = self.folder / "figures.json"
        code, output, _ = self.run_("--rounds", 2, "--json", figures)
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
        code, output, _ = self.run_("--rounds", 1, fault="broken")
        self.assertEqual(code, 1)
        self.assertIn("It broke.", output)


if __name__ == "__main__":
    unittest.main()
