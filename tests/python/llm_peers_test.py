# SPDX-License-Identifier: Apache-2.0
"""hearth.llm beside Jinja2, tokenizers and sentencepiece of PyPI: equal prompts and equal tokens.
Needs their wheels, which are installed in the cache folder."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))
import comparison  # noqa: E402

WHEELS = ("jinja2==3.1.6", "tokenizers==0.23.1", "sentencepiece==0.2.3")
DATA = os.environ.get("HEARTH_TEST_DATA")
LINES = 10_000
# The first characters of scripts, and how many follow.
SCRIPTS = [("a", 26), ("a", 26), ("A", 26), ("\u00e0", 23), ("\u03b1", 24), ("\u0430", 32), ("\u05d0", 26),
           ("\u0621", 26), ("\u0915", 30), ("\u0e01", 40), ("\u3041", 80), ("\u4e00", 60), ("\uac00", 60),
           ("\uff21", 26), ("\u2460", 20)]
MARKS = [",", ".", "!", "1", "20", "\t", "\u3000", "\u00a0", "\u00bd", "\ufb01", "e\u0301", "<turn_end>", "<b>",
         "\u2581", "'s", "'LL", "abab", "\U0001f600", "\U0001f468\u200d\U0001f469", "   ", "\n", "\n\n", "<|im_end|>"]
# Trains a model of SentencePiece: MODEL KIND TEXTS, options as JSON.
TRAINING = """
import json, sys, sentencepiece
sentencepiece.SentencePieceTrainer.train(input=sys.argv[3], model_prefix=sys.argv[1], model_type=sys.argv[2],
    vocab_size=1500, hard_vocab_limit=False, character_coverage=0.98, num_threads=1, minloglevel=3,
    **json.loads(sys.argv[4]))
"""


class Texts:
    """Lines of words and marks. The same at every run."""

    def __init__(self, seed, words=()):
        self.random = random.Random(seed)
        self.words = list(words)

    def word(self):
        if self.words and self.random.random() < 0.5:
            return self.random.choice(self.words)
        first, count = self.random.choice(SCRIPTS)
        return "".join(chr(ord(first) + self.random.randrange(self.random.randint(1, count)))
                       for _ in range(self.random.randint(1, 6)))

    def line(self, isStrange=True):
        text = ""
        for _ in range(self.random.randint(1, 12)):
            text += self.word()
            if self.random.random() < 0.25:
                text += self.random.choice(MARKS)
            if isStrange and self.random.random() < 0.2:
                code = self.random.randrange(0xA1, 0x2FFFF)
                text += "\u2603" if 0xD800 <= code < 0xE000 else chr(code)
            text += self.random.choice(["  "] + [" "] * 7)
        return text

    def write(self, path, count):
        path.write_text("".join(json.dumps({"text": self.line()}) + "\n" for _ in range(count)), encoding="utf-8")


@unittest.skipIf(DATA is None, "HEARTH_TEST_DATA is not set.")
class PeersTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(DATA) / "data" / "llm"
        cls.model = folder / "smollm2-135m-instruct-i8.litertlm"
        if not cls.model.exists():
            raise unittest.SkipTest("The test data has no language model.")
        cls.lines = [json.loads(line)["text"]
                     for line in (folder / "tokens.jsonl").read_text(encoding="utf-8").splitlines()]
        try:
            cls.python = comparison.environmentPython(comparison.CACHE / "llm-peers-venv", *WHEELS)
        except comparison.Failure as failure:
            raise unittest.SkipTest(f"The peers are not there: {failure}.") from None

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="hearth-llm-peers-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def compare(self, script, *arguments):
        """The last line that a comparison prints, which has found no difference."""
        run = subprocess.run([self.python, BENCH / "llm" / script, *arguments], capture_output=True, text=True,
                             encoding="utf-8", check=False)
        self.assertEqual(run.returncode, 0, run.stdout[-3000:] + run.stderr[-3000:])
        return run.stdout.splitlines()[-1]

    def compareTokens(self, tokenizer):
        words = [word for line in self.lines for word in line.split(" ") if word]
        Texts(2, words).write(self.folder / "made.jsonl", LINES)
        found = self.compare("compare_tokens.py", tokenizer, self.folder / "made.jsonl")
        self.assertRegex(found, rf"^{LINES} texts, 0 differences")

    def testPromptsAreThoseOfJinja(self):
        templates = sorted((HERE / "chat_templates").glob("*.jinja"))
        found = self.compare("compare_templates.py", self.model, *templates)
        self.assertEqual(len(templates), 20)
        counts = re.fullmatch(r"20 templates, 320 prompts \((\d+) refused\), 0 differences", found)
        self.assertIsNotNone(counts, found)
        self.assertLess(int(counts[1]), 100)

    def testAComparisonFindsDifferences(self):
        # Jinja2 escapes what is added to a text that is marked as safe.
        (self.folder / "safe.jinja").write_text("{{ '<a>'|safe + '<b>' }}", encoding="utf-8")
        run = subprocess.run([self.python, BENCH / "llm" / "compare_templates.py", self.model,
                              self.folder / "safe.jinja"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("'<a>&lt;b&gt;'", run.stdout)

    def testTokensAreThoseOfTokenizers(self):
        data = self.model.read_bytes()
        # The section begins with its size, and zlib's stream with these bytes.
        for at in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
            size = int.from_bytes(data[at.start() - 8:at.start()], "little")
            if at.start() % 16384 == 8 and 0 < size < 1 << 26:
                text = zlib.decompressobj().decompress(data[at.start():])
                break
        self.assertEqual(len(text), size)
        (self.folder / "tokenizer.json").write_bytes(text)
        self.compareTokens(self.folder / "tokenizer.json")

    def testTokensAreThoseOfSentencePiece(self):
        training = Texts(1)
        texts = self.folder / "training.txt"
        texts.write_text("\n".join(training.line(False).replace("\n", " ") for _ in range(3000)), encoding="utf-8")
        for number, (kind, options) in enumerate([
                ("unigram", {}),
                ("unigram", {"byte_fallback": True, "normalization_rule_name": "nfkc_cf",
                             "remove_extra_whitespaces": False, "user_defined_symbols": ["<turn_end>", "\n"]}),
                ("bpe", {"byte_fallback": True, "normalization_rule_name": "identity", "add_dummy_prefix": False,
                         "remove_extra_whitespaces": False, "split_digits": True})]):
            with self.subTest(kind, **options):
                model = self.folder / f"pieces{number}"
                subprocess.run([self.python, "-c", TRAINING, model, kind, texts, json.dumps(options)], check=True)
                self.compareTokens(model.with_suffix(".model"))


if __name__ == "__main__":
    unittest.main()
