# SPDX-License-Identifier: Apache-2.0
"""Each numbered behaviour of NNAPI has a test that is named by its number, is in the built program,
contains an assertion, runs and passes."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEARTH_BUILD", ROOT / "build/release"))
BEHAVIOURS = set(range(1, 59))

sys.path.insert(0, str(ROOT / "tools"))
import check_assertions  # pylint: disable=wrong-import-position


def numbersIn(name):
    return {int(number) for number in re.findall(r"(?:^|_)B(\d\d)(?=_)", name)}


def runTests():
    """Runs nnapi_behaviours_test and returns the names of the tests that ran and passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        environment = os.environ | {"HEARTH_STORE": f"{folder}/store"}
        run = subprocess.run(
            [str(BUILD / "bin/nnapi_behaviours_test"), f"--gtest_output=json:{report}",
             "--gtest_filter=*B0*:*B1*:*B2*:*B3*:*B4*:*B5*"], check=False, capture_output=True, text=True,
            timeout=600, env=environment)
        if run.returncode != 0:
            raise AssertionError(f"nnapi_behaviours_test fails:\n{run.stdout[-4000:]}")
        suites = json.loads(report.read_text(encoding="utf-8"))["testsuites"]
    return [test["name"] for suite in suites for test in suite["testsuite"]
            if test["status"] == "RUN" and test["result"] == "COMPLETED" and
            not test.get("failures")]


class BehavioursTest(unittest.TestCase):

    def testEachHasATestThatRunsAndPasses(self):
        tested = set().union(*map(numbersIn, runTests()))
        self.assertEqual(BEHAVIOURS - tested, set())
        self.assertEqual(tested - BEHAVIOURS, set())

    def testEachAssertsSomething(self):
        source = ROOT / "src"
        files = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
                 for folder in ("frontends/nnapi", "runtime/testing", "hal/cts")
                 for path in (source / folder).rglob("*") if path.suffix in (".cc", ".h")}
        silent = [sentence for sentence in check_assertions.cppViolations(files)
                  if sentence.startswith("frontends/nnapi/behaviours_")]
        self.assertEqual(silent, [])


if __name__ == "__main__":
    unittest.main()
