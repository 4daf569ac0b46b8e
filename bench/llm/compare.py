#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `hearth complete` with LiteRT-LM on language models in .litertlm files, in one run.

    compare.py MODEL...                          prompts of about 120, 500 and 1000 tokens, 2 threads
    compare.py --quick --words 75 MODEL
    compare.py --stored MODEL...                 Hearth finds all of the prompt but its last word in its store
    compare.py --equal MODEL...                  Hearth finds all of the prompt there, with the first token's scores
    compare.py --llama MODEL.gguf MODEL          llama.cpp's server beside them, with weights of its own format

Each measurement is a fresh process; in each round the sides take turns. An unmeasured start of each side fills its
cache, so all measured starts are warm. `first token` is the time from the start of the process to the first text,
with tokenizer and template; for LiteRT-LM without starting Python and importing its module. All choose the most likely
token. The prompts are the first words of docs/architecture.md. Memory is that of one process at its end.

A ratio is Hearth's figure divided by the peer's: below 1 is better for times and memory, above 1 for tokens per
second. Exit code: 0 when all ran, 1 when not (the report says what failed), 2 for wrong arguments.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(Path(__file__).parent)]
import comparison  # noqa: E402
import llama_server  # noqa: E402
from comparison import Failure, say  # noqa: E402
from peers.report import Spread  # noqa: E402

PEER_WHEEL = "litert-lm-api==0.18.1"
PEER = Path(__file__).parent / "peer.py"
HEARTH, PEER_SIDE, LLAMA = "Hearth", "LiteRT-LM", "llama.cpp"
# What Hearth finds in its store of a prompt.
BEGINNING, EQUAL = "stored", "equal"
TEXT = ROOT / "docs" / "architecture.md"
TIMEOUT_S = 600
FIGURES = {"ready_s": "ready, s", "first_token_s": "first token, s", "prefill": "prompt, tokens/s",
           "decode": "answer, tokens/s", "peak_mib": "peak memory, MiB",
           "anonymous_mib": "anonymous memory, MiB"}


def promptOf(words):
    """The first words of a page, without its marks."""
    plain = re.sub(r"[|`*\[\]()#-]+", " ", TEXT.read_text(encoding="utf-8"))
    return " ".join(plain.split()[:words])


def firstTextOf(words):
    """The seconds from the start of a process until it writes."""
    begin = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        first = time.monotonic() - begin
        _, problem = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        raise Failure(problem.decode("utf-8", "replace").strip() or f"exit code {process.returncode}")
    return first


def hearthOnce(arguments, model, prompt, store):
    text = prompt.read_text(encoding="utf-8")
    parts = ["--prompt", f"@{prompt}"]
    if arguments.stored == EQUAL:
        parts += ["--prefix-store", "all"]
    elif arguments.stored == BEGINNING:
        begin = text.rindex(" ")
        parts = ["--prefix", text[:begin], "--prompt", text[begin:]]
    words = [*arguments.launcher.split(), str(arguments.hearth), "complete", str(model), *parts,
             "--temperature", "0", "--max-tokens", str(arguments.tokens), "--threads",
             str(arguments.threads), "--context", str(arguments.context), "--store", str(store)]
    # Where nearly nothing is computed, what a process does at its end is a large part of it.
    first = firstTextOf(words) if arguments.stored else None
    begin = time.monotonic()
    with subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, encoding="utf-8") as process:
        out, problem = process.communicate(timeout=TIMEOUT_S)
    whole = time.monotonic() - begin
    if process.returncode != 0:
        raise Failure(problem.strip() or f"exit code {process.returncode}")
    figures = json.loads(out)
    # What is neither in the preparation nor in the answer is starting and ending the process.
    answer = figures["first_token_ms"] / 1000
    rest = max(figures["tokens"] - 1, 0) / (figures["tokens_per_second"] or float("inf"))
    rest += (figures["ready_later_ms"] or 0) / 1000
    starting = max(whole - figures["ready_ms"] / 1000 - answer - rest, 0)
    return {"ready_s": figures["ready_ms"] / 1000,
            "first_token_s": first or starting + figures["ready_ms"] / 1000 + answer,
            "prefill": figures["prefill_tokens_per_second"], "decode": figures["tokens_per_second"],
            "prompt_tokens": figures["prompt_tokens"], "peak_mib": figures["peak_rss_kib"] / 1024,
            "anonymous_mib": figures["anonymous_rss_kib"] / 1024, "text": figures["text"]}


def peerOnce(arguments, model, prompt, cache):
    run = subprocess.run(
        [*arguments.launcher.split(), str(arguments.python), str(PEER), str(model), "--prompt", str(prompt), "--tokens",
         str(arguments.tokens), "--threads", str(arguments.threads), "--context",
         str(arguments.context), "--cache", str(cache)],
        capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT_S, check=False)
    if run.returncode != 0:
        raise Failure(run.stderr.strip().splitlines()[-1] if run.stderr.strip()
                      else f"exit code {run.returncode}")
    return json.loads(run.stdout.strip().splitlines()[-1])


def llamaOnce(arguments, model, prompt, cache):
    return llama_server.once(arguments, arguments.llama, prompt.read_text(encoding="utf-8"), TIMEOUT_S)


