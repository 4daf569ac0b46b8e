# SPDX-License-Identifier: Apache-2.0
"""Text from language models in .litertlm files.

    import hearth.llm

    chat = hearth.llm.Model("model.litertlm").chat(system="You answer briefly.")
    for text in chat.send("What is free software?", max_tokens=200):
        print(text, end="", flush=True)

The first conversation with a model packs its weights into the store; every later start, of any
process, begins with them. Objects may be used by several threads; those that use one session wait
for each other.
"""

import asyncio
import ctypes
import json
import os
import secrets
import threading
import typing
import weakref

from . import _files
from .errors import CLASSES, BadState, Error, InvalidArgument

__all__ = ["Answer", "Chat", "Model", "Session", "ToolCall"]

_PARSE_SPECIAL, _SHOW_SPECIAL, _TO_ANSWER = 1, 2, 4
_CACHES = {"default": 0, "off": 1, "read-only": 2, "read-write": 3, "strict": 4}
_ENDINGS = (None, "stop", "max_tokens", "context", "cancelled")


class _Structure(ctypes.Structure):
    """One of hearth.h's: begins with its size."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class _CompileOptions(_Structure):
    _fields_ = [("size", ctypes.c_size_t), ("signature", ctypes.c_char_p), ("device", ctypes.c_char_p),
                ("preference", ctypes.c_int32), ("priority", ctypes.c_int32),
                ("threads", ctypes.c_uint32), ("cache", ctypes.c_int32),
                ("max_activation_bytes", ctypes.c_uint64), ("timeout_ns", ctypes.c_uint64),
                ("store", ctypes.c_char_p), ("store_bytes", ctypes.c_uint64),
                ("weight_cache", ctypes.c_char_p), ("preparation", ctypes.c_int32),
                ("tuning", ctypes.c_int32), ("cache_dir", ctypes.c_char_p),
                ("cache_token", ctypes.c_void_p), ("shapes", ctypes.c_void_p),
                ("shape_count", ctypes.c_size_t)]


class _Options(_Structure):
    _fields_ = [("size", ctypes.c_size_t), ("compile", ctypes.POINTER(_CompileOptions)),
                ("tokenizer", ctypes.c_char_p), ("chat_template", ctypes.c_char_p),
                ("context", ctypes.c_uint32), ("prefixes", ctypes.c_int32)]


class _AnswerOptions(_Structure):
    _fields_ = [("size", ctypes.c_size_t), ("max_tokens", ctypes.c_uint32),
                ("temperature", ctypes.c_float), ("top_k", ctypes.c_uint32),
                ("top_p", ctypes.c_float), ("min_p", ctypes.c_float),
                ("repetition_penalty", ctypes.c_float), ("presence_penalty", ctypes.c_float),
                ("frequency_penalty", ctypes.c_float), ("seed", ctypes.c_uint64),
                ("stops", ctypes.POINTER(ctypes.c_char_p)), ("stop_count", ctypes.c_size_t),
                ("json_schema", ctypes.c_char_p), ("tools", ctypes.c_char_p),
                ("tool_choice", ctypes.c_char_p), ("when_full", ctypes.c_int32),
                ("keep", ctypes.c_uint32)]


class _ToolCall(_Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("arguments", ctypes.c_char_p)]


class _Statistics(_Structure):
    _fields_ = [("size", ctypes.c_size_t), ("prefilled_tokens", ctypes.c_uint64),
                ("decoded_tokens", ctypes.c_uint64), ("stored_tokens", ctypes.c_uint64),
                ("prefill_ms", ctypes.c_double), ("decode_ms", ctypes.c_double)]


class _AnswerReport(_Structure):
    _fields_ = [("size", ctypes.c_size_t), ("ending", ctypes.c_int32), ("padding", ctypes.c_uint32),
                ("tokens", ctypes.c_uint64), ("first_token_ms", ctypes.c_double),
                ("total_ms", ctypes.c_double)]


class _Library:
    """The functions of libhearth_llm.so; call() raises what they report. Loaded at the first use."""

    def __init__(self):
        self._lock = threading.Lock()
        self._loaded = None

    def load(self):
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    @staticmethod
    def _load():
        name = "libhearth_llm.so.0"
        loaded = ctypes.CDLL(_files.find("lib", name) or name)
        # Symbols that it takes from libhearth.so.
        loaded.hearth_error_code.argtypes = [ctypes.c_void_p]
        loaded.hearth_error_message.argtypes = [ctypes.c_void_p]
        loaded.hearth_error_message.restype = ctypes.c_char_p
        loaded.hearth_error_free.argtypes = [ctypes.c_void_p]
        loaded.hearth_string_free.argtypes = [ctypes.c_void_p]
        loaded.hearth_llm_tokens_free.argtypes = [ctypes.c_void_p]
        for kind in ("model", "session", "answer"):
            getattr(loaded, f"hearth_llm_{kind}_free").argtypes = [ctypes.c_void_p]
        loaded.hearth_llm_answer_cancel.argtypes = [ctypes.c_void_p]
        loaded.hearth_llm_answer_cancel.restype = None
        loaded.hearth_llm_answer_tool_call_count.argtypes = [ctypes.c_void_p]
        loaded.hearth_llm_answer_tool_call_count.restype = ctypes.c_size_t
        loaded.hearth_llm_answer_tokens.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
        loaded.hearth_llm_answer_tokens.restype = ctypes.POINTER(ctypes.c_int32)
        loaded.hearth_llm_session_tokens.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
        loaded.hearth_llm_session_tokens.restype = ctypes.POINTER(ctypes.c_int32)
        loaded.hearth_llm_session_context.argtypes = [ctypes.c_void_p]
        loaded.hearth_llm_session_context.restype = ctypes.c_size_t
        return loaded

    def call(self, name, *arguments):
        loaded = self.load()
        error = ctypes.c_void_p()
        status = getattr(loaded, f"hearth_llm_{name}")(*arguments, ctypes.byref(error))
        if status == 0:
            return
        sentence = loaded.hearth_error_message(error).decode("utf-8", "replace")
        loaded.hearth_error_free(error)
        made = CLASSES.get(status, Error)(sentence or "The call fails.")
        made.status = status
        raise made

    def string(self, name, *arguments):
        """Calls a function whose last result is a string that ends with a zero."""
        made = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        try:
            return ctypes.string_at(made).decode("utf-8")
        finally:
            self.load().hearth_string_free(made)

    def text(self, name, *arguments):
        """Calls a function whose last results are a text and its size."""
        made, count = ctypes.c_void_p(), ctypes.c_size_t()
        self.call(name, *arguments, ctypes.byref(made), ctypes.byref(count))
        try:
            return ctypes.string_at(made, count.value).decode("utf-8")
        finally:
            self.load().hearth_string_free(made)

    def tokens(self, name, *arguments, results=()):
        """Calls a function whose last results are a list of tokens and then `results`."""
        made, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        self.call(name, *arguments, ctypes.byref(made), ctypes.byref(count), *results)
        try:
            return made[:count.value]
        finally:
            self.load().hearth_llm_tokens_free(made)


_library = _Library()


def _owned(owner, kind, handle):
    """Frees the handle with its owner, or at a call of what is returned. At the end of the process it
    is left to the system: a daemon thread may be in the library."""
    finalizer = weakref.finalize(owner, getattr(_library.load(), f"hearth_llm_{kind}_free"), handle)
    finalizer.atexit = False
    return finalizer


def _path(given):
    return None if given is None else os.fsencode(given)


def _utf8(text, what):
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} is {text!r}; it is a str.")
    return text.encode("utf-8", "surrogatepass")


def _schema(given):
    if given is None:
        return None
    return _utf8(given if isinstance(given, str) else json.dumps(given), "json_schema")


def _tools(given):
    return None if given is None else _utf8(given if isinstance(given, str) else json.dumps(given), "tools")


def _number(name, given, most):
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= most:
        raise InvalidArgument(f"{name} is {given!r}; it is a number from 0 to {most}.")
    return given


def _timeout(seconds):
    """In nanoseconds; 0 = none. What has passed already is the shortest one."""
    if seconds is None:
        return ctypes.c_uint64(0)
    return ctypes.c_uint64(min(max(int(float(seconds) * 1e9), 1), (1 << 63) - 1))


def _array(tokens):
    try:
        numbers = [int(token) for token in tokens]
    except (TypeError, ValueError):
        raise InvalidArgument(f"The tokens are {tokens!r}; they are a sequence of numbers.") from None
    if wrong := [number for number in numbers if not 0 <= number < 1 << 31]:
        raise InvalidArgument(f"There is no token with the number {wrong[0]}.")
    return (ctypes.c_int32 * len(numbers))(*numbers), ctypes.c_size_t(len(numbers))


def _conversation(messages, tools):
    return json.dumps(messages if tools is None else {"messages": messages, "tools": tools}).encode()


class Model:
    """A language model with its tokenizer. The weights are read when the first session is made.

    `tokenizer`: path of a tokenizer in place of the file's own. `chat_template`: Jinja, in place
    of the model's. `context`: the most tokens of a session; 0 = what the file says. `prefixes`: keep
    what is computed of marked beginnings in the store, for later processes. The other options are
    those of hearth.Model.compile().
    """

    def __init__(self, path, *, tokenizer=None, chat_template=None, context=0, prefixes=True,
                 threads=0, cache="default", store=None, store_bytes=0, weight_cache=None, device=None):
        if cache not in _CACHES:
            raise InvalidArgument(f"cache is {cache!r}. It may be {', '.join(map(repr, _CACHES))}.")
        compile = _CompileOptions(
            preference=1, priority=100, threads=_number("threads", threads, (1 << 32) - 1),
            cache=_CACHES[cache], store=_path(store),
            store_bytes=_number("store_bytes", store_bytes, (1 << 64) - 1),
            weight_cache=_path(weight_cache),
            device=None if device is None else _utf8(device, "device"))
        options = _Options(
            compile=ctypes.pointer(compile), tokenizer=_path(tokenizer),
            chat_template=None if chat_template is None else _utf8(chat_template, "chat_template"),
            context=_number("context", context, (1 << 32) - 1), prefixes=0 if prefixes else 1)
        self._handle = ctypes.c_void_p()
        _library.call("open", os.fsencode(path), ctypes.byref(options), ctypes.byref(self._handle))
        _owned(self, "model", self._handle)
        self._path = os.fsdecode(path)
        self.metadata = json.loads(_library.string("model_describe", self._handle))

    def __repr__(self):
        return f"<hearth.llm.Model {self._path}: {self.metadata['vocabulary']} tokens>"

    def tokenize(self, text, *, special=False):
        """The tokens of a text, none added at begin or end. With `special`, special tokens that are
        written in it, like <|im_end|>, stand for these tokens."""
        encoded = _utf8(text, "text")
        return _library.tokens("tokenize", self._handle, encoded, ctypes.c_size_t(len(encoded)),
                               ctypes.c_uint32(_PARSE_SPECIAL if special else 0))

    def detokenize(self, tokens, *, special=False):
        """The text of tokens, with or without that of special ones."""
        return _library.text("detokenize", self._handle, *_array(tokens),
                             ctypes.c_uint32(_SHOW_SPECIAL if special else 0))

    def prompt(self, messages, *, tools=None, answer=True):
        """The text of a conversation as the model was trained on it: `messages` are dicts with `role`
        (system, developer, user, assistant or tool) and `content`, and what its template knows
        besides, such as `tool_calls`. `tools` are dicts as OpenAI's interface has them. With `answer`
        it ends with what stands before an answer."""
        return _library.text("prompt_text", self._handle, _conversation(messages, tools),
                             ctypes.c_uint32(_TO_ANSWER if answer else 0))

    def prompt_tokens(self, messages, *, tools=None, answer=True, special=False):
        """The tokens of that text. With `special`, special tokens in messages and tools are parsed,
        too."""
        flags = (_TO_ANSWER if answer else 0) | (_PARSE_SPECIAL if special else 0)
        return _library.tokens("prompt_tokens", self._handle, _conversation(messages, tools),
                               ctypes.c_uint32(flags))

    def _fitting(self, messages, tools, context):
        """The tokens of the messages for an answer, and those of them that were not too old for the
        context."""
        dropped = ctypes.c_size_t()
        tokens = _library.tokens("prompt_fitting_tokens", self._handle, _conversation(messages, tools),
                                 ctypes.c_size_t(context), ctypes.c_uint32(0),
                                 results=[ctypes.byref(dropped)])
        first = next((i for i, message in enumerate(messages)
                      if message["role"] not in ("system", "developer")), 0)
        return tokens, messages[:first] + messages[first + dropped.value:]

    def session(self, tokens=(), *, marked=0):
        """A Session with a text, given as such or as tokens, whose first `marked` tokens are marked as
        Session.mark_prefix() does. Where all of them are, and an earlier session has kept what follows
        them, the first token is there before the model's signatures are compiled."""
        if isinstance(tokens, str):
            tokens = self.tokenize(tokens)
        array, count = _array(tokens)
        if not count.value and not marked:
            return Session._make(self)
        return Session._make(self, "create_with", array, count,
                             ctypes.c_size_t(_number("marked", marked, (1 << 63) - 1)))

    def chat(self, system=None, *, messages=None, tools=None):
        """A Chat, which may begin with a message of the system, or goes on with the `messages` of an
        earlier one (Chat.messages). `tools` are what the model may call, dicts as OpenAI's interface has
        them; Answer.tool_calls has the calls, or the answer's text where `metadata["tool_calls"]` is
        None."""
        if system is not None and messages is not None:
            raise InvalidArgument("system and messages exclude each other: the messages may begin with the system's.")
        if messages is None:
            messages = [] if system is None else [{"role": "system", "content": system}]
        return Chat(self.session(), list(messages), tools)

    def complete(self, prompt, *, marked=False, **options):
        """An Answer that continues `prompt`, a text or tokens, in a session of its own. With `marked`,
        what is computed of the prompt is kept in the store, and the next process that has the same
        prompt gets its first token at once. The other options are those of Session.answer()."""
        tokens = prompt
        if isinstance(prompt, str):
            start = self.metadata["start_tokens"]
            tokens = self.tokenize(prompt)
            if tokens[:len(start)] != start:
                tokens = start + tokens
        keep = options.get("keep")
        if keep is not None:
            context = self.session().context
            if keep < context <= len(tokens):
                tokens = [*tokens[:keep], *tokens[len(tokens) - (context - keep) // 2:]]
        return self.session(tokens, marked=len(tokens) if marked else 0).answer(**options)


class Session:
    """A text and what the model has computed of it. Made by Model.session()."""

    @classmethod
    def _make(cls, model, function="create", *arguments):
        self = cls.__new__(cls)
        self.model = model
        self._lock = threading.RLock()
        self._handle = ctypes.c_void_p()
        if function != "fork":
            arguments = (model._handle, *arguments)
        _library.call(f"session_{function}", *arguments, ctypes.byref(self._handle))
        _owned(self, "session", self._handle)
        return self

    def __init__(self):
        raise TypeError("Sessions are made by hearth.llm.Model.session().")

    def __repr__(self):
        return f"<hearth.llm.Session: {len(self.tokens)} tokens of {self.context}>"

    @property
    def tokens(self):
        """The tokens of the text, computed or not."""
        with self._lock:
            count = ctypes.c_size_t()
            made = _library.load().hearth_llm_session_tokens(self._handle, ctypes.byref(count))
            return made[:count.value]

    @property
    def context(self):
        """The most tokens that the text may have."""
        return _library.load().hearth_llm_session_context(self._handle)

    @property
    def text(self):
        """The text of the tokens, without special ones."""
        return self.model.detokenize(self.tokens)

    def append(self, tokens):
        """Appends tokens, or a text. Nothing is computed yet."""
        if isinstance(tokens, str):
            tokens = self.model.tokenize(tokens)
        with self._lock:
            _library.call("session_append", self._handle, *_array(tokens))

    def replace(self, tokens):
        """Makes the text what these tokens are. Returns how many of them are computed already."""
        reused = ctypes.c_size_t()
        with self._lock:
            _library.call("session_replace", self._handle, *_array(tokens), ctypes.byref(reused))
        return reused.value

    def mark_prefix(self, count):
        """Marks the first `count` tokens as a beginning that other texts have, too: later sessions, of
        any process, find what was computed of it in the store."""
        with self._lock:
            _library.call("session_mark_prefix", self._handle,
                          ctypes.c_size_t(_number("count", count, (1 << 63) - 1)))

    def rewind(self, count):
        """Drops all tokens but the first `count`."""
        with self._lock:
            _library.call("session_rewind", self._handle,
                          ctypes.c_size_t(_number("count", count, (1 << 63) - 1)))

    def scores(self, timeout=None):
        """The score (logit) of each token as the next one: an array of float32."""
        import numpy
        scores, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t()
        with self._lock:
            _library.call("session_scores", self._handle, _timeout(timeout), ctypes.byref(scores),
                          ctypes.byref(count))
            return numpy.ctypeslib.as_array(scores, (count.value,)).copy()

    def fork(self):
        """Another session with the same text, computed as far as this one."""
        with self._lock:
            return Session._make(self.model, "fork", self._handle)

    def answer(self, *, max_tokens=0, temperature=None, top_k=0, top_p=0, min_p=0, seed=0, stops=(),
               json_schema=None, hook=None, tools=None, tool_choice=None, repetition_penalty=1,
               presence_penalty=0, frequency_penalty=0, keep=None):
        """An Answer that continues the text. Nothing is computed yet.

        `max_tokens`: 0 = as many as the context has room for. `temperature`: 0 = always the most
        likely token, None = the model's own; `top_k`, `top_p`, `min_p`: 0 = the model's own, or no
        limit. `stops`: texts that end the answer. `json_schema`: a JSON Schema, a dict or a text,
        that the answer conforms to (docs/chat-server.md has the words that are known). `hook`: called
        before each token with the scores, an array of float32 that it may change, and the tokens of
        the answer so far. `tools`: dicts as OpenAI's interface has them, which the prompt has told the
        model of; Answer.tool_calls has calls of them, and the text has not. `tool_choice`: "auto",
        "required" (the answer is a call) or the name of the tool that is called.
        `repetition_penalty`: of tokens that the text has already, a score above 0 is divided by it,
        one below is multiplied. `presence_penalty` and `frequency_penalty`: subtracted from the
        score of each token that the answer has, the second as often as it has it. `keep`: with a
        number, a full context does not end the answer: the text goes on without its oldest tokens
        after so many, and the others are computed again.
        """
        return Answer(self, hook, max_tokens=_number("max_tokens", max_tokens, (1 << 32) - 1),
                      temperature=-1 if temperature is None else float(temperature),
                      top_k=_number("top_k", top_k, (1 << 32) - 1), top_p=float(top_p),
                      min_p=float(min_p), seed=_number("seed", seed, (1 << 64) - 1), stops=stops,
                      json_schema=_schema(json_schema), tools=_tools(tools),
                      tool_choice=None if tool_choice is None else _utf8(tool_choice, "tool_choice"),
                      repetition_penalty=float(repetition_penalty),
                      presence_penalty=float(presence_penalty),
                      frequency_penalty=float(frequency_penalty), when_full=keep is not None,
                      keep=_number("keep", keep or 0, (1 << 32) - 1))

    @property
    def statistics(self):
        """What has been computed: a dict with prefilled_tokens, decoded_tokens, stored_tokens,
        prefill_ms and decode_ms."""
        made = _Statistics()
        with self._lock:
            _library.call("session_statistics", self._handle, ctypes.byref(made))
        return {name: getattr(made, name) for name, _ in _Statistics._fields_[1:]}

    @property
    def start_report(self):
        """How the model started, as of hearth.Compilation.start_report."""
        return json.loads(_library.string("session_start_report_json", self._handle))


class ToolCall(typing.NamedTuple):
    """A call of a tool that an answer has made. `id` names it in the message with its result."""

    id: str
    name: str
    arguments: dict


class Answer:
    """The text that a model continues with, piece by piece: an iterator of str, for `for` and for
    `async for`. Made by Session.answer(), Model.complete() and Chat.send()."""

    def __init__(self, session, hook, *, stops, temperature, **options):
        if temperature < 0 and temperature != -1:
            raise InvalidArgument(f"temperature is {temperature}; it is not below 0.")
        if isinstance(stops, str):
            stops = (stops,)
        texts = [_utf8(stop, "stops") for stop in stops]
        native = _AnswerOptions(temperature=temperature, stop_count=len(texts), **options,
                                stops=(ctypes.c_char_p * len(texts))(*texts))
        self.session = session
        self._hook = hook
        self._text = ""
        self._calls = []
        self._end = None
        self._handle = ctypes.c_void_p()
        with session._lock:
            _library.call("answer_begin", session._handle, ctypes.byref(native),
                          ctypes.byref(self._handle))
        self._free = _owned(self, "answer", self._handle)

    def __iter__(self):
        return self

    def __next__(self):
        while (text := self.next()) is not None:
            if text:
                return text
        raise StopIteration

    def __aiter__(self):
        return self

    async def __anext__(self):
        while (text := await asyncio.get_running_loop().run_in_executor(None, self.next)) is not None:
            if text:
                return text
        raise StopAsyncIteration

    def __str__(self):
        """The whole text: what is left is generated."""
        for _ in self:
            pass
        return self._text

    def __repr__(self):
        return f"<hearth.llm.Answer: {self.tokens} tokens, {self.ending or 'running'}>"

    def next(self, timeout=None):
        """Generates one token. Returns what it adds to the text, "" while a character is incomplete,
        and None at the end. After `timeout` seconds it raises DeadlineMissed; another call goes on."""
        text, count = ctypes.c_void_p(), ctypes.c_size_t()
        with self.session._lock:
            if not self._free.alive:
                return None
            if self._hook is not None:
                self._callHook(timeout)
            _library.call("answer_next", self._handle, _timeout(timeout), ctypes.byref(text),
                          ctypes.byref(count))
            self._readCalls()
            if text.value is None:
                self._finish()
                return None
            piece = ctypes.string_at(text, count.value).decode("utf-8")
            self._text += piece
            return piece

    def _readCalls(self):
        for index in range(len(self._calls), _library.load().hearth_llm_answer_tool_call_count(self._handle)):
            made = _ToolCall()
            _library.call("answer_tool_call", self._handle, ctypes.c_size_t(index), ctypes.byref(made))
            # Templates of Mistral's models take names of nine letters and digits only.
            self._calls.append(ToolCall(secrets.token_hex(5)[:9], made.name.decode("utf-8"),
                                        json.loads(made.arguments)))

    def _callHook(self, timeout):
        import numpy
        scores, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t()
        _library.call("answer_scores", self._handle, _timeout(timeout), ctypes.byref(scores),
                      ctypes.byref(count))
        if count.value:
            number = ctypes.c_size_t()
            chosen = _library.load().hearth_llm_answer_tokens(self._handle, ctypes.byref(number))
            self._hook(numpy.ctypeslib.as_array(scores, (count.value,)),
                       chosen[:number.value] if number.value else [])

    def _finish(self):
        """Called once, when the answer ends."""
        if self._end is not None:
            self._end(self)
            self._end = None

    def cancel(self):
        """Ends the answer. Any thread may call it while another one waits for the next piece."""
        _library.load().hearth_llm_answer_cancel(self._handle)

    def close(self):
        """Ends the answer, so that the session can be used otherwise."""
        self.cancel()
        with self.session._lock:
            self._report()
            self._free()
            self._finish()

    def _report(self):
        if not self._free.alive:
            return self._last
        made = _AnswerReport()
        _library.call("answer_describe", self._handle, ctypes.byref(made))
        self._last = made
        return made

    @property
    def text(self):
        """The text so far."""
        return self._text

    @property
    def tool_calls(self):
        """The calls of tools so far: a list of ToolCall."""
        return list(self._calls)

    @property
    def tokens(self):
        """How many tokens were generated, with those that ended the answer."""
        with self.session._lock:
            return self._report().tokens

    @property
    def ending(self):
        """Why the answer ended: "stop", "max_tokens", "context" (it is full) or "cancelled"; None
        while it has not."""
        with self.session._lock:
            if not self._free.alive and self._report().ending == 0:
                return "cancelled"
            return _ENDINGS[self._report().ending]

    @property
    def first_token_ms(self):
        """From the beginning to the first token; 0 when there is none."""
        with self.session._lock:
            return self._report().first_token_ms


class Chat:
    """A conversation. Made by Model.chat()."""

    def __init__(self, session, messages, tools=None):
        self.session = session
        self.messages = messages
        self.tools = tools
        self._began = len(messages)  # with so many of them
        self._answer = None

    def __repr__(self):
        return f"<hearth.llm.Chat: {len(self.messages)} messages, {self.session!r}>"

    def send(self, message, **options):
        """Adds a message of the user, a text, or another one, such as a tool's result: a dict. Returns
        the Answer, which becomes a message, too, when it ends. One that has not ended ends now. The
        options are those of Session.answer(). With `keep`, a conversation that outgrows the context
        loses its oldest messages; those of the system at the beginning stay."""
        if self._answer is not None:
            self._answer.close()
        if not isinstance(message, dict):
            message = {"role": "user", "content": message}
        messages = [*self.messages, message]
        model = self.session.model
        if options.get("keep") is None:
            tokens = model.prompt_tokens(messages, tools=self.tools)
        else:
            tokens, fitting = model._fitting(messages, self.tools, self.session.context)
            if len(fitting) < len(messages):
                self._began = 0
            messages = fitting
        self.reused_tokens = self.session.replace(tokens)
        system = next((i for i, each in enumerate(messages) if each["role"] not in ("system", "developer")), 0)
        lasting = self._commonTokens(tokens, messages[:system]) if system else 0
        marked = self._commonTokens(tokens, messages[:self._began]) if self._began > system else 0
        if system or marked:
            self.session.mark_prefix(max(lasting, marked))
        if options.get("keep") is not None:
            options["keep"] = max(options["keep"], lasting)
        if self.tools and model.metadata["tool_calls"] is not None:
            options = {"tools": self.tools, **options}
        self._answer = self.session.answer(**options)
        self.messages = messages
        self._answer._end = self._addAnswer
        return self._answer

    def _addAnswer(self, answer):
        message = {"role": "assistant", "content": answer.text}
        if calls := answer.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in calls]
        self.messages.append(message)

    def _commonTokens(self, tokens, messages):
        """How many tokens all conversations have that begin with these messages: as the command counts
        them, so that each finds what the other has kept."""
        common = len(tokens)
        for text in ("0", "A"):  # two messages that begin unlike each other
            try:
                other = self.session.model.prompt_tokens([*messages, {"role": "user", "content": text}],
                                                         tools=self.tools)
            except Error:
                return 0
            differing = (i for i, (one, two) in enumerate(zip(tokens, other)) if one != two)
            common = min(common, next(differing, min(common, len(other))))
        return common

    # Of the last message's prompt: tokens that were computed before.
    reused_tokens = 0

    def fork(self):
        """Another conversation that begins like this one. What is said in one is unknown to the
        other."""
        if self._answer is not None and self._answer.ending is None:
            raise BadState("The answer has not ended; Answer.close() ends it.")
        fork = Chat(self.session.fork(), list(self.messages), self.tools)
        fork._began = self._began
        return fork
