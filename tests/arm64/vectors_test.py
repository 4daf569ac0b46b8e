# SPDX-License-Identifier: Apache-2.0
"""A fixed sample of NNAPI's operation vectors on both built-in devices of the command for ARM64, which qemu-user
runs as several processors."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]

from packing_test import BoardTest  # noqa: E402

from arm64_tests import PROCESSORS  # noqa: E402

from command import DATA  # noqa: E402

DEVICES = ("hearth-cpu", "nnapi-reference")
# Operations with the number of cases that use them: products of all types, whose kernels are chosen by
# instructions, and one of several steps.
SAMPLE = {"FULLY_CONNECTED": 339, "SVDF": 18}


class VectorsOnBoards(BoardTest):
    """Base of tests that run vectors."""

    def expectPasses(self, count, processor, device, *options):
        vectors = sorted((pathlib.Path(DATA) / "conformance").glob("*.nntv"))
        # Some vectors run on slow kernels, of which the log warns.
        report = self.board(processor, "conformance", *vectors, "--device", device, *options, timeout=7200,
                            HEARTH_LOG="error")
        self.assertEqual([case for case in report["cases"] if not case["passed"]], [])
        self.assertEqual(report["passed"], count)


class VectorsTest(VectorsOnBoards):

    def testASamplePassesAsEachProcessor(self):
        for processor in PROCESSORS:
            for device in DEVICES:
                for operation, count in SAMPLE.items():
                    with self.subTest(f"{processor}, {device}, {operation}"):
                        self.expectPasses(count, processor, device, "--filter", operation)


if __name__ == "__main__":
    unittest.main()