def sidesOf(arguments):
    return (HEARTH, PEER_SIDE, LLAMA) if arguments.llama else (HEARTH, PEER_SIDE)


def peersOf(arguments):
    return (PEER_WHEEL, llama_server.version(arguments)) if arguments.llama else (PEER_WHEEL,)


class Row:
    """One model with one prompt: {side: samples}, {side: sentence of what failed}."""

    def __init__(self, name, samples, failures):
        self.name = name
        self.samples = samples
        self.failures = failures

    def spread(self, side, figure):
        values = [sample[figure] for sample in self.samples[side] if sample[figure]]
        return Spread(values) if values else None

    def ratio(self, figure, side=PEER_SIDE):
        """Hearth's median divided by that of another side; None where one is missing."""
        own, peer = self.spread(HEARTH, figure), self.spread(side, figure)
        return own.median / peer.median if own and peer else None

    def json(self):
        return {"name": self.name, "failures": self.failures,
                "figures": {side: {figure: spread.json() for figure in FIGURES
                                   if (spread := self.spread(side, figure))} for side in self.samples}}

    def lines(self):
        counts = "/".join(str(samples[0]["prompt_tokens"]) for samples in self.samples.values() if samples)
        peers = [side for side in self.samples if side != HEARTH]
        rest = " | |" * len(peers)
        yield f"| **{self.name}, {counts} tokens** | |{rest}"
        for figure, title in FIGURES.items():
            line = f"| {title} | {self.spread(HEARTH, figure) or '–'} |"
            for side in peers:
                ratio = self.ratio(figure, side)
                line += f" {self.spread(side, figure) or '–'} | {'' if ratio is None else f'{ratio:.2f}'} |"
            yield line
        for side, sentence in self.failures.items():
            yield f"| {side} failed | {sentence} |{rest}"
        texts = [self.samples[side][0]["text"] for side in (HEARTH, PEER_SIDE) if self.samples[side]]
        if len(texts) == 2:
            common = len(os.path.commonprefix(texts))
            yield f"| characters of the answers that are equal | {common} of {len(texts[0])} |{rest}"


def measure(arguments, model, words, folder):
    prompt = folder / f"{words}.txt"
    prompt.write_text(promptOf(words), encoding="utf-8")
    sides = sidesOf(arguments)
    caches = {side: folder / f"{model.stem}-{number}" for number, side in enumerate(sides)}
    for cache in caches.values():
        cache.mkdir(exist_ok=True)
    once = {HEARTH: hearthOnce, PEER_SIDE: peerOnce, LLAMA: llamaOnce}
    samples = {side: [] for side in sides}
    name = f"{model.stem}, {words} words{f', {arguments.stored}' if arguments.stored else ''}"

    def take(side, number):
        say(f"{name}, {side}, {'warming' if number == 0 else f'round {number}'}")
        sample = once[side](arguments, model, prompt, caches[side])
        if number:
            samples[side].append(sample)

    orders = [sides if number % 2 else sides[::-1] for number in range(arguments.rounds + 1)]
    return Row(name, samples, comparison.takeTurns(orders, take, name))


def parseArguments(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--words", nargs="+", type=int, help="of the prompts; default: 75 280 560")
    parser.add_argument("--tokens", type=int, default=64, help="of the answers; default: 64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--rounds", type=int, help="default: 5")
    stored = parser.add_mutually_exclusive_group()
    stored.add_argument("--stored", action="store_const", const=BEGINNING, help="Hearth has the prompt but for a word")
    stored.add_argument("--equal", dest="stored", action="store_const", const=EQUAL, help="Hearth has all of the prompt")
    parser.add_argument("--quick", action="store_true", help="makes 1 round of the first prompt the default")
    llama_server.addOptions(parser)
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 5)
    arguments.words = arguments.words or ([75] if arguments.quick else [75, 280, 560])
    comparison.requirePositive(parser, rounds=arguments.rounds, words=arguments.words,
                               tokens=arguments.tokens, threads=arguments.threads)
    for model in arguments.models + [path for path in (arguments.llama,) if path]:
        if not model.is_file():
            parser.error(f"There is no file {model}.")
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    try:
        arguments.python = arguments.python or comparison.environmentPython(
            comparison.CACHE / "litert-lm-venv", PEER_WHEEL)
    except Failure as failure:
        say(f"compare.py: {failure}")
        return 1
    with tempfile.TemporaryDirectory(prefix="hearth-llm-") as folder:
        rows = [measure(arguments, model, count, Path(folder))
                for model in arguments.models for count in arguments.words]
    about = comparison.facts(peersOf(arguments), threads=arguments.threads, rounds=arguments.rounds)
    lines = [f"- {name}: {value}" for name, value in about]
    peers = sidesOf(arguments)[1:]
    lines += ["", f"| | {HEARTH} |" + "".join(f" {side} | ratio |" for side in peers), "|---|---|" + "---|---|" * len(peers)]
    lines += [line for row in rows for line in row.lines()]
    comparison.writeText(arguments.output, "\n".join(lines) + "\n")
    comparison.writeJson(arguments.json, about, rows)
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
