# SPDX-License-Identifier: Apache-2.0
"""All of NNAPI's operation vectors on both built-in devices, as vectors_test.py runs a sample of them. With --all
only: they take minutes under emulation."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from vectors_test import DEVICES, PROCESSORS, VectorsOnBoards  # noqa: E402

VECTORS = 6212


class AllVectorsTest(VectorsOnBoards):

    def testAllPassAsEachProcessor(self):
        for processor in PROCESSORS:
            for device in DEVICES:
                with self.subTest(f"{processor}, {device}"):
                    self.expectPasses(VECTORS, processor, device, "--timeout", 600)


if __name__ == "__main__":
    unittest.main()
