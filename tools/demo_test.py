# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
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


class BuildTest(unittest.TestCase):

    def testDevBuildsTheCommandThatTheDemoRuns(self):
        # In a checkout in which everything is built, the demonstration runs whatever ./dev builds
        # for it.
        steps = (demo.ROOT / "dev").read_text()
        target = re.search(r"^  demo\)\n(?: .*\n)*? .*build\.sh release (\w+) ", steps,
                           re.MULTILINE)[1]
        build = demo.HEARTH.parent.parent
        query = subprocess.run(["ninja", "-C", str(build), "-t", "query", target],
                               stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(str(demo.HEARTH.relative_to(build)), query.stdout.split())


if __name__ == "__main__":
    unittest.main()
