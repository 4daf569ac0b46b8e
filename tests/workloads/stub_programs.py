# SPDX-License-Identifier: Apache-2.0
"""What the tests of the programs in bench/ share: stubs of the programs that these start."""

import contextlib
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"


def load(folder):
    """The program compare.py in a folder of bench/, as a module that no other such program replaces."""
    spec = importlib.util.spec_from_file_location(f"{folder}_compare", BENCH / folder / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class StubTest(unittest.TestCase):
    """A test with a new folder."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-bench-test-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def program(self, name, text):
        """Writes a shell script with this name."""
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def pythonProgram(self, name, text, **values):
        """Writes a Python script with this name and fills in the values."""
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n" + text.format(**values))
        path.chmod(0o755)
        return path

    def measureOnly(self, compare, model, **options):
        """Makes `model` the file of the only row that a program measures."""
        row = compare.ROWS[0]
        only = type(row)(row.name, row.words, **options)
        object.__setattr__(only, "path", lambda cache, say: model)
        self.addCleanup(setattr, compare, "ROWS", compare.ROWS)
        compare.ROWS = [only]

    def captured(self, main, words):
        """The exit code and the output of main(words); `errors` holds standard error."""
        out, self.errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(self.errors):
            code = main([str(word) for word in words])
        return code, out.getvalue()

    def checkRows(self, main, line):
        """Checks that --rows lists rows, among them this one, and refuses unknown ones, and that
        numbers are checked."""
        code, text = self.captured(main, ["--rows", "list"])
        self.assertEqual(code, 0)
        self.assertIn(line, text)
        self.assertEqual(self.captured(main, ["--rows", "none"])[0], 2)
        with self.assertRaises(SystemExit):
            self.captured(main, ["--rounds", "0"])
