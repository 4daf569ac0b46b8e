# SPDX-License-Identifier: Apache-2.0
"""docs/settings.md names the environment variables that the code can read, and no others."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SettingsTest(unittest.TestCase):

    def testEveryVariableIsDocumented(self):
        table = (ROOT / "src/base/env.cc").read_text(encoding="utf-8")
        names = re.findall(r'"([A-Z_]+)", EnvKind', table)
        self.assertGreater(len(names), 10)
        text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
        for name in names:
            self.assertIn(f"`{name}`", text)
        for name in re.findall(r"`(HEARTH_[A-Z_]+)`", text):
            self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
