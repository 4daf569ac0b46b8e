#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of real models through `hearth inspect` and `hearth run --timeout 10`.

Every process must end by itself with exit code 0, 1 or 2, say one line when it fails, and make no
sanitizer report. A copy that shows otherwise is kept, and the command that repeats it printed. A
copy follows from its number and the models alone, so that --first N --count 1 makes it again.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

COUNT = 500
LONG_COUNT = 20_000
REPORT = re.compile(r"Sanitizer|runtime error:|terminate called|Assertion")
# Larger models are slow under sanitizers, so they are chosen less often.
LARGE = 1 << 20
SMALL_SHARE = 4
# Far above the time limit of the runs: only a process that hangs takes this long.
HANG_SECONDS = 120
# Tables lie at the start and the end of a file, with weights between them.
TABLE_BYTES = 16384
# Numbers for which comparisons and sums often go wrong, and NaN, infinity and -1.0.
TELLING_WORDS = (0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF,
                 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 0xBF800000)
DELTAS = (-64, -16, -8, -4, -1, 1, 4, 8, 16, 64)


def flipBits(rng, data, place):
    for _ in range(rng.randint(1, 4)):
        data[place()] ^= 1 << rng.randrange(8)


def setBytes(rng, data, place):
    at = place()
    length = min(rng.randint(1, 16), len(data) - at)
    data[at:at + length] = bytes([rng.choice((0, 0xFF, 0x7F, 0x80, rng.randrange(256)))]) * length


def editWord(rng, data, place):
    """Offsets and vector lengths are little-endian words: replaces one, or changes it a little."""
    at = min(place() & ~3, len(data) - 4)
    word = struct.unpack_from("<I", data, at)[0]
    kind = rng.randrange(3)
    if kind == 0:
        word = rng.choice(TELLING_WORDS)
    elif kind == 1:
        word = rng.getrandbits(32)
    else:
        word = (word + rng.choice(DELTAS)) & 0xFFFFFFFF
    struct.pack_into("<I", data, at, word)


def copyChunk(rng, data, place):
    source, target = place(), place()
    length = min(rng.choice((4, 8, 16, 64, 256)), len(data) - max(source, target))
    data[target:target + length] = data[source:source + length]


def truncate(rng, data, place):
    del data[max(place(), 1):]


DAMAGES = (flipBits, setBytes, editWord, copyChunk, truncate)
WEIGHTS = (6, 3, 8, 2, 1)


def damaged(rng, original):
    data = bytearray(original)

    def place():
        """An offset: anywhere in the file, or near one of its ends."""
        size = len(data)
        kind = rng.randrange(5)
        if kind == 0:
            return rng.randrange(size)
        offset = rng.randrange(min(size, TABLE_BYTES))
        return offset if kind <= 2 else size - 1 - offset

    for damage in rng.choices(DAMAGES, WEIGHTS, k=rng.choice((1, 1, 1, 2, 4, 8))):
        if len(data) >= 16:
            damage(rng, data, place)
    return bytes(data)


def environment():
    """The command's environment: the libraries of its own build instead of the shell's, and a
    special exit code for the sanitizers."""
    inherited = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return {**inherited,
            "ASAN_OPTIONS": "detect_stack_use_after_return=1:allocator_may_return_null=1:"
                            "exitcode=99",
            "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99"}


def complaint(command):
    """What is wrong with how a command ended; None when nothing is."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=environment(),
                          start_new_session=True) as process:
        try:
            _, errors = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            # The command leads its own process group, so the signal reaches its children, too.
            os.killpg(process.pid, signal.SIGKILL)
            return f"hangs for {HANG_SECONDS} s"
    text = errors.decode(errors="replace")
    if process.returncode not in (0, 1, 2):
        return f"ends with {process.returncode}: {text[-4000:]}"
    if REPORT.search(text):
        return f"reports {text[-4000:]}"
    if process.returncode != 0 and text.count("\n") != 1:
        return f"says {text!r}"
    return None


class Campaign:
    """The copies that one call checks. Never changed after construction, so several threads may
    call check()."""

    def __init__(self, hearth, models, keep):
        self.hearth = hearth
        self.keep = pathlib.Path(keep)
        self.originals = []
        for path in models:
            content = path.read_bytes()
            share = 1 if len(content) > LARGE else SMALL_SHARE
            self.originals += [(path.name, content)] * share

    def check(self, number):
        """Sentences about what is wrong with copy `number`."""
        rng = random.Random(number)
        name, original = rng.choice(self.originals)
        # The reference kernels take seconds for a large model.
        share = 1 if len(original) <= LARGE else 9
        device = rng.choice(("nnapi-reference",) + ("hearth-cpu",) * share)
        sentences = []
        with tempfile.TemporaryDirectory(prefix="hearth-mutation-") as folder:
            path = pathlib.Path(folder) / f"{number}_{name}"
            path.write_bytes(damaged(rng, original))
            kept = self.keep / path.name
            for words in (["inspect"], ["run", "--random-input", "1", "--timeout", "10",
                                        "--max-activation-bytes", "1G", "--device", device]):
                sentence = complaint([self.hearth, *words, str(path)])
                if sentence:
                    sentences.append(f"{' '.join([self.hearth, *words, str(kept)])} {sentence}")
            if sentences:
                self.keep.mkdir(parents=True, exist_ok=True)
                # The temporary folder may be on another file system.
                shutil.move(path, kept)
        return sentences

    def run(self, numbers, jobs):
        """Checks all copies and returns how many fail. Prints each failure and, every minute, the
        progress."""
        failed, told = 0, time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done, sentences in enumerate(pool.map(self.check, numbers), 1):
                for sentence in sentences:
                    print(f"FAILED {sentence}", flush=True)
                failed += bool(sentences)
                if time.monotonic() - told >= 60:
                    told = time.monotonic()
                    print(f"{done} of {len(numbers)} copies, {failed} failed", flush=True)
        return failed


def skip(reason):
    """Tells a runner that reads GoogleTest's reports that nothing was tested."""
    print(f"Nothing is tested: {reason}")
    kind, _, path = os.environ.get("GTEST_OUTPUT", "").partition(":")
    if kind == "json":
        case = {"classname": "Mutation", "name": "DamagedModels", "status": "RUN",
                "result": "SKIPPED", "skipped": [{"message": reason}]}
        pathlib.Path(path).write_text(json.dumps({"testsuites": [{"testsuite": [case]}]}),
                                      encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("hearth", help="the command to test")
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL",
                        help="models to damage (those of $HEARTH_TEST_DATA)")
    parser.add_argument("--first", type=int, default=0, help="number of the first copy")
    parser.add_argument("--count", type=int, help=f"how many copies ({COUNT}, or {LONG_COUNT} when "
                        "HEARTH_TEST_LONG is 1)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="commands at the same time (one for each CPU)")
    parser.add_argument("--keep", default="mutation_failures", help="folder for copies that fail")
    arguments = parser.parse_args()
    models = arguments.models
    if not models:
        data = os.environ.get("HEARTH_TEST_DATA")
        if not data:
            skip("HEARTH_TEST_DATA is not set.")
            return 0
        models = sorted((pathlib.Path(data) / "data" / "models").glob("*.tflite"))
        if not models:
            parser.error(f"there is no model in {data}/data/models")
    count = arguments.count
    if count is None:
        count = LONG_COUNT if os.environ.get("HEARTH_TEST_LONG") == "1" else COUNT
    campaign = Campaign(arguments.hearth, models, arguments.keep)
    failed = campaign.run(range(arguments.first, arguments.first + count), arguments.jobs)
    print(f"{count - failed} damaged copies passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
