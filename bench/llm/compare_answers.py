#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where Hearth's answers part from LiteRT-LM's, and how sure Hearth is of its token there.

    compare_answers.py MODEL...                                 8 prompts, 32 tokens each
    compare_answers.py --peer-launcher "tests/isa/with_isa.py avx2" MODEL

Both take the most likely token. Where the answers part, `gap` is the score of Hearth's token less that of the peer's,
as Hearth computes them; the peer's is the best one with which its text goes on, there or, with the same characters, up
to three tokens before. `rounding` is how much that difference changes in Hearth itself when the same tokens are computed
one by one, not in runs of many: sums in another order, and numbers near a boundary that activations of 8 bits round the
other way. `deviation` is the standard deviation of that for the difference of any two tokens. A gap that is not much
larger shows that neither token is wrong. Exit code: 0 when all ran, 1 when not, 2 for wrong arguments.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "build" / "release" / "python"), str(ROOT / "bench"), str(Path(__file__).parent)]
import compare  # noqa: E402
import comparison  # noqa: E402
import hearth.llm  # noqa: E402
from comparison import Failure, say  # noqa: E402

# The first word of each prompt, and how many it has.
PROMPTS = ((0, 20), (0, 75), (150, 40), (300, 75), (450, 60), (600, 90), (750, 30), (900, 120))


def greedy(model, prompt, count):
    """The tokens of the prompt, those of the answer, and the scores of each."""
    start = model.metadata["start_tokens"]
    tokens = model.tokenize(prompt)
    tokens = tokens if tokens[:len(start)] == start else start + tokens
    session = model.session()
    session.append(tokens)
    answer, scores = [], []
    for _ in range(count):
        scores.append(session.scores())
        answer.append(int(scores[-1].argmax()))
        session.append(answer[-1:])
    return tokens, answer, scores


def continuing(model, scores, rest, other):
    """The token with the highest score of those with which a text begins, but `other`; None where none is likely."""
    for token in scores.argsort()[::-1][:500]:
        text = model.detokenize([int(token)])
        if token != other and text and (rest.startswith(text) or text.startswith(rest)):
            return int(token)
    return None


def scoresOneByOne(model, tokens):
    session = model.session()
    for token in tokens:
        session.append([token])
        scores = session.scores()
    return scores


def part(model, prompt, peer, count):
    """A description of where the answers part; None where they are equal."""
    tokens, answer, scores = greedy(model, prompt, count)
    ours = model.detokenize(answer)
    length = min(len(ours), len(peer))
    common = len(os.path.commonprefix([ours[:length], peer[:length]]))
    if common == length:
        return None
    at = next(i for i in range(count) if len(model.detokenize(answer[:i + 1])) > common)
    # The peer may have begun the same characters with another token before.
    found = []
    for place in range(max(at - 3, 0), at + 1):
        rest = peer[len(model.detokenize(answer[:place])):]
        token = continuing(model, scores[place], rest, answer[place])
        if token is not None:
            found.append((float(scores[place][answer[place]] - scores[place][token]), place, token))
    if not found:
        raise Failure(f"No likely token begins {peer[common:][:20]!r}.")
    _, at, token = min(found)
    again = scoresOneByOne(model, tokens + answer[:at])

    def gap(found):
        return float(found[answer[at]] - found[token])

    likely = scores[at].argsort()[::-1]
    return {"characters": common, "tokens": at, "ours": model.detokenize([answer[at]]),
            "peer": model.detokenize([token]), "rank": int((likely == token).nonzero()[0][0]) + 1,
            "gap": gap(scores[at]), "rounding": abs(gap(again) - gap(scores[at])),
            "deviation": float((again - scores[at]).std() * 2**0.5)}


def measure(arguments, path, folder):
    model = hearth.llm.Model(path, threads=arguments.threads, store=str(folder / "store"), prefixes=False)
    words = compare.promptOf(None).split()
    equal, found = 0, []
    print(f"\n{path.stem}\n\n| words | equal tokens | Hearth | LiteRT-LM | its place | gap | rounding | "
          "deviation |\n|---|---|---|---|---|---|---|---|")
    for begin, count in PROMPTS:
        prompt = folder / "prompt.txt"
        prompt.write_text(" ".join(words[begin:begin + count]), encoding="utf-8")
        say(f"{path.stem}: {count} words from {begin}")
        peer = compare.peerOnce(arguments, path, prompt, folder)["text"]
        difference = part(model, prompt.read_text(encoding="utf-8"), peer, arguments.tokens)
        if difference is None:
            equal += 1
            print(f"| {count} from {begin} | all {arguments.tokens} | | | | | | |", flush=True)
            continue
        found.append(difference)
        print(f"| {count} from {begin} | {difference['tokens']} | {difference['ours']!r} | {difference['peer']!r} | "
              f"{difference['rank']} | {difference['gap']:.3f} | {difference['rounding']:.3f} | "
              f"{difference['deviation']:.3f} |", flush=True)
    print(f"\n{equal} of {len(PROMPTS)} answers are equal in {arguments.tokens} tokens.")
    if found:
        medians = (f"{name} {statistics.median(one[name] for one in found):.3f}" for name in ("gap", "rounding", "deviation"))
        print("Medians: " + ", ".join(medians) + ".")
    return found


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--peer-launcher", dest="launcher", default="", help="command put before LiteRT-LM")
    parser.add_argument("--python", type=Path, help="Python with LiteRT-LM, instead of making one")
    parser.add_argument("--json", type=Path, help="file for what was found")
    arguments = parser.parse_args(words)
    try:
        arguments.python = arguments.python or comparison.environmentPython(
            comparison.CACHE / "litert-lm-venv", compare.PEER_WHEEL)
        with tempfile.TemporaryDirectory(prefix="hearth-llm-") as folder:
            found = {str(path): measure(arguments, path, Path(folder)) for path in arguments.models}
    except Failure as failure:
        say(f"compare_answers.py: {failure}")
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
