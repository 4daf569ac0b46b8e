# SPDX-License-Identifier: Apache-2.0
"""hearth chat, hearth complete and hearth tokenize with a real language model."""

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import HEARTH, ROOT, CommandTest, DataTest

TOKENIZER = ROOT / "tests" / "corpus" / "tokenizer_json_fuzz" / "bytes.json"
PIECES = ROOT / "tests" / "corpus" / "sentence_piece_fuzz" / "pairs.model"
# Tells the model of tools as Qwen and Hermes do, and lets it repeat the last message, which a small model does
# reliably: of a tool's result with the city that the call before it names.
TOOL_TEMPLATE = """\
{%- macro call(city) %}<tool_call>
{"name": "get_weather", "arguments": {"city": "{{ city }}"}}
</tool_call>{% endmacro %}
{%- if tools %}<|im_start|>system
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- set last = messages[-1] %}
{%- set asked = last.content %}
{%- set repeated = ["abc", "Hello world!", call("Paris"), call("Bern")] %}
{%- if last.role == "tool" %}
{%- set asked = last.name ~ " of " ~ messages[-2].tool_calls[0].function.arguments.city ~ ": " ~ last.content %}
{%- set repeated = ["abc", "Hello world!", "get_time of Bern: late"] %}
{%- endif %}
{%- for text in repeated %}<|im_start|>user
Repeat: {{ text }}<|im_end|>
<|im_start|>assistant
{{ text }}<|im_end|>
{% endfor %}<|im_start|>user
Repeat: {{ asked }}<|im_end|>
<|im_start|>assistant{{ "\\n" }}"""
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
DIGITS = ROOT / "models" / "digits" / "digits.tflite"


class TokenizeTest(CommandTest):
    def testATokenizerNeedsNoModel(self):
        self.assertEqual(self.json("tokenize", TOKENIZER, "word<|end|>", "--special-tokens"),
                         {"tokens": [42, 5, 0], "texts": ["wor", "d", "<|end|>"]})
        self.assertIn('"wor"', self.succeed("tokenize", TOKENIZER, "word"))
        (self.folder / "text").write_text("or", encoding="utf-8")
        self.assertEqual(self.json("tokenize", TOKENIZER, f"@{self.folder / 'text'}")["tokens"], [41])
        self.assertEqual(self.json("tokenize", TOKENIZER, input="w")["tokens"], [24])

    def testAModelOfSentencePieceIsATokenizer(self):
        found = self.json("tokenize", PIECES, "Hello <end_of>")
        self.assertEqual("".join(found["texts"]), "Hello <end_of>")
        self.assertEqual(found["tokens"][:4], [13, 6, 12, 3])
        found = self.json("tokenize", PIECES, "Hello<end_of>", "--special-tokens")
        self.assertEqual(found["tokens"][-1], 2)

    def testWhatCannotBeReadIsRefused(self):
        self.assertIn("no token for", self.refuse(1, "tokenize", TOKENIZER, "A"))
        self.assertIn("no .litertlm file", self.refuse(1, "tokenize", DIGITS, "a"))
        (self.folder / "a.json").write_text("{", encoding="utf-8")
        self.assertIn("wrong at byte", self.refuse(1, "tokenize", self.folder / "a.json", "a"))
        self.refuse(1, "tokenize", self.folder / "missing.litertlm", "a")
        self.refuse(2, "tokenize")

    def testOtherModelsHaveNoLanguage(self):
        self.assertIn("no .litertlm file", self.refuse(1, "complete", DIGITS, "--prompt", "a"))
        self.assertIn("no .litertlm file", self.refuse(1, "chat", DIGITS, "--prompt", "a"))
        self.refuse(2, "chat", DIGITS, "--json")


