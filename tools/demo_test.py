# SPDX-License-Identifier: Apache-2.0
import unittest

import demo


class TableTest(unittest.TestCase):

    def testColumnsAreAsWideAsTheirWidestCell(self):
        self.assertEqual(demo.table(["name", "n"], [["a", "1000"], ["longer", "2"]]),
                         "  name       n\n  ------  ----\n  a       1000\n  longer     2")

    def testTimesAndSizesHaveTheirUnits(self):
        self.assertEqual(demo.milliseconds(0.01234), "0.0123 ms")
        self.assertEqual(demo.milliseconds(1234.5), "1234 ms")
        self.assertEqual(demo.mebibytes(2048), "2 MiB")


if __name__ == "__main__":
    unittest.main()
