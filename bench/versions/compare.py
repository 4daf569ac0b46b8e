#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what the first start of a new version of a model costs.

    compare.py --rows 'resnet50*' --rounds 7 --output versions.md

The new version is the model with other bytes in the middle of its file, so that one layer changed.
Three starts of it take turns in fresh processes: with an empty store (cold), with a store that has the
old version (changed), and with one that has the new one (warm). The table has the medians of the time
until the model is ready, what was packed and taken over, and what the store grew by. Models are
generated in the cache folder (${XDG_CACHE_HOME:-~/.cache}/hearth) when they are missing.

Exit code: 0 when all ran, 1 when not, 2 for wrong arguments; ratios do not change it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import Failure, model_rows  # noqa: E402
from rows import ROWS  # noqa: E402

COLD, CHANGED, WARM = "cold", "changed", "warm"
LIMIT = 0.3  # of the changed start, beside the cold one
CHANGED_BYTES = 4096
# A file that was changed just now is hashed at each start.
SECONDS_UNTIL_OLD = 2.5


def makeNewVersion(path, target):
    shutil.copyfile(path, target)
    with target.open("r+b") as file:
        file.seek(target.stat().st_size // 2)
        old = file.read(CHANGED_BYTES)
        file.seek(-len(old), os.SEEK_CUR)
        # The lowest bit, which leaves floats what they are.
        file.write(bytes(byte ^ 1 for byte in old))


def storeBytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def start(arguments, model, store):
    """A start in a fresh process: what `hearth bench` says of it, and the bytes of the store."""
    command = [arguments.hearth, "bench", model, "--store", store, "--threads",
               str(arguments.threads), "--preparation", "whole", "--repeat", "0", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else
                      f"exit code {done.returncode}")
    report = json.loads(done.stdout)["start"]
    return {"state": report["state"], "reason": report["reason"], "ready": report["prepare_ms"],
            "packed": report["packed_bytes"], "mapped": report["mapped_bytes"],
            "hashed": report["hashed_bytes"], "store": storeBytes(Path(store))}


def cells(result, state):
    """Of the time until the model is ready, and of bytes in MiB."""
    if not result.values(state, "ready"):
        return ["failed", "–", "–", "–", "–"]
    return [result.cell(state, "ready"),
            "–" if state == COLD else result.ratio(state, COLD, "ready"),
            *(f"{result.median(state, key) / 2**20:.1f}" for key in ("packed", "mapped", "grown"))]


def measure(row, path, arguments, folder):
    result = model_rows.Samples(row.name)
    old, new = folder / "old.tflite", folder / "new.tflite"
    shutil.copyfile(path, old)
    makeNewVersion(path, new)
    time.sleep(SECONDS_UNTIL_OLD)

    def take(side, number):
        store = folder / "store"
        shutil.rmtree(store, ignore_errors=True)
        before = start(arguments, old, store)["store"] if side == CHANGED else 0
        sample = start(arguments, new, store)
        result.add(side, {**sample, "grown": sample["store"] - before})
        if side == CHANGED:
            warm = start(arguments, new, store)
            result.add(WARM, {**warm, "grown": warm["store"] - sample["store"]})

    orders = [(COLD, CHANGED) if number % 2 == 0 else (CHANGED, COLD)
              for number in range(min(arguments.rounds, row.rounds * 3))]
    result.failures = comparison.takeTurns(orders, take, row.name)
    for file in (old, new):
        file.unlink()
    return result


def table(results, about):
    lines = ["| model | start | ready, ms | of the cold one | packed, MiB | taken from the store, MiB "
             "| store grew by, MiB |", "|---|---|---|---|---|---|---|"]
    for result in results:
        name = result.name
        for state in (COLD, CHANGED, WARM):
            lines.append(f"| {name} | {state} | " + " | ".join(cells(result, state)) + " |")
            name = ""
        lines += model_rows.failureLines(result, 7)
    lines += ["", f"Goal: changed ≤ {LIMIT} of cold.", "",
              "; ".join(f"{name}: {value}" for name, value in about)]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.addHearth(parser)
    model_rows.addOptions(parser, "starts of each kind", "models and stores")
    return model_rows.parse(parser, words)


def main(words=None):
    arguments = parseArguments(words)
    about = comparison.facts((), rounds=arguments.rounds, threads=arguments.threads)
    return model_rows.measure(
        arguments, ROWS, lambda folder: lambda row, path: measure(row, path, arguments, folder),
        table, about)


if __name__ == "__main__":
    sys.exit(main())
