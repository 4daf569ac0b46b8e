#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small faults in the fast kernels, one at a time, and shows which the comparisons find.

usage, inside ./dev shell: mutate_kernels.py [--count N] [--seed N] [--files GLOB...] [--folder DIR]
                                             [--jobs N] [--report]

Each fault is one token of one file: a constant, a bound, a sign, a product, a condition, a least or
a greatest. The tree is copied to a folder (build/mutants), where the programs that compare kernels
with the reference device are built with each fault in turn and run; a crash and a hang are findings,
too. What was tried is in results.jsonl of that folder, where a run that is repeated goes on. The
standard output is the table of docs/testing.md and a list of the faults that nobody found: each of
them changes no result, or a test is missing. A fault that leaves the compiled code as it was is not
counted. First all faults go through the quick programs, which find nearly all that is found; what is
left goes through the slow ones, then through the build with sanitizers, which find accesses that
change no result. That takes five seconds of processor time for a fault that the first program finds,
and three minutes for one that nobody finds.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "isa"))

import with_isa  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ["src/drivers/cpu/kernels/*", "src/drivers/cpu/microkernels/*/*",
           "src/drivers/cpu/microkernels/*/*/*", "src/drivers/cpu/lowering/*", "src/ops/*"]
# The rest of src/ops checks arguments and infers shapes, which is the same code for all devices.
OPS = {"axis_rows.h", "batch_matmul.cc", "binary_arithmetic.cc", "broadcast_rows.h",
       "byte_vectors.h", "concatenation.cc", "conv_2d.cc", "depthwise_conv_2d.cc", "dot_product.h",
       "dynamic_quantization.cc", "elementwise.h", "fully_connected.cc", "pool_2d.cc", "reduce.cc",
       "resize_bilinear.cc", "resize_nearest_neighbor.cc", "softmax.cc", "softmax_table.cc",
       "strided_copy.cc", "transpose.cc", "transpose_conv_2d.cc", "weight_rows.cc"}
# The programs that compare kernels, each without its tests that do not, at the level of instruction
# sets at which they run (none: all that the processor has). The first pass has all that is quick. The
# second one has lower levels, too: a kernel for AVX2 is not used where there is AVX-512, nor one for
# VNNI where there is AMX. The third one is the build with sanitizers. The modes of the conformance test
# differ in how a model is run, not in its kernels.
RANDOM = ("random_graph_test", "*")
DRIVER = ("driver_cpu_test", "-*Session*:*Damaged*:*ModelCache*:*Lost*:*ChangedModel*:*Stored*:*Plan*:"
                             "*CacheExplanation*:*Cached*:*Recorded*:*SeenKeys*")
SANITIZERS = "asan"  # a preset that stands where others have a level
PASSES = (((*RANDOM, None), (*DRIVER, None), ("ops_test", "*", None)),
          ((*DRIVER, "avx2"), (*DRIVER, "avx_vnni"), (*DRIVER, "avx512vnni"), (*RANDOM, "avx2"),
           (*RANDOM, "avx512vnni"), ("nnapi_conformance_test", "*hearth_cpu_sync", None)),
          ((DRIVER[0], DRIVER[1] + ":*LargeLayerTest*", SANITIZERS), ("ops_test", "*", SANITIZERS)))
# Limits of each program. The slowest takes 10 seconds of processor time, which a busy machine does not
# stretch; a program that waits for ever uses none, hence the limit on elapsed time.
PROCESSOR_SECONDS = 200
SECONDS = 3600
MOST_MEMORY = 16 << 30
NOT_COMPILED = "not compiled"
SAME_CODE = "same object code"
NOT_PLANTED = (NOT_COMPILED, SAME_CODE)

Fault = collections.namedtuple("Fault", "file line kind old new offset")

SWAPS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " + ": " - ", " - ": " + ",
         " += ": " -= ", " * ": " + ", " && ": " || ", " || ": " && ", " == ": " != ",
         " != ": " == ", "std::min": "std::max", "std::max": "std::min", "std::min<": "std::max<",
         "std::max<": "std::min<", "true": "false", "false": "true"}
KINDS = {"<": "bound", ">": "bound", "+": "sign", "-": "sign", "*": "product", "&": "condition",
         "|": "condition", "=": "condition", "!": "condition", "s": "least or greatest",
         "t": "condition", "f": "condition"}
TOKEN = re.compile(r" (?:<=?|>=?|\+=?|-|\*|&&|\|\||[=!]=) |std::(?:min|max)\b|\b(?:true|false)\b"
                   r"|(?<![\w.])\d+(?:\.\d+f?)?(?![\w.])")
