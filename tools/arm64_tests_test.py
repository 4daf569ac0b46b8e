# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import os
import tempfile
import unittest
import unittest.mock

import arm64_tests
import test_runs


@unittest.mock.patch.object(arm64_tests, "SLOW", {"graph_test": {"A.b": "it is slow", "C.*": "so is it"}})
class RunTest(unittest.TestCase):
    """Which programs run as which processor."""

    def runs(self, everything):
        """The cases of a run whose programs pass, what it printed, and the programs of each processor."""
        runs = []

        def runCtest(preset, only, limit, launcher, variables, title):
            self.assertEqual((preset, launcher, limit), ("arm64", arm64_tests.LAUNCHER, test_runs.UNLIMITED))
            self.assertIn(variables["QEMU_CPU"], title)
            runs.append((variables["QEMU_CPU"], only))
            return test_runs.Cases(passed=1)

        def runPythonFiles(paths, longMode, limit):
            names = {path.name for path in paths}
            self.assertIn("packing_test.py", names)
            self.assertEqual((set(arm64_tests.SLOW_FILES) <= names, longMode), (everything, everything))
            self.assertTrue(set(paths).isdisjoint(test_runs.pythonTests()))
            return test_runs.Cases(passed=1)

        with (unittest.mock.patch.object(test_runs, "runCtest", runCtest),
              unittest.mock.patch.object(test_runs, "runPythonFiles", runPythonFiles),
              contextlib.redirect_stdout(io.StringIO()) as printed):
            cases = arm64_tests.run(everything)
        return cases, printed.getvalue(), runs

    def testKernelsRunAsEachProcessorAndTheRestAsTheFirst(self):
        _, _, runs = self.runs(False)
        self.assertEqual([processor for processor, _ in runs], list(arm64_tests.PROCESSORS))
        self.assertEqual(set(runs[0][1]), set(arm64_tests.programs()))
        for _, tests in runs[1:]:
            self.assertEqual(set(tests), set(arm64_tests.OF_KERNELS))

    def testSlowCasesAreSkippedWithTheirReasons(self):
        cases, printed, runs = self.runs(False)
        self.assertEqual((cases.passed, cases.skipped),
                         (len(arm64_tests.PROCESSORS) + 1, 2 + len(arm64_tests.SLOW_FILES)))
        self.assertIn("graph_test A.b: it is slow\n", printed)
        self.assertEqual(runs[0][1]["graph_test"], "*-A.b:C.*")
        self.assertEqual(runs[0][1]["base_test"], "*")
        self.assertEqual(runs[0][1]["cache_test"], arm64_tests.PARTS["cache_test"])

    def testWithAllTheyRun(self):
        cases, printed, runs = self.runs(True)
        self.assertEqual((cases.skipped, printed), (0, ""))
        self.assertEqual(runs[0][1]["graph_test"], "*")


class SlowTest(unittest.TestCase):

    def testEachSlowCaseIsOfAProgramThatRuns(self):
        self.assertLessEqual(set(arm64_tests.SLOW), set(arm64_tests.programs()))
        self.assertLessEqual(set(arm64_tests.PARTS), set(arm64_tests.programs()))


class ObstacleTest(unittest.TestCase):

    def obstacle(self, setup, launcher):
        with (tempfile.TemporaryDirectory() as folder,
              unittest.mock.patch.dict(os.environ, HEARTH_CACHE_DIR=folder),
              unittest.mock.patch.object(arm64_tests, "SETUP", setup),
              unittest.mock.patch.object(arm64_tests, "LAUNCHER", launcher)):
            return arm64_tests.obstacle()

    def testThereIsNoneWhereBothStepsWork(self):
        self.assertEqual(self.obstacle("true", ("env",)), "")

    def testASentenceOfTheStepThatFailsIsTold(self):
        self.assertEqual(self.obstacle("true", ("sh", "-c", "echo It cannot.; exit 126")), "It cannot.")
        self.assertEqual(self.obstacle("false", ("env",)), "false: exit code 1")


if __name__ == "__main__":
    unittest.main()
