#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages model files and checks that the `hearth` command refuses or runs them cleanly.

With --output-dir the copies are written there and nothing is run. With --hearth each copy goes
through `hearth inspect` and `hearth run`, one worker for each of --jobs. A copy passes when both
end with exit code 0, 1 or 2 in time, without signal and without a sanitizer's report. The same
seed, count and models give the same copies, whatever the number of jobs.
"""

import argparse
import concurrent.futures
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile

GOOD_EXIT_CODES = (0, 1, 2)
RUN_TIMEOUT_SECONDS = 10
KILL_AFTER_SECONDS = 20
SANITIZER_REPORT = re.compile(
    rb"(AddressSanitizer|LeakSanitizer|ThreadSanitizer|MemorySanitizer"
    rb"|UndefinedBehaviorSanitizer|runtime error:)")
# Numbers at which comparisons and sums go wrong.
TELLING_WORDS = (0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF,
                 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 0xBF800000)


def table_ranges(size):
    """Ranges of the file to damage. Tables lie at its start and end, weights between: damage
    there is what a reader has to find, so most of it goes there."""
    edge = min(size, 8192)
    return ((0, edge), (size - edge, size), (0, size))


def flip_bits(data, place, rng):
    for _ in range(rng.randint(1, 8)):
        data[place()] ^= 1 << rng.randrange(8)


def set_bytes(data, place, rng):
    at = place()
    length = rng.randint(1, 16)
    value = rng.choice((0, 0xFF, 0x7F, 0x80, rng.randrange(256)))
    for i in range(at, min(at + length, len(data))):
        data[i] = value


def truncate(data, place, rng):
    del data[max(place(), 1):]


def swap_chunks(data, place, rng):
    length = rng.choice((4, 8, 16, 64, 256))
    first, second = sorted((place(), place()))
    if first + length > second or second + length > len(data):
        return flip_bits(data, place, rng)
    data[first:first + length], data[second:second + length] = (
        data[second:second + length], data[first:first + length])
    return None


def edit_length(data, place, rng):
    """Offsets, vtables and vector lengths are little-endian words: replaces one, or moves it a
    little."""
    at = place() // 4 * 4
    if at + 4 > len(data):
        return flip_bits(data, place, rng)
    word = struct.unpack_from("<I", data, at)[0]
    if rng.random() < 0.5:
        word = rng.choice(TELLING_WORDS)
    else:
        word = (word + rng.choice((-64, -8, -4, -1, 1, 4, 8, 64))) & 0xFFFFFFFF
    struct.pack_into("<I", data, at, word)
    return None


MUTATIONS = (flip_bits, set_bytes, truncate, swap_chunks, edit_length)
WEIGHTS = (3, 2, 1, 2, 4)


def mutate(original, seed):
    """One damaged copy, a function of its arguments alone."""
    rng = random.Random(seed)
    data = bytearray(original)
    low, high = rng.choices(table_ranges(len(data)), (2, 2, 1))[0]

    def place():
        return min(rng.randrange(low, high), len(data) - 1)

    for mutation in rng.choices(MUTATIONS, WEIGHTS, k=rng.randint(1, 3)):
        mutation(data, place, rng)
    return bytes(data)


def environment():
    """Sanitizers in the command end it by SIGABRT, so that the exit code tells too."""
    env = dict(os.environ)
    for name, options in (("ASAN_OPTIONS", "abort_on_error=1:detect_leaks=1:"
                                           "allocator_may_return_null=1"),
                          ("UBSAN_OPTIONS", "abort_on_error=1:print_stacktrace=1")):
        env.setdefault(name, options)
    return env


def complaint_about(command):
    """What is wrong with how a command ended; None when it ended well."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=environment(),
                               start_new_session=True)
    try:
        _, errors = process.communicate(timeout=KILL_AFTER_SECONDS)
    except subprocess.TimeoutExpired:
        # The command is the leader of its own group: the signal reaches its children too.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"runs longer than {KILL_AFTER_SECONDS} s"
    report = SANITIZER_REPORT.search(errors)
    if report:
        return "sanitizer report: " + errors[report.start():][:400].decode(errors="replace")
    if process.returncode < 0:
        return f"ends by signal {-process.returncode}"
    if process.returncode not in GOOD_EXIT_CODES:
        return f"ends with exit code {process.returncode}"
    if process.returncode != 0 and not errors.strip():
        return f"ends with exit code {process.returncode} and says nothing"
    return None


class Campaign:
    """The copies of one call. Read-only once made; check() is called by several threads."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.originals = []
        for path in arguments.models:
            with open(path, "rb") as file:
                self.originals.append((os.path.basename(path), file.read()))

    def name_of(self, index):
        base = os.path.splitext(self.originals[index % len(self.originals)][0])[0]
        return f"{base}.{self.arguments.seed}.{index}.tflite"

    def copy_of(self, index):
        original = self.originals[index % len(self.originals)][1]
        return mutate(original, f"{self.arguments.seed}/{index}")

    def check(self, folder, index):
        path = os.path.join(folder, self.name_of(index))
        with open(path, "wb") as file:
            file.write(self.copy_of(index))
        complaints = []
        for words in (["inspect", path],
                      ["run", path, "--random-input", "1", "--timeout",
                       str(RUN_TIMEOUT_SECONDS)]):
            if self.arguments.device and words[0] == "run":
                words += ["--device", self.arguments.device]
            complaint = complaint_about([self.arguments.hearth, *words])
            if complaint:
                complaints.append(f"{words[0]}: {complaint}")
        if complaints and self.arguments.keep:
            os.makedirs(self.arguments.keep, exist_ok=True)
            os.replace(path, os.path.join(self.arguments.keep, self.name_of(index)))
        else:
            os.remove(path)
        return complaints

    def write_all(self, folder):
        os.makedirs(folder, exist_ok=True)
        for index in range(self.arguments.count):
            with open(os.path.join(folder, self.name_of(index)), "wb") as file:
                file.write(self.copy_of(index))

    def run_all(self):
        failed = 0
        with tempfile.TemporaryDirectory(prefix="hearth_mutate_") as folder, \
                concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as workers:
            checks = workers.map(lambda index: self.check(folder, index),
                                 range(self.arguments.count))
            for index, complaints in enumerate(checks):
                for complaint in complaints:
                    print(f"FAILED {self.name_of(index)}: {complaint}", flush=True)
                failed += bool(complaints)
                if sys.stderr.isatty() and index % 50 == 49:
                    print(f"{index + 1} of {self.arguments.count}", file=sys.stderr)
        print(f"{self.arguments.count - failed} passed, {failed} failed")
        return failed == 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="files to damage copies of")
    parser.add_argument("--count", type=int, default=500, help="number of copies")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hearth", metavar="PATH", help="the command to check")
    parser.add_argument("--device", help="device for `hearth run`")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", metavar="DIR", help="where copies that fail are kept")
    parser.add_argument("--output-dir", metavar="DIR", help="only write the copies there")
    arguments = parser.parse_args()
    if bool(arguments.hearth) == bool(arguments.output_dir):
        parser.error("one of --hearth and --output-dir is needed")
    for path in arguments.models:
        if not os.path.isfile(path) or os.path.getsize(path) < 2:
            parser.error(f"{path} is no file, or has fewer than 2 bytes")
    return arguments


def main():
    arguments = parse_arguments()
    campaign = Campaign(arguments)
    if arguments.output_dir:
        campaign.write_all(arguments.output_dir)
        print(f"{arguments.count} copies written")
        return 0
    return 0 if campaign.run_all() else 1


if __name__ == "__main__":
    sys.exit(main())
