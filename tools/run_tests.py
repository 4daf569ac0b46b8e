#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Hearth and runs its tests; the last line is "N passed, N failed[, N skipped]".

Runs inside the environment that ./dev makes. Without --all: the release build, the checks of the
sources that take seconds, and the C++ tests but for the slow ones. With --all, as CI does, also
clang-tidy, the Python tests, all C++ tests, the same again under the address and
undefined-behaviour sanitizers, the tests that use many threads under the thread sanitizer, a short run
of each fuzz target, and tests of the build for ARM64 under emulation, which --arch arm64 runs alone.
Cases are counted one by one, a check or a fuzz target as one case.
The exit code is 1 when anything failed.

With --minutes, what has not ended by then is not run, is named at the end and counts as skipped: where
nothing is compiled yet, everything takes longer than some can wait, and the order of the phases is that
of their worth.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import threading
import time

import arm64_tests
import check_tidy
import checkout
import test_runs


# How long after its time a phase may go on before the whole run is ended: what a program printed is read,
# processes are ended.
GRACE_SECONDS = 180


class Report:
    """Sums cases and times of the phases and prints them."""

    def __init__(self):
        self.total = test_runs.Cases()
        self.rows = []
        self.running = None
        self.notes = []

    def phase(self, name, action):
        print(f"== {name}", flush=True)
        self.running = name
        begin = time.monotonic()
        cases = action()
        self.rows.append((name, time.monotonic() - begin, cases))
        self.total += cases
        print(f"   {cases.summary()}", flush=True)
        return cases.failed == 0 and not cases.late

    def printTable(self):
        print("\nphase                      seconds  passed  failed skipped")
        for name, seconds, cases in self.rows:
            print(f"{name:<24} {seconds:9.1f} {cases.passed:7} {cases.failed:7} {cases.skipped:7}")
        slowest = sorted(self.total.seconds, reverse=True)[:15]
        if slowest:
            print("\nThe programs that ran longest, in seconds:")
        for seconds, name in slowest:
            print(f"{seconds:7.0f}  {name}")

    def end(self):
        """Prints what there is to say, and gives the exit code."""
        self.printTable()
        for name in self.total.late:
            print(f"NOT RUN FOR WANT OF TIME {name}")
        for name in self.total.failures:
            print(f"FAILED {name}")
        for note in self.notes:
            print(note)
        print(self.total.summary(), flush=True)
        return 1 if self.total.failed or not self.total.passed else 0

    def endAt(self, seconds):
        """Ends this process when it still runs after so many seconds: a phase that does not notice that
        time is up is named and counts as skipped, and what the others found is not lost."""

        def end():
            self.total.addLate(self.running)
            os._exit(self.end())

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()


def build(preset, limit, *targets):
    """No case when it works, a failed one when it does not."""
    cases = test_runs.runOne(f"build of {preset}", ["tools/dev/build.sh", preset, *targets],
                             timeout=None, live=True, limit=limit)
    cases.passed = 0
    return cases


# What runs under the thread sanitizer: a few programs, so that they are built in minutes.
THREAD_TESTS = {
    "ipc_parts_test": "*",
    "ipc_test": "*",
    "nnapi_threads_test": "*",
    "runtime_test": "*",
    "threads_test": "*",
    "cache_test": "*.*Thread*",
}


# Test programs that `./dev test` leaves to `./dev test --all`: the conformance cases once more, through
# the C API in all its modes, take as long as all others together.
SLOW_TESTS = {"nnapi_conformance_test"}


def runChecks(*names):
    cases = test_runs.Cases()
    for name in names:
        cases += test_runs.runOne(f"tools/check_{name}.py",
                                   [sys.executable, f"tools/check_{name}.py"])
    return cases


def runTidy(limit):
    """All sources, or those changed last with a tenth of the time that is left."""
    left = limit.left()
    options = [] if left is None else ["--seconds", str(round(left / 10))]
    code, output = test_runs.execute([sys.executable, "tools/check_tidy.py", *options], None)
    cases = test_runs.Cases()
    if code == check_tidy.UNFINISHED:
        cases.addLate(f"clang-tidy: {output.splitlines()[-1]}")
        return cases
    if code != 0:
        print(output, end="")
    return test_runs.expect(code == 0, f"tools/check_tidy.py: {test_runs.describe(code)}")


def runArm64(report, arguments, limit):
    """The build for ARM64 and its tests. Where the machine cannot run them, that is a failure only if
    they are asked for alone."""
    if limit.isOver():
        report.total.addLate("arm64")
    elif obstacle := arm64_tests.obstacle(limit):
        cases = test_runs.Cases()
        if arguments.arch is None:
            cases.addSkip(obstacle)
        else:
            cases.addFailure("the build for ARM64 cannot be tested here")
        print(obstacle)
        report.phase("tests, arm64", lambda: cases)
    elif (report.phase("build release", lambda: build("release", limit, arm64_tests.COMMAND)) and
          report.phase("build arm64", lambda: build("arm64", limit, *arm64_tests.targets()))):
        everything = arguments.long or (arguments.all and arguments.arch is not None)
        report.phase("tests, arm64", lambda: arm64_tests.run(everything, limit))


