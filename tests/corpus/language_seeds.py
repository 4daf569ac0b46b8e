# SPDX-License-Identifier: Apache-2.0
"""The first inputs of fuzz targets for language models: templates, tokenizers, metadata, requests, schemas."""

import json
import struct
import zlib


def chatTemplates():
    """Templates as models have them: roles, tools, and what a template may do."""
    yield "roles.jinja", (
        b"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        b"{{ '<|start|>system\nYou help.<|end|>\n' }}{% endif %}"
        b"{{'<|start|>' + message['role'] + '\n' + message['content'] + '<|end|>' + '\n'}}"
        b"{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}{% endif %}")
    yield "tools.jinja", (
        b"{%- macro show(tool, level=0) -%}\n  {{ tool.function.name }}: "
        b"{{- tool.function.arguments | tojson(indent=2) }}\n{%- endmacro -%}\n"
        b"{%- set ns = namespace(found=false) -%}\n{# a comment #}\n"
        b"{%- for m in messages if m.role != 'user' -%}\n  {%- set content = m.content | trim -%}\n"
        b"  {%- if m.tool_calls is defined and m.tool_calls -%}\n    {%- set ns.found = true -%}\n"
        b"    {%- for tool in m.tool_calls -%}{{ show(tool, level=1) }}{%- endfor -%}\n"
        b"  {%- elif content.split(' ')[-1] in ['help.', \"x\"] -%}{{ loop.index0 ~ content[1:-1] }}\n"
        b"  {%- else -%}{{ raise_exception('no') }}{%- endif -%}\n{%- endfor -%}{{ ns.found }}")
    yield "values.jinja", (
        b"{% set x %}{{ [1, 2.5, 'a', none] + [{'k': (1,)}] }}{% endset %}{{ x | upper | replace('A', '') }}"
        b"{% for k, v in {'b': 1, 'a': 2}.items() | sort %}{{ k }}{{ v * 2 ** 3 // 4 % 5 }}{% else %}-"
        b"{% endfor %}{{ range(3) | map('string') | join(',') if 1 < 2 <= 3 and not false else '' }}"
        b"{% filter indent(width=2) %}a\nb{% endfilter %}{% raw %}{{ }}{% endraw %}"
        b"{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first }}")


