#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Hearth does, in two tables: a digit classifier reads pictures, and a large model starts.

./dev demo builds first and then runs this. The large model has generated weights; it is made once,
while the build runs, and kept in the cache folder.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import checkout

ROOT = checkout.ROOT
HEARTH = ROOT / "build" / "release" / "bin" / "hearth"
DIGITS = ROOT / "models" / "digits"
GENERATOR = ROOT / "bench" / "workloads"


class DemoError(Exception):
    """A step that failed, as a sentence."""


def hearth(*arguments):
    """The JSON that a command of hearth prints."""
    command = [str(HEARTH), *map(str, arguments), "--json"]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise DemoError(f"\"{' '.join(command)}\" ends with exit code {run.returncode}.")
    return json.loads(run.stdout)


def table(header, rows):
    """The lines of a table whose first column is flush left and whose other columns are flush
    right."""
    texts = [header, *rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
    lines = []
    for row in texts:
        cells = [cell.ljust(width) if column == 0 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def milliseconds(value):
    return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"


def mebibytes(kibibytes):
    return f"{kibibytes / 1024:.0f} MiB"


def showDigits():
    pictures = sorted((DIGITS / "samples").glob("*.png"))
    if not pictures:
        raise DemoError(f"{DIGITS / 'samples'} holds no pictures.")
    rows = []
    for picture in pictures:
        result = hearth("run", DIGITS / "digits.tflite", "--input", picture,
                        "--labels", DIGITS / "labels.txt", "--top", 1)
        best = result["top"][0]
        rows.append([picture.name, best["label"], f"{best['score']:.3f}",
                     milliseconds(result["inference_ms"]["first"])])
    print(f"The digit classifier ({(DIGITS / 'digits.tflite').stat().st_size / 1024:.0f} KiB, "
          "trained in this repository) reads:\n")
    print(table(["picture", "digit", "score", "first inference"], rows), flush=True)


def largeModel(megabytes):
    """The path of the generated model; its name changes with the generator."""
    digest = hashlib.sha256()
    for path in sorted(GENERATOR.glob("*.py")):
        digest.update(path.read_bytes())
    folder = checkout.cacheFolder() / "demo"
    folder.mkdir(exist_ok=True)
    path = folder / f"mlp-{megabytes}-{digest.hexdigest()[:12]}.tflite"
    if not path.exists():
        for old in folder.glob("*.tflite*"):
            old.unlink()
        print(f"Generating {path.name} ...", file=sys.stderr, flush=True)
        partial = path.with_suffix(".partial")
        run = subprocess.run([sys.executable, str(GENERATOR / "generate.py"), "mlp", str(partial),
                              "--megabytes", str(megabytes)], stdout=sys.stderr, check=False)
        if run.returncode != 0:
            raise DemoError(f"The generator ends with exit code {run.returncode}.")
        partial.rename(path)
        # A file that was written less than two seconds ago could change again unnoticed: the next
        # start would read all of it once more.
        time.sleep(2.1)
    return path


def showLargeModel(megabytes, repeat):
    """Starts the model without the weight store, then while the store is filled, then from the
    store."""
    model = largeModel(megabytes)
    rows = []
    with tempfile.TemporaryDirectory(prefix="hearth-demo-") as folder:
        store = ["--store", pathlib.Path(folder) / "store"]
        for options in (["--store-mode", "off"], store, store):
            result = hearth("bench", model, "--random-input", 1, "--repeat", repeat, *options)
            start, times, memory = result["start"], result["inference_ms"], result["memory"]
            rows.append([start["state"], milliseconds(start["prepare_ms"]),
                         milliseconds(times["first"]), milliseconds(times["p50"]),
                         mebibytes(memory["peak_rss_kib"]),
                         mebibytes(memory["anonymous_rss_kib"])])
    print(f"\nA model of {model.stat().st_size / 2**20:.0f} MiB of weights on "
          f"{result['device']}, three processes one after the other:\n")
    print(table(["start", "until ready", "first inference", "then (median)", "peak memory",
                 "of it private"], rows), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--megabytes", type=int, default=400,
                        help="weights of the large model (%(default)s)")
    parser.add_argument("--repeat", type=int, default=10,
                        help="inferences of the large model after the first (%(default)s)")
    parser.add_argument("--only-generate", action="store_true",
                        help="write the large model, unless it is there, and show nothing")
    arguments = parser.parse_args()
    try:
        if arguments.only_generate:
            largeModel(arguments.megabytes)
            return 0
        showDigits()
        showLargeModel(arguments.megabytes, arguments.repeat)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
