#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_unittest.py FILE REPORT: runs the unittest cases of FILE and writes REPORT as JSON:
{"passed": N, "failed": [name...], "skipped": [reason...]}."""

import importlib.util
import json
import pathlib
import sys
import unittest


class CountingResult(unittest.TextTestResult):
    """Also counts the cases that passed."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    path, report = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(resultclass=CountingResult, verbosity=2).run(suite)
    failed = [str(test) for test, _ in result.failures + result.errors]
    failed += [str(test) for test in result.unexpectedSuccesses]
    if not suite.countTestCases():
        failed.append("there are no tests")
    report.write_text(json.dumps({
        "passed": result.passed + len(result.expectedFailures), "failed": failed,
        "skipped": [reason for _, reason in result.skipped]}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
