#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of faults/*.json and shows which of them the tests find.

usage, inside ./dev shell: planted_faults.py list|run|report [--only GLOB...] [--folder DIR] ...

`list` says which faults there are, and whether the text that each replaces is still in its file. `run` makes a
copy of the tree in which every fault is a choice at run time, builds its test programs once, finds out which
suites reach which fault, and runs those with one fault on at a time, until one of them fails. What a run found
out is kept in the folder, and a run that is repeated goes on there; --again tries faults once more, and --update
writes the suite that found a fault into faults/*.json. `report` prints the table of docs/planted-faults.md.

Each fault is an object:
  file       from the root of the repository
  before     a text that is in the file once: an expression, or statements (which end in ; or })
  after      what stands there while the fault is on. Where it holds the word PLANTED, it replaces `before` as it
             stands, and PLANTED is whether the fault is on; that is for declarations. What the compiler computes
             cannot have a fault: put it where the constant is used.
  explained  why no test can see it; only where that is so
  found      the suite that found it last; it is tried first
"""

import argparse
import collections
import dataclasses
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import checkout  # noqa: E402

FIELDS = {"file", "before", "after", "explained", "found"}

# Which programs test a folder, those first that are most likely to find a fault; the longest name that
# begins a file's decides. A Python file needs the targets of PYTHON_TARGETS.
PROGRAMS = {
    "src/api": ["api_test", "golden_test", "hostile_models_test", "tests/python/package_test.py",
                "tests/python/runs_test.py"],
    "src/base": ["base_test", "cache_test", "ipc_parts_test", "runtime_test"],
    "src/cache": ["cache_test", "driver_cpu_test", "limits_test", "tests/cli/cache_test.py", "tests/cli/store_test.py"],
    "src/drivers/cpu": ["driver_cpu_test", "random_graph_test", "open_stores_test", "save_queue_test",
                        "cut_model_test"],
    "src/drivers/delegate": ["delegate_driver_test"],
    "src/drivers/support_library": ["support_library_test"],
    "src/drivers/vulkan": ["vulkan_driver_test"],
    "src/frontends/delegate": ["delegate_test"],
    "src/frontends/nnapi": ["nnapi_test", "nnapi_behaviours_test"],
    "src/frontends/tflite": ["tflite_test", "hostile_models_test", "api_test"],
    "src/frontends/tflite_c": ["tflite_c_test", "tflite_call_sequence_test"],
    "src/graph": ["graph_test", "ops_test", "tflite_test"],
    "src/hal": ["hal_test", "runtime_test", "driver_cpu_test", "nnapi_behaviours_test"],
    "src/ipc": ["ipc_parts_test", "ipc_sandbox_test", "ipc_test", "spawned_host_test", "vendor_host_test"],
    "src/llm": ["llm_test", "hearth_llm_test"],
    "src/llm_server": ["llm_server_test"],
    "src/memory": ["memory_test", "driver_cpu_test"],
    "src/ops": ["ops_test", "random_graph_test", "driver_cpu_test"],
    "src/runtime": ["runtime_test", "device_state_test", "random_graph_test", "api_test", "nnapi_test",
                    "nnapi_behaviours_test"],
    "src/threads": ["threads_test", "driver_cpu_test"],
    "src/tflite_abi": ["tflite_c_test", "delegate_test", "delegate_driver_test"],
    "src/tools": ["commands_test", "media_test", "tests/cli/run_test.py", "tests/cli/results_test.py",
                  "tests/cli/bad_input_test.py"],
    "src/tools/conformance": ["conformance_tool_test", "conformance_test"],
}
PYTHON_TARGETS = ["hearth_tool", "hearth_python"]

# A suite gets so many times the processor time that it takes without a fault, and no less than so many seconds.
# The elapsed time is what a suite may take that waits for something; a busy machine stretches it.
PROCESSOR_FACTOR, LEAST_PROCESSOR_SECONDS, ELAPSED_SECONDS = 10, 20, 300
MOST_MEMORY = 16 << 30

FOUND, EXPLAINED, OPEN, NOT_RUN, GONE = "found", "explained", "open", "not run", "gone"


@dataclasses.dataclass
class Fault:
    file: str
    before: str
    after: str
    explained: str = ""
    found: str = ""

    @property
    def key(self):
        """What it is known by in results, whatever its place in the list."""
        return hashlib.sha256("\0".join((self.file, self.before, self.after)).encode()).hexdigest()[:16]

    @property
    def place(self):
        """The row of the table: a layer of src, or one of the drivers and front ends."""
        parts = pathlib.PurePath(self.file).parts
        deep = len(parts) > 3 and parts[1] in ("drivers", "frontends")
        return "/".join(parts[:3 if deep else 2])

    def replacement(self, number):
        """What stands in place of `before` in the copy of the tree."""
        isOn = f"::planted::isOn({number})"
        if re.search(r"\bPLANTED\b", self.after):
            return re.sub(r"\bPLANTED\b", isOn, self.after)
        if self.before.rstrip().endswith((";", "}")):
            return f"if ({isOn}) {{ {self.after} }} else {{ {self.before} }}"
        return f"({isOn} ? ({self.after}) : ({self.before}))"


class FaultError(Exception):
    """A sentence about a list of faults that cannot be used."""


def readList(path):
    """The faults of one file of JSON."""
    faults = []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        if not isinstance(entry, dict) or not {"file", "before", "after"} <= set(entry) <= FIELDS:
            raise FaultError(f"{path.name}: {json.dumps(entry)} has other fields than {', '.join(sorted(FIELDS))}.")
        if not all(isinstance(value, str) for value in entry.values()):
            raise FaultError(f"{path.name}: {json.dumps(entry)} has a value that is no text.")
        fault = Fault(**entry)
        if not fault.before.strip() or fault.before == fault.after:
            raise FaultError(f"{path.name}: {json.dumps(entry)} changes nothing.")
        faults.append(fault)
    return faults


def writeList(path, faults):
    """The opposite of readList(): one field a line, empty ones left out."""
    entries = [{name: value for name, value in dataclasses.asdict(fault).items()
                if value or name in ("file", "before", "after")} for fault in faults]
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def readLists(folder):
    """The faults of each list, by its path."""
    lists = {path: readList(path) for path in sorted(folder.glob("*.json"))}
    counts = collections.Counter(fault.key for faults in lists.values() for fault in faults)
    twice = [fault for faults in lists.values() for fault in faults if counts[fault.key] > 1]
    if twice:
        raise FaultError(f"{twice[0].file}: `{twice[0].before}` is there twice.")
    return lists


def isGone(root, fault):
    """Whether the text that a fault replaces is no longer there, or there more than once."""
    path = root / fault.file
    return not path.is_file() or path.read_text(encoding="utf-8").count(fault.before) != 1


def plant(source, faults):
    """A source with all faults, which are pairs with their numbers."""
    places = []
    for fault, number in faults:
        if source.count(fault.before) != 1:
            raise FaultError(f"{fault.file}: `{fault.before}` is there {source.count(fault.before)} times.")
        begin = source.index(fault.before)
        places.append((begin, begin + len(fault.before), fault, number))
    places.sort(key=lambda place: place[0])
    for (_, end, fault, _), (begin, *_) in zip(places, places[1:]):
        if begin < end:
            raise FaultError(f"{fault.file}: `{fault.before}` overlaps with another fault.")
    for begin, end, fault, number in reversed(places):
        source = source[:begin] + fault.replacement(number) + source[end:]
    return '#include "planted_fault.h"\n#line 1\n' + source if places else source


def programsFor(file):
    folders = [folder for folder in PROGRAMS if file.startswith(folder + "/")]
    if not folders:
        raise FaultError(f"{file}: no program is known to test it.")
    return PROGRAMS[max(folders, key=len)]


def readJson(path, otherwise):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else otherwise


def writeJson(path, value):
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(value, indent=1), encoding="utf-8")
    scratch.replace(path)


class Tree:
    """A copy of the source tree in `folder`, with the faults, and its build."""

    def __init__(self, folder, source=ROOT):
        self.root = folder
        self.source = source
        self.bin = folder / "build" / "release" / "bin"
        self.numbers = readJson(folder / "numbers.json", {})

    def number(self, fault):
        """The number of a fault. It stays, so that no other file is compiled anew for a new fault."""
        return self.numbers.setdefault(fault.key, len(self.numbers) + 1)

    def write(self, faults):
        """Brings the copy up to date; files that are right are not touched."""
        byFile = collections.defaultdict(list)
        for fault in faults:
            byFile[fault.file].append((fault, self.number(fault)))
        wanted = {path.relative_to(self.source).as_posix() for path in checkout.files(self.source)}
        for name in sorted(wanted):
            content = (self.source / name).read_bytes()
            if name in byFile:
                content = plant(content.decode(), byFile[name]).encode()
            self.put(name, content, self.source / name)
        self.put("src/planted_fault.h", (HERE / "planted_fault.h").read_bytes())
        for name in readJson(self.root / "files.json", []):
            if name not in wanted:
                (self.root / name).unlink(missing_ok=True)
        writeJson(self.root / "files.json", sorted(wanted))
        writeJson(self.root / "numbers.json", self.numbers)

    def put(self, name, content, like=None):
        target = self.root / name
        if target.is_file() and target.read_bytes() == content:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if like is not None:
            shutil.copymode(like, target)

    def build(self, programs):
        targets = {name for name in programs if not name.endswith(".py")}
        if len(targets) < len(set(programs)):
            targets.update(PYTHON_TARGETS)
        subprocess.run(["tools/dev/build.sh", "release", *sorted(targets)], cwd=self.root, check=True,
                       stdout=sys.stderr)

    def digest(self, program):
        """Changes whenever the program or a library of the build does."""
        digest = hashlib.sha256()
        libraries = sorted((self.bin.parent / "lib").glob("*.so"))
        tool = [self.bin / "hearth"] if program.endswith(".py") else []
        own = self.root / program if program.endswith(".py") else self.bin / program
        for path in [own, *tool, *libraries]:
            if path.is_file():
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:16]

    def suites(self, program):
        """The suites of a program, which are run one at a time; a Python file is one by itself."""
        if program.endswith(".py"):
            return [program]
        listing = subprocess.run([self.bin / program, "--gtest_list_tests"], check=True, cwd=self.root,
                                 capture_output=True, text=True).stdout
        return [f"{program} {line.split('.')[0]}" for line in listing.splitlines()
                if re.match(r"[\w/]+\.( |$)", line)]

    def run(self, suite, variables, processorSeconds, elapsedSeconds=ELAPSED_SECONDS):
        """What became of a suite: "" if it passes, else how it failed; and its processor time."""
        program, _, name = suite.partition(" ")
        with tempfile.TemporaryDirectory(prefix="hearth-planted-") as scratch:
            if name:
                command = [str(self.bin / program), f"--gtest_filter={name}.*", "--gtest_fail_fast",
                           "--gtest_brief=1"]
            else:
                command = [sys.executable, "tools/run_unittest.py", program, f"{scratch}/report.json"]
            environment = {**os.environ, "HEARTH_STORE": f"{scratch}/store",
                           "XDG_STATE_HOME": f"{scratch}/state", "TMPDIR": scratch, **variables}
            environment.pop("LD_LIBRARY_PATH", None)
            command = ["prlimit", f"--as={MOST_MEMORY}", f"--cpu={int(processorSeconds)}", "--core=0",
                       *command]
            before = os.times()
            process = subprocess.Popen(command, cwd=self.root, env=environment, start_new_session=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                code = process.wait(elapsedSeconds)
            except subprocess.TimeoutExpired:
                code = None
            try:  # also its children, if it left any
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            after = os.times()
        seconds = (after.children_user + after.children_system
                   - before.children_user - before.children_system)
        if code is None or code in (-signal.SIGXCPU, -signal.SIGKILL):
            return "does not end", seconds
        if code < 0:
            return "crashes", seconds
        return "fails" if code else "", seconds


class Reach:
    """Which suites reach which faults, and what they take. Kept in reach.json of the tree."""

    def __init__(self, tree):
        self.tree = tree
        self.path = tree.root / "reach.json"
        self.programs = readJson(self.path, {})

    def find(self, program):
        digest = self.tree.digest(program)
        if self.programs.get(program, {}).get("digest") == digest:
            return
        suites = {}
        names = self.tree.suites(program)
        for index, suite in enumerate(names, 1):
            with tempfile.NamedTemporaryFile(prefix="hearth-reached-") as file:
                file.truncate(1 + max(self.tree.numbers.values(), default=0))
                outcome, seconds = self.tree.run(suite, {"HEARTH_PLANTED_REACHED": file.name}, 600)
                bytesOfFaults = pathlib.Path(file.name).read_bytes()
            suites[suite] = {"outcome": outcome, "seconds": round(seconds, 3),
                             "reached": [number for number, byte in enumerate(bytesOfFaults) if byte]}
            say(f"reach {index}/{len(names)} {suite}: {len(suites[suite]['reached'])} faults, {seconds:.1f} s"
                + (f"; {outcome} without a fault" if outcome else ""))
        # Another run may have added programs meanwhile.
        self.programs = {**readJson(self.path, {}), **self.programs,
                         program: {"digest": digest, "suites": suites}}
        writeJson(self.path, self.programs)

    def suitesFor(self, fault, number):
        """(suite, seconds) of the suites that reach a fault and pass without it: the one that found it last,
        then program by program, the shortest first."""
        found = []
        for rank, program in enumerate(programsFor(fault.file)):
            for suite, facts in self.programs.get(program, {}).get("suites", {}).items():
                if number in facts["reached"] and not facts["outcome"]:
                    found.append((suite != fault.found, rank, facts["seconds"], suite))
        return [(suite, seconds) for _, _, seconds, suite in sorted(found)]


def say(text):
    print(text, file=sys.stderr, flush=True)


def tryFault(tree, fault, number, suites, seconds):
    """The suite that finds a fault, or "" and why none did. A suite that fails must pass without the fault
    straight afterwards: what fails on a busy machine anyway is no find."""
    if not suites:
        return "", "no suite reaches it"
    spent = 0
    for suite, usual in suites:
        if spent > seconds:
            return "", f"not found within {seconds} s"
        limit = max(LEAST_PROCESSOR_SECONDS, PROCESSOR_FACTOR * usual)
        outcome, used = tree.run(suite, {"HEARTH_PLANTED_FAULT": str(number)}, limit)
        spent += used
        if outcome and not tree.run(suite, {}, limit)[0]:
            return suite, outcome
    return "", f"{len(suites)} suites reach it and pass"


class Results:
    """What was found out, by the keys of faults. Kept in results.json of the tree."""

    def __init__(self, folder):
        self.path = folder / "results.json"
        self.byKey = readJson(self.path, {})

    def add(self, fault, suite, how):
        # Another run may have added results meanwhile.
        self.byKey = {**self.byKey, **readJson(self.path, {}), fault.key: {"suite": suite, "how": how}}
        writeJson(self.path, self.byKey)

    def state(self, root, fault):
        if isGone(root, fault):
            return GONE
        result = self.byKey.get(fault.key)
        if result is None:
            return FOUND if fault.found else NOT_RUN
        if result["suite"]:
            return FOUND
        return EXPLAINED if fault.explained else OPEN


def selected(lists, only):
    return [fault for faults in lists.values() for fault in faults
            if not only or any(fnmatch.fnmatch(fault.file, glob) for glob in only)]


def run(options, lists):
    everything = [fault for faults in lists.values() for fault in faults if not isGone(ROOT, fault)]
    wanted = [fault for fault in selected(lists, options.only) if not isGone(ROOT, fault)]
    # Faults of other folders would only be compiled.
    planted = everything if options.all else wanted
    tree = Tree(options.folder)
    tree.root.mkdir(parents=True, exist_ok=True)
    tree.write(planted)
    programs = sorted({program for fault in wanted for program in programsFor(fault.file)
                       if not options.programs or program in options.programs})
    tree.build(programs)
    reach = Reach(tree)
    for program in programs:
        reach.find(program)
    results = Results(tree.root)
    for index, fault in enumerate(wanted, 1):
        earlier = results.byKey.get(fault.key)
        if earlier and not options.again and (earlier["suite"] or not options.open):
            continue
        suite, how = tryFault(tree, fault, tree.number(fault), reach.suitesFor(fault, tree.number(fault)),
                              options.seconds)
        results.add(fault, suite, how)
        say(f"{index}/{len(wanted)} {fault.file}: {(suite + ' ' if suite else 'NOT FOUND: ') + how}")
    if options.update:
        for path, faults in lists.items():
            for fault in faults:
                result = results.byKey.get(fault.key)
                if result:
                    fault.found = result["suite"]
            writeList(path, faults)
    report(options, lists)


def show(options, lists):
    for fault in selected(lists, options.only):
        state = "GONE: " if isGone(ROOT, fault) else ""
        print(f"{state}{fault.file}: `{fault.before}` as `{fault.after}`"
              + (f" ({fault.explained})" if fault.explained else ""))


def report(options, lists):
    """The table by place, what is explained, and what is open."""
    results = Results(options.folder)
    rows = collections.defaultdict(collections.Counter)
    byState = collections.defaultdict(list)
    for fault in selected(lists, options.only):
        state = results.state(ROOT, fault)
        byState[state].append(fault)
        if state != GONE:
            for row in (fault.place, "all"):
                rows[row].update(["planted", state])
    columns = (FOUND, EXPLAINED, OPEN, NOT_RUN)
    print("| place | planted | " + " | ".join(columns) + " |\n|---|---|---|---|---|---|")
    for place in sorted(rows, key=lambda row: (row == "all", row)):
        counts = rows[place]
        name = place if place == "all" else f"`{place}`"
        print(f"| {name} | " + " | ".join(str(counts[state]) for state in ("planted", *columns)) + " |")
    for state, title in ((OPEN, "Open"), (EXPLAINED, "Explained"), (GONE, "Gone")):
        if byState[state]:
            print(f"\n{title}:")
        for fault in byState[state]:
            how = results.byKey.get(fault.key, {}).get("how", "")
            print(f"- {fault.file}: `{fault.before}` as `{fault.after}`: "
                  f"{fault.explained if state == EXPLAINED else how}")
    return byState


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["list", "run", "report"])
    parser.add_argument("--only", nargs="+", metavar="GLOB", help="faults of these files only")
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="run these programs only")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "planted",
                        help="the copy of the tree and the results (build/planted)")
    parser.add_argument("--seconds", type=float, default=600,
                        help="processor time after which a fault counts as not found (600)")
    parser.add_argument("--all", action="store_true",
                        help="with --only: plant the others, too, so that they need no build later")
    parser.add_argument("--open", action="store_true", help="try once more what was not found")
    parser.add_argument("--again", action="store_true", help="try everything once more")
    parser.add_argument("--update", action="store_true", help="write what was found into faults/*.json")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    try:
        {"list": show, "run": run, "report": report}[options.command](options, readLists(HERE / "faults"))
    except FaultError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    os.environ.setdefault("HEARTH_TEST_DATA", str(ROOT.parent / "shared"))
    main()
