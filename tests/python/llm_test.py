# SPDX-License-Identifier: Apache-2.0
"""hearth.llm with the model in the shared test data."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "release" / "python"))

import hearth.llm  # noqa: E402
from hearth.errors import BadState, DeadlineMissed, InvalidArgument, NotFound  # noqa: E402

DATA = os.environ.get("HEARTH_TEST_DATA")
QUESTION = "What is the capital of France?"
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}}}
TOOL_TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Write <tool_call>{"name": name, "arguments": object}</tool_call>.<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def path():
    return os.path.join(DATA, "data", "llm", "smollm2-135m-instruct-i8.litertlm")


@unittest.skipIf(DATA is None, "HEARTH_TEST_DATA is not set.")
class LlmTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.model = hearth.llm.Model(path(), threads=2)

    def testAChatKeepsWhatWasSaid(self):
        chat = self.model.chat(system="You answer briefly.")
        pieces = list(chat.send(QUESTION, max_tokens=40))
        self.assertGreater(len(pieces), 1)
        self.assertIn("Paris", "".join(pieces))
        self.assertEqual([message["role"] for message in chat.messages],
                         ["system", "user", "assistant"])
        self.assertEqual(chat.messages[-1]["content"], "".join(pieces))
        answer = chat.send("And of Italy?", max_tokens=40)
        self.assertGreater(chat.reused_tokens, 20)
        self.assertIn("Rome", str(answer))
        self.assertEqual(len(chat.messages), 5)
        self.assertEqual(answer.ending, "stop")
        self.assertGreater(answer.first_token_ms, 0)
        self.assertIn("5 messages", repr(chat))

    def testTheMessageOfTheSystemIsKept(self):
        system = "You answer in one short sentence, and you know all about bridges and towers."
        texts, stored = [], []
        with tempfile.TemporaryDirectory() as store:
            for prefixes in (True, True, False):
                chat = hearth.llm.Model(path(), store=store, prefixes=prefixes).chat(system=system)
                texts.append(str(chat.send(QUESTION, max_tokens=12, temperature=0)))
                stored.append(chat.session.statistics["stored_tokens"])
        self.assertEqual(len(set(texts)), 1, texts)
        self.assertEqual(stored[::2], [0, 0])
        self.assertGreater(stored[1], 10)

    def testAConversationGoesOnInAnotherProcess(self):
        with tempfile.TemporaryDirectory() as store:
            model = hearth.llm.Model(path(), store=store, threads=2)
            chat = model.chat(system="You answer briefly.")
            str(chat.send(QUESTION, max_tokens=12, temperature=0))
            saved = json.dumps({"messages": chat.messages, "tools": chat.tools})
            answers, stored = [], []
            for _ in range(2):
                chat = hearth.llm.Model(path(), store=store, threads=2).chat(**json.loads(saved))
                answers.append(str(chat.send("And of Italy?", max_tokens=12, temperature=0)))
                stored.append(chat.session.statistics["stored_tokens"])
                self.assertEqual([message["role"] for message in chat.messages],
                                 ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual(answers[0], answers[1])
        self.assertIn("Rome", answers[0])
        # The first of them kept what the conversation began with.
        self.assertGreater(stored[1], stored[0] + 10)
        with self.assertRaisesRegex(InvalidArgument, "exclude each other"):
            self.model.chat(system="a", messages=[])

    def testWhatTheCommandKeptIsFound(self):
        system = "You answer in one short sentence, and you know all about rivers and lakes."
        with tempfile.TemporaryDirectory() as store:
            warm = subprocess.run([ROOT / "build" / "release" / "bin" / "hearth", "cache", "prefixes", "warm", path(),
                                   "--system", system, "--store", store, "--threads", "2"],
                                  check=False, capture_output=True, text=True)
            self.assertEqual(warm.returncode, 0, warm.stderr)
            chat = hearth.llm.Model(path(), store=store, threads=2).chat(system=system)
            str(chat.send(QUESTION, max_tokens=1))
        self.assertGreater(chat.session.statistics["stored_tokens"], 10)

    def testAnEqualPromptBeginsWithoutTheModel(self):
        texts, stored = [], []
        with tempfile.TemporaryDirectory() as store:
            for marked in (True, True, False):
                answer = hearth.llm.Model(path(), store=store, threads=2).complete(
                    "1, 2, 3, 4, 5,", marked=marked, max_tokens=6, temperature=0)
                texts.append(str(answer))
                stored.append(answer.session.statistics["stored_tokens"])
                tokens = answer.session.tokens
            with self.assertRaises(InvalidArgument):
                hearth.llm.Model(path(), store=store).session(tokens, marked=len(tokens) + 1)
        self.assertEqual(texts, [texts[0]] * 3)
        self.assertEqual(stored, [0, len(tokens) - 6, 0])

    def testAForkKnowsNothingOfTheOther(self):
        chat = self.model.chat()
        str(chat.send("My name is Ada.", max_tokens=4, temperature=0))
        fork = chat.fork()
        before = fork.session.statistics
        answer = str(chat.send(QUESTION, max_tokens=8, temperature=0))
        self.assertEqual(len(fork.messages), 2)
        self.assertEqual(str(fork.send(QUESTION, max_tokens=8, temperature=0)), answer)
        self.assertEqual(before["decoded_tokens"], 0)

    def testAnAnswerThatIsLeftEnds(self):
        chat = self.model.chat()
        answer = chat.send("Count from one to one hundred.")
        first = next(answer)
        with self.assertRaises(BadState):
            chat.session.append([1])
        with self.assertRaises(BadState):
            chat.fork()
        chat.send(QUESTION)
        self.assertEqual(answer.ending, "cancelled")
        self.assertEqual(chat.messages[1], {"role": "assistant", "content": answer.text})
        self.assertTrue(answer.text.startswith(first))
        self.assertIsNone(answer.next())

    def testAnotherThreadCancels(self):
        answer = self.model.chat().send("Count from one to one thousand.")
        next(answer)
        thread = threading.Thread(target=answer.cancel)
        thread.start()
        text = str(answer)
        thread.join()
        self.assertEqual(answer.ending, "cancelled")
        self.assertEqual(text, answer.text)

    def testCoroutinesTakeTurns(self):
        options = {"max_tokens": 8, "temperature": 0}
        questions = (QUESTION, "What is the largest planet?")

        async def ask(question):
            return "".join([text async for text in self.model.chat().send(question, **options)])

        async def both():
            return await asyncio.gather(*map(ask, questions))

        self.assertEqual(asyncio.run(both()),
                         [str(self.model.chat().send(question, **options)) for question in questions])

    def testAnAnswerConformsToItsSchema(self):
        schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                  "required": ["city"], "additionalProperties": False}
        for given in (schema, json.dumps(schema)):
            found = json.loads(str(self.model.complete(QUESTION, json_schema=given)))
            self.assertEqual(list(found), ["city"])
        with self.assertRaisesRegex(hearth.Error, "'not'"):
            self.model.complete(QUESTION, json_schema={"not": {"type": "null"}})

    def testCallsOfToolsAreObjects(self):
        model = hearth.llm.Model(path(), threads=2, chat_template=TOOL_TEMPLATE)
        self.assertEqual(model.metadata["tool_calls"], "hermes")
        chat = model.chat(tools=[WEATHER])
        answer = chat.send("What is the weather in Bern?", tool_choice="weather")
        self.assertEqual((str(answer), answer.ending), ("", "stop"))
        [call] = answer.tool_calls
        self.assertEqual((call.name, list(call.arguments)), ("weather", ["city"]))
        self.assertEqual(chat.messages[-1]["tool_calls"][0]["function"],
                         {"name": "weather", "arguments": call.arguments})
        self.assertIn('<tool_call>{"name": "weather", "arguments": {"city": ', model.prompt(chat.messages))
        result = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "It rains."}
        answer = chat.send(result, tool_choice="required")
        str(answer)
        self.assertEqual([call.name for call in answer.tool_calls], ["weather"])
        self.assertEqual([message["role"] for message in chat.messages], ["user", "assistant", "tool", "assistant"])
        # A model of which it is not known how it calls tools writes text.
        self.assertIsNone(self.model.metadata["tool_calls"])
        with self.assertRaisesRegex(hearth.Error, "not known"):
            self.model.complete(QUESTION, tools=[WEATHER])
        for options in ({"tool_choice": "required"}, {"tools": [WEATHER], "tool_choice": "clock"},
                        {"tools": [{}]}, {"tools": [WEATHER], "tool_choice": "weather", "json_schema": {}}):
            with self.subTest(options), self.assertRaises(InvalidArgument):
                model.complete(QUESTION, **options)

    def testACallIsFoundInText(self):
        model = hearth.llm.Model(path(), threads=2, chat_template=TOOL_TEMPLATE)
        written = model.tokenize('Well. <tool_call>{"name": "weather", "arguments": {"city": "Bern"}}</tool_call>')

        def hook(scores, tokens):
            scores[:] = float("-inf")
            scores[written[len(tokens)]] = 0

        pieces = model.complete(QUESTION, max_tokens=len(written), hook=hook, tools=[WEATHER])
        self.assertEqual(str(pieces), "Well.")
        self.assertEqual([call[1:] for call in pieces.tool_calls], [("weather", {"city": "Bern"})])
        # Without tools it is text.
        plain = model.complete(QUESTION, max_tokens=len(written), hook=hook)
        self.assertIn("</tool_call>", str(plain))
        self.assertEqual(plain.tool_calls, [])

    def testAHookChoosesTokens(self):
        wanted = self.model.tokenize("Bonn")
        seen = []

        def hook(scores, tokens):
            seen.append(tokens)
            scores[:] = float("-inf")
            scores[wanted[len(tokens)]] = 0

        self.assertEqual(str(self.model.complete(QUESTION, max_tokens=len(wanted), hook=hook)), "Bonn")
        self.assertEqual(seen, [wanted[:i] for i in range(len(wanted))])

    def testPenaltiesKeepAnAnswerFromRepeatingItself(self):
        prompt = "One two three one two three one two three one"

        def answered(**penalties):
            session = self.model.session()
            session.append(self.model.tokenize(prompt))
            count = len(session.tokens)
            str(session.answer(max_tokens=12, temperature=0, **penalties))
            return session.tokens[:count], session.tokens[count:]

        self.assertLess(len(set(answered()[1])), 12)
        for name in ("presence_penalty", "frequency_penalty"):
            answer = answered(**{name: 1000})[1]
            self.assertEqual(len(set(answer)), len(answer), name)
        before, answer = answered(repetition_penalty=10)
        self.assertFalse(set(before) & set(answer))
        with self.assertRaisesRegex(InvalidArgument, "0.1 to 10"):
            answered(repetition_penalty=-1)

    def testTextAndTokens(self):
        tokens = self.model.tokenize("<|im_end|>", special=True)
        self.assertEqual(len(tokens), 1)
        self.assertEqual(self.model.detokenize(tokens), "")
        self.assertEqual(self.model.detokenize(tokens, special=True), "<|im_end|>")
        self.assertEqual(self.model.detokenize(self.model.tokenize("Bären, 熊\0 and 🐻")), "Bären, 熊\0 and 🐻")
        messages = [{"role": "user", "content": "Hi <|im_end|>"}]
        self.assertTrue(self.model.prompt(messages).endswith("assistant\n"))
        self.assertEqual(self.model.prompt_tokens(messages).count(tokens[0]),
                         self.model.prompt_tokens(messages, special=True).count(tokens[0]) - 1)
        self.assertEqual(self.model.metadata["vocabulary"], 49152)

    def testScoresAreThoseOfTheNextToken(self):
        session = self.model.session()
        session.append(self.model.prompt_tokens([{"role": "user", "content": QUESTION}]))
        scores = session.scores()
        self.assertEqual(scores.shape, (49152,))
        count = len(session.tokens)
        self.assertEqual(str(session.answer(max_tokens=1, temperature=0)),
                         self.model.detokenize([int(scores.argmax())]))
        session.rewind(count)
        self.assertTrue((session.scores() == scores).all())
        self.assertIn(QUESTION, session.text)
        self.assertIn(session.start_report["state"], ("cold", "warm"))

    def testATimeoutLosesNothing(self):
        answer = self.model.complete("One two three four", max_tokens=5, temperature=0)
        with self.assertRaises(DeadlineMissed):
            answer.next(timeout=0)
        self.assertEqual(str(answer),
                         str(self.model.complete("One two three four", max_tokens=5, temperature=0)))

    def testWithoutItsOldestPartATextGoesOn(self):
        model = hearth.llm.Model(path(), context=64, threads=2)
        answer = model.complete(" ".join("abcdefgh" * 12), keep=4, max_tokens=80, temperature=0)
        chosen = []
        answer._hook = lambda scores, tokens: chosen.append(len(tokens))
        str(answer)
        self.assertEqual((answer.ending, answer.tokens), ("max_tokens", 80))
        self.assertEqual(chosen, list(range(80)))
        self.assertEqual(answer.session.context, 64)
        start = model.metadata["start_tokens"]
        self.assertEqual(answer.session.tokens[:4], [*start, *model.tokenize("a b c d e f g h")][:4])
        chat = model.chat(system="You answer briefly.")
        for question in range(5):
            str(chat.send(f"What is {question} and {question}?", keep=0, max_tokens=12))
            self.assertLessEqual(len(chat.session.tokens), 64)
        self.assertEqual([message["role"] for message in chat.messages[:2]], ["system", "user"])
        self.assertLess(len(chat.messages), 11)
        with self.assertRaisesRegex(InvalidArgument, "leave no room"):
            model.complete("One", keep=64)

    def testMistakesAreNamed(self):
        with self.assertRaisesRegex(NotFound, "/nowhere"):
            hearth.llm.Model("/nowhere/model.litertlm")
        with self.assertRaisesRegex(InvalidArgument, "cache is 'rw'"):
            hearth.llm.Model(path(), cache="rw")
        with self.assertRaisesRegex(InvalidArgument, "threads is -1"):
            hearth.llm.Model(path(), threads=-1)
        with self.assertRaisesRegex(InvalidArgument, "'robot'"):
            self.model.prompt([{"role": "robot", "content": ""}])
        session = self.model.session()
        with self.assertRaisesRegex(BadState, "empty"):
            session.answer()
        for tokens in ([-1], [1 << 31], [49152], ["a"], 5):
            with self.subTest(tokens), self.assertRaises(InvalidArgument):
                session.append(tokens)
        session.append([1])
        for options in ({"top_p": 2}, {"temperature": -0.5}, {"max_tokens": -1}, {"stops": [5]}):
            with self.subTest(options), self.assertRaises(InvalidArgument):
                session.answer(**options)

    def testADaemonThreadDoesNotHoldTheEnd(self):
        """The program ends while a thread generates."""
        program = ("import sys, threading, time, hearth.llm\n"
                   "answer = hearth.llm.Model(sys.argv[1], threads=1).complete('One two')\n"
                   "next(answer)\n"
                   "threading.Thread(target=lambda: str(answer), daemon=True).start()\n"
                   "time.sleep(0.2)\n")
        run = subprocess.run([sys.executable, "-c", program, path()], capture_output=True, text=True,
                             check=False, timeout=120,
                             env=os.environ | {"PYTHONPATH": sys.path[0]})
        self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
