# SPDX-License-Identifier: Apache-2.0
"""Tests manual pages and completions of a command that is a short shell script."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "command_pages.py"
PROGRAM = r"""#!/bin/sh
[ "$1" = --version ] && exec echo "hearth 1.2.3+gabc"
case "$*" in
  --help) cat <<'TEXT'
Do things.
Usage: hearth [OPTIONS] SUBCOMMAND

Options:
  -h,--help                       Print this help message and exit

Subcommands:
  run                             It's run on [files]: .tflite
TEXT
    ;;
  "run --help") cat <<'TEXT'
It's run on [files]: .tflite
Usage: hearth run [OPTIONS] MODEL

Positionals:
  MODEL TEXT REQUIRED             The model

Options:
  -h,--help                       Print this help message and exit
  --input FILE... ... Excludes: --seed
                                  A file for each input, or \n
  --mode MODE:{off,read-only}     How
  --store DIR                     Where
  --threads N:UINT in [0 - 1024] Needs: --store
                                  How many
  --limit UINT:BYTES              The most
TEXT
    ;;
  *) exit 1 ;;
esac
"""

# A program without commands.
SUITE = r"""#!/bin/sh
[ "$1" = --version ] && exec echo "hearth-driver-cts 1.2.3"
cat <<'TEXT'
Test a driver. It runs here.
Usage: hearth-driver-cts [OPTIONS] DRIVER

Positionals:
  DRIVER TEXT REQUIRED            The driver

Options:
  -h,--help                       Print this help message and exit
  --filter PATTERN                Which tests
TEXT
"""


class CommandPagesTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def make(self, program, name="hearth"):
        path = self.folder / name
        path.write_text(program, encoding="utf-8")
        path.chmod(0o755)
        return subprocess.run([sys.executable, SCRIPT, path, self.folder / "share"],
                              capture_output=True, text=True, check=False)

    def read(self, path):
        return (self.folder / "share" / path).read_text(encoding="utf-8")

    def complete(self, *words, program="hearth"):
        """The words that bash offers for the last word."""
        script = (f'. "$0"; COMP_WORDS=({program} "$@"); COMP_CWORD=$#; _{program.replace("-", "_")}; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        run = subprocess.run(
            ["bash", "-c", script, self.folder / "share/bash-completion/completions" / program, *words],
            capture_output=True, text=True, check=False, cwd=self.folder,
            env={"PATH": os.environ["PATH"]})
        self.assertEqual(run.stderr, "")
        return run.stdout.split()

    def testManualPages(self):
        self.assertEqual(self.make(PROGRAM).stderr, "")
        self.assertIn("\\fBrun\\fR\nIt's run on [files]: .tflite.\n", self.read("man/man1/hearth.1"))
        page = self.read("man/man1/hearth-run.1")
        self.assertIn('.TH HEARTH\\-RUN 1 "" "Hearth 1.2.3" "Hearth"\n', page)
        self.assertIn(".SH SYNOPSIS\n\\fBhearth run\\fR [OPTIONS] MODEL\n", page)
        self.assertIn(".TP\n\\fIMODEL\\fR\nThe model.\n", page)
        self.assertIn(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n", page)
        self.assertIn("\\fB\\-\\-input\\fR \\fIFILE...\\fR\nA file for each input, or \\en.\n"
                      "Not with \\-\\-seed.\n", page)
        self.assertIn("\\fB\\-\\-threads\\fR \\fIN\\fR\nHow many.\nOnly with \\-\\-store.\n"
                      "From 0 to 1024.\n", page)
        self.assertIn("\\fB\\-\\-limit\\fR \\fIBYTES\\fR\n", page)

    def testBashCompletes(self):
        self.make(PROGRAM)
        for name in ("a.tflite", "b.txt"):
            (self.folder / name).touch()
        self.assertEqual(self.complete(""), ["run"])
        self.assertEqual(self.complete("run", "--mode", ""), ["off", "read-only"])
        self.assertEqual(self.complete("run", "--mode", "=", "r"), ["read-only"])
        self.assertEqual(self.complete("run", "--st"), ["--store"])
        self.assertEqual(self.complete("run", "--store", ""), ["share"])
        self.assertEqual(self.complete("run", "--limit", ""), [])
        self.assertEqual(self.complete("run", "--input", "b"), ["b.txt"])
        self.assertEqual(sorted(self.complete("run", "")), ["a.tflite", "share"])

    def testZshSpecificationsAreQuoted(self):
        self.make(PROGRAM)
        script = self.read("zsh/vendor-completions/_hearth")
        self.assertTrue(script.startswith("#compdef hearth\n"))
        self.assertIn("'run:It'\\''s run on \\[files\\]\\: .tflite'", script)
        self.assertIn("'(--mode)--mode[How]:MODE:(off read-only)'", script)
        self.assertIn("'(--store)--store[Where]:DIR:_files -/'", script)
        self.assertIn("'*--input[A file for each input, or \\\\n]:FILE...:_files'", script)
        self.assertIn("""'1:MODEL:_files -g "*.(tflite|task|litertlm)(-.)"'""", script)

    def testAProgramWithoutCommandsHasAPageAndCompletions(self):
        name = "hearth-driver-cts"
        self.assertEqual(self.make(SUITE, name).stderr, "")
        page = self.read(f"man/man1/{name}.1")
        self.assertIn(".SH NAME\nhearth\\-driver\\-cts \\- test a driver\n", page)
        self.assertIn(".SH DESCRIPTION\nTest a driver. It runs here.\n", page)
        self.assertIn("\\fBhearth\\-driver\\-cts\\fR [OPTIONS] DRIVER\n", page)
        (self.folder / "driver.json").touch()
        self.assertEqual(self.complete("--f", program=name), ["--filter"])
        self.assertEqual(self.complete("dr", program=name), ["driver.json"])
        script = self.read(f"zsh/vendor-completions/_{name}")
        self.assertTrue(script.startswith(f"#compdef {name}\n"))
        self.assertIn("'1:DRIVER:_files'", script)
        self.assertTrue(script.endswith('\n_hearth_driver_cts "$@"\n'))

    def testHelpOfAnotherFormIsAnError(self):
        for wrong, sentence in ((PROGRAM.replace("Usage:", "Use:"), "prints no usage"),
                                (PROGRAM.replace("Options:", "Flags:"), "of unknown meaning: Flags:"),
                                (PROGRAM.replace('"run --help"', "x"), "run --help fails")):
            run = self.make(wrong)
            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stderr, f"^command_pages.py: .*{sentence}.*\n$")
            self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
