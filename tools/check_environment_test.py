# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile
import unittest

import check_environment


class CheckEnvironmentTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def testOnlyTheTableOfVariablesReadsThem(self):
        call = "  const char* value = std::getenv(name);\n"
        self.write("base/env.cc", call)
        self.write("base/log_test.cc", call)
        self.write("hal/cts/suite.cc", call)
        self.write("cache/a.cc", "// getenv() is not called here.\n")
        self.write("cache/testing/library.c", call)
        self.assertEqual(check_environment.violations(self.root), [])
        self.write("cache/b.cc", call)
        self.write("cache/c.h", "  return ::secure_getenv(name);\n")
        self.write("tools/d.cc", "  std::filesystem::temp_directory_path();\n")
        self.assertEqual(check_environment.violations(self.root), [
            "src/cache/b.cc uses getenv; variables are read in src/base/env.cc.",
            "src/cache/c.h uses secure_getenv; variables are read in src/base/env.cc.",
            "src/tools/d.cc uses temp_directory_path; variables are read in src/base/env.cc."])


if __name__ == "__main__":
    unittest.main()
