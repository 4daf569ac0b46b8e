#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where Hearth's answers part from LiteRT-LM's, and how sure Hearth is of its token there.

    compare_answers.py MODEL...                                 8 prompts, 32 tokens each
    compare_answers.py --answers greedy.json MODEL              LiteRT-LM's answers are in a file
    compare_answers.py --peer-launcher "tests/isa/with_isa.py avx2" MODEL

Both take the most likely token. Where the answers part, `scores` are those of Hearth's token and of the peer's, as
Hearth computes them, and `gap` is the difference; the peer's is the best one with which its text goes on, there or, with
the same characters, up to three tokens before. `rounding` is how much that difference changes in Hearth itself when the same tokens are computed
one by one, not in runs of many: sums in another order, and numbers near a boundary that activations of 8 bits round the
other way. `deviation` is the standard deviation of that for the difference of any two tokens. A prompt that is too short
for runs of many tokens, or in which nothing was rounded the other way, has none and is judged by the median. A gap that is not much larger shows that
neither token is wrong. A file of answers is a JSON list of {"prompt": ..., "greedy": ...}; prompts
may have special tokens, and the start token is put before each, as LiteRT-LM does. Exit code: 0 when all ran, 1 when
not, 2 for wrong arguments.
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


def greedy(model, tokens, count):
    """The tokens of the answer to a prompt, and the scores of each."""
    session = model.session()
    session.append(tokens)
    answer, scores = [], []
    for _ in range(count):
        scores.append(session.scores())
        answer.append(int(scores[-1].argmax()))
        session.append(answer[-1:])
    return answer, scores


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
    tokens = (model.metadata["start_tokens"] or []) + model.tokenize(prompt, special=True)
    answer, scores = greedy(model, tokens, count)
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
    deviation = float((again - scores[at]).std() * 2**0.5)
    return {"characters": common, "tokens": at, "ours": model.detokenize([answer[at]]),
            "peer": model.detokenize([token]), "rank": int((likely == token).nonzero()[0][0]) + 1,
            "scores": [float(scores[at][answer[at]]), float(scores[at][token])], "gap": gap(scores[at]), "rounding": abs(gap(again) - gap(scores[at])),
            "deviation": deviation if deviation > 1e-3 else None}


def shown(number):
    return "–" if number is None else f"{number:.3f}"


def askedNow(arguments, path, folder):
    """The name of each prompt, the prompt, and the answer of LiteRT-LM."""
    words = compare.promptOf(None).split()
    for begin, count in PROMPTS:
        prompt = folder / "prompt.txt"
        prompt.write_text(" ".join(words[begin:begin + count]), encoding="utf-8")
        say(f"{path.stem}: {count} words from {begin}")
        peer = compare.peerOnce(arguments, path, prompt, folder)["text"]
        yield f"{count} words from {begin}", prompt.read_text(encoding="utf-8"), peer


def askedBefore(answers):
    for number, case in enumerate(json.loads(answers.read_text(encoding="utf-8"))):
        yield f"{number + 1}", case["prompt"], case["greedy"]


def measure(arguments, path, folder):
    model = hearth.llm.Model(path, threads=arguments.threads, store=str(folder / "store"), prefixes=False)
    asked = 0
    found = []
    print(f"\n{path.stem}\n\n| prompt | equal tokens | Hearth | LiteRT-LM | its place | scores | gap | rounding | "
          "deviation |\n|---|---|---|---|---|---|---|---|---|")
    for name, prompt, peer in (askedBefore(arguments.answers) if arguments.answers else
                               askedNow(arguments, path, folder)):
        asked += 1
        difference = part(model, prompt, peer, arguments.tokens)
        if difference is None:
            print(f"| {name} | all | | | | | | | |", flush=True)
            continue
        found.append({"prompt": name, **difference})
        scores = " / ".join(f"{score:.3f}" for score in difference["scores"])
        print(f"| {name} | {difference['tokens']} | {difference['ours']!r} | {difference['peer']!r} | "
              f"{difference['rank']} | {scores} | {difference['gap']:.3f} | {difference['rounding']:.3f} | "
              f"{shown(difference['deviation'])} |", flush=True)
    print(f"\n{asked - len(found)} of {asked} answers are equal in {arguments.tokens} tokens.")
    deviations = [one["deviation"] for one in found if one["deviation"]]
    if deviations:
        usual = statistics.median(deviations)
        print(f"Medians: gap {statistics.median(one['gap'] for one in found):.3f}, deviation {usual:.3f}.")
        shares = sorted(one["gap"] / (one["deviation"] or usual) for one in found)
        print(f"Of the {len(shares)} differences {sum(share <= 1 for share in shares)} lie within one deviation and "
              f"{sum(share <= 2 for share in shares)} within two; the largest is {shares[-1]:.2f}.")
    return found


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--peer-launcher", dest="launcher", default="", help="command put before LiteRT-LM")
    parser.add_argument("--python", type=Path, help="Python with LiteRT-LM, instead of making one")
    parser.add_argument("--answers", type=Path, help="file with prompts and LiteRT-LM's answers, instead of running it")
    parser.add_argument("--json", type=Path, help="file for what was found")
    arguments = parser.parse_args(words)
    try:
        if not arguments.answers:
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
