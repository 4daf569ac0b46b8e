# SPDX-License-Identifier: Apache-2.0
"""What ./dev packages looks at before and after; tests/packages makes packages and installs them."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import packages  # noqa: E402


class PackagesTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, path, content):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(content, encoding="utf-8")

    def testVersionsThatDifferAreRefused(self):
        files = {
            "CMakeLists.txt": "project(hearth VERSION {} LANGUAGES C)\n",
            "CHANGELOG.md": "# Changes\n\n## {}, not yet released\n\n## 0.9.0, 2020\n",
            "debian/changelog": "hearth ({}) unstable; urgency=medium\n",
        }
        header = "".join(f"#define HEARTH_VERSION_{name} {{}}\n" for name in ("MAJOR", "MINOR", "PATCH"))

        def write(path, version):
            text = files[path].format(version) if path in files else header.format(*version.split("."))
            self.write(path, text)

        for path in (*files, "include/hearth/hearth.h"):
            write(path, "1.2.3")
        self.assertEqual(packages.checkVersion(self.folder), "1.2.3")
        for path in ("CHANGELOG.md", "debian/changelog", "include/hearth/hearth.h"):
            write(path, "1.2.4")
            with self.assertRaisesRegex(packages.PackagesError,
                                        f"^{path} has version 1.2.4, CMakeLists.txt says 1.2.3.$"):
                packages.checkVersion(self.folder)
            write(path, "1.2.3")

    def testTheVersionsOfTheCheckoutAgree(self):
        self.assertRegex(packages.checkVersion(packages.ROOT), r"^\d+\.\d+\.\d+$")

    def testLibrariesAndProgramsWithTestHooksAreRefused(self):
        hook = "... " + packages.HOOK.decode() + " ..."
        for path in ("lib/liba.so", "bin/b", "python/hearth/c.so"):
            self.write(path, "without")
        packages.checkHooks(self.folder)
        for path in ("lib/liba.so", "bin/b", "python/hearth/c.so"):
            self.write(path, hook)
            with self.assertRaisesRegex(packages.PackagesError, "is built with test hooks"):
                packages.checkHooks(self.folder)
            self.write(path, "without")

    def testTheHookIsInTheSources(self):
        text = (packages.ROOT / "src" / "base" / "crash_point.cc").read_text(encoding="utf-8")
        self.assertIn(f'"{packages.HOOK.decode()}"', text)

    def testPackagesOfAnEarlierRunAreRemoved(self):
        for path in ("hearth_1_amd64.deb", "other_1_all.deb", "hearth_1_amd64.changes",
                     "hearth_1_amd64.buildinfo", "log", "note.txt"):
            self.write(path, "")
        packages.removeOld(self.folder)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["note.txt"])


if __name__ == "__main__":
    unittest.main()
