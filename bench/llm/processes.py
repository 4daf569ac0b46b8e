#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what several processes that talk with one language model share.

    processes.py MODEL...                       four processes of `hearth chat` with a stored system prompt
    processes.py --peer MODEL...                the same, and four of LiteRT-LM with that prompt beside them
    processes.py --first-starts 50 MODEL...     50 times four processes at once that find an empty store

Each process answers one message and then waits, so that all of them are alive when memory is read. `PSS` is the sum of
all processes' shares of resident memory. `private` is the part of the stored prefix's keys and values of which each
process has a copy of its own: pages that it has written to, and what was copied because it is no whole page. Exit code:
0 when all ran, 1 when not, 2 for wrong arguments.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(Path(__file__).parent)]
import compare  # noqa: E402
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402

MESSAGE = "What is free software?"


def memoryOf(process):
    """KiB of one process: the fields of all its memory, and {Size, Anonymous} of its mappings of stored prefixes."""
    whole = {}
    for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]:
        name, _, value = line.partition(":")
        whole[name] = int(value.split()[0])
    prefix = {"Size": 0, "Anonymous": 0}
    isPrefix = False
    for line in Path(f"/proc/{process}/smaps").read_text(encoding="utf-8").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            isPrefix = "/prefixes/" in line
        elif isPrefix:
            name, _, value = line.partition(":")
            if name in prefix:
                prefix[name] += int(value.split()[0])
    return whole, prefix


def start(arguments, model, system, store):
    words = [str(arguments.hearth), "chat", str(model), "--system", f"@{system}", "--temperature", "0",
             "--max-tokens", str(arguments.tokens), "--threads", str(arguments.threads), "--store", str(store),
             "--stats"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, encoding="utf-8")
    process.stdin.write(MESSAGE + "\n")
    process.stdin.flush()
    return process


def finish(process):
    _, problem = process.communicate(timeout=compare.TIMEOUT_S)
    if process.returncode != 0:
        raise Failure(problem.strip() or f"exit code {process.returncode}")
    return problem


def storedBytes(store):
    return sum(path.stat().st_size for path in (store / "prefixes").rglob("*") if path.is_file())


def waitForAnswer(process):
    """Until the statistics of the answer are there."""
    text = ""
    for line in process.stderr:
        text += line
        if line.startswith("ready after"):
            return text
    raise Failure(text.strip() or "The process ended.")


def peerMemory(arguments, model, prompt, cache):
    """MiB of PSS of LiteRT-LM's processes, after one alone has filled its cache."""
    words = [str(arguments.python), str(compare.PEER), str(model), "--prompt", str(prompt), "--tokens",
             str(arguments.tokens), "--threads", str(arguments.threads), "--context", "2048", "--cache", str(cache),
             "--wait"]

    def startPeer():
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, encoding="utf-8")

    cache.mkdir(exist_ok=True)
    startPeer().communicate(timeout=compare.TIMEOUT_S)
    processes = [startPeer() for _ in range(arguments.processes)]
    if not all(process.stdout.readline().startswith("{") for process in processes):
        raise Failure("LiteRT-LM gives no answer.")
    pss = sum(memoryOf(process.pid)[0]["Pss"] for process in processes) / 1024
    for process in processes:
        process.communicate(timeout=compare.TIMEOUT_S)
    return pss


def measure(arguments, model, folder):
    system = folder / "system.txt"
    system.write_text(compare.promptOf(arguments.words), encoding="utf-8")
    store = folder / f"{model.stem}-store"
    store.mkdir(exist_ok=True)
    say(f"{model.stem}: storing the prefix")
    finish(start(arguments, model, system, store))
    size = storedBytes(store) / 1024
    say(f"{model.stem}: {arguments.processes} processes")
    processes = [start(arguments, model, system, store) for _ in range(arguments.processes)]
    statements = [waitForAnswer(process) for process in processes]
    found = [memoryOf(process.pid) for process in processes]
    for process in processes:
        finish(process)
    private = [(prefix["Anonymous"] + size - prefix["Size"]) / size for _, prefix in found]
    peer = peerMemory(arguments, model, system, folder / f"{model.stem}-peer") if arguments.peer else None
    return {"model": model.stem, "peer_pss_mib": peer, "prefix_mib": size / 1024, "statistics": statements[0].strip(),
            "pss_mib": sum(whole["Pss"] for whole, _ in found) / 1024,
            "anonymous_mib": statistics.median(whole["Anonymous"] for whole, _ in found) / 1024,
            "private": statistics.median(private)}


def firstStarts(arguments, model, folder):
    words = [str(arguments.hearth), "complete", str(model), "--prompt", "1, 2, 3, 4, 5,", "--temperature", "0",
             "--max-tokens", str(arguments.tokens), "--threads", str(arguments.threads)]
    alone = subprocess.run([*words, "--store-mode", "off"], capture_output=True, text=True, encoding="utf-8",
                           timeout=compare.TIMEOUT_S, check=False)
    if alone.returncode != 0:
        raise Failure(alone.stderr.strip())
    right = 0
    for trial in range(arguments.first_starts):
        say(f"{model.stem}: trial {trial + 1}, {right} starts were right")
        store = folder / "first"
        processes = [subprocess.Popen([*words, "--store", str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, encoding="utf-8") for _ in range(arguments.processes)]
        texts = [process.communicate(timeout=compare.TIMEOUT_S)[0] for process in processes]
        right += sum(process.returncode == 0 and text == alone.stdout for process, text in zip(processes, texts))
        shutil.rmtree(store)
    starts = arguments.first_starts * arguments.processes
    return {"model": model.stem, "first_starts": starts, "right": right}


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--words", type=int, default=560, help="of the system prompt; default: 560, about 900 tokens")
    parser.add_argument("--tokens", type=int, default=16, help="of the answer; default: 16")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--first-starts", type=int, default=0, metavar="TRIALS")
    parser.add_argument("--peer", action="store_true")
    comparison.addPrograms(parser)
    arguments = parser.parse_args(words)
    try:
        if arguments.peer:
            arguments.python = arguments.python or comparison.environmentPython(
                comparison.CACHE / "litert-lm-venv", compare.PEER_WHEEL)
        with tempfile.TemporaryDirectory(prefix="hearth-llm-") as folder:
            for model in arguments.models:
                if arguments.first_starts:
                    found = firstStarts(arguments, model, Path(folder))
                    print(json.dumps(found, indent=1))
                    if found["right"] != found["first_starts"]:
                        raise Failure(f"{found['first_starts'] - found['right']} first starts were wrong.")
                    continue
                print(json.dumps(measure(arguments, model, Path(folder)), indent=1))
    except Failure as failure:
        say(f"processes.py: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
