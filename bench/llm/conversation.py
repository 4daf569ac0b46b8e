#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what `hearth chat-server` saves of a conversation's history, in one run.

    conversation.py MODEL                        about 1000 tokens of history, 2 threads, 5 rounds
    conversation.py --words 300 --rounds 3 MODEL

In each round a conversation with a long first message has three turns, and the time from sending turn 3 to the first
text of its answer is taken (`turn 3`). Then a conversation of the same length that the server has not seen is sent as
a whole (`computed`). Between rounds nothing is shared: the first words differ. The ratio is that of the medians.

Exit code: 0 when all ran, 1 when not, 2 for wrong arguments.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parent)]
import comparison  # noqa: E402
from compare import promptOf  # noqa: E402

QUESTIONS = ("Say one word about it.", "Say another word about it.")


class Client:
    """Asks a server for short answers."""

    def __init__(self, port, tokens):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.tokens = tokens

    def ask(self, messages):
        """Seconds to the first text, the whole text, and how many tokens the prompt had and were known."""
        body = json.dumps({"messages": messages, "max_tokens": self.tokens, "temperature": 0, "stream": True,
                           "stream_options": {"include_usage": True}})
        begin = time.monotonic()
        self.connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        reply = self.connection.getresponse()
        if reply.status != 200:
            raise comparison.Failure(reply.read().decode())
        first, text, usage = None, "", None
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[len(b"data: "):])
            usage = event["usage"] or usage
            for choice in event["choices"]:
                piece = choice["delta"].get("content", "")
                if piece and first is None:
                    first = time.monotonic() - begin
                text += piece
        return first, text, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def conversation(client, history):
    """The figures of turn 3, and its messages."""
    messages = [{"role": "user", "content": history}]
    for question in QUESTIONS:
        text = client.ask(messages)[1]
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": question}]
    return client.ask(messages), messages


def measure(arguments, port):
    client = Client(port, arguments.tokens)
    history = promptOf(arguments.words)
    rounds = []
    for number in range(arguments.rounds):
        (kept, _, tokens, known), messages = conversation(client, f"Text {2 * number}: {history}")
        messages[0]["content"] = f"Text {2 * number + 1}: {history}"
        computed, _, other, shared = client.ask(messages)
        comparison.say(f"round {number + 1}: turn 3 {kept:.3f} s, {known} of {tokens} tokens known; "
                       f"computed {computed:.3f} s, {shared} of {other} known")
        rounds.append((kept, computed, tokens, known))
    kept, computed = (statistics.median(column) for column in list(zip(*rounds))[:2])
    return {"prompt_tokens": rounds[-1][2], "known_tokens": rounds[-1][3], "turn_3_s": round(kept, 4),
            "computed_s": round(computed, 4), "ratio": round(kept / computed, 4)}


def run(arguments, store):
    """The figures of a server that runs for this alone."""
    with subprocess.Popen([arguments.hearth, "chat-server", arguments.model, "--listen", "127.0.0.1:0",
                           "--threads", str(arguments.threads), "--store", store],
                          stdout=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        try:
            if not line:
                raise comparison.Failure("The server does not start.")
            return measure(arguments, int(line.rsplit(":", 1)[1]))
        finally:
            server.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--words", type=int, default=640, help="of the first message (640)")
    parser.add_argument("--tokens", type=int, default=16, help="of each answer (16)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    comparison.addHearth(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as store:
        try:
            figures = run(arguments, store)
        except comparison.Failure as failure:
            comparison.say(f"conversation.py: {failure}")
            return 1
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
