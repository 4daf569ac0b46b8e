#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures all figures by which language models are judged, beside LiteRT-LM and llama.cpp, in one run.

    acceptance.py MODEL --int4 MODEL --blocks MODEL --llama MODEL.gguf
    acceptance.py --short ...                    3 rounds, and 8 trials of first starts: ten minutes

MODEL is one with weights of int8; --int4 names the same with int4 per channel, --blocks with int4 in blocks of 32, and
--llama with llama.cpp's Q8_0 (int4_model.py and q8_model.py make them). compare.py, processes.py and conversation.py
say how each figure is measured. A ratio is Hearth's median divided by the peer's; the range of each side is in
parentheses. Exit code: 0 when all ran, 1 when not, 2 for wrong arguments; figures that miss what is accepted are marked
and do not change it.
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(Path(__file__).parent)]
import compare  # noqa: E402
import comparison  # noqa: E402
import conversation  # noqa: E402
import llama_server  # noqa: E402
import processes  # noqa: E402
from comparison import Failure, say  # noqa: E402

# Prompts of about 120, 500 and 1000 tokens.
WORDS = SHORT, MEDIUM, LONG = 75, 310, 620
INT8, INT4, BLOCKS = "int8", "int4", "int4 in blocks of 32"
# Of prompts: at most so much of LiteRT-LM's time or memory, and at least so many times its tokens.
MOST = {("first_token_s", SHORT): 0.70, ("first_token_s", LONG): 0.80, ("peak_mib", LONG): 0.8,
        ("anonymous_mib", LONG): 0.4}
MOST_STORED = 0.05
LEAST_PREFILL = 1.2
LEAST_DECODE = {INT8: {SHORT: 1.6, LONG: 1.3}, INT4: {SHORT: 1.2, LONG: 1.2}, BLOCKS: {SHORT: 1.2, LONG: 1.2}}


class Report:
    """A table of figures and what is accepted of each."""

    def __init__(self):
        self.lines = []
        self.figures = []

    def add(self, name, value, limit, *, isLeast=False, sides=("", ""), digits=2):
        isMet = value >= limit if isLeast else value <= limit
        self.figures.append({"name": name, "value": value, "limit": limit, "met": isMet})
        self.lines.append(f"| {name} | {sides[0]} | {sides[1]} | {value:.{digits}f} | {'≥' if isLeast else '≤'} {limit} | "
                          f"{'' if isMet else '**missed**'} |")

    def addRatio(self, name, row, figure, limit, *, isLeast=False, side=compare.PEER_SIDE):
        ratio = row.ratio(figure, side)
        if ratio is None:
            self.fail(name, row.failures.get(side) or row.failures.get(compare.HEARTH) or "no figure")
            return
        self.add(name, ratio, limit, isLeast=isLeast,
                 sides=(row.spread(compare.HEARTH, figure), row.spread(side, figure)), digits=3 if limit < 0.1 else 2)

    def fail(self, name, sentence):
        self.figures.append({"name": name, "problem": sentence})
        self.lines.append(f"| {name} | {sentence} | | | | **failed** |")

    def json(self):
        return {"figures": self.figures}


def addPrompts(report, kind, rows):
    for words, row in rows.items():
        tokens = max(samples[0]["prompt_tokens"] for samples in row.samples.values() if samples)
        if kind == INT8 and words in (SHORT, LONG):
            report.addRatio(f"first token after {tokens} tokens, s", row, "first_token_s", MOST["first_token_s", words])
        if words != SHORT:
            report.addRatio(f"{kind}: prompt of {tokens}, tokens/s", row, "prefill", LEAST_PREFILL, isLeast=True)
        if words in LEAST_DECODE[kind]:
            report.addRatio(f"{kind}: answer after {tokens}, tokens/s", row, "decode", LEAST_DECODE[kind][words],
                            isLeast=True)
        if compare.LLAMA in row.samples:
            report.addRatio(f"answer after {tokens} beside llama.cpp Q8_0, tokens/s", row, "decode", 1.0, isLeast=True,
                            side=compare.LLAMA)
        if kind == INT8 and words == LONG:
            report.addRatio("memory at most, MiB", row, "peak_mib", MOST["peak_mib", words])
            report.addRatio("of it anonymous, MiB", row, "anonymous_mib", MOST["anonymous_mib", words])


def storedShare(arguments, model, store):
    """Bytes of the store's segments, and of the model's weights."""
    def ask(*words):
        run = subprocess.run([str(arguments.hearth), *words, "--json"], capture_output=True, text=True, encoding="utf-8",
                             check=False)
        if run.returncode != 0:
            raise Failure(run.stderr.strip())
        return json.loads(run.stdout)
    return (ask("cache", "stat", "--store", str(store))["segment_bytes"],
            ask("inspect", str(model), "--part", "prefill_decode")["weight_bytes"])


