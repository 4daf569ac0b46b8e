# SPDX-License-Identifier: Apache-2.0
"""docs/settings.md names every environment variable that the code can read."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SettingsTest(unittest.TestCase):

    def testEveryVariableIsDocumented(self):
        table = (ROOT / "src/base/env.cc").read_text(encoding="utf-8")
        names = re.findall(r'"(HEARTH_[A-Z_]+)", EnvKind', table)
        self.assertGreater(len(names), 10)
        text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
        for name in names:
            self.assertIn(f"`{name}`", text)


if __name__ == "__main__":
    unittest.main()
