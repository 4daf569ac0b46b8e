# SPDX-License-Identifier: Apache-2.0
"""Tests that planted faults are faults, and that nothing else is changed."""

import contextlib
import io
import pathlib
import unittest

import mutate_kernels

SOURCE = '''// A comment with 1 + 2 < 3.
#include <array>
template <int kSize = 4>
float sum(const float* data, size_t count) {
  float total = 0.5f;  // from 0
  for (size_t i = 0; i < count; ++i) total += data[i] * 2;
  static_assert(sizeof(float) == 4);
  log("1 + 1 is \\"2\\"");
  return std::min(total, limit - 1.0f) && isRight == true;
}
'''


class MutateKernelsTest(unittest.TestCase):

    def setUp(self):
        self.faults = mutate_kernels.faultsOf("sum.cc", SOURCE)

    def testEveryTokenThatComputesIsFoundOnce(self):
        self.assertEqual([(fault.line, fault.old.strip(), fault.new.strip())
                          for fault in self.faults],
                         [(5, "0.5f", "1.0f"), (6, "0", "1"), (6, "<", "<="), (6, "+=", "-="),
                          (6, "*", "+"), (6, "2", "3"), (9, "std::min", "std::max"), (9, "-", "+"),
                          (9, "1.0f", "1.75f"), (9, "&&", "||"), (9, "==", "!="),
                          (9, "true", "false")])

    def testAFaultChangesItsTokenOnly(self):
        for fault in self.faults:
            text = mutate_kernels.planted(SOURCE, fault)
            lines = [number for number, (old, new) in
                     enumerate(zip(SOURCE.split("\n"), text.split("\n")), 1) if old != new]
            self.assertEqual(lines, [fault.line])
            self.assertEqual(len(text) - len(SOURCE), len(fault.new) - len(fault.old))

    def testAFaultOfAnotherTextIsRefused(self):
        with self.assertRaises(ValueError):
            mutate_kernels.planted("\n" + SOURCE, self.faults[0])

    def testTheSameSeedDrawsTheSameFaultsOfTheKernels(self):
        root = mutate_kernels.ROOT
        files = mutate_kernels.kernelFiles(root, mutate_kernels.KERNELS)
        names = {path.name for path in files}
        self.assertTrue({"f32_gemm.cc", "reduce.cc", "elementwise.cc"} <= names)
        self.assertFalse({"f32_layer_test.cc", "validation.cc"} & names)
        drawn = mutate_kernels.draw(files, root, 200, 1)
        self.assertEqual(drawn, mutate_kernels.draw(files, root, 200, 1))
        self.assertNotEqual(drawn, mutate_kernels.draw(files, root, 200, 2))
        self.assertEqual(len({(fault.file, fault.line) for fault in drawn}), len(drawn))
        self.assertGreaterEqual(len(drawn), 200)
        self.assertGreater(len({pathlib.Path(fault.file).parent for fault in drawn}), 3)

    def testTheReportNamesWhatNobodyFound(self):
        def result(finding, line):
            return {"file": "src/ops/reduce.cc", "line": line, "kind": "sign", "old": " + ",
                    "new": " - ", "offset": 7, "text": "a + b", "finding": finding, "passes": 2}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            mutate_kernels.report([result("ops_test", 3), result(None, 4),
                                   result("not compiled", 5)])
        self.assertIn("| src/ops | 2 | 1 |", printed.getvalue())
        self.assertIn("src/ops/reduce.cc:4: `+` as `-`: a + b", printed.getvalue())
        self.assertNotIn("reduce.cc:5", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
