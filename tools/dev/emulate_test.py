# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
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


if __name__ == "__main__":
    unittest.main()
