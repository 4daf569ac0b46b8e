# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import os
import signal
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock

import test_runs


def gtest(name, result="COMPLETED", status="RUN", **more):
    return {"classname": "Suite", "name": name, "status": status, "result": result, **more}


class CountGtestTest(unittest.TestCase):

    def count(self, *tests):
        return test_runs.countGtest({"testsuites": [{"testsuite": list(tests)}]}, "p")

    def testEachCaseCountsOnce(self):
        unset, noAvx = {"message": "HEARTH_TEST_DATA is unset"}, {"message": "no AVX"}
        cases = self.count(gtest("A"), gtest("B", failures=[{"failure": "x"}]),
                           gtest("C", "SKIPPED", skipped=[unset]),
                           gtest("D", "SKIPPED", skipped=[noAvx]),
                           gtest("E", "SUPPRESSED", "NOTRUN"))
        self.assertEqual((cases.passed, cases.failed, cases.skipped, cases.withoutData),
                         (1, 1, 2, 1))
        self.assertEqual(cases.failures, ["p: Suite.B"])
        self.assertEqual(cases.summary(), "1 passed, 1 failed, 2 skipped")

    def testASkipWithoutAMessageIsCounted(self):
        self.assertEqual(self.count(gtest("A", "SKIPPED")).skipped, 1)


