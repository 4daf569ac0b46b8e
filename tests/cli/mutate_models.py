#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of real models through `hearth inspect` and `hearth run --timeout 10`.

Every process must end by itself with exit code 0, 1 or 2 and without a sanitizer's report. What
does not is kept in the folder mutation_failures, with the command that shows it. The copies follow
from their numbers alone, so that a failure can be repeated with --first and --count 1.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
         0xFFFFFFFF, 0x7FC00000, 0x7F800000)
REPORT = re.compile(r"Sanitizer|runtime error:|terminate called|Assertion")
# Models above this size are slow under sanitizers and take part more rarely.
LARGE = 1 << 20
# Far above the time limit of the runs: only a hang gets here.
HANG_SECONDS = 120


def models(folder):
    """Paths, small ones several times, so that most copies are of models that run quickly."""
    found = []
    for path in sorted(folder.glob("*.tflite")):
        found += [path] * (1 if path.stat().st_size > LARGE else 6)
    return found


def place(generator, size):
    """An offset: anywhere, or near an end of the file, where its tables are."""
    near = min(size, 16384)
    kind = generator.randrange(3)
    if kind == 0:
        return generator.randrange(size)
    offset = generator.randrange(near)
    return offset if kind == 1 else size - 1 - offset


def damage(generator, data):
    for _ in range(generator.choice((1, 1, 1, 2, 4, 8))):
        size = len(data)
        if size < 16:
            return
        at = place(generator, size)
        kind = generator.randrange(8)
        if kind <= 2:
            data[at] ^= 1 << generator.randrange(8)
        elif kind <= 4:
            at = min(at & ~3, size - 4)
            word = generator.choice(WORDS) if kind == 3 else generator.getrandbits(32)
            data[at:at + 4] = word.to_bytes(4, "little")
        elif kind == 5:
            at = min(at, size - 4)
            word = int.from_bytes(data[at:at + 4], "little") + generator.choice((-4, -1, 1, 4, 16))
            data[at:at + 4] = (word & 0xFFFFFFFF).to_bytes(4, "little")
        elif kind == 6:
            length = generator.randrange(1, 64)
            source = place(generator, size)
            data[at:at + length] = data[source:source + length]
        elif generator.randrange(4) == 0:
            del data[at:]


def execute(command):
    """A sentence on what is wrong with how the command ends, or None."""
    options = "detect_stack_use_after_return=1:allocator_may_return_null=1:exitcode=99"
    environment = {**os.environ, "ASAN_OPTIONS": options, "UBSAN_OPTIONS": "exitcode=99"}
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=HANG_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return f"hangs for {HANG_SECONDS} s"
    text = run.stderr.decode(errors="replace")
    if run.returncode not in (0, 1, 2):
        return f"ends with {run.returncode}: {text[-4000:]}"
    if REPORT.search(text):
        return f"reports {text[-4000:]}"
    if run.returncode != 0 and text.count("\n") != 1:
        return f"says {text!r}"
    return None


def check(arguments, paths, number):
    """Sentences about copy `number`."""
    generator = random.Random(number)
    path = paths[generator.randrange(len(paths))]
    data = bytearray(path.read_bytes())
    damage(generator, data)
    device = generator.choice(("hearth-cpu", "nnapi-reference"))
    wrong = []
    with tempfile.NamedTemporaryFile(prefix="hearth-mutation-", suffix=".tflite") as copy:
        copy.write(data)
        copy.flush()
        for command in ([arguments.hearth, "inspect", copy.name],
                        [arguments.hearth, "run", copy.name, "--random-input", "1", "--timeout",
                         "10", "--max-activation-bytes", "1G", "--device", device]):
            sentence = execute(command)
            if sentence is None:
                continue
            kept = pathlib.Path(arguments.keep) / f"{number}_{path.name}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(data)
            command[2] = str(kept)
            wrong.append(f"{' '.join(command)} {sentence}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("hearth", help="the command to test")
    parser.add_argument("--first", type=int, default=0, help="number of the first copy")
    parser.add_argument("--count", type=int, help="how many copies (500; 20000 in the long mode)")
    parser.add_argument("--keep", default="mutation_failures", help="folder for what fails")
    arguments = parser.parse_args()
    data = os.environ.get("HEARTH_TEST_DATA")
    if not data:
        print("HEARTH_TEST_DATA is not set: nothing is tested.")
        return 77
    count = arguments.count
    if count is None:
        count = 20_000 if os.environ.get("HEARTH_TEST_LONG") == "1" else 500
    paths = models(pathlib.Path(data) / "data" / "models")
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        numbers = range(arguments.first, arguments.first + count)
        for sentences in pool.map(lambda number: check(arguments, paths, number), numbers):
            for sentence in sentences:
                print(sentence, flush=True)
            wrong += sentences
    print(f"{count} damaged copies: {len(wrong)} commands fail.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
