# SPDX-License-Identifier: Apache-2.0
"""Runs test programs of several kinds and counts their cases."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import checkout

CPUS = len(os.sched_getaffinity(0))
# The reason with which a skipped test reports that the folder with models and conformance cases is
# missing.
WANTS_DATA = re.compile(r"HEARTH_TEST_DATA|test data|shared", re.IGNORECASE)


class TimeLimit:
    """When a run of tests has to be over. What has not begun by then is not run, what runs is ended; a
    run that is killed from outside would say nothing at all."""

    def __init__(self, seconds=None):
        self.end = None if seconds is None else time.monotonic() + seconds

    def left(self):
        """Seconds; None without a limit."""
        return None if self.end is None else max(0.0, self.end - time.monotonic())

    def isOver(self):
        return self.left() == 0

    def cap(self, timeout):
        """A time-out, which may be None, that does not go beyond the limit."""
        left = self.left()
        return timeout if left is None else left if timeout is None else min(timeout, left)


UNLIMITED = TimeLimit()


@dataclasses.dataclass
class Cases:
    """The numbers of cases that passed, failed and were skipped, how many of the latter lacked data, and
    the names of what was skipped because time was up."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    withoutData: int = 0
    failures: list = dataclasses.field(default_factory=list)
    late: list = dataclasses.field(default_factory=list)
    seconds: list = dataclasses.field(default_factory=list)  # pairs with the name of a program

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.withoutData += other.withoutData
        self.failures += other.failures
        self.late += other.late
        self.seconds += other.seconds
        return self

    def timed(self, begin, name):
        """Notes how long a program ran that began at a time of time.monotonic()."""
        self.seconds.append((time.monotonic() - begin, name))
        return self

    def summary(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")

    def addPass(self):
        self.passed += 1

    def addFailure(self, name):
        self.failed += 1
        self.failures.append(name)

    def addSkip(self, reason):
        self.skipped += 1
        self.withoutData += bool(WANTS_DATA.search(reason))

    def addLate(self, name):
        """What was not run, or not to its end, because time was up."""
        self.skipped += 1
        self.late.append(name)


def expect(holds, sentence):
    """One case that passes, or fails with a sentence."""
    cases = Cases()
    if holds:
        cases.addPass()
    else:
        print(sentence)
        cases.addFailure(sentence)
    return cases


def execute(command, timeout, live=False, environment=None):
    """Exit code and output of a command; after a time-out it and the processes of its session are killed.

    The output goes through a file: a host of a driver has a session of its own, and one that outlives the
    command would hold a pipe open for as long as its driver hangs.
    """
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                              stdout=None if live else output,
                              stderr=None if live else subprocess.STDOUT,
                              start_new_session=True) as process:
            killed = ""
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = -signal.SIGKILL
                killed = f"\nKilled after {timeout:.0f} s.\n"
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        output.seek(0)
        return code, output.read().decode(errors="replace") + killed


def describe(code):
    if code >= 0:
        return f"exit code {code}"
    return f"signal {signal.Signals(-code).name}"


def runOne(name, command, timeout=1800, live=False, limit=UNLIMITED):
    """Runs a command that counts as one case."""
    cases = Cases()
    if limit.isOver():
        cases.addLate(name)
        return cases
    code, output = execute(command, limit.cap(timeout), live)
    if code != 0 and limit.isOver():
        cases.addLate(name)
        return cases
    if code != 0:
        print(output, end="")
    return expect(code == 0, f"{name}: {describe(code)}")


def countGtest(report, name):
    """The cases in one JSON report of GoogleTest."""
    cases = Cases()
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            title = f"{name}: {test['classname']}.{test['name']}"
            if test["status"] != "RUN":
                continue
            if test.get("failures"):
                cases.addFailure(title)
            elif test.get("result") == "SKIPPED":
                cases.addSkip(" ".join(skip.get("message", "") for skip in test.get("skipped", [])))
            else:
                cases.addPass()
    return cases


def unfinishedTest(output):
    """The GoogleTest case that was running when the program ended."""
    started = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return started[-1] if started else ""


def runProgram(name, command, timeout, environment, folder, limit=UNLIMITED):
    """Runs one test program: a GoogleTest program counts by its report, any other as one case."""
    if limit.isOver():
        late = Cases()
        late.addLate(name)
        return late, ""
    reportPath = pathlib.Path(folder) / (name.replace("/", "_") + ".json")
    environment = {**environment, "GTEST_OUTPUT": f"json:{reportPath}", "GTEST_COLOR": "no"}
    begin = time.monotonic()
    code, output = execute(command, limit.cap(timeout), environment=environment)
    cases = Cases()
    if code == -signal.SIGKILL and limit.isOver():
        cases.addLate(name)
        return cases, ""
    try:
        cases = countGtest(json.loads(reportPath.read_text()), name)
    except (OSError, ValueError):
        if code == 0:
            cases.addPass()
    if code != 0 and not cases.failed:
        cases.addFailure(f"{name}: {describe(code)} {unfinishedTest(output)}".rstrip())
    return cases.timed(begin, name), output if cases.failed else ""


