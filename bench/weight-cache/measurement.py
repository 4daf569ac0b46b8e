# SPDX-License-Identifier: Apache-2.0
"""Starts the programs of both sides and watches their memory."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from comparison import Failure  # noqa: E402

HEARTH, PEER = "hearth", "litert"
SIDES = (HEARTH, PEER)
NONE, BUILDING, REUSING = "no cache", "building", "reusing"
STATES = (NONE, BUILDING, REUSING)
PEER_PROGRAM = Path(__file__).resolve().parents[1] / "peers" / "peer.py"
TIMEOUT_S = 600


class Programs:
    def __init__(self, hearth, python, threads, folder):
        self.hearth = Path(hearth)
        self.python = python
        self.threads = threads
        self.folder = folder  # for caches, on the disk that is measured

    def cache(self, side, row):
        return self.folder / f"{row.name}.{side}"

    def words(self, side, row, path, state, repeat, prefills):
        """The command line of one measurement."""
        cache = self.cache(side, row)
        if side == PEER:
            words = [self.python, PEER_PROGRAM, path, "--threads", self.threads, "--repeat", repeat]
            if state != NONE:
                words += ["--weight-cache", cache]
            return words + (["--generate", "--prefills", prefills] if row.isLanguageModel
                            else ["--api", "compiled"])
        if row.isLanguageModel:
            prompt = [1 + i % 100 for i in range(129)]
            return [self.hearth.parent / "generate_tokens", path, *prompt, "--count", repeat,
                    "--prefills", prefills, "--threads", self.threads, "--json"]
        return [self.hearth, "bench", path, "--json", "--random-input", 1, "--threads",
                self.threads, "--repeat", repeat]

    def environment(self, side, row, state):
        environment = dict(os.environ)
        for name in ("HEARTH_TRACE", "HEARTH_LOG", "HEARTH_REPORT"):
            environment.pop(name, None)
        if side == HEARTH:
            environment["HEARTH_STORE"] = str(self.cache(side, row))
            environment["HEARTH_STORE_MODE"] = "off" if state == NONE else "read-write"
        return environment

    def clear(self, side, row):
        cache = self.cache(side, row)
        if cache.is_dir():
            shutil.rmtree(cache)
        else:
            cache.unlink(missing_ok=True)

    def bytesOnDisk(self, side, row):
        cache = self.cache(side, row)
        files = [cache] if cache.is_file() else cache.rglob("*")
        return sum(file.stat().st_blocks * 512 for file in files if file.is_file())

    def dropPages(self, side, row, path):
        """Drops model and cache from the page cache, so that they are read from the disk."""
        cache = self.cache(side, row)
        for file in [path, *([cache] if cache.is_file() else cache.rglob("*"))]:
            if not file.is_file():
                continue
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)

    def run(self, side, row, path, state, repeat, prefills, count=None):
        """One sample: of `count` processes that start at the same time, or of a single one, whose
        shared memory is not measured, since that would slow it down."""
        words = [str(word) for word in self.words(side, row, path, state, repeat, prefills)]
        processes = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=self.environment(side, row, state))
                     for _ in range(count or 1)]
        watched = _watch(processes, isShared=count is not None)
        samples = []
        for process in processes:
            output, errors = process.communicate()
            if process.returncode != 0:
                last = (errors.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
                raise Failure(f"ended with {process.returncode}: {last}")
            samples.append(json.loads(output))
        return {**_sample(row, samples), **watched}


def _watch(processes, isShared):
    """Peaks, in KiB, of the sums over all processes, until they have ended."""
    end = time.monotonic() + TIMEOUT_S
    anonymous = shared = 0
    nextShared = 0.0
    while any(process.poll() is None for process in processes):
        anonymous = max(anonymous, sum(_kib(process.pid, "status", "RssAnon")
                                       for process in processes))
        # Reading PSS walks all pages: often enough to catch the peak, seldom enough not to disturb.
        if isShared and time.monotonic() >= nextShared:
            begin = time.monotonic()
            shared = max(shared, _sharedKib(processes))
            nextShared = time.monotonic() + max(0.01, 5 * (time.monotonic() - begin))
        if time.monotonic() > end:
            for process in processes:
                process.kill()
            raise Failure(f"no result within {TIMEOUT_S} s")
        time.sleep(0.003)
    return {"peak_anonymous_kib": anonymous, "peak_pss_kib": shared}


def _sharedKib(processes):
    """The sum of PSS; 0 while it is uncertain: a page that the second process maps between two
    reads counts as a whole in the first and in part in the second. So with several processes, only
    sums that hardly change from one reading to the next are used."""
    def once():
        return sum(_kib(process.pid, "smaps_rollup", "Pss") for process in processes)
    if len(processes) == 1:
        return once()
    first, second = once(), once()
    return min(first, second) if abs(first - second) <= 0.01 * first else 0


def _kib(pid, name, key):
    try:
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def _sample(row, samples):
    """The figures of the slowest process; both sides print the same keys."""
    if row.isLanguageModel:
        flat = [{"init": one["prepare_ms"], "first": one["first_prefill_ms"],
                 "steady": one["prefill_ms"], "first_decode": one["first_decode_ms"],
                 "decode": one["decode_ms"], "start_peak_kib": one["start_peak_rss_kib"],
                 "peak_kib": one["peak_rss_kib"], "anonymous_kib": one["anonymous_rss_kib"]}
                for one in samples]
    else:
        # Creating the inputs counts, too, since part of the preparation may go on meanwhile.
        flat = [{"init": one["start"]["prepare_ms"],
                 "first": one["inference_ms"].get("first_result", one["inference_ms"]["first"]),
                 "steady": one["inference_ms"]["p50"],
                 "start_peak_kib": one["memory"]["start_peak_rss_kib"],
                 "peak_kib": one["memory"]["peak_rss_kib"],
                 "anonymous_kib": one["memory"]["anonymous_rss_kib"]} for one in samples]
    return {key: max(one[key] for one in flat) for key in flat[0]}