def main():
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--all", action="store_true", help="everything, as CI runs it (an hour)")
    parser.add_argument("--long", action="store_true",
                        help="everything, with the long modes of mutation and fuzz tests (hours)")
    parser.add_argument("--require-data", action="store_true",
                        help="a missing test data folder is a failure")
    parser.add_argument("--minutes", type=float,
                        help="what has not ended by then is not run, and counts as skipped")
    parser.add_argument("--phases",
                        help="which phases run, separated by commas, of checks, tidy, python, "
                        "quick, release, asan, tsan, fuzz and arm64")
    parser.add_argument("--arch", choices=["arm64"],
                        help="only the build for this architecture, under emulation; with --all, more of it")
    arguments = parser.parse_args()
    phases = ["checks", "quick"]
    if arguments.all or arguments.long:
        phases = ["checks", "release", "python", "tidy", "asan", "tsan", "fuzz", "arm64"]
    if arguments.arch:
        phases = [arguments.arch]
    if arguments.phases:
        phases = arguments.phases.split(",")
    os.chdir(checkout.ROOT)

    # The libraries of each preset are found by their run paths.
    os.environ.pop("LD_LIBRARY_PATH", None)
    os.environ["HEARTH_TEST_LONG"] = "1" if arguments.long else "0"
    data = os.environ.get("HEARTH_TEST_DATA")
    hasData = bool(data) and pathlib.Path(data).is_dir()
    if not hasData:
        os.environ.pop("HEARTH_TEST_DATA", None)

    report = Report()
    limit = test_runs.TimeLimit(arguments.minutes and 60 * arguments.minutes)
    if arguments.minutes:
        report.endAt(60 * arguments.minutes + GRACE_SECONDS)
    if arguments.require_data:
        report.phase("test data", lambda: test_runs.expect(
            hasData, f"The test data folder {data or '../shared'} does not exist; "
            "HEARTH_TEST_DATA names another."))

    # Models that tests compile are kept apart from the user's.
    store = tempfile.TemporaryDirectory(prefix="hearth-test-store-")
    os.environ["HEARTH_STORE"] = os.path.join(store.name, "store")
    os.environ["XDG_STATE_HOME"] = os.path.join(store.name, "state")
    for variable in ("HEARTH_STORE_MODE", "HEARTH_STORE_SIZE", "HEARTH_SYSTEM_STORES"):
        os.environ.pop(variable, None)

    for variable in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
        os.environ.pop(variable, None)
    # The quick tests need neither the Python package nor the benchmarks.
    targets = ["hearth_tests"] if set(phases) <= {"checks", "quick"} else []
    # The checks read sources only, and headers that are generated.
    if phases == ["checks"]:
        targets = ["hearth_ipc_schema"]
    # Without it, nothing would be tested at all.
    if phases != ["arm64"] and report.phase(
            "build release", lambda: build("release", test_runs.UNLIMITED, *targets)):
        if "checks" in phases:
            report.phase("checks", lambda: runChecks(
                "layers", "docs", "headers", "environment", "assertions", "format"))
        if "quick" in phases:
            report.phase("tests, quick",
                         lambda: test_runs.runCtest("release", without=SLOW_TESTS, limit=limit))
        if "release" in phases:
            report.phase("tests, release", lambda: test_runs.runCtest("release", limit=limit))
        if "python" in phases:
            report.phase("python tests", lambda: test_runs.runPython(arguments.long, limit))
        if "tidy" in phases:
            report.phase("clang-tidy", lambda: runTidy(limit))
    if "asan" in phases and report.phase("build asan", lambda: build("asan", limit)):
        os.environ["ASAN_OPTIONS"] = "detect_stack_use_after_return=1:allocator_may_return_null=1"
        os.environ["UBSAN_OPTIONS"] = "print_stacktrace=1"
        report.phase("tests, asan", lambda: test_runs.runCtest("asan", limit=limit))
    if "tsan" in phases and report.phase("build tsan", lambda: build("tsan", limit, *THREAD_TESTS)):
        os.environ["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
        report.phase("tests, tsan", lambda: test_runs.runCtest("tsan", THREAD_TESTS, limit=limit))
    if "fuzz" in phases and test_runs.hasFuzzers():
        if report.phase("build fuzz", lambda: build("fuzz", limit, "hearth_fuzzers")):
            report.phase("fuzz", lambda: test_runs.runFuzzers(900 if arguments.long else 15, limit))

    if "arm64" in phases:
        runArm64(report, arguments, limit)

    if not hasData:
        report.notes.append(f"The test data folder {data or '../shared'} does not exist: "
                            f"{report.total.withoutData} tests were not run for want of it.")
    if phases == ["checks", "quick"]:
        report.notes.append("These were the quick tests; `./dev test --all` runs everything.")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
