#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the prompts that chat templates make with those of Jinja2 (from PyPI), as `transformers` runs it.

    compare_templates.py MODEL TEMPLATE...     files of Jinja; the model gives the start and stop tokens

Conversations with and without a message of the system, with tools, and with calls of tools and their results. Where
Jinja2 refuses a conversation, so must Hearth; and tools of which a template makes nothing, as the model would not learn
of them. Exit code: 0 when all are equal, 1 when not, 2 for wrong arguments.
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "release" / "python"))

import hearth.llm  # noqa: E402

USER = {"role": "user", "content": "What is the weather in Paris? \u00e9 <tag>"}
SYSTEM = {"role": "system", "content": "You answer briefly."}
ANSWER = {"role": "assistant", "content": "It is sunny."}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call12345", "type": "function",
     "function": {"name": "weather", "arguments": {"city": "Paris", "days": 2, "exact": True}}}]}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "{\"sky\": \"clear\"}"}
TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "Tells the weather of a city.", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "The city's name"},
            "days": {"type": "integer", "description": "How many days", "enum": [1, 2, 3]},
            "exact": {"type": "boolean", "description": "Whether numbers are wanted"}}}}}]
CONVERSATIONS = {
    "one message": ([USER], None),
    "system": ([SYSTEM, USER], None),
    "three messages": ([USER, ANSWER, USER], None),
    "system and three messages": ([SYSTEM, USER, ANSWER, USER], None),
    "tools": ([SYSTEM, USER], TOOLS),
    "tools, no system": ([USER], TOOLS),
    "a call and its result": ([SYSTEM, USER, CALL, RESULT], TOOLS),
    "what follows a call": ([USER, CALL, RESULT, ANSWER, USER], TOOLS),
}


class Refused(Exception):
    pass


class Generation(jinja2.ext.Extension):
    """The block `generation`, with which `transformers` learns which text a model has to be trained for."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


def refuse(message):
    raise Refused(message)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation])
    made.filters["tojson"] = lambda value, **options: json.dumps(value, **{"ensure_ascii": False, **options})
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime.datetime.now(tz=datetime.timezone.utc).strftime(form)
    return made


def peersPrompt(template, messages, tools, texts, answer):
    try:
        return template.render(messages=messages, tools=tools, documents=None, add_generation_prompt=answer, **texts)
    except (Refused, jinja2.TemplateError, TypeError, KeyError):
        return None


def looksAtTools(template, texts):
    """Whether a prompt differs for tools; some templates put them into the message of the system only."""
    return any(peersPrompt(template, messages, TOOLS, texts, True) != peersPrompt(template, messages, None, texts, True)
               for messages in ([USER], [SYSTEM, USER]))


def ours(model, messages, tools, answer):
    try:
        return model.prompt(messages, tools=tools, answer=answer)
    except hearth.Error as error:
        return error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("templates", type=Path, nargs="+")
    arguments = parser.parse_args()
    plain = hearth.llm.Model(arguments.model)
    texts = {"bos_token": plain.detokenize(plain.metadata["start_tokens"], special=True),
             "eos_token": plain.detokenize(plain.metadata["stop_sequences"][0], special=True)}
    compared = different = refused = 0
    for path in arguments.templates:
        source = path.read_text(encoding="utf-8")
        template = environment().from_string(source)
        model = hearth.llm.Model(arguments.model, chat_template=source)
        for name, (messages, tools) in CONVERSATIONS.items():
            for answer in (True, False):
                compared += 1
                expected = peersPrompt(template, messages, tools, texts, answer)
                if tools and not looksAtTools(template, texts):
                    expected = None
                found = ours(model, messages, tools, answer)
                refused += expected is None and isinstance(found, hearth.Error)
                if found == expected or (expected is None and isinstance(found, hearth.Error)):
                    continue
                different += 1
                print(f"{path.name}, {name}:\n  {found!r}\n  not {expected!r}")
    print(f"{len(arguments.templates)} templates, {compared} prompts ({refused} refused), "
          f"{different} differences")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
