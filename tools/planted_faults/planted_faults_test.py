# SPDX-License-Identifier: Apache-2.0
"""Tests that a planted fault is a choice at run time, and that only what finds it counts as a find."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import tempfile
import types
import unittest

import planted_faults
from planted_faults import Fault, FaultError

SOURCE = '''#include <cstdio>
constexpr int kLimit = 1 + 1;
int count(int from, int to) {
  int counted = 0;
  for (int i = from; i < to; ++i) counted += 2;
  if (counted > 100) return 100;
  return counted;
}
int main() {
  int first = 3;
  std::printf("%d %d\\n", count(first, 7), kLimit);
}
'''
FAULTS = [Fault("a.cc", "i < to", "i <= to"), Fault("a.cc", "counted += 2;", ""),
          Fault("a.cc", "int first = 3;", "int first = PLANTED ? 4 : 3;"),
          Fault("a.cc", "1 + 1", "1 - 1"), Fault("a.cc", "return 100;", "return 101;")]

# Stands for a test program: fault 1 makes it fail, fault 2 crash, fault 3 hang; the suite Never fails anyway.
PROGRAM = '''#!/bin/bash
case "$1" in
  --gtest_list_tests) printf 'Quick.\\n  A\\nKinds/Slow.  # TypeParam\\n  B/0\\nNever.\\n  C\\n'; exit 0 ;;
esac
if [ -n "$HEARTH_PLANTED_REACHED" ]; then
  printf '\\0\\1\\1\\1\\0' | dd of="$HEARTH_PLANTED_REACHED" conv=notrunc status=none
fi
if [ "$1" = "--gtest_filter=Never.*" ]; then exit 1; fi
if [ "$1" = "--gtest_filter=Kinds/Slow.*" ]; then
  case "$HEARTH_PLANTED_FAULT" in 1) exit 1 ;; 2) kill -SEGV $$ ;; 3) sleep 100 ;; esac
fi
'''


class PlantTest(unittest.TestCase):

    def testEachFaultIsAChoiceAtRunTime(self):
        numbered = [(fault, number) for number, fault in enumerate(FAULTS, 1)]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "a.cc").write_text(planted_faults.plant(SOURCE, numbered), encoding="utf-8")
            subprocess.run(["c++", "-std=c++23", f"-I{planted_faults.HERE}", "a.cc", "-o", "a"],
                           cwd=folder, check=True)
            printed = [subprocess.run([folder / "a"], check=True, capture_output=True, text=True, env={
                **os.environ, "HEARTH_PLANTED_FAULT": str(number)}).stdout for number in range(6)]
            reached = folder / "reached"
            reached.write_bytes(bytes(6))
            subprocess.run([folder / "a"], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "HEARTH_PLANTED_REACHED": str(reached)})
            # What the compiler computes has no fault, and the limit is not met.
            self.assertEqual(printed, ["8 2\n", "10 2\n", "0 2\n", "6 2\n", "8 2\n", "8 2\n"])
            self.assertEqual(list(reached.read_bytes()), [0, 1, 1, 1, 0, 0])

    def testATextThatIsNotThereOnceIsRefused(self):
        for before in ("i > to", "counted"):
            with self.assertRaisesRegex(FaultError, "is there [0-9]+ times"):
                planted_faults.plant(SOURCE, [(Fault("a.cc", before, "1"), 1)])

    def testFaultsThatOverlapAreRefused(self):
        both = [(Fault("a.cc", "counted += 2;", ""), 1), (Fault("a.cc", "+= 2", "+= 3"), 2)]
        with self.assertRaisesRegex(FaultError, "overlaps"):
            planted_faults.plant(SOURCE, both)


class ListTest(unittest.TestCase):

    def testAListIsReadAsItWasWritten(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.json"
            faults = [Fault("a.cc", "1", "2", explained="It is never read."), Fault("a.cc", "3", "4", found="t S")]
            planted_faults.writeList(path, faults)
            self.assertEqual(planted_faults.readList(path), faults)
            self.assertNotIn("explained", json.loads(path.read_text())[1])

    def testWrongListsAreRefused(self):
        right = {"file": "a.cc", "before": "1", "after": "2"}
        for wrong in ([{"file": "a.cc", "before": "1"}], [{**right, "line": "7"}], [{**right, "after": 2}],
                      [{**right, "after": "1"}], ["a.cc"]):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "a.json"
                path.write_text(json.dumps(wrong))
                with self.assertRaises(FaultError):
                    planted_faults.readList(path)

    def testTheListsOfTheRepositoryAreInOrder(self):
        lists = planted_faults.readLists(planted_faults.HERE / "faults")
        faults = [fault for faults in lists.values() for fault in faults]
        self.assertGreater(len(faults), 20)
        there = [fault for fault in faults if not planted_faults.isGone(planted_faults.ROOT, fault)]
        # Some texts may have been edited away since; if most are, the lists are of no use.
        self.assertGreater(len(there), len(faults) / 2)
        for fault in there:
            self.assertTrue(planted_faults.programsFor(fault.file))
        for file in {fault.file for fault in there}:
            source = (planted_faults.ROOT / file).read_text(encoding="utf-8")
            numbered = [(fault, 1) for fault in there if fault.file == file]
            self.assertNotEqual(planted_faults.plant(source, numbered), source)


class RunTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = planted_faults.Tree(pathlib.Path(self.folder.name))
        self.tree.bin.mkdir(parents=True)
        program = self.tree.bin / "graph_test"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.faults = [Fault("src/graph/a.cc", str(number), "0") for number in range(1, 5)]
        self.numbers = [self.tree.number(fault) for fault in self.faults]
        self.reach = planted_faults.Reach(self.tree)
        with contextlib.redirect_stderr(io.StringIO()):
            self.reach.find("graph_test")

    def tried(self, index):
        fault, number = self.faults[index], self.numbers[index]
        return planted_faults.tryFault(self.tree, fault, number, self.reach.suitesFor(fault, number), 100)

    def testOnlySuitesThatReachAFaultAndPassWithoutItAreRun(self):
        suites = {suite for suite, _ in self.reach.suitesFor(self.faults[0], 1)}
        self.assertEqual(suites, {"graph_test Quick", "graph_test Kinds/Slow"})
        self.assertEqual(self.reach.suitesFor(self.faults[3], 4), [])
        self.assertEqual(self.tried(3), ("", "no suite reaches it"))

    def testTheSuiteThatFoundAFaultLastIsTriedFirst(self):
        for name in ("graph_test Quick", "graph_test Kinds/Slow"):
            self.faults[0].found = name
            self.assertEqual(self.reach.suitesFor(self.faults[0], 1)[0][0], name)

    def testAFailureAndACrashAreFinds(self):
        self.assertEqual(self.tried(0), ("graph_test Kinds/Slow", "fails"))
        self.assertEqual(self.tried(1), ("graph_test Kinds/Slow", "crashes"))

    def testWhatDoesNotEndIsAFind(self):
        self.assertEqual(self.tree.run("graph_test Kinds/Slow", {"HEARTH_PLANTED_FAULT": "3"}, 20, 1)[0],
                         "does not end")

    def testAFailureWithoutTheFaultIsNoFind(self):
        always = [("graph_test Never", 0.1)]
        self.assertEqual(planted_faults.tryFault(self.tree, self.faults[0], 1, always, 100),
                         ("", "1 suites reach it and pass"))

    def testTheReachIsKeptUntilTheProgramChanges(self):
        again = planted_faults.Reach(self.tree)
        self.assertEqual(again.programs, self.reach.programs)
        with (self.tree.bin / "graph_test").open("a") as program:
            program.write("exit 0\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            again.find("graph_test")
        self.assertIn("reach 3/3", said.getvalue())


class ReportTest(unittest.TestCase):

    def testTheTableCountsWhatIsFoundExplainedAndOpen(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source = planted_faults.ROOT / "src/graph/codes.cc"
            lines = [line for line in source.read_text().splitlines() if line.strip()]
            unique = [line for line in lines if lines.count(line) == 1 and source.read_text().count(line) == 1]
            faults = [Fault("src/graph/codes.cc", line, "") for line in unique[:5]]
            faults[1].explained = "Both give the same."
            faults[4].found = "graph_test Codes"  # by an earlier run elsewhere
            faults.append(Fault("src/graph/codes.cc", "no such text", ""))
            results = planted_faults.Results(folder)
            results.add(faults[0], "graph_test Codes", "fails")
            for fault in faults[1:3]:
                results.add(fault, "", "2 suites reach it and pass")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                planted_faults.report(types.SimpleNamespace(folder=folder, only=None),
                                      {folder / "a.json": faults})
            self.assertIn("| `src/graph` | 5 | 2 | 1 | 1 | 1 |", printed.getvalue())
            self.assertIn("| all | 5 | 2 | 1 | 1 | 1 |", printed.getvalue())
            self.assertIn(": 2 suites reach it and pass\n", printed.getvalue())
            self.assertIn(": Both give the same.", printed.getvalue())
            self.assertIn("Gone:\n- src/graph/codes.cc: `no such text`", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