def testsOf(preset):
    """(name, command, timeout, runs alone, variables, folder) of each test in CTest, those of a greater
    COST first: what takes longest must not begin last."""
    shown = subprocess.run(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1"],
                           check=True, capture_output=True).stdout
    tests = []
    for test in json.loads(shown)["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        variables = dict(text.split("=", 1) for text in properties.get("ENVIRONMENT", []))
        tests.append((properties.get("COST", 0),
                      (test["name"], test.get("command"), properties.get("TIMEOUT", 600),
                       properties.get("RUN_SERIAL", False), variables,
                       properties.get("WORKING_DIRECTORY"))))
    return [test for _, test in sorted(tests, key=lambda test: -test[0])]


def runCtest(preset, only=None, without=(), limit=UNLIMITED, launcher=(), variables=None, title=None):
    """The tests of a preset, all or those in `only`, as many at once as there are CPUs.

    `only` says for each test by name which of its cases run, as a GoogleTest filter; those in
    `without` do not run. `launcher` is a command that is given each test's command, `variables` are for
    its environment, and `title` is said in place of the preset.
    """
    cases = Cases()
    title = title or preset
    common = {**os.environ, **(variables or {})}
    timeoutFactor = 1 if preset == "release" else 3
    with tempfile.TemporaryDirectory(prefix="hearth-tests-") as folder:

        def run(test):
            name, command, timeout, _, variables, _ = test
            if not command or shutil.which(command[0]) is None:
                missing = Cases()
                missing.addFailure(f"{title} {name}: its program is not built")
                return missing, ""
            if only is not None:
                variables = {**variables, "GTEST_FILTER": only[name]}
            return runProgram(f"{title} {name}", [*launcher, *command], timeout * timeoutFactor,
                              {**common, **variables}, folder, limit)

        tests = [test for test in testsOf(preset)
                 if (only is None or test[0] in only) and test[0] not in without]
        together = [test for test in tests if not test[3]]
        alone = [test for test in tests if test[3]]
        with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
            for some, output in pool.map(run, together):
                print(output, end="", flush=True)
                cases += some
        for test in alone:
            some, output = run(test)
            print(output, end="", flush=True)
            cases += some
    if not tests:
        cases.addFailure(f"{title}: there are no tests")
    return cases


def pythonTests():
    """All but those of arm64_tests.py."""
    return [path for path in checkout.files()
            if path.name.endswith("_test.py") and path.parent.name != "arm64"]


def runPythonFile(path, timeout, folder, limit):
    """The cases of one *_test.py, in a process and with a store of its own, and what there is to print."""
    name = str(path.relative_to(checkout.ROOT))
    cases = Cases()
    if limit.isOver():
        cases.addLate(name)
        return cases, ""
    own = pathlib.Path(folder) / name.replace("/", "_")
    own.mkdir()
    report = own / "report.json"
    environment = {**os.environ, "HEARTH_STORE": str(own / "store"),
                   "XDG_STATE_HOME": str(own / "state")}
    begin = time.monotonic()
    code, output = execute(
        [sys.executable, str(checkout.ROOT / "tools" / "run_unittest.py"), str(path), str(report)],
        limit.cap(timeout), environment=environment)
    if code == -signal.SIGKILL and limit.isOver():
        cases.addLate(name)
        return cases, ""
    try:
        counted = json.loads(report.read_text())
    except (OSError, ValueError):
        cases.addFailure(f"{name}: {describe(code)}")
    else:
        cases.passed = counted["passed"]
        for reason in counted["skipped"]:
            cases.addSkip(reason)
        for failure in counted["failed"]:
            cases.addFailure(f"{name}: {failure}")
    return cases.timed(begin, name), output if cases.failed else ""


def runPython(longMode, limit=UNLIMITED):
    """Runs each *_test.py of the checkout. What builds packages takes longest and begins first."""
    paths = sorted(pythonTests(), key=lambda path: path.parent.name != "packages")
    return runPythonFiles(paths, longMode, limit)


def runPythonFiles(paths, longMode=False, limit=UNLIMITED):
    """Runs files with tests, as many at once as there are CPUs."""
    cases = Cases()
    with (tempfile.TemporaryDirectory(prefix="hearth-tests-") as folder,
          concurrent.futures.ThreadPoolExecutor(CPUS) as pool):
        runs = pool.map(
            lambda path: runPythonFile(path, None if longMode else 1800, folder, limit), paths)
        for some, output in runs:
            print(output, end="", flush=True)
            cases += some
    return cases


def hasFuzzers():
    return any(path.name.endswith("_fuzz.cc") for path in checkout.files())


def runFuzzers(seconds, limit=UNLIMITED):
    """Runs each fuzz target for `seconds`, from its corpus in tests/corpus/TARGET and its earlier
    findings."""
    def run(program):
        if limit.left() is not None and limit.left() < seconds:
            late = Cases()
            late.addLate(f"fuzz {program.name}")
            return late, ""
        folder = pathlib.Path("build/fuzz/found") / program.name
        (folder / "corpus").mkdir(parents=True, exist_ok=True)
        (folder / "crashes").mkdir(exist_ok=True)
        corpora = [str(folder / "corpus")]
        given = pathlib.Path("tests/corpus") / program.name
        if given.is_dir():
            corpora.append(str(given))
        code, output = execute(
            [str(program.resolve()), f"-max_total_time={seconds}", "-timeout=10",
             "-rss_limit_mb=2048", "-print_final_stats=1",
             f"-artifact_prefix={folder}/crashes/", *corpora], timeout=seconds + 120)
        cases = expect(code == 0, f"fuzz {program.name}: {describe(code)}")
        return cases, output[-8000:] if code != 0 else ""

    cases = Cases()
    programs = sorted(pathlib.Path("build/fuzz/bin").glob("*_fuzz"))
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        for some, output in pool.map(run, programs):
            print(output, end="", flush=True)
            cases += some
    return cases
