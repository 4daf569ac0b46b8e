# SPDX-License-Identifier: Apache-2.0
"""hearth.tflite beside LiteRT: one program, which is written for LiteRT's interpreter, finds the same in both.
Needs LiteRT's wheel, which is installed in the cache folder."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "build" / "release" / "python"
sys.path.insert(0, str(ROOT / "bench"))
import comparison  # noqa: E402

DATA = os.environ.get("HEARTH_TEST_DATA")
DIGITS = ROOT / "models" / "digits" / "digits.tflite"
STORED = ROOT / "tests" / "compatibility" / "models"
# LiteRT finds its quantisation wrong.
NOT_OF_LITERT = ("person_detect",)


class LiteRTTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        try:
            python = comparison.environmentPython(comparison.CACHE / "litert-venv", comparison.PEER_WHEEL)
        except comparison.Failure as failure:
            raise unittest.SkipTest(f"LiteRT is not there: {failure}.") from None
        models = [DIGITS, *sorted(STORED.glob("*.tflite"))]
        if DATA:
            models += [path for path in sorted((pathlib.Path(DATA) / "data" / "models").glob("*.tflite"))
                       if path.stem not in NOT_OF_LITERT]
        holder = tempfile.TemporaryDirectory(prefix="hearth-strings-")
        cls.addClassCleanup(holder.cleanup)
        strings = pathlib.Path(holder.name) / "strings.tflite"
        subprocess.run([python, HERE / "strings_model.py", strings], check=True)
        session = [HERE / "tflite_session.py", strings, *models]
        cls.theirs = cls.answer([python, *session])
        cls.ours = cls.answer([sys.executable, "-m", "hearth.tflite", *session], PYTHONPATH=str(PACKAGE))

    @staticmethod
    def answer(command, **variables):
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, **variables})
        if done.returncode != 0:
            raise AssertionError(done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def testModelsAreDescribedAlike(self):
        self.assertEqual(list(self.ours["models"]), list(self.theirs["models"]))
        for path, known in self.theirs["models"].items():
            for key, value in known.items():
                with self.subTest(pathlib.Path(path).name, key=key):
                    self.assertEqual(self.ours["models"][path][key], value)

    def testStringsAreComputedAlike(self):
        self.assertEqual(len(self.theirs["strings"]), 5)
        self.assertEqual(self.ours["strings"], self.theirs["strings"])

    def testOtherShapesAreTakenAlike(self):
        self.assertEqual(len(self.theirs["shapes"]), 20)
        for case, known in self.theirs["shapes"].items():
            with self.subTest(case):
                self.assertEqual(self.ours["shapes"][case], known)

    def testOptionsHaveTheSameNamesAndDefaults(self):
        self.assertGreater(len(self.theirs["options"]), 25)
        for name, known in self.theirs["options"].items():
            with self.subTest(name):
                self.assertEqual(self.ours["options"].get(name), known)

    def testMistakesRaiseAlike(self):
        self.assertEqual(len(self.ours["mistakes"]), len(self.theirs["mistakes"]))
        for place, (mine, known) in enumerate(zip(self.ours["mistakes"], self.theirs["mistakes"])):
            with self.subTest(place=place):
                self.assertEqual(mine, known)


if __name__ == "__main__":
    unittest.main()
