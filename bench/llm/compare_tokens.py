#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tokens of texts with those of PyPI's `sentencepiece` or `tokenizers`, line by line.

    compare_tokens.py TOKENIZER TEXTS...     a .model of SentencePiece, or a tokenizer.json

A file of texts has one on each line, as it is or, in a .jsonl file, as {"text": ...}. Special tokens that are written
in a text count as such, as they do in `tokenizers`; `sentencepiece` never takes control pieces from a text. The text
that tokens are decoded to is compared, too. Exit code: 0 when all are equal, 1 when not, 2 for wrong arguments.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def linesOf(path):
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line:
            yield json.loads(line)["text"] if path.suffix == ".jsonl" else line


def peerOf(path):
    """What encodes a text, and what decodes tokens."""
    if path.suffix == ".json":
        import tokenizers  # noqa: PLC0415 - only one of the two need be installed
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        return (lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
                lambda tokens: tokenizer.decode(tokens, skip_special_tokens=False))
    import sentencepiece  # noqa: PLC0415
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return processor.encode, processor.decode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "bin" / "token_lines")
    arguments = parser.parse_args()
    texts = [line for path in arguments.texts for line in linesOf(path)]
    run = subprocess.run([str(arguments.program), str(arguments.tokenizer)], text=True, encoding="utf-8", check=False,
                         input="".join(json.dumps(text) + "\n" for text in texts), stdout=subprocess.PIPE)
    if run.returncode != 0:
        sys.exit(1)
    ours = [json.loads(line) for line in run.stdout.split("\n") if line]
    encode, decode = peerOf(arguments.tokenizer)
    different = 0
    peerSeconds = 0.0
    for text, (tokens, decoded, _) in zip(texts, ours, strict=True):
        begin = time.perf_counter()
        expected = encode(text)
        peerSeconds += time.perf_counter() - begin
        for what, found, wanted in (("tokens", tokens, expected), ("text", decoded, decode(expected))):
            if found == wanted:
                continue
            different += 1
            if different <= 10:
                print(f"{what} of {text!r}:\n  {found}\n  not {wanted}")
    seconds = sum(line[2] for line in ours)
    print(f"{len(texts)} texts, {different} differences; {seconds:.2f} s beside {peerSeconds:.2f} s")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
