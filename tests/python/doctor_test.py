# SPDX-License-Identifier: Apache-2.0
"""python -m hearth.doctor: says which of Hearth's libraries a program used, and how its models started."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
MODEL = ROOT / "tests" / "compatibility" / "models" / "wide-conv-int8.tflite"


class DoctorTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-doctor-test-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.script = self.folder / "program.py"
        self.script.write_text("import sys, time\n"
                               "from tflite_runtime.interpreter import Interpreter\n"
                               "interpreter = Interpreter(sys.argv[1])\n"
                               "interpreter.allocate_tensors()\n"
                               "interpreter.invoke()\n"
                               "time.sleep(0.1)\n"
                               "print('done')\n"
                               "sys.exit(int(sys.argv[2]))\n")

    def doctor(self, *command):
        """(exit code, standard output, what the doctor says)"""
        done = subprocess.run([sys.executable, "-m", "hearth.doctor", *command], capture_output=True, text=True,
                              check=False, timeout=60, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python"),
                                   "HEARTH_STORE": str(self.folder / "store")})
        return done.returncode, done.stdout, done.stderr

    def testScriptsRunOnHearth(self):
        for words, state in (([self.script], "1 cold"), (["-m", "program"], "1 warm")):
            code, output, said = self.doctor(*words, MODEL, "3")
            self.assertEqual((code, output), (3, "done\n"))
            self.assertIn("ended with 3 after", said)
            self.assertIn(f"the Python package: {BUILD / 'python' / 'hearth' / '_hearth'}", said)
            line, = [line for line in said.splitlines() if "wide-conv-int8.tflite  hearth-cpu" in line]
            self.assertIn(state, line)
            self.assertNotIn("NOT HEARTH'S", said)

    def testProgramsFindTheLibrariesOfHearth(self):
        opens = self.folder / "opens"
        opens.write_text(f"#!{sys.executable}\n"
                         "import ctypes, time\n"
                         "ctypes.CDLL('libneuralnetworks.so')\n"
                         "time.sleep(0.3)\n")
        opens.chmod(0o755)
        code, _, said = self.doctor(opens)
        self.assertEqual(code, 0, said)
        self.assertIn(f"NNAPI: {BUILD / 'lib' / 'libneuralnetworks.so'}\n", said)
        self.assertIn("Hearth was opened, and the program gave it no model.", said)

    def testProgramsWithoutHearthAreToldSo(self):
        code, output, said = self.doctor("echo", "hello")
        self.assertEqual((code, output), (0, "hello\n"))
        self.assertIn("none of Hearth's, of NNAPI or of TensorFlow Lite was seen", said)
        other = self.folder / "libtensorflowlite_c.so"
        other.write_bytes((BUILD / "lib" / "libneuralnetworks.so").read_bytes())
        script = self.folder / "other.py"
        script.write_text(f"import mmap, time\n"
                          f"with open({str(other)!r}, 'rb') as file:\n"
                          f"    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
                          f"time.sleep(0.3)\n")
        said = self.doctor(script)[2]
        self.assertIn(f"TensorFlow Lite's C library: {other}  NOT HEARTH'S", said)
        self.assertIn("The program opened a library of its own", said)

    def testMistakesAreSentences(self):
        for words, text in (([], "usage: "), (["-x"], "usage: "), (["-m"], "usage: "),
                            (["no-such-program"], "there is no program 'no-such-program'"),
                            ([MODEL], "cannot be started")):
            code, _, said = self.doctor(*words)
            self.assertEqual(code, 2)
            self.assertIn(text, said)


if __name__ == "__main__":
    unittest.main()
