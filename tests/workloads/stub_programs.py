# SPDX-License-Identifier: Apache-2.0
"""What the tests of the programs in bench/ share: stubs in place of the programs that these start."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path


class StubTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-bench-test-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def program(self, name, text):
        """A shell script of that name."""
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def captured(self, main, words):
        """The exit code of main(words) and what it printed; what it said is in `errors`."""
        out, self.errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(self.errors):
            code = main([str(word) for word in words])
        return code, out.getvalue()

    def checkRows(self, main, line):
        """--rows lists rows, among them this line, and refuses unknown ones; numbers are checked."""
        code, text = self.captured(main, ["--rows", "list"])
        self.assertEqual(code, 0)
        self.assertIn(line, text)
        self.assertEqual(self.captured(main, ["--rows", "none"])[0], 2)
        with self.assertRaises(SystemExit):
            self.captured(main, ["--rounds", "0"])
