# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parent.parent.parent


class EmulateTest(unittest.TestCase):

    def testWithoutTheEmulatorASentenceSaysWhatFetchesIt(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([str(REPO / "tools/dev/emulate.sh"), "true"], capture_output=True, text=True,
                                 check=False, env={**os.environ, "HEARTH_CACHE_DIR": folder})
        self.assertEqual(run.returncode, 126)
        self.assertRegex(run.stderr, r"^emulate.sh: .* \"./dev build arm64\" fetches it\.\n$")

    @unittest.skipUnless(os.geteuid() == 0, "Only root may give all users their numbers.")
    def testAllUsersHaveTheirNumbersWhereThatIsAsked(self):
        with tempfile.TemporaryDirectory() as folder:
            emulator = pathlib.Path(folder) / "arm64" / "tools" / "usr" / "bin" / "qemu-aarch64"
            emulator.parent.mkdir(parents=True)
            shutil.copy("/bin/true", emulator)
            shown = []
            for options in ([], ["--all-users"]):
                run = subprocess.run([str(REPO / "tools/dev/emulate.sh"), *options, "cat", "/proc/self/uid_map"],
                                     capture_output=True, text=True, check=False,
                                     env={**os.environ, "HEARTH_CACHE_DIR": folder})
                if run.returncode == 126:
                    self.skipTest(run.stderr.strip())
                self.assertEqual(run.returncode, 0, run.stderr)
                shown.append(run.stdout.split())
        self.assertEqual(shown[0], ["0", "0", "1"])
        self.assertEqual(shown[1][:2], ["0", "0"])
        self.assertGreater(int(shown[1][2]), 1000)


if __name__ == "__main__":
    unittest.main()