def measure(arguments, report, rows, folder):
    """Calls the other programs, with less than all of their options."""
    def prompts(kind, model, words=WORDS, **options):
        # Of each kind, all prompts use one store.
        own = copy.copy(arguments)
        own.stored, own.llama = options.get("stored"), options.get("llama")
        measured = {count: compare.measure(own, model, count, folder) for count in words}
        rows.extend(measured.values())
        return measured

    addPrompts(report, INT8, prompts(INT8, arguments.model, llama=arguments.llama))
    for stored, found in ((compare.BEGINNING, "all but the last word"), (compare.EQUAL, "an equal prompt")):
        for words, row in prompts(INT8, arguments.model, (SHORT, LONG), stored=stored).items():
            tokens = max(samples[0]["prompt_tokens"] for samples in row.samples.values() if samples)
            report.addRatio(f"first token after {tokens} tokens, {found} stored, s", row, "first_token_s", MOST_STORED)
    for kind, model in ((INT4, arguments.int4), (BLOCKS, arguments.blocks)):
        if model:
            addPrompts(report, kind, prompts(kind, model))
    stored, weights = storedShare(arguments, arguments.model, folder / f"{arguments.model.stem}-0")
    mebibyte = 1 << 20
    report.add("store / weights of the file, MiB", stored / weights, 1.1,
               sides=(f"{stored / mebibyte:.0f}", f"{weights / mebibyte:.0f}"))
    own = argparse.Namespace(**{**vars(arguments), "tokens": 16, "processes": 4, "peer": True, "words": LONG})
    shared = processes.measure(own, arguments.model, folder)
    report.add("four processes, sum of PSS, MiB", shared["pss_mib"] / shared["peer_pss_mib"], 0.5,
               sides=(f"{shared['pss_mib']:.0f}", f"{shared['peer_pss_mib']:.0f}"))
    report.add("private part of a stored prefix in each", shared["private"], 0.05, digits=3)
    store = folder / "conversation"
    store.mkdir()
    own = argparse.Namespace(**{**vars(arguments), "tokens": 16, "words": 640})
    turn = conversation.run(own, str(store))
    report.add(f"turn 3 of {turn['prompt_tokens']} tokens through HTTP, beside computing them, s", turn["ratio"], 0.1,
               sides=(turn["turn_3_s"], turn["computed_s"]), digits=3)
    own = argparse.Namespace(**{**vars(arguments), "tokens": 16, "processes": 4, "first_starts": arguments.trials})
    starts = processes.firstStarts(own, arguments.model, folder)
    report.add("first starts at once that are right", starts["right"] / starts["first_starts"], 1, isLeast=True,
               sides=(starts["right"], f"of {starts['first_starts']}"))


def parseArguments(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--int4", type=Path, metavar="MODEL")
    parser.add_argument("--blocks", type=Path, metavar="MODEL")
    parser.add_argument("--tokens", type=int, default=64, help="of the answers; default: 64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--rounds", type=int, help="default: 5")
    parser.add_argument("--trials", type=int, help="of four first starts; default: 50")
    parser.add_argument("--short", action="store_true", help="makes 3 rounds and 8 trials the default")
    llama_server.addOptions(parser)
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    arguments.rounds = arguments.rounds or (3 if arguments.short else 5)
    arguments.trials = arguments.trials or (8 if arguments.short else 50)
    comparison.requirePositive(parser, rounds=arguments.rounds, trials=arguments.trials, tokens=arguments.tokens,
                               threads=arguments.threads)
    for model in (arguments.model, arguments.int4, arguments.blocks, arguments.llama):
        if model and not model.is_file():
            parser.error(f"There is no file {model}.")
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    report, rows, failed = Report(), [], False
    try:
        arguments.python = arguments.python or comparison.environmentPython(
            comparison.CACHE / "litert-lm-venv", compare.PEER_WHEEL)
        with tempfile.TemporaryDirectory(prefix="hearth-llm-") as folder:
            measure(arguments, report, rows, Path(folder))
    except Failure as failure:
        say(f"acceptance.py: {failure}")
        failed = True
    about = comparison.facts(compare.peersOf(arguments), threads=arguments.threads, rounds=arguments.rounds)
    lines = [f"- {name}: {value}" for name, value in about]
    lines += ["", "| | Hearth | peer | ratio | accepted | |", "|---|---|---|---|---|---|", *report.lines, ""]
    for row in rows:
        sides = [side for side in row.samples if side != compare.HEARTH]
        lines += [f"| | {compare.HEARTH} |" + "".join(f" {side} | ratio |" for side in sides),
                  "|---|---|" + "---|---|" * len(sides), *row.lines(), ""]
    comparison.writeText(arguments.output, "\n".join(lines))
    comparison.writeJson(arguments.json, about, [report, *rows])
    return 1 if failed or any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