class ConversationsTest(CommandTest):
    def testConversationsAreListedAndRemoved(self):
        environment = {"env": {**os.environ, "XDG_STATE_HOME": str(self.folder)}}
        self.assertEqual(self.succeed("conversations", "ls", **environment), "No saved conversations.\n")
        folder = self.folder / "hearth" / "conversations"
        self.assertEqual(self.json("conversations", "ls", **environment), {"path": str(folder), "conversations": []})
        self.assertFalse(folder.exists())
        folder.mkdir(parents=True, mode=0o700)
        saved = {"version": 1, "model": {"name": "model.litertlm"}, "messages": [{"role": "user", "content": "a"}]}
        for name, text in (("b", json.dumps(saved)), ("a", json.dumps(saved)), ("c", "{"), (".d", "{")):
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
            (folder / f"{name}.json").chmod(0o600)
        found = self.json("conversations", "ls", **environment)["conversations"]
        self.assertEqual([entry["name"] for entry in found], ["a", "b", "c"])
        self.assertEqual((found[0]["model"], found[0]["messages"]), ("model.litertlm", 1))
        self.assertIn("c.json cannot be read", found[2]["problem"])
        shown = self.succeed("conversations", "ls", **environment)
        self.assertIn("model.litertlm", shown)
        self.assertIn("(not readable)", shown)
        self.assertIn("there are: a, b, c.", self.refuse(1, "conversations", "rm", "a", "missing", **environment))
        self.refuse(1, "conversations", "rm", "../a", **environment)
        self.refuse(2, "conversations", "rm", **environment)
        self.refuse(2, "conversations", "rm", "a", "--all", **environment)
        self.assertEqual(self.json("conversations", "rm", "a", **environment), {"conversations": 1})
        self.succeed("conversations", "rm", "--all", **environment)
        self.assertEqual([path.name for path in folder.glob("*.json")], [".d.json"])
        self.assertIn("conversations", self.succeed("conversations"))
        without = {name: value for name, value in os.environ.items() if name not in ("XDG_STATE_HOME", "HOME")}
        self.assertIn("XDG_STATE_HOME", self.refuse(1, "conversations", "ls", env=without))

    def testAWrongNameIsRefusedBeforeTheModelIsRead(self):
        self.assertIn("64 letters", self.refuse(2, "chat", self.folder / "missing", "--save", "a/b"))


