#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The short form of compare.py, without times: which operations of the stored models hearth-cpu runs
on a slow kernel ("reference" in `hearth inspect`), beside the list of those that are known.

    slow_kernels.py             prints what differs from the list
    slow_kernels.py --update    writes the list anew

Exit code: 0, or 1 when an operation runs on a slow kernel that the list does not have.
"""

import argparse
import collections
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402

MODELS = ROOT / "tests" / "compatibility" / "models"
LIST = ROOT / "tests" / "compatibility" / "slow_kernels.json"
DEVICE, SLOW = "hearth-cpu", "reference"
TIMEOUT_S = 60


def slowKernels(hearth, model):
    """{type of operation: how many of them run on slow kernels}."""
    done = subprocess.run([str(hearth), "inspect", str(model), "--json"], capture_output=True,
                          text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise Failure(f"{model.name} cannot be inspected: {done.stderr.strip()}")
    counts = collections.Counter()
    for signature in json.loads(done.stdout)["signatures"]:
        if signature["problem"] is not None:
            raise Failure(f"{model.name}: {signature['problem']}")
        for operation in signature["operations"]:
            for answer in operation["devices"]:
                if answer["device"] == DEVICE and answer["kernel"] == SLOW:
                    counts[operation["type"]] += 1
    return dict(sorted(counts.items()))


def find(hearth):
    """{model: slow kernels} of all stored models that have some."""
    found = {model.stem: slowKernels(hearth, model) for model in sorted(MODELS.glob("*.tflite"))}
    return {name: kernels for name, kernels in found.items() if kernels}


def known():
    return json.loads(LIST.read_text())


def differences(found, expected):
    """Sentences about what is slow that was not, and about what is no longer slow."""
    worse, better = [], []
    for name in sorted(found.keys() | expected.keys()):
        for kind in sorted(found.get(name, {}).keys() | expected.get(name, {}).keys()):
            now, then = (counts.get(name, {}).get(kind, 0) for counts in (found, expected))
            sentence = f"{name}: {now} {kind} on slow kernels, {then} in {LIST.name}"
            if now > then:
                worse.append(sentence)
            elif now < then:
                better.append(sentence)
    return worse, better


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="writes the list")
    comparison.addHearth(parser)
    arguments = parser.parse_args(words)
    try:
        found = find(arguments.hearth)
    except (Failure, OSError, ValueError, subprocess.TimeoutExpired) as error:
        say(f"slow_kernels.py: {error}")
        return 1
    if arguments.update:
        LIST.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    worse, better = differences(found, known())
    for sentence in [*worse, *better]:
        print(sentence)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
