#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of code in README.md and pages of docs, as they stand, in the checkout's root.

A fenced block is run by its language: sh, python (one block after the other in a program for each
page, so that later ones use the names of earlier ones) or cpp. A comment at the end of a line that
prints says what it prints: print(3)  # 3. A block that cannot be run stands behind a line
<!-- not run: REASON -->, and one of output has the language text. Anything else is an error: a block
without a language, in another one, or indented instead of fenced.

The release build of the command, the library and the Python package is used.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import checkout

PAGES = ("README.md", "docs/python.md", "docs/python-reference.md", "docs/scale.md",
         "docs/tutorial.md")
RUN = ("sh", "python", "cpp")
SHOWN = "text"
TIMEOUT_S = 300
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
PRINTED = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)


@dataclass
class Block:
    page: str
    line: int  # of the fence, from 1 on
    language: str
    text: str
    isRun: bool

    def where(self):
        return f"{self.page}:{self.line}"


def blocks(page, text):
    """The blocks of a page and sentences about those that are wrong."""
    found, wrong, lines = [], [], text.split("\n")
    number, isInList = 0, False
    while number < len(lines):
        line, before = lines[number], lines[number - 1] if number else ""
        number += 1
        if line and not line.startswith(" "):
            isInList = bool(re.match(r"[-*]|\d+\.", line))
        if line.startswith("    ") and not before and not isInList:
            wrong.append(f"{page}:{number} begins an indented block; a fenced one has a language.")
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number]):
                number += 1
        if not line.startswith("```"):
            continue
        language, first = line[3:].strip(), number
        while number < len(lines) and lines[number] != "```":
            number += 1
        isRun = language in RUN and not NOT_RUN.fullmatch(before)
        block = Block(page, first, language, "\n".join(lines[first:number]) + "\n", isRun)
        number += 1
        found.append(block)
        if language not in (*RUN, SHOWN) and not NOT_RUN.fullmatch(before):
            wrong.append(f"{block.where()} has a block of {language or 'no language'}, which is "
                         "neither run nor marked with <!-- not run: REASON -->.")
    return found, wrong


def environment(root, folder):
    release = root / "build" / "release"
    return {**os.environ, "HEARTH_STORE": str(folder / "store"),
            "PATH": f"{release / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(release / "python")}


def _run(words, root, folder, where, **options):
    """What a program prints, and a sentence if it fails, else None."""
    try:
        run = subprocess.run(words, cwd=root, env=environment(root, folder), capture_output=True,
                             text=True, timeout=TIMEOUT_S, check=False, **options)
    except subprocess.TimeoutExpired:
        return "", f"{where} takes longer than {TIMEOUT_S} seconds."
    if run.returncode != 0:
        return run.stdout, f"{where} ends with {run.returncode}: {run.stderr.strip()[-500:]}"
    return run.stdout, None


def failures(page, found, root, folder):
    """Sentences about the blocks of a page that do not run, or print something else."""
    failed = []
    for block in found:
        if not block.isRun or block.language == "python":
            continue
        words = ["bash", "-e", "-c", block.text]
        if block.language == "cpp":
            (folder / "block.cc").write_text(block.text, encoding="utf-8")
            library = root / "build" / "release" / "lib"
            _, sentence = _run(
                [os.environ.get("CXX", "c++"), "-std=c++17", "-Wall", "-Wextra", "-Werror",
                 f"-I{root / 'include'}", folder / "block.cc", f"-L{library}", "-lhearth",
                 f"-Wl,-rpath,{library}", "-o", folder / "block"], root, folder, block.where())
            if sentence:
                failed.append(sentence)
                continue
            words = [folder / "block"]
        _, sentence = _run(words, root, folder, block.where())
        failed += [sentence] if sentence else []
    python = [block for block in found if block.isRun and block.language == "python"]
    if python:
        # The lines of the page stay the lines of messages.
        program = ""
        for block in python:
            program += "\n" * (block.line - program.count("\n")) + block.text
        printed, sentence = _run([sys.executable, "-"], root, folder, page, input=program)
        expected = [line for block in python for line in PRINTED.findall(block.text)]
        lines = printed.split("\n")
        if sentence:
            failed.append(sentence)
        failed += [f"{page}: a block does not print {line}." for line in expected
                   if not sentence and line not in lines]
    return failed


def violations(root):
    """Sentences about what is wrong with the blocks of all pages."""
    wrong = []
    for page in PAGES:
        found, sentences = blocks(page, (root / page).read_text(encoding="utf-8"))
        wrong += sentences
        with tempfile.TemporaryDirectory(prefix="hearth-blocks-") as folder:
            wrong += failures(page, found, root, Path(folder))
    return wrong


def main():
    return checkout.report(violations(checkout.ROOT))


if __name__ == "__main__":
    sys.exit(main())
