# SPDX-License-Identifier: Apache-2.0
"""Hearth's LiteRT delegate in Hearth's own TensorFlow Lite C library: what the delegate takes through the
library's context gives what the library gives without it, to the last bit except in loops."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release" / "lib"
STORED = ROOT / "tests" / "compatibility" / "models"
DATA = os.environ.get("HEARTH_TEST_DATA")
SESSION = pathlib.Path(__file__).with_name("c_library_session.py")
# Loops over float32 numbers. As TensorFlow Lite does, the library offers condition and body of a loop to a delegate
# by themselves. Without a delegate the loop is planned as a whole, and some sums are added in another order.
LOOPS = {"gru-of-any-length-dynamic", "lstm-loop-float32"}
ROUNDING = 1e-5
# The first needs an operator that no program here brings along; an input of the second is a size, which random
# numbers are not.
LEFT_OUT = {"audio_preprocessor_int8", "resize-bilinear-to-a-value-s-size-float32"}


def models():
    paths = sorted(STORED.glob("*.tflite")) + [ROOT / "models" / "digits" / "digits.tflite"]
    if DATA:
        paths += sorted(pathlib.Path(DATA, "data", "models").glob("*.tflite"))
    return [path for path in paths if path.stem not in LEFT_OUT]


def run(paths, delegate):
    """By model: the outputs of some runs, or why there are none; and the log."""
    job = {"library": str(BUILD / "libtensorflowlite_c.so"),
           "delegate": str(BUILD / "libhearth_delegate.so") if delegate else None,
           "models": [str(path) for path in paths]}
    environment = dict(os.environ, HEARTH_STORE_MODE="off", HEARTH_LOG="info")
    session = subprocess.run([sys.executable, str(SESSION)], input=json.dumps(job), text=True,
                             capture_output=True, env=environment, timeout=600, check=False)
    if session.returncode:
        raise AssertionError(f"The session ended with {session.returncode}: {session.stderr[-2000:]}")
    return json.loads(session.stdout), session.stderr


class CLibraryTest(unittest.TestCase):
    def assertClose(self, outputs, expected):
        """For lists of numbers."""
        self.assertEqual([len(numbers) for numbers in outputs], [len(numbers) for numbers in expected])
        for numbers, rights in zip(outputs, expected, strict=True):
            for number, right in zip(numbers, rights, strict=True):
                self.assertLess(abs(number - right), ROUNDING * max(1, abs(right)))

    def testResultsAreThoseWithoutTheDelegate(self):
        paths = models()
        without, _ = run(paths, False)
        withIt, log = run(paths, True)
        for path in paths:
            with self.subTest(path.stem):
                self.assertIsInstance(without[str(path)], list, without[str(path)])
                if path.stem in LOOPS:
                    self.assertClose(withIt[str(path)], without[str(path)])
                else:
                    self.assertEqual(withIt[str(path)], without[str(path)])
        taken = [int(count) for count in re.findall(r"Hearth runs (\d+) of \d+ nodes of a graph", log)]
        # The subgraphs that a model calls are graphs, too.
        self.assertGreaterEqual(len(taken), len(paths))
        self.assertGreater(sum(count > 0 for count in taken), len(paths) * 0.8)


if __name__ == "__main__":
    unittest.main()