def tokenizers():
    """Two of bytes and one of characters, with a few words."""
    def tokenizer(vocabulary, merges, **parts):
        return json.dumps({"version": "1.0", "added_tokens": [
            {"id": 0, "content": "<|end|>", "special": True, "normalized": False}],
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges,
                      **parts.pop("model", {})}, **parts}).encode()

    letters = {letter: number + 1 for number, letter in enumerate("\u0120abcdefghijklmnopqrstuvwxyz")}
    words = {**letters, "<|end|>": 0, "wo": 40, "or": 41, "wor": 42}
    yield "bytes.json", tokenizer(words, [["w", "o"], ["o", "r"], ["wo", "r"]],
                                  pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False},
                                  decoder={"type": "ByteLevel"})
    expression = (r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                  r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    yield "split.json", tokenizer(
        words, ["w o", "o r"], normalizer={"type": "NFC"},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated"},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]})
    yield "characters.json", tokenizer(
        {"<unk>": 0, "\u2581": 1, "w": 2, "o": 3, "\u2581w": 4, "<0x21>": 5}, ["\u2581 w"],
        normalizer={"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        decoder={"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        model={"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True})


def languageMetadata():
    """Messages LlmMetadata, and a packed tokenizer."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    yield "chat.pb", (field(1, field(2, b"<s>")) + field(2, field(1, field(1, b"\2\x80\1")))
                      + field(2, field(2, b"</s>")) + field(4, b"\x08\1\x10\x28" + b"\x25\0\0\0\x3f")
                      + b"\x28\x80\x10" + field(7, b"{{ messages }}") + field(9, b"\3\4"))
    yield "affixes.pb", field(3, b"".join(field(role, field(1, b"<") + field(2, b">"))
                                          for role in (1, 2, 3))) + b"\x58\1"
    tokenizer = next(iter(tokenizers()))[1]
    yield "tokenizer.zlib", struct.pack("<Q", len(tokenizer)) + zlib.compress(tokenizer)


def executorMetadata():
    """Messages ExecutorMetadata, of the caches that executor_metadata_fuzz has."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def cache(name, *numbers):
        return field(2, b"".join(field(number, name) for number in range(1, 5)) + bytes(numbers))

    yield "caches.pb", field(1, b"\x08\0" + cache(b"k", 0x30, 1, 0x38, 2) + cache(b"l", 0x30, 2, 0x38, 0)
                             + field(3, b"\x18\x20"))
    yield "state.pb", field(1, cache(b"m", 0x30, 5))
    yield "names.pb", field(1, field(2, field(1, b"k") + field(2, b"p") + field(3, b"l") + field(4, b"q")
                                     + b"\x38\3"))


def sentencePieces():
    """Models of SentencePiece; the last five bytes say which byte of their table is changed."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def piece(text, score, kind=1):
        return field(1, field(1, text) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))

    common = (piece(b"<unk>", 0, 2) + piece(b"<s>", 0, 3) + piece(b"<end_of>", 0, 4) + piece(b"\xe2\x96\x81", -3)
              + b"".join(piece(bytes([letter]), -4) for letter in b"Helowrds") + piece(b"lo", -2) + piece(b"He", -1))
    change = b"\x7a\5" + struct.pack("<BI", 0xff, 1100)  # a field that is not known
    byteFallback = b"\x98\x02\1"
    yield "unigram.model", common + change
    yield "pairs.model", (common + b"".join(piece(b"<0x%02X>" % byte, 0, 6) for byte in range(256))
                          + field(2, b"\x18\2" + byteFallback) + field(3, b"\x18\0\x20\0") + change)
    yield "unused.model", common + piece(b"wo", -1, 5) + field(2, b"\x18\2") + change
    # Rules: a double array of three units, in which nothing is found, and a text.
    yield "rules.model", common + field(3, field(2, struct.pack("<4I", 12, 1 << 10, 0x148, 0) + b"ab\0")) + change


def chatRequests():
    """Requests of HTTP with the bodies that chat_request_fuzz reads, and such bodies alone."""
    chat = json.dumps({"model": "m", "messages": [{"role": "system", "content": "a"},
                                                  {"role": "user", "content": [{"type": "text", "text": "b"}]}],
                       "max_tokens": 4, "stop": ["x"], "stream": True, "stream_options": {"include_usage": True},
                       "temperature": 0.5, "top_p": 1, "seed": 7, "n": 1, "logprobs": True, "top_logprobs": 2,
                       "tools": [], "response_format": {"type": "json_schema", "json_schema": {
                           "name": "n", "schema": {"type": "object", "properties": {"a": {"type": "null"}}}}}}
                      ).encode()
    completion = json.dumps({"prompt": [1, 2, 3], "logprobs": 0, "stop": "y", "echo": False, "user": None}).encode()
    yield "chat", (b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(chat)) + chat
    yield "chunked", (b"POST http://a/v1/completions?x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
                      b"Expect: 100-continue\r\n\r\n%x;a=b\r\n%s\r\n0\r\nTrailer: c\r\n\r\nGET / HTTP/1.1"
                      % (len(completion), completion))
    yield "old", b"\r\nGET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    yield "two", b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield "chat.json", chat
    yield "completion.json", completion
    function = {"name": "f", "parameters": {"type": "object"}}
    yield "tools.json", json.dumps({
        "tools": [{"type": "function", "function": function}], "parallel_tool_calls": False,
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "messages": [{"role": "user", "content": "a"},
                     {"role": "assistant", "content": None, "tool_calls": [
                         {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
                     {"role": "tool", "tool_call_id": "c", "content": "b"}]}).encode()


def jsonSchemas():
    """A schema, a zero, and bytes that choose a text of it."""
    choices = b'\0{"na": "x", 1 }}]]"\\u00e9"' * 3
    node = {"type": "object", "required": ["name"], "additionalProperties": False,
            "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 8},
                           "kind": {"enum": ["a", "ab", 1, None]}, "size": {"type": ["number", "null"]},
                           "parts": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}}}
    yield "tree", json.dumps({"$ref": "#/$defs/node", "$defs": {"node": node}}).encode() + choices
    yield "any", b'{"type": "object"}' + choices
    yield "choice", json.dumps({"anyOf": [{"const": True}, {"allOf": [{"type": "integer"}]}, {"$ref": "#"},
                                          {"type": "object", "additionalProperties": {"type": "boolean"}}]}
                               ).encode() + choices
    yield "endless", b'{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}' + choices
    yield "unknown", b'{"type": "array", "uniqueItems": true}' + choices
    limits = {"whole": {"type": "integer", "minimum": -3, "exclusiveMaximum": 120},
              "part": {"type": "number", "exclusiveMinimum": 0.25, "maximum": 1e3}}
    yield "numbers", json.dumps({"type": "object", "properties": limits, "required": list(limits)}).encode() + choices
    patterns = ("^[A-Z][a-z]{1,3}$", "(?:ab|c)+?$", "[^\\d\\s]|\\u00e9", "^.{2,}\\.$", "a|(b|^)*")
    yield "patterns", json.dumps({"type": "array", "maxItems": 5, "items": {"anyOf": [
        {"type": "string", "pattern": pattern, "maxLength": 9} for pattern in patterns]}}).encode() + choices
    formats = ("date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6")
    yield "formats", json.dumps({"type": "array", "items": {"anyOf": [
        {"type": "string", "format": name} for name in formats]}}).encode() + b'\0["2024-02-29T01:02:03Z", "::1"]'
    yield "one", json.dumps({"oneOf": [
        {"type": "object", "properties": {"a": {"const": "x"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"enum": ["y", 1]}, "b": {"$ref": "#"}}, "required": ["a"]},
        {"type": ["integer", "null"]}]}).encode() + choices
    yield "joined", json.dumps({
        "type": "object", "required": ["a"], "properties": {"a": {"type": ["integer", "null"]}},
        "allOf": [{"$ref": "#/$defs/part"}, {"properties": {"b": {"minLength": 1}}, "additionalProperties": {"type": ["integer", "null", "object"]}}],
        "oneOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"a": {"type": "number", "minimum": 2}}}],
        "$defs": {"part": {"type": "object", "properties": {"b": {"type": "string"}, "c": {"allOf": [{"$ref": "#/$defs/part"}, True]}}}}}
        ).encode() + choices
    yield "growing", json.dumps({"type": "null", "allOf": [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}, False]}]}).encode() + choices


def toolCalls():
    """Answers with calls, behind a byte that says which form calls have."""
    call = json.dumps({"name": "f", "arguments": {"a": [1, None, "b"]}}).encode()
    yield "marks", b"\0Now.\n<tool_call>\n" + call + b"\n</tool_call>\n<tool_call>[" + call + b"]</tool_call> "
    yield "none", b"\0<tool_call>f()</tool_call> <tool_call"
    yield "inside", b"\x80" + call
    yield "list", b"\1[TOOL_CALLS] [" + call + b"]"
    yield "whole", b"\2 " + json.dumps({"name": "g", "parameters": {}}).encode()
