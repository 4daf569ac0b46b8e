# SPDX-License-Identifier: Apache-2.0
"""hearth chat-server over HTTP, with a real language model and the package openai."""

import contextlib
import http.client
import json
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).resolve().parents[2] / "bench")]

import comparison
from command import DATA, HEARTH, ROOT, CommandTest, DataTest

OPENAI_WHEEL = "openai==3.22.1"
MODEL = "smollm2-135m-instruct-i8"
TURNS = ["My name is Ann. What is a cat?", "And a dog?", "What is my name?"]
PATIENCE = 120


class Server:
    """A server at a free port, or at the Unix socket `path`; ended at the end of a `with`."""

    def __init__(self, *arguments, path=None):
        address = f"unix:{path}" if path else "127.0.0.1:0"
        self.process = subprocess.Popen(
            [HEARTH, "chat-server", *map(str, arguments), "--listen", address, "--threads", "2"],
            stdout=subprocess.PIPE, text=True)
        self.path = path
        line = self.process.stdout.readline()
        self.port = 0 if path or not line else int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def connect(self):
        if not self.path:
            return socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(str(self.path))
        return client

    def send(self, method, path, body=None, headers=()):
        """A connection that has sent a request; a body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = self.connect()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **dict(headers)})
        return connection

    def raw(self, *arguments, **options):
        """Status, headers and body of a reply."""
        with contextlib.closing(self.send(*arguments, **options)) as connection:
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()

    def get(self, path, **options):
        status, _, text = self.raw("GET", path, **options)
        assert status == 200, text
        return text

    def chat(self, messages, **members):
        status, _, text = self.raw("POST", "/v1/chat/completions",
                                   {"messages": messages, "temperature": 0, "max_tokens": 8, **members})
        assert status == 200, text
        return json.loads(text)

    def beginStream(self, tokens):
        """A long answer that has begun: connection and reply."""
        connection = self.send("POST", "/v1/chat/completions",
                               {"messages": [{"role": "user", "content": "Tell me a long story."}],
                                "max_tokens": tokens, "temperature": 0, "stream": True})
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        reply.readline()
        return connection, reply

    def metric(self, name):
        found = re.search(rf"^hearth_{re.escape(name)} (\S+)$", self.get("/metrics"), re.MULTILINE)
        return float(found.group(1)) if found else 0

    def waitUntil(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, self.get("/metrics")
            time.sleep(0.02)


def textOf(answer):
    return answer["choices"][0]["message"]["content"]


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


class CommandLineTest(CommandTest):
    def testWhatCannotBeServedIsRefused(self):
        self.refuse(2, "chat-server")
        self.refuse(1, "chat-server", self.folder / "missing.litertlm")
        self.assertIn("no .litertlm file", self.refuse(1, "chat-server", ROOT / "models" / "digits" / "digits.tflite"))

    def testAddressesOfOtherMachinesHaveToBeAllowed(self):
        self.assertIn("--public", self.refuse(2, "chat-server", "m", "--listen", "0.0.0.0:0"))
        self.assertIn("not like 127.0.0.1:8080", self.refuse(1, "chat-server", "m", "--listen", "8080"))

    def testAnApiKeyIsOneLine(self):
        for text in ("", "a\nb\n"):
            (self.folder / "key").write_text(text, encoding="utf-8")
            self.refuse(2, "chat-server", "m", "--api-key-file", self.folder / "key")


class ModelTest(DataTest):
    """Base of tests that serve a language model."""

    @classmethod
    def setUpClass(cls):
        cls.file = DATA and pathlib.Path(DATA) / "data" / "llm" / f"{MODEL}.litertlm"
        if not DATA or not cls.file.exists():
            raise unittest.SkipTest("There is no language model in HEARTH_TEST_DATA.")

    def errorOf(self, server, status, *arguments, **options):
        found, _, text = server.raw(*arguments, **options)
        self.assertEqual(found, status, text)
        error = json.loads(text)["error"]
        self.assertTrue(error["message"])
        return error


class SharedServerTest(ModelTest):
    """Tests that all talk with one server."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(Server(cls.file))

    def refused(self, *arguments, **options):
        return self.errorOf(self.server, *arguments, **options)

    def refusedChat(self, status=400, **members):
        return self.refused(status, "POST", "/v1/chat/completions",
                            {"messages": [{"role": "user", "content": "a"}], **members})

    def testTheModelsAreListed(self):
        models = json.loads(self.server.get("/v1/models"))["data"]
        self.assertEqual([model["id"] for model in models], [MODEL])
        self.assertEqual(json.loads(self.server.get(f"/v1/models/{MODEL}"))["context_length"], 2048)
        self.assertEqual(json.loads(self.server.get("/health")), {"status": "ok"})

    def testTheAnswerIsThatOfTheCommand(self):
        question = "What is free software?"
        expected = self.json("chat", self.file, "--prompt", question, "--max-tokens", 20, "--threads", 2)
        answer = self.server.chat([{"role": "user", "content": question}], max_tokens=20)
        self.assertEqual(textOf(answer), expected["text"])
        self.assertEqual(answer["usage"]["prompt_tokens"], expected["prompt_tokens"])
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        stopped = self.server.chat([{"role": "user", "content": question}], max_tokens=60, stop=".")
        self.assertEqual(stopped["choices"][0]["finish_reason"], "stop")
        self.assertNotIn(".", textOf(stopped))

    def testAStreamHasTheSameText(self):
        messages = [{"role": "user", "content": "What is a tree?"}]
        expected = textOf(self.server.chat(messages))
        with contextlib.closing(self.server.send(
                "POST", "/v1/chat/completions",
                {"messages": messages, "temperature": 0, "max_tokens": 8, "stream": True,
                 "stream_options": {"include_usage": True}})) as connection:
            events = connection.getresponse().read().decode().split("\n\n")
        self.assertEqual(events[-2:], ["data: [DONE]", ""])
        chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
        self.assertEqual("".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1]),
                         expected)
        self.assertEqual(chunks[-2]["choices"][0]["finish_reason"], "length")
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 8)

    def testNothingOfTheHistoryIsComputedAgain(self):
        name = f'prompt_tokens_total{{model="{MODEL}",source="computed"}}'
        messages = []
        known = 0
        for turn in TURNS:
            messages.append({"role": "user", "content": turn})
            before = self.server.metric(name)
            answer = self.server.chat(messages)
            usage = answer["usage"]
            # The last token of an answer was chosen and not computed.
            self.assertGreaterEqual(cached(answer), known - 1)
            self.assertEqual(self.server.metric(name) - before, usage["prompt_tokens"] - cached(answer))
            known = usage["total_tokens"]
            messages.append({"role": "assistant", "content": textOf(answer)})

    def testTwoClientsMayGoOnFromOneConversation(self):
        messages = [{"role": "user", "content": "Name some fruit."}]
        first = self.server.chat(messages, max_tokens=40)
        messages.append({"role": "assistant", "content": textOf(first)})
        for question in ("And vegetables?", "And nuts?"):
            answer = self.server.chat([*messages, {"role": "user", "content": question}])
            self.assertGreaterEqual(cached(answer), first["usage"]["total_tokens"] - 1)

    def testSpecialTokensThatUsersWriteAreText(self):
        def tokens(text):
            return self.server.chat([{"role": "user", "content": text}], max_tokens=1)["usage"]["prompt_tokens"]
        self.assertGreater(tokens("<|im_end|>"), tokens("a") + 1)

    def testTokensMayBeAPrompt(self):
        numbers = self.json("tokenize", self.file, "1, 2, 3, 4, 5,")["tokens"]
        status, _, text = self.server.raw("POST", "/v1/completions",
                                          {"prompt": numbers, "temperature": 0, "max_tokens": 4})
        self.assertEqual(status, 200, text)
        self.assertTrue(json.loads(text)["choices"][0]["text"].startswith(" 6, "), text)
        self.refused(400, "POST", "/v1/completions", {"prompt": [10**9]})

    def testAModelThatIsNotToldOfToolsHasNone(self):
        error = self.refusedChat(tools=[WEATHER])
        self.assertEqual(error["param"], "tools")
        self.assertIn("chat template", error["message"])

    def testAnAnswerHasTheFormatThatIsAskedFor(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["name", "legs", "kind"],
                  "properties": {"name": {"type": "string", "maxLength": 20}, "legs": {"type": "integer"},
                                 "colours": {"type": "array", "items": {"enum": ["black", "white"]}, "maxItems": 3},
                                 "kind": {"enum": ["animal", "plant"]}}}
        asked = {"messages": [{"role": "user", "content": "Describe a dog in JSON."}], "max_tokens": 100,
                 "response_format": {"type": "json_schema", "json_schema": {"name": "thing", "schema": schema}}}
        for seed in range(5):
            answer = self.server.chat(**asked, temperature=2, seed=seed)
            found = json.loads(textOf(answer))
            self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
            self.assertLessEqual(found.keys(), schema["properties"].keys())
            self.assertGreaterEqual(found.keys(), set(schema["required"]))
            self.assertIsInstance(found["legs"], int)
            self.assertLessEqual(len(found["name"]), 20)
            self.assertIn(found["kind"], ("animal", "plant"))
            self.assertLessEqual(set(found.get("colours", [])), {"black", "white"})
        # A number at the root has no end of its own: the model says when it ends.
        number = {**asked["response_format"], "json_schema": {"name": "n", "schema": {"type": "integer"}}}
        self.assertIsInstance(json.loads(textOf(self.server.chat(**{**asked, "response_format": number}))), int)
        words = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string", "format": "uri"}}}
        error = self.refusedChat(response_format=words)
        self.assertEqual(error["param"], "response_format")
        self.assertIn("'format'", error["message"])

    def testAnyObjectOfJsonMayBeAskedFor(self):
        answer = self.server.chat([{"role": "user", "content": 'Write {"a": 1, "b": [true]} again.'}],
                                  max_tokens=200, response_format={"type": "json_object"})
        text = textOf(answer)
        self.assertTrue(text.lstrip().startswith("{"), text)
        if answer["choices"][0]["finish_reason"] == "stop":
            self.assertIsInstance(json.loads(text), dict)

    def testWrongRequestsAreRefused(self):
        path = "/v1/chat/completions"
        self.assertEqual(self.refusedChat(n=2)["param"], "n")
        self.assertEqual(self.refusedChat(404, model="x")["code"], "model_not_found")
        self.refused(400, "POST", path, b"{")
        self.refused(400, "POST", path, b'{"messages": [{"role": "user", "content": "\xff"}]}')
        self.refused(400, "POST", path, b'{"a": ' + b"[" * 100_000)
        self.refused(404, "GET", "/v1/files")
        self.refused(405, "GET", path)
        self.refused(415, "POST", path, {}, headers={"Content-Type": "text/plain"})
        self.refused(403, "POST", path, {}, headers={"Origin": "http://example.com"})
        error = self.refusedChat(messages=[{"role": "user", "content": "word " * 4000}])
        self.assertEqual(error["code"], "context_length_exceeded")
        self.refused(413, "POST", path, {"messages": [{"role": "user", "content": "x" * 10_000_000}]})

    def testAClientThatGoesAwayEndsItsAnswer(self):
        before = self.server.metric("abandoned_answers_total")
        connection, reply = self.server.beginStream(2000)
        reply.close()
        connection.close()
        self.server.waitUntil(lambda: self.server.metric("abandoned_answers_total") == before + 1)
        self.server.waitUntil(lambda: self.server.metric("requests_running") == 0)
        self.assertEqual(self.server.metric("sessions_busy"), 0)

    def testAnswersTakeTurns(self):
        connection, reply = self.server.beginStream(1500)
        self.server.chat([{"role": "user", "content": "Hello"}], max_tokens=4)
        self.server.waitUntil(lambda: self.server.metric("requests_running") < 2)
        self.assertEqual(self.server.metric("requests_running"), 1)
        reply.close()
        connection.close()

    def testAThousandConnectionsHoldUpNobody(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with contextlib.ExitStack() as stack:
            for i in range(1000):
                client = stack.enter_context(self.server.connect())
                if i % 2:
                    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Le")
            self.assertEqual(self.server.chat([{"role": "user", "content": "Hi"}])["object"], "chat.completion")
            self.assertGreaterEqual(self.server.metric("connections"), 1000)

    def testTheClientOfOpenaiUnderstandsIt(self):
        try:
            python = comparison.environmentPython(comparison.CACHE / "openai-venv", OPENAI_WHEEL)
        except comparison.Failure as failure:
            self.skipTest(f"The package openai is not there: {failure}.")
        (self.folder / "key").write_text("key\n", encoding="utf-8")
        with Server(f"served={self.file}", "--api-key-file", self.folder / "key") as server:
            run = subprocess.run([python, ROOT / "tests" / "cli" / "openai_client.py",
                                  f"http://127.0.0.1:{server.port}/v1"],
                                 capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        found = json.loads(run.stdout)
        self.assertEqual(found["model"], "served")
        self.assertTrue(found["text"].startswith("Free software"), found)
        self.assertEqual("".join(found["logprobs"]), found["text"])
        self.assertTrue(found["completion"].startswith(" 6, 7"), found)
        self.assertEqual(found["parsed"].keys(), {"name", "legs", "wild"})
        self.assertIsInstance(found["parsed"]["wild"], bool)
        for answer in found["streamed"]:
            self.assertEqual(answer, {"text": found["text"], "reason": "length", "tokens": 12})
        self.assertEqual(found["too_long"], {"type": "BadRequestError", "code": "context_length_exceeded",
                                             "param": "messages"})
        self.assertEqual(found["no_model"]["type"], "NotFoundError")
        self.assertEqual(found["no_key"]["type"], "AuthenticationError")


# A template that writes tools and calls as those of Llama 3.1, and as those of Qwen and Hermes.
TOOL_TEMPLATE = """\
{#- <|start_header_id|> #}
{%- if tools %}<|im_start|>system
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Respond in the format {"name": function name, "parameters": object}.<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ "user" if message.role == "tool" else message.role }}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}
{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}
{%- endfor %}
{%- else %}
{{ message.content }}
{%- endif %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
MARKED_TOOL_TEMPLATE = TOOL_TEMPLATE.replace("<|start_header_id|>", "<tool_call>").replace("parameters", "arguments")
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "required": ["city"], "additionalProperties": False,
                   "properties": {"city": {"type": "string", "maxLength": 30}}}}}
CLOCK = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}


def weatherTurns(city):
    """A question, the call that answers it, and its result."""
    call = {"id": f"call_{city}", "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
    return [{"role": "user", "content": f"What is the weather in {city}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]


class ToolServerTest(ModelTest):
    """Base of tests with a model that is told of tools."""

    template = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (folder / "template").write_text(cls.template, encoding="utf-8")
        cls.server = cls.enterClassContext(Server(cls.file, "--template", folder / "template"))


class RequiredCallTests:
    def testACallMayBeRequired(self):
        messages = [{"role": "user", "content": "Hello!"}]
        for seed in range(3):
            choice = self.server.chat(messages, tools=[WEATHER, CLOCK], tool_choice="required", max_tokens=100,
                                      temperature=2, seed=seed)["choices"][0]
            self.assertEqual(choice["finish_reason"], "tool_calls", choice)
            function, = (call["function"] for call in choice["message"]["tool_calls"])
            self.assertEqual(list(json.loads(function["arguments"])),
                             ["city"] if function["name"] == "get_weather" else [])
        choice = self.server.chat(messages, tools=[WEATHER, CLOCK], max_tokens=100, tool_choice={
            "type": "function", "function": {"name": "get_time"}})["choices"][0]
        self.assertEqual(choice["message"]["tool_calls"][0]["function"], {"name": "get_time", "arguments": "{}"})
        # Cut off, it is no call.
        choice = self.server.chat(messages, tools=[WEATHER], tool_choice="required", max_tokens=2)["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertNotIn("tool_calls", choice["message"])


class MarkedToolTest(RequiredCallTests, ToolServerTest):
    template = MARKED_TOOL_TEMPLATE

    def chunks(self, **members):
        with contextlib.closing(self.server.send("POST", "/v1/chat/completions",
                                                 {"temperature": 0, "stream": True, **members})) as connection:
            events = connection.getresponse().read().decode().split("\n\n")
        return [json.loads(event.removeprefix("data: "))["choices"][0] for event in events[:-2]]

    def testACallIsReadFromTheAnswer(self):
        # What a small model does reliably is to repeat.
        def repeated(text):
            return [{"role": "user", "content": f"Repeat: {text}"}, {"role": "assistant", "content": text}]

        def call(city):
            return f'<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}\n</tool_call>'
        texts = ["abc", "Hello world!", call("Paris"), call("Bern"), call("London")]
        messages = [message for text in texts for message in repeated(text)][:-1]
        asked = {"messages": messages, "tools": [WEATHER], "max_tokens": 100}
        choice = self.server.chat(**asked)["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls", choice)
        self.assertIsNone(choice["message"]["content"])
        call = choice["message"]["tool_calls"][0]
        self.assertEqual(call["function"]["name"], "get_weather")
        self.assertEqual(json.loads(call["function"]["arguments"]), {"city": "London"})
        self.assertTrue(call["id"].startswith("call_"))
        # The same as a stream.
        *deltas, last = self.chunks(**asked)
        self.assertEqual(last["finish_reason"], "tool_calls")
        streamed = [one for chunk in deltas for one in chunk["delta"].get("tool_calls", [])]
        self.assertEqual([one["index"] for one in streamed], list(range(len(streamed))))
        self.assertEqual(streamed[0]["function"], call["function"])
        self.assertEqual("".join(chunk["delta"].get("content", "") for chunk in deltas), "")
        # Without tools the same words are text.
        plain = self.server.chat(messages, max_tokens=100)
        self.assertNotIn("tool_calls", plain["choices"][0]["message"])


class ToolTest(RequiredCallTests, ToolServerTest):
    template = TOOL_TEMPLATE

    def testToolsMayBeLeftAlone(self):
        def tokens(**members):
            return self.server.chat([{"role": "user", "content": "Hello!"}], max_tokens=1,
                                    **members)["usage"]["prompt_tokens"]
        self.assertEqual(tokens(tools=[WEATHER], tool_choice="none"), tokens())
        self.assertGreater(tokens(tools=[WEATHER]), tokens() + 50)

    def testCallsAndTheirResultsAreGivenToTheModel(self):
        def tokens(turns):
            return self.server.chat([*turns, {"role": "user", "content": "Thanks!"}], tools=[WEATHER],
                                    max_tokens=1)["usage"]["prompt_tokens"]
        turns = weatherTurns("Paris")
        plain = [{key: value for key, value in turn.items() if key != "tool_calls"} for turn in turns]
        self.assertGreater(tokens(turns), tokens(plain) + 10)
        # Their arguments are an object in the template, not a text with quotes and backslashes.
        more = json.loads(json.dumps(turns))
        more[1]["tool_calls"][0]["function"]["arguments"] = {"city": "Paris"}
        self.assertEqual(tokens(more), tokens(turns))

    def testWrongToolsAreRefused(self):
        for member, value in (("tools", [{"type": "function"}]), ("tool_choice", "required")):
            error = self.errorOf(self.server, 400, "POST", "/v1/chat/completions",
                                 {"messages": [{"role": "user", "content": "a"}], member: value})
            self.assertEqual(error["param"], member)
        odd = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "minProperties": 1}}}
        error = self.errorOf(self.server, 400, "POST", "/v1/chat/completions",
                             {"messages": [{"role": "user", "content": "a"}], "tools": [odd],
                              "tool_choice": "required"})
        self.assertEqual(error["param"], "tools")
        self.assertIn("'minProperties'", error["message"])


class OwnServerTest(ModelTest):
    """Tests that start servers of their own."""

    def testOneRequestTooManyIsRefused(self):
        with Server(self.file, "--sessions", 1, "--queue", 0) as server:
            connection, reply = server.beginStream(2000)
            found, headers, text = server.raw("POST", "/v1/completions", {"prompt": "a"})
            self.assertEqual((found, headers["Retry-After"]), (429, "1"), text)
            reply.close()
            connection.close()

    def testTerminatedItFinishesWhatRuns(self):
        with Server(self.file) as server:
            connection, reply = server.beginStream(100)
            idle = server.connect()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(idle.recv(1), b"")
            idle.close()
            with self.assertRaises(OSError):
                server.connect()
            self.assertTrue(reply.read().endswith(b"data: [DONE]\n\n"))
            connection.close()
            self.assertEqual(server.process.wait(PATIENCE), 0)

    def testTwoServersShareStoredSystemMessages(self):
        messages = [{"role": "system", "content": f"{self.folder} " + "You answer with care. " * 60},
                    {"role": "user", "content": "What is rain?"}]
        with Server(self.file) as first, Server(self.file) as second:
            computed = first.chat(messages)
            self.assertEqual(cached(computed), 0)
            # It is kept behind the answer.
            first.waitUntil(lambda: first.metric("requests_running") == 0)
            found = second.chat(messages)
            self.assertGreater(cached(found), 300)
            self.assertEqual(second.metric(f'prompt_tokens_total{{model="{MODEL}",source="store"}}'),
                             cached(found))
            self.assertEqual(textOf(found), textOf(computed))

    def testWithoutItsOldestMessagesAConversationGoesOn(self):
        messages = [{"role": "system", "content": "You answer briefly."}]
        for number in range(9):
            messages += [{"role": "user", "content": f"What is {number} and {number}?"},
                         {"role": "assistant", "content": "It is a number."}]
        messages.append({"role": "user", "content": "What is free software?"})
        with Server(self.file, "--context", 96) as server:
            error = self.errorOf(server, 400, "POST", "/v1/chat/completions", {"messages": messages})
            self.assertEqual(error["code"], "context_length_exceeded")
        with Server(self.file, "--context", 96, "--keep", 0) as server:
            answer = server.chat(messages, max_tokens=120, logprobs=True)
            self.assertLess(answer["usage"]["prompt_tokens"], 96)
            self.assertIn("software", textOf(answer).lower())
            # It fills the context, and goes on.
            status, _, text = server.raw("POST", "/v1/completions",
                                         {"prompt": "1, 2, 3, 4, 5, 6, 7,", "max_tokens": 150, "temperature": 0})
            self.assertEqual(status, 200, text)
            self.assertEqual(json.loads(text)["usage"]["completion_tokens"], 150)
        self.assertIn("leaves no room", self.refuse(2, "chat-server", self.file, "--context", 96, "--keep", 96))

    def testATimeIsTheLimit(self):
        with Server(self.file, "--timeout", 0.001) as server:
            error = self.errorOf(server, 504, "POST", "/v1/completions", {"prompt": "a"})
            self.assertEqual(error["code"], "timeout")

    def testAUnixSocketIsServedAndRemoved(self):
        path = self.folder / "socket"
        with Server(self.file, path=path) as server:
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            self.assertEqual(json.loads(server.get("/health")), {"status": "ok"})
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(PATIENCE), 0)
        self.assertFalse(path.exists())

    def testModelsNeedDifferentNames(self):
        self.assertIn("NAME=FILE", self.refuse(2, "chat-server", self.file, self.file))


if __name__ == "__main__":
    unittest.main()