# Tokens that matter to the compiler or a reader, but to no computation.
UNTOUCHED = re.compile(r"^\s*(#|static_assert|template|using|namespace|return fail|alignas)|assert\(")


def withoutText(source):
    """The source with blanks instead of comments, strings and characters."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", blank, source,
                  flags=re.DOTALL)


def changed(token):
    if token in SWAPS:
        return KINDS[token.strip()[0]], SWAPS[token]
    if "." in token:
        suffix = "f" if token.endswith("f") else ""
        return "constant", f"{float(token.rstrip('f')) * 1.5 + 0.25}{suffix}"
    return "constant", str(int(token) + 1)


def faultsOf(name, source):
    """All faults of a file, in the order of the source."""
    faults = []
    start = 0
    for number, line in enumerate(withoutText(source).split("\n"), 1):
        if not UNTOUCHED.search(line):
            for match in TOKEN.finditer(line):
                kind, new = changed(match[0])
                faults.append(Fault(name, number, kind, match[0], new, start + match.start()))
        start += len(line) + 1
    return faults


def planted(source, fault):
    end = fault.offset + len(fault.old)
    if source[fault.offset:end] != fault.old:
        raise ValueError(f"{fault.file} has changed since its faults were listed.")
    return source[:fault.offset] + fault.new + source[end:]


def kernelFiles(root, globs):
    files = sorted({path for glob in globs for path in root.glob(glob)
                    if path.suffix in (".cc", ".h") and not path.stem.endswith("_test")})
    return [path for path in files
            if path.parent != root / "src/ops" or path.name in OPS or globs != KERNELS]


def draw(files, root, count, seed):
    """`count` faults on different lines, spread over the files in proportion to their length."""
    faults = []
    for path in files:
        faults += faultsOf(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    random.Random(seed).shuffle(faults)
    drawn, lines = [], set()
    for fault in faults:
        if (fault.file, fault.line) in lines:
            continue
        lines.add((fault.file, fault.line))
        drawn.append(fault)
    # Some faults do not compile or leave the compiled code as it was; others replace them.
    return drawn[:count + count // 2]


class Tree:
    """A copy of the source tree at `root` with its own build folder."""

    def __init__(self, root):
        self.root = root
        listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                 check=True, capture_output=True, text=True).stdout
        for name in listing.splitlines():
            source, target = ROOT / name, self.root / name
            if not source.is_file():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != source.read_bytes():
                shutil.copy2(source, target)
        self.build = self.root / "build" / "release"
        self.faultless = None

    def make(self, *targets, preset="release"):
        command = [str(self.root / "tools/dev/build.sh"), preset, *targets]
        return subprocess.run(command, check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def objects(self):
        """A digest of the object files of the kernels."""
        digest = hashlib.sha256()
        for folder in ("src/drivers/cpu", "src/ops"):
            for path in sorted((self.build / folder / "CMakeFiles").glob("hearth_*.dir/**/*.o")):
                digest.update(path.read_bytes())
        return digest.digest()

    def check(self, number):
        """What pass `number` finds although no fault is planted. Once before the others."""
        self.faultless = None
        finding = self.finding(number)
        self.faultless = self.objects() if self.make(RANDOM[0]) else None
        return finding

    def findingWith(self, fault, number):
        """What pass `number` finds with the fault planted."""
        path = self.root / fault.file
        source = path.read_text(encoding="utf-8")
        path.write_text(planted(source, fault), encoding="utf-8")
        try:
            return self.finding(number)
        finally:
            path.write_text(source, encoding="utf-8")

    def finding(self, number):
        """The program of a pass that fails, and how; None when all pass.

        Most faults are found by the first program, so the others are built when it is their turn.
        """
        if not self.make(RANDOM[0]):
            return NOT_COMPILED
        if self.objects() == self.faultless:
            return SAME_CODE
        for program, tests, level in PASSES[number]:
            if level == SANITIZERS:
                isMade = self.make(program, preset=SANITIZERS)
            elif level is None or (with_isa.isPossible() and self.make("isa_mask")):
                isMade = self.make(program)
            else:
                continue
            if not isMade:
                return NOT_COMPILED
            found = self.findingOf(program, tests, level)
            if found is not None:
                return found if level is None else f"{found} at {level}"
        return None

    def findingOf(self, program, tests, level):
        environment = None
        programs = self.build / "bin"
        limits = [f"--as={MOST_MEMORY}", f"--cpu={PROCESSOR_SECONDS}"]
        if level == SANITIZERS:
            programs = self.root / "build" / SANITIZERS / "bin"
            del limits[0]  # they reserve all addresses
        elif level is not None:
            environment = {**with_isa.environment(level),
                           "LD_AUDIT": str(self.build / "lib" / "libisa_mask.so")}
        command = ["prlimit", *limits, str(programs / program), f"--gtest_filter={tests}",
                   "--gtest_fail_fast", "--gtest_brief=1"]
        try:
            run = subprocess.run(command, cwd=self.root, check=False, timeout=SECONDS,
                                 capture_output=True, env=environment)
        except subprocess.TimeoutExpired:
            return f"{program} hangs"
        if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"{program} hangs"
        if run.returncode != 0:
            return program if run.returncode > 0 else f"{program} crashes"
        return None


class Campaign:
    """What was tried, kept in a file. Safe for threads."""

    def __init__(self, log, faults, count):
        self.log = log
        self.count = count
        self.faults = faults
        self.lock = threading.Lock()
        self.results = {}
        self.taken = set()
        for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
            result = json.loads(line)
            self.results[self.key(result)] = result

    @staticmethod
    def key(result):
        return result["file"], result["offset"], result["new"]

    def isOpen(self, key, number):
        """Whether a fault has to go through pass `number`."""
        result = self.results.get(key)
        if result is None:
            return number == 0
        return result["finding"] is None and result["passes"] == number

    def next(self, number):
        """A fault that has to go through pass `number`; None when there is none left."""
        with self.lock:
            planned = sum(result["finding"] not in NOT_PLANTED for result in self.results.values())
            if number == 0 and planned + len(self.taken) >= self.count:
                return None
            for fault in self.faults:
                key = self.key(fault._asdict())
                if key not in self.taken and self.isOpen(key, number):
                    self.taken.add(key)
                    return fault
        return None

    def add(self, fault, text, finding, number):
        result = {**fault._asdict(), "finding": finding, "text": text, "passes": number + 1}
        with self.lock, self.log.open("a", encoding="utf-8") as out:
            self.taken.discard(self.key(result))
            self.results[self.key(result)] = result
            print(json.dumps(result), file=out)
            print(f"{len(self.results)}, pass {number + 1}: {fault.file}:{fault.line} {fault.kind}: "
                  f"{finding or 'NOT FOUND'}", file=sys.stderr, flush=True)

    def work(self, tree, number):
        """Takes faults through pass `number` until there are none left."""
        while (fault := self.next(number)) is not None:
            text = (tree.root / fault.file).read_text(encoding="utf-8").split("\n")[fault.line - 1]
            self.add(fault, text.strip(), tree.findingWith(fault, number), number)


def report(results):
    """The table of findings by folder and kind, and the faults that no program found."""
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        if result["finding"] in NOT_PLANTED:
            continue
        for row in (str(pathlib.Path(result["file"]).parent), f"kind: {result['kind']}", "all"):
            rows[row]["planted"] += 1
            rows[row]["found"] += result["finding"] is not None
    print("| place | planted | found |\n|---|---|---|")
    for row in sorted(rows):
        print(f"| {row} | {rows[row]['planted']} | {rows[row]['found']} |")
    for result in results:
        if result["finding"] is None:
            left = "" if result["passes"] == len(PASSES) else " (slow programs not run yet)"
            print(f"{result['file']}:{result['line']}: `{result['old'].strip()}` as "
                  f"`{result['new'].strip()}`: {result['text']}{left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="faults to plant (200)")
    parser.add_argument("--seed", type=int, default=1, help="which faults are drawn (1)")
    parser.add_argument("--files", nargs="+", default=KERNELS, help="globs from the root")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--jobs", type=int, default=1, help="faults to try at a time (1)")
    parser.add_argument("--report", action="store_true", help="only show what was found so far")
    options = parser.parse_args()
    trees = [Tree(options.folder / f"tree{i or ''}") for i in range(options.jobs)]
    root = trees[0].root
    faults = draw(kernelFiles(root, options.files), root, options.count, options.seed)
    campaign = Campaign(options.folder / "results.jsonl", faults, options.count)
    for number in () if options.report else range(len(PASSES)):
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as threads:
            broken = [found for found in threads.map(lambda tree: tree.check(number), trees)
                      if found is not None]
            if broken:
                print(f"Without a fault {broken[0]} fails.")
                return 1
            list(threads.map(lambda tree: campaign.work(tree, number), trees))
    report(list(campaign.results.values()))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("HEARTH_TEST_DATA", str(ROOT.parent / "shared"))
    sys.exit(main())