class RunProgramTest(unittest.TestCase):

    def runScript(self, script, timeout=20):
        with tempfile.TemporaryDirectory() as folder:
            return test_runs.runProgram("name", [sys.executable, "-c", textwrap.dedent(script)],
                                         timeout, dict(os.environ), folder)

    REPORT = """
        import json, os
        report = {"testsuites": [{"testsuite": [
            {"classname": "S", "name": str(i), "status": "RUN", "result": "COMPLETED"}
            for i in range(3)]}]}
        with open(os.environ["GTEST_OUTPUT"].removeprefix("json:"), "w") as file:
            json.dump(report, file)
        """

    def testAReportGivesItsCases(self):
        cases, output = self.runScript(self.REPORT + "print('text')")
        self.assertEqual((cases.passed, cases.failed, output), (3, 0, ""))
        [(seconds, name)] = cases.seconds
        self.assertEqual((name, 0 < seconds < 20), ("name", True))

    def testAFailingExitAfterAGoodReportIsAFailure(self):
        cases, _ = self.runScript(self.REPORT + "os._exit(1)")
        self.assertEqual((cases.passed, cases.failed), (3, 1))

    def testAProgramWithoutAReportIsOneCase(self):
        self.assertEqual(self.runScript("pass")[0].passed, 1)
        self.assertEqual(self.runScript("raise SystemExit(3)")[0].failures, ["name: exit code 3"])

    def testACrashNamesSignalAndCase(self):
        cases, output = self.runScript("""
            import os, signal
            print("[ RUN      ] Suite.First\\n[ RUN      ] Suite.Second", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
            """)
        self.assertEqual(cases.failures, ["name: signal SIGSEGV Suite.Second"])
        self.assertIn("Suite.First", output)

    def testAHangingProgramAndItsChildrenAreKilled(self):
        cases, output = self.runScript("""
            import subprocess, time
            print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
            time.sleep(1000)
            """, timeout=2)
        self.assertEqual(cases.failures, ["name: signal SIGKILL"])
        child = int(output.split()[0])
        # A killed process may run in the kernel for a while before it is gone, or waits for its parent.
        end = time.monotonic() + 60
        while self.stateOf(child) not in (None, "Z"):
            self.assertLess(time.monotonic(), end, "The child lives.")
            time.sleep(0.01)

    @staticmethod
    def stateOf(process):
        """A letter, as in /proc; None when it is gone."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
        return None

    def testAProcessWithASessionOfItsOwnIsNotWaitedFor(self):
        for end, code in [("raise SystemExit(3)", "exit code 3"), ("time.sleep(1000)", "signal SIGKILL")]:
            cases, output = self.runScript(f"""
                import subprocess, time
                print(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid, flush=True)
                {end}
                """, timeout=2)
            os.kill(int(output.split()[0]), signal.SIGKILL)  # An error if it has ended.
            self.assertEqual(cases.failures, [f"name: {code}"])


class RunCtestTest(unittest.TestCase):

    def testALauncherRunsTheProgramsWithItsVariables(self):
        script = ("import os, sys; sys.exit((os.environ['GIVEN'], os.environ['OWN'], "
                  "os.environ['GTEST_FILTER']) != ('1', '2', 'A.*'))")
        test = ("name", [sys.executable, "-c", script], 20, False, {"OWN": "2"}, None)
        with (unittest.mock.patch.object(test_runs, "testsOf", lambda preset: [test]),
              contextlib.redirect_stdout(io.StringIO())):
            without = test_runs.runCtest("preset", {"name": "A.*"}, variables={"GIVEN": "0"})
            cases = test_runs.runCtest("preset", {"name": "A.*"}, launcher=("env", "GIVEN=1"),
                                       variables={"GIVEN": "0"}, title="a title")
        self.assertEqual(without.failures, ["preset name: exit code 1"])
        self.assertEqual((cases.passed, cases.failed), (1, 0))
        self.assertEqual(cases.seconds[0][1], "a title name")


class RunPythonTest(unittest.TestCase):

    def runFile(self, text, limit=test_runs.UNLIMITED):
        # Not among the sources, which other tests copy meanwhile.
        build = test_runs.checkout.ROOT / "build"
        build.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=build) as folder:
            path = test_runs.pathlib.Path(folder) / "sample_test.py"
            path.write_text(text)
            before, test_runs.pythonTests = test_runs.pythonTests, lambda: [path]
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    return test_runs.runPython(False, limit)
            finally:
                test_runs.pythonTests = before

    def testOutcomesAreCounted(self):
        cases = self.runFile(textwrap.dedent("""
            import unittest
            class Sample(unittest.TestCase):
                def test_a(self): pass
                def test_b(self): self.fail()
                def test_c(self): raise OSError
                @unittest.skip("the test data folder is missing")
                def test_d(self): pass
                @unittest.expectedFailure
                def test_e(self): self.fail()
            """))
        self.assertEqual((cases.passed, cases.failed, cases.skipped, cases.withoutData),
                         (2, 2, 1, 1))

    def testAFileThatCannotBeLoadedOrIsEmptyFails(self):
        self.assertEqual(self.runFile("import nothing_of_this_name").failed, 1)
        self.assertEqual(self.runFile("").failed, 1)

    def testEachFileHasAStoreOfItsOwn(self):
        cases = self.runFile(textwrap.dedent("""
            import os, unittest
            class Sample(unittest.TestCase):
                def test_a(self):
                    self.assertIn("sample_test.py", os.environ["HEARTH_STORE"])
            """))
        self.assertEqual((cases.passed, cases.failed), (1, 0))

    def testWhatRunsWhenTimeIsUpIsEndedAndNamed(self):
        text = "import time, unittest\nclass S(unittest.TestCase):\n    def test_a(self): time.sleep(60)"
        cases = self.runFile(text, test_runs.TimeLimit(1))
        self.assertEqual((cases.passed, cases.failed, cases.skipped), (0, 0, 1))
        self.assertIn("sample_test.py", cases.late[0])


class TimeLimitTest(unittest.TestCase):

    def testWithoutALimitNothingIsCapped(self):
        self.assertIsNone(test_runs.UNLIMITED.left())
        self.assertFalse(test_runs.UNLIMITED.isOver())
        self.assertEqual(test_runs.UNLIMITED.cap(5), 5)
        self.assertIsNone(test_runs.UNLIMITED.cap(None))

    def testATimeoutDoesNotGoBeyondTheLimit(self):
        limit = test_runs.TimeLimit(100)
        self.assertEqual(limit.cap(5), 5)
        self.assertLessEqual(limit.cap(None), 100)
        self.assertLessEqual(limit.cap(500), 100)

    def testNothingBeginsWhenTimeIsUp(self):
        over = test_runs.TimeLimit(0)
        cases = test_runs.runOne("name", ["false"], limit=over)
        cases += test_runs.runProgram("other", ["false"], 10, dict(os.environ), "/", over)[0]
        self.assertEqual((cases.passed, cases.failed, cases.skipped), (0, 0, 2))
        self.assertEqual(cases.late, ["name", "other"])

    def testAFailureBeforeTheLimitIsAFailure(self):
        with contextlib.redirect_stdout(io.StringIO()):
            cases = test_runs.runOne("name", ["false"], limit=test_runs.TimeLimit(100))
        self.assertEqual((cases.failed, cases.late), (1, []))


if __name__ == "__main__":
    unittest.main()
