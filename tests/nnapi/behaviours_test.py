# SPDX-License-Identifier: Apache-2.0
"""Each numbered behaviour of NNAPI has a test that is named by its number."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEHAVIOURS = set(range(1, 59))


def testNames():
    for path in sorted((ROOT / "src/frontends/nnapi").glob("behaviours_*_test.cc")):
        yield from re.findall(r"^TEST(?:_[FP])?\(\w+, (\w+)\)", path.read_text(encoding="utf-8"),
                              re.MULTILINE)


class BehavioursTest(unittest.TestCase):
    def testEachHasATest(self):
        tested = {int(number) for name in testNames()
                  for number in re.findall(r"(?:^|_)B(\d\d)(?=_)", name)}
        self.assertEqual(BEHAVIOURS - tested, set())
        self.assertEqual(tested - BEHAVIOURS, set())


if __name__ == "__main__":
    unittest.main()
