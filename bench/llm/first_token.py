#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the first tokens of an answer cost a new process of `hearth complete`.

    first_token.py MODEL...                      prompts of about 120 and 1000 tokens, 2 threads
    first_token.py --peer --words 75 MODEL       the first token of LiteRT-LM beside them

Each start is a fresh process that answers with one, two or three tokens; in each round all of them take turns:
`equal`: the store has the whole prompt, with the scores of its last token; `prefix`: it has all of the prompt but the
last word; `nothing`: only the weights are there. `processor` is the processor time of the whole process, from its start
to its end, as the system counts it; `first` and `last` the times from the start until the first token is written, and the last one;
`faults` the page faults that read nothing from disk. LiteRT-LM's figures are without starting Python and importing its
module. Figures are medians. Exit code: 0 when all ran, 1 when not, 2 for wrong arguments.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(Path(__file__).parent)]
import compare  # noqa: E402
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402

KINDS = ("equal", "prefix", "nothing")
TOKENS = (1, 2, 3)


def once(command):
    """{figure: value} of a process, and what it writes."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = process.stdout.read(1)
    first = time.monotonic() - begin
    text += process.stdout.read()
    last = time.monotonic() - begin
    problem = process.stderr.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    if process.returncode != 0:
        raise Failure(problem.strip() or f"exit code {process.returncode}")
    return {"processor": 1000 * (usage.ru_utime + usage.ru_stime), "first": 1000 * first, "last": 1000 * last,
            "faults": usage.ru_minflt}, text


def commandOf(arguments, model, kind, tokens, text, store):
    begin = text.rindex(" ")
    prompt = {"equal": ["--prompt", text, "--prefix-store", "all"],
              "prefix": ["--prefix", text[:begin], "--prompt", text[begin:]],
              "nothing": ["--prompt", text]}[kind]
    return [*arguments.launcher.split(), str(arguments.hearth), "complete", str(model), *prompt, "--temperature", "0",
            "--max-tokens", str(tokens), "--threads", str(arguments.threads), "--context", str(arguments.context),
            "--store", str(store)]


def peerOnce(arguments, model, text, folder):
    prompt = folder / "prompt.txt"
    prompt.write_text(text, encoding="utf-8")
    arguments.tokens = 1
    return {"processor": 1000 * compare.peerOnce(arguments, model, prompt, folder)["processor_s"]}


def measure(arguments, model, count, folder):
    text = compare.promptOf(count)
    store = folder / "store"
    starts = [(kind, tokens) for kind in KINDS for tokens in TOKENS]
    samples = {start: [] for start in starts}
    peers = []
    texts = {}
    for number in range(arguments.rounds + 1):
        say(f"{model.stem}, {count} words, {'warming' if number == 0 else f'round {number}'}")
        for kind, tokens in starts if number % 2 else reversed(starts):
            sample, written = once(commandOf(arguments, model, kind, tokens, text, store))
            # A marked beginning divides a prompt elsewhere, so sums may round otherwise.
            known = texts.setdefault((kind == "prefix", tokens), written)
            if written != known:
                raise Failure(f"{tokens} tokens are {written!r} with {kind}, and {known!r} otherwise.")
            if number:
                samples[kind, tokens].append(sample)
        if arguments.peer:
            peers.append(peerOnce(arguments, model, text, folder))
    row = {f"{kind}, {tokens}": {figure: round(statistics.median(sample[figure] for sample in taken), 1)
                                 for figure in taken[0]} for (kind, tokens), taken in samples.items()}
    if arguments.peer:
        row["LiteRT-LM, 1"] = {"processor": round(statistics.median(sample["processor"] for sample in peers[1:]), 1)}
    return {"model": model.stem, "words": count, "rounds": arguments.rounds, "milliseconds": row}


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--words", nargs="+", type=int, default=[75, 560], help="of the prompts; default: 75 560")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--peer", action="store_true")
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    arguments = parser.parse_args(given)
    try:
        if arguments.peer:
            arguments.python = arguments.python or comparison.environmentPython(
                comparison.CACHE / "litert-lm-venv", compare.PEER_WHEEL)
        for model in arguments.models:
            for count in arguments.words:
                with tempfile.TemporaryDirectory(prefix="hearth-llm-") as folder:
                    print(json.dumps(measure(arguments, model, count, Path(folder)), indent=1))
    except Failure as failure:
        say(f"first_token.py: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
