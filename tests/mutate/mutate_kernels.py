#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small faults in the fast kernels, one at a time, and shows which the comparisons find.

usage, inside ./dev shell: mutate_kernels.py [--count N] [--seed N] [--files GLOB...] [--folder DIR]

Each fault is one token of one file: a constant, a bound, a sign, a product, a condition, a least or
a greatest. The tree is copied to a folder (build/mutants), where the programs that compare kernels
with the reference device are built with each fault in turn and run; a crash and a hang are findings,
too. What was tried is in results.jsonl of that folder, where a run that is repeated goes on. The
standard output is the table of docs/testing.md and a list of the faults that nobody found: each of
them changes no result, or a test is missing. On two processors a fault that the first program finds
takes 20 seconds, and one that nobody finds five minutes.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "isa"))

import with_isa  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ["src/drivers/cpu/kernels/*", "src/drivers/cpu/microkernels/*",
           "src/drivers/cpu/lowering/*", "src/ops/*"]
# The rest of src/ops checks arguments and infers shapes, which is the same code for all devices.
OPS = {"axis_rows.h", "batch_matmul.cc", "binary_arithmetic.cc", "broadcast_rows.h",
       "byte_vectors.h", "concatenation.cc", "conv_2d.cc", "depthwise_conv_2d.cc", "dot_product.h",
       "dynamic_quantization.cc", "elementwise.h", "fully_connected.cc", "pool_2d.cc", "reduce.cc",
       "resize_bilinear.cc", "resize_nearest_neighbor.cc", "softmax.cc", "softmax_table.cc",
       "strided_copy.cc", "transpose.cc", "transpose_conv_2d.cc", "weight_rows.cc"}
# Each without its tests that do not compare kernels; those that fail quickest come first.
PROGRAMS = [("random_graph_test", "*"),
            ("driver_cpu_test", "-*Session*:*Damaged*:*ModelCache*:*Lost*:*ChangedModel*:*Stored*:"
                                "*Plan*:*CacheExplanation*:*Cached*:*Recorded*:*SeenKeys*"),
            ("ops_test", "*"), ("nnapi_conformance_test", "*hearth_cpu*")]
# Limits of each program. The slowest takes 80 seconds of processor time, which a busy machine does not
# stretch; a program that waits for ever uses none, hence the limit on elapsed time.
PROCESSOR_SECONDS = 600
SECONDS = 3600
MOST_MEMORY = 16 << 30
# The programs run as the processor is, and then with less: a kernel for AVX2 is not used where there
# is AVX-512, nor one for VNNI where there is AMX.
LEVELS = ("avx512vnni", "avx2")
NOT_COMPILED = "not compiled"

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
    # Some faults do not compile; others replace them.
    return drawn[:count + count // 4]


def limitProcess():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 5))


class Tree:
    """A copy of the source tree with its own build folder."""

    def __init__(self, folder):
        self.root = folder / "tree"
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

    def make(self, *targets):
        command = [str(self.root / "tools/dev/build.sh"), "release", *targets]
        return subprocess.run(command, check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def finding(self):
        """The program that fails, and how; None when all pass.

        Most faults are found by the first program, so the others are built when it is their turn.
        """
        for program, tests in PROGRAMS:
            if not self.make(program):
                return NOT_COMPILED
            found = self.findingOf(program, tests, None)
            if found is not None:
                return found
        for level in LEVELS if with_isa.isPossible() and self.make("isa_mask") else ():
            for program, tests in PROGRAMS:
                found = self.findingOf(program, tests, level)
                if found is not None:
                    return f"{found} at {level}"
        return None

    def findingOf(self, program, tests, level):
        environment = None
        if level is not None:
            environment = {**with_isa.environment(level),
                           "LD_AUDIT": str(self.build / "lib" / "libisa_mask.so")}
        command = [str(self.build / "bin" / program), f"--gtest_filter={tests}",
                   "--gtest_fail_fast", "--gtest_brief=1"]
        try:
            run = subprocess.run(command, cwd=self.root, check=False, timeout=SECONDS,
                                 capture_output=True, env=environment, preexec_fn=limitProcess)
        except subprocess.TimeoutExpired:
            return f"{program} hangs"
        if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"{program} hangs"
        if run.returncode != 0:
            return program if run.returncode > 0 else f"{program} crashes"
        return None


def report(results):
    """The table of findings by folder and kind, and the faults that no program found."""
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        if result["finding"] == NOT_COMPILED:
            continue
        for row in (str(pathlib.Path(result["file"]).parent), f"kind: {result['kind']}", "all"):
            rows[row]["planted"] += 1
            rows[row]["found"] += result["finding"] is not None
    print("| place | planted | found |\n|---|---|---|")
    for row in sorted(rows):
        print(f"| {row} | {rows[row]['planted']} | {rows[row]['found']} |")
    for result in results:
        if result["finding"] is None:
            print(f"{result['file']}:{result['line']}: `{result['old'].strip()}` as "
                  f"`{result['new'].strip()}`: {result['text']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="faults to plant (200)")
    parser.add_argument("--seed", type=int, default=1, help="which faults are drawn (1)")
    parser.add_argument("--files", nargs="+", default=KERNELS, help="globs from the root")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants")
    options = parser.parse_args()
    tree = Tree(options.folder)
    log = options.folder / "results.jsonl"
    results = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {(result["file"], result["offset"], result["new"]) for result in results}
    faults = draw(kernelFiles(tree.root, options.files), tree.root, options.count, options.seed)
    broken = tree.finding()
    if broken is not None:
        print(f"Without a fault {broken} fails.")
        return 1
    with log.open("a", encoding="utf-8") as out:
        for fault in faults:
            if sum(result["finding"] != NOT_COMPILED for result in results) >= options.count:
                break
            if (fault.file, fault.offset, fault.new) in done:
                continue
            path = tree.root / fault.file
            source = path.read_text(encoding="utf-8")
            path.write_text(planted(source, fault), encoding="utf-8")
            try:
                finding = tree.finding()
            finally:
                path.write_text(source, encoding="utf-8")
            text = source.split("\n")[fault.line - 1].strip()
            results.append({**fault._asdict(), "finding": finding, "text": text})
            print(json.dumps(results[-1]), file=out, flush=True)
            print(f"{len(results)}: {fault.file}:{fault.line} {fault.kind}: "
                  f"{finding or 'NOT FOUND'}", file=sys.stderr, flush=True)
    report(results)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("HEARTH_TEST_DATA", str(ROOT.parent / "shared"))
    sys.exit(main())