class LanguageModelTest(DataTest):
    def setUp(self):
        super().setUp()
        self.model = self.data("llm") / "smollm2-135m-instruct-i8.litertlm"
        if not self.model.exists():
            self.skipTest("The test data has no language model.")

    def answer(self, *arguments, **options):
        return self.json(*arguments, "--threads", 2, **options)

    def testTokensAreThoseOfTokenizers(self):
        lines = (self.data("llm") / "tokens.jsonl").read_text(encoding="utf-8").splitlines()
        for line in lines[:5]:
            expected = json.loads(line)
            (self.folder / "text").write_text(expected["text"], encoding="utf-8", newline="")
            found = self.json("tokenize", self.model, f"@{self.folder / 'text'}", "--special-tokens")
            self.assertEqual(found["tokens"], expected["ids"])

    def testTheTableOfATokenizerIsKeptForOtherStarts(self):
        environment = {**os.environ, "HEARTH_STORE": str(self.folder / "store")}
        first = self.json("tokenize", self.model, "Hello, world", env=environment)
        [table] = (self.folder / "store" / "tables").iterdir()
        whole = table.read_bytes()
        # One that is damaged is found to be so, and made again.
        table.chmod(0o600)
        middle = len(whole) // 2
        table.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:])
        again = self.json("tokenize", self.model, "Hello, world", env=environment)
        self.assertEqual(first, again)
        self.assertEqual([path.read_bytes() for path in table.parent.iterdir()], [whole])
        [listed] = self.json("cache", "ls", env=environment)["tables"]
        self.assertEqual((listed["key"], listed["kind"], listed["bytes"]), (table.stem, "tokenizer", len(whole)))
        self.assertRegex(self.succeed("cache", "ls", env=environment), f"{table.stem[:12]} +tokenizer ")
        summed = self.json("cache", "stat", env=environment)
        self.assertEqual((summed["tables"], summed["table_bytes"]), (1, len(whole)))
        shown = self.json("inspect", self.model, env=environment)["language_model"]
        self.assertEqual(shown["tokenizer_table"], table.stem)
        environment["HEARTH_STORE"] = str(self.folder / "other")
        shown = self.json("inspect", self.model, env=environment)["language_model"]
        self.assertIsNone(shown["tokenizer_table"])
        self.assertFalse((self.folder / "other").exists())

    def testInspectShowsWhatTheFileSays(self):
        shown = self.json("inspect", self.model)["language_model"]
        self.assertEqual((shown["tokenizer"], shown["vocabulary"]), ("byte pairs", 49152))
        self.assertIn("im_start", shown["chat_template"])
        self.assertEqual(len(shown["caches"]), 60)
        self.assertEqual(set(cache["sequence_axis"] for cache in shown["caches"]), {2, 3})
        self.assertRegex(self.succeed("inspect", self.model), r"tokenizer +byte pairs")

    def testAChatAnswersAQuestion(self):
        answer = self.answer("chat", self.model, "--prompt",
                             "What is free software?", "--max-tokens", 60, "--stop", ".")
        self.assertTrue(answer["text"].startswith("Free software"), answer["text"])
        self.assertEqual(answer["ending"], "stop")
        self.assertEqual(answer["reused_tokens"], 0)
        run = self.hearth("chat", self.model, "--prompt",
                          "What is free software?", "--max-tokens", 60, "--stop", ".", "--threads", 2, "--stats")
        self.assertEqual(run.stdout, answer["text"] + "\n")
        self.assertRegex(run.stderr, r"prompt of \d+ tokens")

    def testAnswersConformToASchema(self):
        schema = {"type": "object", "required": ["city", "founded", "size"], "properties": {
            "city": {"type": "string", "pattern": "^[A-Z][a-z]+$", "maxLength": 20},
            "founded": {"type": "string", "format": "date"},
            "size": {"type": "integer", "minimum": 10, "maximum": 99}}}
        question = "What is the capital of France?"
        answer = self.answer("chat", self.model, "--prompt", question, "--json-schema", json.dumps(schema))
        self.assertEqual(answer["ending"], "stop")
        found = json.loads(answer["text"])
        self.assertEqual(list(found), ["city", "founded", "size"])
        self.assertRegex(found["city"], "^[A-Z][a-z]{1,19}$")
        datetime.date.fromisoformat(found["founded"])
        self.assertTrue(10 <= found["size"] <= 99, found)
        # Each message of a conversation is answered so.
        path = self.folder / "schema.json"
        path.write_text(json.dumps({"type": "array", "items": {"type": "boolean"}, "maxItems": 2}), encoding="utf-8")
        run = self.hearth("chat", self.model, "--threads", 2, "--json-schema", f"@{path}",
                          input="Is it cold?\n\nIs it wet?\n")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for text in re.findall(r"\[[^]]*\]", run.stdout):
            self.assertLessEqual({type(item) for item in json.loads(text)}, {bool})
        self.assertEqual(run.stdout.count("["), 2)

    def testASchemaThatIsNotKnownIsRefused(self):
        for schema in ('{"type": "array", "uniqueItems": true}', "{", f"@{self.folder}/missing"):
            problem = self.refuse(1, "chat", self.model, "--prompt", "a", "--json-schema", schema)
        self.assertIn("missing", problem)
        run = self.hearth("complete", self.model, "--prompt", "a", "--threads", 2, "--max-tokens", 1, "--json-schema",
                          '{"type": "string", "minLength": 50}')
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("no whole JSON", run.stderr)

    def testAConversationIsNotComputedAgain(self):
        run = self.hearth("chat", self.model, "--max-tokens", 8, "--threads", 2, "--stats",
                          input="My name is Ann.\n\nWhat is my name?\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        known = [int(line.split(" of them known")[0].split()[-1]) for line in run.stderr.splitlines()]
        self.assertEqual(known[0], 0)
        self.assertGreater(known[1], 30)

    def testCallsOfToolsAreShownAsSuch(self):
        (self.folder / "template").write_text(TOOL_TEMPLATE, encoding="utf-8")
        (self.folder / "tools").write_text(json.dumps([WEATHER]), encoding="utf-8")
        options = ("--template", self.folder / "template", "--tools", self.folder / "tools", "--max-tokens", 60)
        call = '<tool_call> {"name": "get_weather", "arguments": {"city": "London"}} </tool_call>'
        answer = self.answer("chat", self.model, "--prompt", call, *options)
        self.assertEqual((answer["text"], answer["tool_calls"]),
                         ("", [{"name": "get_weather", "arguments": {"city": "London"}}]))
        self.assertEqual(self.answer("chat", self.model, "--prompt", "abc", *options)["tool_calls"], [])
        # The line behind a call is its result.
        run = self.hearth("chat", self.model, "--threads", 2, *options, input=f"{call}\n\nsunny and warm\nabc\n")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, 'get_weather({"city": "London"})\nget_weather of London: sunny and warm\nabc\n')
        # A call of no tool is text, and so is one where nobody was told of tools.
        (self.folder / "tools").write_text(json.dumps([WEATHER]).replace("get_weather", "get_time"), encoding="utf-8")
        answer = self.answer("chat", self.model, "--prompt", call, *options)
        self.assertEqual(answer["tool_calls"], [])
        self.assertIn('"London"', answer["text"])
        answer = self.answer("chat", self.model, "--prompt", call, *options[:2], *options[4:])
        self.assertNotIn("tool_calls", answer)
        self.assertIn('"London"', answer["text"])
        (self.folder / "tools").write_text("[{}]", encoding="utf-8")
        self.assertIn("Tool 1", self.refuse(1, "chat", self.model, "--prompt", "abc", *options))

    def saving(self):
        """The environment of commands that save conversations in the test's folder."""
        return {"env": {**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}}

    def testAnotherProcessGoesOnWithAConversation(self):
        saving = self.saving()
        words = ("chat", self.model, "--max-tokens", 24, "--store", self.folder / "store")
        self.assertIn("no other", self.refuse(1, *words, "--resume", "trip", "--prompt", "a", **saving))
        self.assertFalse((self.folder / "state").exists())
        first = self.answer(*words, "--save", "trip", "--system", "You answer briefly.", "--prompt", "My name is Ann.",
                            **saving)
        file = self.folder / "state" / "hearth" / "conversations" / "trip.json"
        self.assertEqual((file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777), (0o600, 0o700))
        saved = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual((saved["version"], saved["model"]["name"], len(saved["model"]["sha256"])),
                         (1, self.model.name, 64))
        self.assertEqual([message["role"] for message in saved["messages"]], ["system", "user", "assistant"])
        self.assertEqual(saved["messages"][2]["content"], first["text"])
        # All that was said is in the store, so that only the new message is computed.
        shutil.copy(file, file.with_name("copy.json"))
        question = "What is my name?"
        second = self.answer(*words, "--resume", "trip", "--prompt", question, **saving)
        self.assertGreater(second["stored_tokens"], first["prompt_tokens"])
        self.assertLess(second["prompt_tokens"] - second["stored_tokens"], 20)
        # The same text without the store, and in a process that all of it is said to, has that answer, too.
        without = self.answer(*words, "--resume", "copy", "--prompt", question, "--prefix-store", "off", **saving)
        self.assertEqual((without["stored_tokens"], without["text"]), (0, second["text"]))
        self.assertEqual(len(json.loads(file.read_text(encoding="utf-8"))["messages"]), 5)
        # A message for each line.
        run = self.hearth(*words, "--threads", 2, "--resume", "trip", "--stats", input="And yours?\n\nWhy?\n", **saving)
        self.assertEqual(run.returncode, 0, run.stderr)
        stored = [int(line.split(" stored")[0].split()[-1]) for line in run.stderr.splitlines()]
        self.assertGreater(stored[0], second["prompt_tokens"])
        messages = json.loads(file.read_text(encoding="utf-8"))["messages"]
        self.assertEqual([message["content"] for message in messages if message["role"] == "user"],
                         ["My name is Ann.", question, "And yours?", "Why?"])
        self.assertEqual([path.name for path in sorted(file.parent.iterdir())],
                         ["copy.json", "locks", "tmp", "trip.json"])
        self.assertEqual(list((file.parent / "tmp").iterdir()), [])

    def testNothingIsLostOfAConversation(self):
        saving = self.saving()
        words = ("chat", self.model, "--max-tokens", 2)
        self.answer(*words, "--save", "a.b-c_1", "--prompt", "Hello", **saving)
        [file] = (self.folder / "state" / "hearth" / "conversations").glob("*.json")
        whole = file.read_bytes()
        self.assertIn("--resume a.b-c_1", self.refuse(1, *words, "--save", "a.b-c_1", "--prompt", "b", **saving))
        self.assertIn("there are: a.b-c_1.", self.refuse(1, *words, "--resume", "other", "--prompt", "b", **saving))
        for name in (".a", "a/b", "a b", "ä", "x" * 65):
            self.assertIn("64 letters", self.refuse(2, *words, f"--save={name}", "--prompt", "b", **saving))
        self.refuse(2, *words, "--save", "b", "--resume", "a.b-c_1", **saving)
        self.refuse(2, *words, "--resume", "a.b-c_1", "--system", "b", **saving)
        # One process at a time has it open.
        with subprocess.Popen([HEARTH, *map(str, words), "--threads", "2", "--resume", "a.b-c_1"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, **saving) as other:
            other.stdin.write("Hello\n")
            other.stdin.flush()
            self.assertNotEqual(other.stdout.readline(), "")
            self.assertIn("Another process", self.refuse(1, *words, "--resume", "a.b-c_1", "--prompt", "b", **saving))
            self.assertIn("Another process", self.refuse(1, "conversations", "rm", "a.b-c_1", **saving))
            other.stdin.close()
            self.assertEqual(other.wait(timeout=300), 0)
        whole = file.read_bytes()
        # Not answered, not changed.
        self.assertIn("room for 8", self.refuse(1, *words, "--resume", "a.b-c_1", "--prompt", "b" * 99, "--context", 8,
                                               **saving))
        self.assertEqual(file.read_bytes(), whole)
        # One that cannot be written says so, and the old one stays.
        file.parent.joinpath("tmp").rmdir()
        file.parent.joinpath("tmp").symlink_to(self.folder)
        run = self.hearth(*words, "--resume", "a.b-c_1", "--prompt", "b", "--threads", 2, **saving)
        self.assertEqual(run.returncode, 1)
        self.assertIn("a.b-c_1 cannot be saved", run.stderr)
        self.assertEqual(file.read_bytes(), whole)
        file.parent.joinpath("tmp").unlink()
        # Another model goes on with the text.
        saved = json.loads(whole)
        saved["model"] = {"name": "other.litertlm", "sha256": "0" * 64}
        file.write_text(json.dumps(saved), encoding="utf-8")
        run = self.hearth(*words, "--resume", "a.b-c_1", "--prompt", "b", "--threads", 2, "--json", **saving)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("another model, other.litertlm", run.stderr)
        self.assertGreater(json.loads(run.stdout)["prompt_tokens"], 20)
        self.assertEqual(json.loads(file.read_text(encoding="utf-8"))["model"], json.loads(whole)["model"])
        file.write_bytes(whole[:-20])
        self.assertIn("a.b-c_1.json cannot be read", self.refuse(1, *words, "--resume", "a.b-c_1", "--prompt", "b",
                                                                 **saving))
        self.assertEqual(file.read_bytes(), whole[:-20])

    def testSavedToolsAreKnownAgain(self):
        saving = self.saving()
        (self.folder / "template").write_text(TOOL_TEMPLATE, encoding="utf-8")
        (self.folder / "tools").write_text(json.dumps([WEATHER]), encoding="utf-8")
        words = ("chat", self.model, "--template", self.folder / "template", "--max-tokens", 60)
        call = '<tool_call> {"name": "get_weather", "arguments": {"city": "London"}} </tool_call>'
        first = self.answer(*words, "--tools", self.folder / "tools", "--save", "tools", "--prompt", call, **saving)
        self.assertEqual(len(first["tool_calls"]), 1)
        # The message is the result of the call that was saved.
        second = self.answer(*words, "--resume", "tools", "--prompt", "sunny and warm", **saving)
        self.assertEqual((second["text"], second["tool_calls"]), ("get_weather of London: sunny and warm", []))
        third = self.answer(*words, "--resume", "tools", "--prompt", "abc", **saving)
        self.assertEqual(third["text"], "abc")

    def testATextIsContinued(self):
        answer = self.answer("complete", self.model, "--prompt", "1, 2, 3, 4, 5,", "--max-tokens", 8)
        self.assertTrue(answer["text"].startswith(" 6, 7"), answer["text"])
        self.assertEqual((answer["ending"], answer["tokens"]), ("max_tokens", 8))
        stopped = self.answer("complete", self.model, "--prompt", "1, 2, 3, 4, 5,", "--max-tokens", 20,
                              "--stop", "7")
        self.assertEqual((stopped["text"], stopped["ending"]), (" 6, ", "stop"))

    def testAnotherProcessFindsASystemPrompt(self):
        store = self.folder / "store"
        system = "You are a librarian. " + " ".join(f"Book {number} stands on shelf {number % 7}."
                                                     for number in range(8))

        def ask(question, *options):
            return self.answer("chat", self.model, "--system", system, "--prompt", question,
                               "--max-tokens", 8, "--store", store, *options)

        without = ask("Where is book 3?", "--prefix-store", "off")
        first, second, other = (ask(question) for question in
                                ("Where is book 3?", "Where is book 3?", "Is there a book 9?"))
        self.assertEqual([without["stored_tokens"], first["stored_tokens"]], [0, 0])
        self.assertGreater(second["stored_tokens"], 80)
        self.assertLess(second["stored_tokens"], second["prompt_tokens"])
        self.assertEqual(other["stored_tokens"], second["stored_tokens"])
        self.assertEqual([first["text"], second["text"]], [without["text"]] * 2)
        for path in (store / "prefixes").iterdir():
            self.assertEqual(path.stat().st_mode & 0o377, 0)
            path.chmod(0o600)
            with path.open("r+b") as file:
                file.seek(1000)
                file.write(b"wrong")
        again = ask("Where is book 3?")
        self.assertEqual((again["stored_tokens"], again["text"]), (0, without["text"]))

    def testStoredPrefixesAreMadeListedAndRemoved(self):
        store = ("--store", self.folder / "store")
        self.assertEqual(self.json("cache", "prefixes", "ls", *store)["prefixes"], [])
        long = " ".join(f"Rule {number}: be brief." for number in range(24))
        for text in (long, long + " Be kind.", "Be kind."):
            made = self.answer("cache", "prefixes", "warm", self.model, "--system", text, *store)
        self.assertEqual(made["stored_tokens"], 0)
        listed = self.json("cache", "prefixes", "ls", *store)
        self.assertEqual(len(listed["prefixes"]), 3)
        self.assertEqual({prefix["model"] for prefix in listed["prefixes"]}, {self.model.name})
        # The first 128 tokens of the long ones are kept once.
        self.assertGreater(sum(prefix["bytes"] for prefix in listed["prefixes"]), listed["bytes_on_disk"])
        answer = self.answer("chat", self.model, "--system", long, "--prompt", "Hello", "--max-tokens", 2, *store)
        shortest, middle, longest = sorted(listed["prefixes"], key=lambda prefix: prefix["tokens"])
        self.assertEqual(answer["stored_tokens"], middle["tokens"])
        self.assertEqual(made["tokens"], shortest["tokens"])
        self.assertEqual(self.json("cache", "prefixes", "rm", longest["key"][:12], *store)["prefixes"], 1)
        again = self.answer("cache", "prefixes", "warm", self.model, "--system", long, *store)
        self.assertEqual(again["stored_tokens"], middle["tokens"])
        self.assertIn(self.model.name, self.succeed("cache", "prefixes", "ls", *store))
        self.refuse(1, "cache", "prefixes", "rm", "0123456789", *store)
        self.refuse(2, "cache", "prefixes", "rm", *store)
        self.refuse(2, "cache", "prefixes", "warm", self.model, *store)
        self.assertEqual(self.json("cache", "prefixes", "rm", "--all", *store),
                         {"prefixes": 2, "bytes_left": 0})

    def testAPrefixIsKeptAndThePromptIsNot(self):
        store = self.folder / "store"
        prefix = "".join(f"{number}, " for number in range(60))

        def complete(prompt, *options):
            return self.answer("complete", self.model, "--prefix", prefix, "--prompt", prompt,
                               "--max-tokens", 4, "--store", store, *options)

        first = complete("60, 61,")
        self.assertEqual(complete("60, 61,")["text"], first["text"])
        stored = complete("70, 80,")["stored_tokens"]
        self.assertGreater(stored, 150)
        whole = complete("60, 61,", "--prefix-store", "all")
        self.assertLessEqual(whole["stored_tokens"], stored)
        again = complete("60, 61,", "--prefix-store", "all")
        self.assertEqual((again["stored_tokens"], again["text"]), (whole["prompt_tokens"], whole["text"]))
        plain = self.answer("complete", self.model, "--prompt", prefix + "60, 61,", "--max-tokens", 4)
        self.assertEqual(plain["prompt_tokens"], first["prompt_tokens"])

    def testAnEqualPromptHasItsFirstTokenWithoutTheModel(self):
        store = ("--store", self.folder / "store")
        words = ("complete", self.model, "--prompt", "1, 2, 3, 4, 5,")
        keeping = (*words, "--prefix-store", "all", *store)
        for sampler in ((), ("--temperature", 1, "--seed", 7, "--top-k", 20), ("--repetition-penalty", 1.3)):
            alone = self.answer(*words, "--max-tokens", 6, "--store-mode", "off", *sampler)
            first, second = (self.answer(*keeping, "--max-tokens", 6, *sampler) for _ in range(2))
            self.assertEqual([first["text"], second["text"]], [alone["text"]] * 2)
            self.assertEqual(second["stored_tokens"], second["prompt_tokens"])
            self.assertGreater(second["ready_later_ms"], 0)
            self.assertEqual(alone["ready_later_ms"], None)
        # Where that is all of the answer, the model is not needed.
        short = self.answer(*keeping, "--max-tokens", 1)
        self.assertEqual((short["text"], short["ready_later_ms"]), (" ", None))
        run = self.hearth(*keeping, "--max-tokens", 4, "--stats")
        self.assertEqual((run.returncode, run.stdout), (0, " 6, \n"))
        self.assertIn("the first token was stored", run.stderr)
        # What a compilation would have reported before it.
        run = self.hearth(*keeping, "--max-tokens", 4, env={**os.environ, "HEARTH_THREADS": "some"})
        self.assertEqual((run.returncode, run.stdout), (1, " \n"))
        self.assertIn("HEARTH_THREADS", run.stderr)
        self.assertIn("after the first token", run.stderr)
        self.assertIn("room for 8", self.refuse(1, *keeping, "--context", 8))
        # What is not marked as a whole is not kept so.
        self.json("cache", "prefixes", "rm", "--all", *store)
        for _ in range(2):
            marked = self.answer("complete", self.model, "--prefix", "1, 2, 3, 4,", "--prompt", " 5,", "--max-tokens", 2,
                                 *store)
        self.assertLess(marked["stored_tokens"], marked["prompt_tokens"])
        self.assertEqual(marked["ready_later_ms"], None)

    def testFirstStartsAtOnceAreAllRight(self):
        words = [HEARTH, "complete", self.model, "--prompt", "1, 2, 3, 4, 5,", "--max-tokens", "8", "--threads", "1"]
        alone = self.succeed(*words[1:], "--store-mode", "off")
        for trial in range(50 if os.environ.get("HEARTH_TEST_LONG") == "1" else 2):
            store = ["--store", str(self.folder / f"store{trial}")]
            starts = [subprocess.Popen(words + store, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                      for _ in range(4)]
            ends = [start.communicate(timeout=300) for start in starts]
            for start, (text, problem) in zip(starts, ends):
                self.assertEqual((start.returncode, problem), (0, ""))
                self.assertEqual(text, alone)
            self.assertTrue(alone.startswith(" 6, 7"), alone)
            self.assertEqual(len(list((self.folder / f"store{trial}" / "tables").iterdir())), 1)
            self.assertEqual(self.succeed(*words[1:], *store), alone)
            shutil.rmtree(store[1])

    def testASeedRepeatsItself(self):
        answers = [self.answer("complete", self.model, "--prompt", "Once", "--max-tokens", 8,
                               "--temperature", 1, "--seed", seed)["text"] for seed in (1, 1, 2)]
        self.assertEqual(answers[0], answers[1])
        self.assertNotEqual(answers[0], answers[2])

    def testALongPromptIsComputedInChunks(self):
        text = "".join(f"{number}, " for number in range(150))
        answer = self.answer("complete", self.model, "--prompt", text.strip(), "--max-tokens", 6)
        self.assertGreater(answer["prompt_tokens"], 256)
        self.assertTrue(answer["text"].startswith(" 150"), answer["text"])

    def testTheContextFillsUp(self):
        run = self.hearth("complete", self.model, "--prompt", "1, 2, 3, 4, 5,", "--context", 24,
                          "--threads", 2)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("the context of 24 tokens is full", run.stderr)
        self.assertIn("room for 8", self.refuse(1, "complete", self.model, "--prompt",
                                               "1, 2, 3, 4, 5,", "--context", 8))
        (self.folder / "text").write_bytes(b"\xff")
        self.assertIn("no UTF-8", self.refuse(1, "complete", self.model, "--prompt",
                                             f"@{self.folder / 'text'}"))

    def testWithoutItsOldestTokensATextGoesOn(self):
        # The first 4 stay, and half of 20 behind them.
        text = "".join(f"{number}, " for number in range(30)).strip()
        answer = self.answer("complete", self.model, "--prompt", text, "--context", 24, "--keep", 4,
                             "--max-tokens", 40)
        self.assertEqual((answer["ending"], answer["tokens"]), ("max_tokens", 40))
        self.assertEqual(answer["prompt_tokens"], 14)
        self.assertGreater(answer["dropped_tokens"], 30)
        self.assertIn("leaves no room", self.refuse(2, "complete", self.model, "--prompt", "1", "--context", 24,
                                                    "--keep", 24))

    def testWithoutItsOldestMessagesAConversationGoesOn(self):
        lines = "".join(f"What is {number} and {number}?\n" for number in range(6))
        arguments = ("chat", self.model, "--system", "You answer briefly.", "--max-tokens", 12, "--threads", 2,
                     "--context", 96, "--prefix-store", "off", "--stats")
        run = self.hearth(*arguments, input=lines)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("room for 96", run.stderr)
        run = self.hearth(*arguments, "--keep", 0, input=lines)
        self.assertEqual(run.returncode, 0, run.stderr)
        prompts = [int(re.search(r"prompt of (\d+) tokens", line).group(1))
                   for line in run.stderr.splitlines() if line.startswith("ready")]
        self.assertEqual(len(prompts), 6)
        self.assertLess(max(prompts), 96)
        self.assertTrue(any(later < before for before, later in zip(prompts, prompts[1:])), prompts)

    def testEmbeddingsMayComeFromAPartOfTheirOwn(self):
        model = self.data("llm") / "smollm2-135m-instruct-i4b32-embedder.litertlm"
        answer = self.json("chat", model, "--prompt", "What is free software?", "--max-tokens", 8)
        self.assertTrue(answer["text"].startswith("Free software refers to software"), answer["text"])


if __name__ == "__main__":
    unittest.main()
