#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the fuzz targets beside itself, the same bytes at every call.

Those of model_file_fuzz and container_fuzz come from the program hearth_tflite_corpus, which runs first, since
tflite_call_sequence_fuzz begins with those models; those of served_client_fuzz and reply_fuzz come from
hearth_ipc_corpus.
"""

import hashlib
import io
import json
import pathlib
import struct
import sys
import wave
import zlib

import numpy
from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "bench"))

from workloads import flatbuffer, tflite_metadata  # noqa: E402


def manifests():
    yield "plain.json", b'{"name": "npu", "library": "libnpu.so", "api_version": 1}'
    yield "more.json", (b'{\n  "api_version": 1, "library": "../lib/lib\\u00e9.so",\n'
                        b'  "name": "a-b_c.9", "x": [1.5e3, null, true, {"y": "z"}]\n}\n')
    yield "optional.json", (b'{"name": "gpu", "library": "g.so", "api_version": 1, "optional": true,\n'
                            b' "asked_for_by": "HEARTH_VULKAN_DEVICE", "needs": {"code": true,\n'
                            b'  "if_present": {"devices": ["/dev/dri/r*"], "read_only": ["/etc/v"]},\n'
                            b'  "variables": ["VK_DRIVER_FILES"]}}\n')


def mailboxes():
    """Steps for mailbox_fuzz.cc: a request with its answer, and pages that a peer has written
    to."""
    call, receive, close = b"\2\7", b"\3", b"\5\0"

    def answer(first, second):
        return b"\4" + struct.pack("<QB", first, second)

    def write(offset, value):
        return b"\0" + struct.pack("<BI", offset, value)

    def writeLong(offset, value):
        return b"\1" + struct.pack("<BQ", offset, value)

    yield "served", call + receive + answer(1, 2) + call + receive + answer(3, 4) + close
    # Words 0 to 3 are the client's number, whether it sleeps, its processor and whether it has left;
    # those of the host are 32 words further.
    yield "sequence", (write(0, 5) + receive + write(32, 1) + call + write(0, 5) + receive
                       + answer(9, 9) + write(0, 0xffffffff) + receive)
    yield "sleeping", write(1, 1) + write(33, 1) + call + receive + answer(0, 0)
    yield "left", call + write(3, 1) + receive + write(3, 0) + receive + write(35, 1) + call
    yield "processor", write(2, 0xffffffff) + write(34, 1) + call + receive + answer(0, 0) + call
    yield "words", (writeLong(2, 2**64 - 1) + writeLong(3, 2**63) + call + receive
                    + writeLong(18, 77) + answer(5, 5) + call)
    yield "closed", call + close + write(3, 0) + write(35, 0) + call + receive + answer(1, 1) + call


class Record:
    """Little-endian bytes without padding, as in conformance vectors."""

    def __init__(self):
        self.bytes = bytearray()

    def put(self, layout, *values):
        self.bytes += struct.pack("<" + layout, *values)
        return self

    def text(self, value):
        return self.put("I", len(value)).put(f"{len(value)}s", value.encode())

    def numbers(self, *values):
        return self.put(f"I{len(values)}I", len(values), *values)


def operand(record, code, lifetime, shape, blob, size, channels=(), subgraph=-1):
    bits = (2 if channels else 0) | (4 if size else 0)
    record.text("x").put("iBB", code, lifetime, bits).numbers(*shape)
    record.put("fiIi", 0.5 if code == 5 else 0.0, 0, 1, subgraph)
    if channels:
        record.put("I", 0).put(f"I{len(channels)}f", len(channels), *channels)
    record.put("QQ", blob if size else 0, size)


def caseHead(name, flags):
    record = Record()
    record.text(name).text(name).text("V1_3").put("I", 1).text("v")
    return record.put("IBBBBIf18f", 0, 4, 4, 4, 0, flags, 0.0, *([1.0] * 18))


def relu():
    """RELU of TENSOR_QUANT8_ASYMM[4], with all variants."""
    record = caseHead("relu", 8 | 16).put("I", 1).text("main").put("I", 2)
    operand(record, 5, 1, [2, 2], 64, 4)
    operand(record, 5, 2, [2, 2], 64, 4)
    record.put("I", 1).put("i", 19).text("").numbers(0).numbers(1)
    return record.numbers(0).numbers(1).bytes


def condition():
    """IF with two branches, a constant with a scale for each channel, and an operand without a
    value."""
    record = caseHead("if", 0).put("I", 3).text("main").put("I", 7)
    operand(record, 9, 1, [1], 64, 1)
    operand(record, 15, 6, [], 0, 0, subgraph=0)
    operand(record, 15, 6, [], 0, 0, subgraph=1)
    operand(record, 3, 1, [2, 2], 64, 16)
    operand(record, 3, 2, [2, 2], 64, 16)
    operand(record, 11, 3, [2, 2], 64, 4, channels=(0.5, 0.25))
    operand(record, 3, 5, [0], 0, 0)
    record.put("I", 1).put("i", 96).text("").numbers(0, 1, 2, 3).numbers(4)
    record.numbers(0, 3).numbers(4)
    for code in (19, 20):
        record.text("branch").put("I", 2)
        operand(record, 3, 1, [2, 2], 0, 0)
        operand(record, 3, 2, [2, 2], 0, 0)
        record.put("I", 1).put("i", code).text("").numbers(0).numbers(1).numbers(0).numbers(1)
    return record.bytes


def conformanceFiles():
    for name, cases in (("relu.nntv", [relu()]), ("two.nntv", [condition(), relu()])):
        blobs = bytes(range(16))
        body, offsets = bytearray(blobs), []
        for case in cases:
            offsets.append(64 + len(body))
            body += case
        head = struct.pack("<8sQQQQ24x", b"NNTVEC01", len(cases), 64 + len(body), 64, len(blobs))
        yield name, head + bytes(body) + struct.pack(f"<{len(cases)}Q", *offsets)


def digest(data):
    return hashlib.sha256(data).digest()


def plan(segments, content):
    size = 128 + 32 * segments + len(content) + 32
    head = struct.pack("<8sII32s32sQQ32x", b"HRTHPLN\n", 1, segments, digest(b"key"),
                       digest(b"build"), len(content), size)
    body = head + b"".join(digest(bytes([i])) for i in range(segments)) + content
    return body + digest(body)


def segment(payload):
    """A whole segment file."""
    block = 1 << 20
    padding = bytes(-len(payload) % 64)
    digests = b"".join(digest(payload[i:i + block]) for i in range(0, len(payload), block))
    offset = len(payload) + len(padding)
    trailer = struct.pack("<8sII32sQQQ8x16s", b"HRTHSEG\n", 1, block, digest(b"key"), len(payload),
                          offset, offset + len(digests) + 128, bytes(range(16)))
    return payload + padding + digests + trailer + digest(digests + trailer)


def storeFiles():
    yield "empty.plan", plan(0, b"")
    yield "three.plan", plan(3, b"content of the driver")
    yield "small.seg", segment(bytes(range(100)))
    # Only the end of a large file is read.
    yield "tail.seg", segment(bytes((3 << 20) + 5))[-512:]


def blobs(entries):
    """The file of a blob cache."""
    content = b"".join(struct.pack("<IIq", len(key), len(value), 1_700_000_000) + key + value
                       for key, value in entries)
    head = struct.pack("<8sIIQ8x", b"HRTHBLB\n", 1, len(entries), len(content))
    return head + digest(head + content) + content


def bundles():
    """Head and index in the form that bundle_file_fuzz takes."""
    for count in (0, 2):
        entries, offset = b"", 4096
        for i in range(count):
            entries += digest(bytes([i])) + struct.pack("<QQ", offset, 100)
            offset += 4096
        body = plan(count, b"driver")
        facts = blobs([(b"kind\0of", bytes(range(40)))] * (count // 2))
        index = entries + b"".join(digest(bytes([9, i])) for i in range(count)) + body + facts
        notes = offset + 4096 * -(-len(index) // 4096)
        head = struct.pack("<8sII7Q16s32s", b"HRTHBND\n", 2, 1 << 20, notes + 64 * 128, offset,
                           count, count, len(body), notes, len(facts), bytes(16), digest(index))
        yield f"{count}.bundle", head + index


def blobCaches():
    yield "empty.blobs", blobs([])
    yield "two.blobs", blobs([(b"a", b"1"), (b"kind\0of", bytes(range(20)))])


def driverPlans():
    for name, graphs, segments, places in (
            ("one", 1, [4096], [(0, 0, 0, 0, 7, 0, 0, 4096)]),
            ("two", 2, [4096, 100], [(0, 0, 0, 0, 7, 0, 64, 128), (1, 0, 2, 1, 9, 1, 64, 36)])):
        yield f"{name}.plan", (struct.pack("<8s4IQ", b"HCPUPLAN", 2, graphs, len(segments), 0,
                                           len(places)) +
                               b"".join(digest(bytes([graph])) for graph in range(graphs)) +
                               struct.pack(f"<{len(segments)}Q", *segments) +
                               b"".join(struct.pack("<6I2Q", *place) for place in places))
    origin = {name: digest(name.encode()).hex()
              for name in ("driver", "xnnpack", "packing", "options", "pools")}
    yield "record.json", json.dumps([origin | {"cpu": ["avx2", "fma"]}, origin]).encode()


def cachedModels():
    named = struct.pack("<QQQ", 0, 4096, 0) + digest(b"segment")
    inline = struct.pack("<QQQ", 1, 100, 128) + bytes(32)
    yield "data.cache", (struct.pack("<8sII", b"HCPUDATA", 3, 2) + named + inline).ljust(292, b"x")
    # One RELU of two floats.
    def operand(lifetime):
        return struct.pack("<iQIfiIQBIQQIB", 3, 1, 2, 0, 0, 0, 0, lifetime, 0, 0, 0, 0, 0)
    model = (struct.pack("<IBBQQ", 2, 0, 0, 0, 1) + struct.pack("<Q", 2) + operand(1) + operand(2) +
             struct.pack("<Q", 1) + struct.pack("<iQIQI", 19, 1, 0, 1, 1) +
             struct.pack("<QI", 1, 0) + struct.pack("<QI", 1, 1))
    # Of three nodes, the second runs its alternative kernel on one thread.
    choices = struct.pack("<4I2QI", 1, 2, 3, 1, 2000, 1000, 1 << 2 | 3)
    yield "three.choices", choices
    head = struct.pack("<8sII32s7Q", b"HCPUMODL", 3, 0, digest(b"pin"), 64, 1, 1, 2**64 - 1,
                       len(choices), 8, len(model))
    yield "model.cache", head + struct.pack("<II", 0, 1) + choices + b"no plan." + model


def gpuPlans():
    """Plans of the GPU driver: RELU of two floats, and ADD of a constant to a reshaped tensor."""
    def text(letters):
        return struct.pack("<Q", len(letters)) + letters

    def tensor(isConstant, size, root, offset):
        return struct.pack("<BQIQ", isConstant, size, root, offset)

    def dispatch(shader, bindings, parameters):
        return (text(shader) + struct.pack("<IQ", 0, len(bindings)) +
                b"".join(struct.pack("<IB", *binding) for binding in bindings) +
                struct.pack(f"<Q{len(parameters)}I", len(parameters), *parameters) +
                struct.pack("<3IQ", 1, 1, 1, 0))

    def argument(tensor, *dimensions):
        return struct.pack(f"<iQ{len(dimensions)}IBI", 3, len(dimensions), *dimensions, 0, tensor)

    def output(tensor, *dimensions):
        return argument(tensor, *dimensions) + struct.pack(f"<Q{len(dimensions)}I", len(dimensions), *dimensions)

    def counted(parts):
        return struct.pack("<Q", len(parts)) + b"".join(parts)

    def plan(arena, constants, tensors, dispatches, inputs, outputs, version=3):
        noFault = 2**32 - 1
        return (b"HVULPLAN" + struct.pack("<IQQ", version, arena, constants) +
                b"".join(map(counted, (tensors, dispatches, inputs, outputs))) + struct.pack("<I", noFault) +
                counted([text(b"unary.f32") + struct.pack("<I", 0) + text(b"code")]))

    relu = [dispatch(b"unary.f32", [(0, 0), (1, 1)], [2, 0, 0x7f800000])]
    yield "relu.plan", plan(32, 0, [tensor(0, 8, 0, 0), tensor(0, 8, 1, 16)], relu, [argument(0, 2)], [output(1, 2)])
    add = [dispatch(b"binary.f32", [(1, 0), (2, 0), (3, 1)], [2] * 20)]
    yield "add.plan", plan(32, 16, [tensor(0, 8, 0, 0), tensor(0, 8, 0, 0), tensor(1, 8, 2, 0), tensor(0, 8, 3, 16)],
                           add, [argument(0, 1, 2)], [output(3, 2)])
    yield "other.plan", plan(32, 0, [], [], [], [], version=2)


def inputFiles():
    for name, array in (("float.npy", numpy.linspace(-1, 1, 6, dtype=numpy.float32).reshape(2, 3)),
                        ("bool.npy", numpy.array([True, False])),
                        ("scalar.npy", numpy.array(7, dtype=numpy.int64)),
                        ("empty.npy", numpy.zeros((0, 4), dtype=numpy.uint8))):
        stream = io.BytesIO()
        numpy.save(stream, array)
        yield name, stream.getvalue()
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(struct.pack("<8h", *range(-4000, 4000, 1000)))
    yield "tone.wav", stream.getvalue()
    ramp = numpy.arange(16 * 12 * 3, dtype=numpy.uint8).reshape(12, 16, 3)
    picture = Image.fromarray(ramp)
    for name, options in (("colour.png", {}), ("palette.png", {"mode": "P"}),
                          ("alpha.png", {"mode": "RGBA"}), ("grey.jpg", {"mode": "L"}),
                          ("colour.jpg", {"quality": 60}),
                          ("progressive.jpg", {"progressive": True}), ("colour.bmp", {}),
                          ("palette.bmp", {"mode": "P"})):
        mode = options.pop("mode", "RGB")
        stream = io.BytesIO()
        kind = {"jpg": "JPEG"}.get(name[-3:], name[-3:].upper())
        picture.convert(mode).save(stream, kind, **options)
        yield name, stream.getvalue()
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    before, mark, behind = stream.getvalue().partition(b"IDAT")
    empty = struct.pack(">I4sI", 0, b"IDAT", zlib.crc32(b"IDAT"))
    yield "empty_first.png", before[:-4] + empty + before[-4:] + mark + behind


def callSequences():
    for seed in range(6):
        yield f"{seed}.calls", hashlib.shake_128(bytes([seed])).digest(1200)


class TfliteCalls:
    """Calls of runCallSequence() (src/frontends/tflite_c/testing/call_sequence.cc) on its first objects."""

    def __init__(self):
        self.bytes = bytearray()

    def model(self):
        return self._put(0, 0, 0, 0)

    def options(self, operators=(1,)):
        """`operators` are those that the program brings: none, AddBuiltinOp, or functions that find them."""
        return self._put(2, 0, *operators)

    def threads(self, count):
        return self._put(3, 0, count + 1, 0, 0)

    def delegate(self, choice, isInOptions=True):
        """One that takes a node for each low bit, and says their shapes (16), fails (32 in a run, 64 in
        Prepare) or lies (128)."""
        return self._put(4, 0 if isInOptions else 4, 0, choice, 0)

    def runner(self):
        return self._put(5, 0, 0, 1)

    def interpreter(self):
        return self._put(6, 0, 0, 1, 0)

    def allocate(self):
        return self._put(64, 0, 0)

    def invoke(self):
        return self._put(66, 0, 0)

    def resize(self, place, *dims):
        return self._put(68, 0, 0, len(dims), *dims, place + 1)

    def reset(self):
        return self._put(69, 0, 0)

    def customAllocation(self, place, size):
        return self._put(70, 0, 0, 0, size // 8, place + 1, 0)

    def runSignature(self, place, *dims):
        return self._put(71, 0, 0, len(dims), *dims, place + 1)

    def fill(self, place, value):
        return self._put(173, 0, 0, place + 1, value)

    def write(self, place):
        return self._put(168, 0, 0, place + 1)

    def read(self, place, kind=1):
        """`kind`: 0 input, 1 output, 2 variable, 3 by the file's index."""
        return self._put(170, 0, kind, place + 1)

    def look(self, place, kind):
        """All that the functions for reading say of a tensor."""
        for choice in (172, 174, 175, 177, 179):
            self._put(choice, 0, kind, place + 1, *([0, place + 1] * 2 if choice == 177 else [1] * (choice == 174)))
        return self

    def string(self, place):
        return self._put(176, 0, 1, place + 1, 1)

    def _put(self, *values):
        self.bytes += bytes(values)
        return self


def tfliteCallSequences():
    """Programs of TensorFlow Lite's C interface: each with a few models that suit it, a plain one with all."""
    def start(**options):
        return TfliteCalls().model().options(**options)

    def run(calls):
        return calls.allocate().fill(0, 1).fill(1, 1).fill(2, 2).invoke().read(0).read(1)

    plain = run(start().threads(1).interpreter()).invoke().look(0, 0).look(0, 1).look(1, 3).reset().invoke().read(0)
    shapes = start().interpreter()
    for dims in ((2, 4), (1, 4), (1, 2, 2, 1), (3, 4, 4, 2), (0, 4)):
        shapes.resize(0, *dims)
        run(shapes)
    programs = {
        "shapes": (shapes, ("open_sizes", "conv_float", "elementwise", "reductions")),
        "memory": (run(start().interpreter().customAllocation(0, 256)), ("elementwise", "conv_int8")),
        "signature": (run(start().interpreter().runner()).runSignature(0, 2, 4).runSignature(0, 1, 4)
                      .look(0, 1), ("open_sizes", "control_flow")),
        "strings": (start().interpreter().allocate().write(0).invoke().read(0).string(0), ("strings", "lookups")),
        "zeros": (run(start().delegate(0b10101).interpreter()), ("conv_float", "control_flow", "lstm_float")),
        "all": (run(start().delegate(0b11111).interpreter()).resize(0, 2, 4).allocate().invoke(),
                ("elementwise", "control_flow", "conv_uint8")),
        "later": (run(run(start().interpreter()).delegate(0b10011, isInOptions=False)), ("elementwise", "resources")),
        "failing": (run(start().threads(1).delegate(0b110101).interpreter()), ("conv_int8", "recurrent")),
        "refusing": (run(start().delegate(0b1010101).interpreter()), ("conv_int8", "strings")),
        "lies": (run(start().delegate(0b10000101).interpreter()).invoke(), ("elementwise", "strings", "shapes")),
        "operators": (run(start(operators=(0, 0, 4, 2, 6)).interpreter()), ("conv_float", "conv_int8")),
        "found": (run(start(operators=(4, 0b01010101)).interpreter()), ("elementwise", "custom")),
        "opaque": (run(start(operators=(8, 0x7f)).interpreter()), ("elementwise", "custom")),
        "lying": (run(start(operators=(4, 0xff)).interpreter()).invoke(), ("custom", "strings", "different")),
    }

    def entry(calls, model):
        file = (FOLDER / "model_file_fuzz" / f"{model}.tflite").read_bytes()
        return struct.pack(">H", len(calls.bytes)) + bytes(calls.bytes) + file

    for path in sorted((FOLDER / "model_file_fuzz").glob("*.tflite")):
        yield f"plain_{path.stem}", entry(plain, path.stem)
    for name, (calls, models) in programs.items():
        for model in models:
            yield f"{name}_{model}", entry(calls, model)


def delegateGraphs():
    for seed in range(6):
        yield f"{seed}.graph", hashlib.shake_128(b"graph" + bytes([seed])).digest(400)


def metadata():
    """What models say of themselves: a classifier, a detector, a model of sounds, nothing."""
    tensor, vector, scalar = tflite_metadata.tensor, tflite_metadata.Vector, tflite_metadata.Scalar
    image = tensor("image", "A picture.", "image", {0: scalar("b", 1)}, [127.5], [127.5])
    labels = [("labels.txt", "axis labels", "en"), ("namen.txt", "axis labels", "de")]
    yield "classifier.tflitemeta", tflite_metadata.metadata(
        "classifier", [image],
        [tensor("probability", "For each class.", calibration=(1, 0.5),
                files=[*labels, ("calibration.csv", "score calibration", "")])],
        "Tells classes apart.", "Nobody", "Apache-2.0")
    yield "detector.tflitemeta", tflite_metadata.metadata("detector", [image], [
        tensor("location", content="bounding box",
               properties={0: vector(numpy.uint32, [1, 0, 3, 2]), 1: scalar("b", 1), 2: scalar("b", 1)}),
        tensor("category", files=[("labels.txt", "value labels", "")]),
        tensor("score", threshold=0.25), tensor("number of detections", content="feature")])
    yield "sounds.tflitemeta", tflite_metadata.metadata(
        "sounds", [tensor("audio", content="audio",
                          properties={0: scalar("I", 44100), 1: scalar("I", 1)})], [])
    yield "nothing.tflitemeta", tflite_metadata.metadata("", [], [])


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


def prefixHeads():
    """Heads of stored prefixes, as in src/cache/prefix/prefix_block.cc."""
    def head(position, tokens, size, name, magic=b"HRTHPFX\n", version=1):
        return struct.pack("<8sIIII32s200s", magic, version, position, tokens, size, bytes(range(32)), name)

    yield "first", head(0, 128, 14, b"model.litertlm")
    yield "last", head(1024, 62, 200, b"m" * 200)
    yield "none", head(128, 0, 0, b"")
    yield "far", head(2**32 - 1, 128, 1, b"m")
    yield "long", head(0, 128, 201, b"m")
    yield "other", head(0, 128, 1, b"m", version=2)
    yield "cut", head(0, 128, 1, b"m")[:100]


def keptFiles():
    """What a device keeps of a delegate, as in src/drivers/delegate/kept_files.cc and claims.cc."""
    def packed(*files, count=None):
        return struct.pack("<II", 0x31464B48, len(files) if count is None else count) + b"".join(
            struct.pack("<QQ", len(name), len(content)) + name + content for name, content in files)

    yield "file", packed((b"cache", b"compiled"))
    yield "folders", packed((b"kernels/0.bin", b"0" * 100), (b"kernels/1.bin", b""), (b"list", b"2"))
    yield "outside", packed((b"../cache", b"compiled"))
    yield "unsorted", packed((b"b", b""), (b"a", b""))
    yield "fewer", packed((b"a", b"1"), count=2)
    yield "claims", b'["","The delegate does not take MUL."]'
    yield "no claims", b'["",1]'


def savedCompilations():
    """Model caches of support libraries' compilations, as in src/drivers/support_library/saved_compilation.cc, of
    data caches with 1000 bytes."""
    def packed(model, data, constants, version=1):
        return struct.pack(f"<{len(model) + len(data) + 4}Q", version, len(model), *model, len(data), *data,
                           constants) + b"graph"

    yield "files", packed([100, 300], [500], 100)
    yield "no constants", packed([1000], [], 0)
    yield "longer", packed([1000], [1], 0)
    yield "many", packed([1] * 33, [967], 0)
    yield "endless", packed([2**64 - 1], [1], 0)
    yield "version", packed([1000], [], 0, version=2)


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


def packedStrings():
    """Buffers of strings: their number, the offset of each and of the end, then their bytes."""
    yield "three", struct.pack("<5i", 3, 20, 22, 22, 23) + b"abc"
    yield "none", struct.pack("<2i", 0, 8)
    yield "backwards", struct.pack("<4i", 2, 18, 17, 18) + b"ab"


def trie(strings):
    """The nodes of a double array of {bytes: number}."""
    nodes = {0: 0}

    def place(position, prefix):
        below = [text for text in strings if text.startswith(prefix)]
        labels = sorted({text[len(prefix)] for text in below if len(text) > len(prefix)})
        base = 1
        while base in nodes or any(base ^ label in nodes for label in labels):
            base += 1
        nodes[position] |= (position ^ base) << 10 | (0x100 if prefix in below else 0)
        nodes[base] = 0x80000000 | strings[prefix] if prefix in below else 0
        nodes.update({base ^ label: label for label in labels})
        for label in labels:
            place(base ^ label, prefix + bytes([label]))

    place(0, b"")
    return [nodes.get(i, 0) for i in range(max(nodes) + 1)]


def sentencepieceModels():
    """Models of SentencePiece: pieces, their scores, and what is replaced before."""
    pieces = {"\u2581": -2, "a": -3, "b": -3, "ab": -4, "\u2581ab": -5, "abba": -20, "\u00e4": -3}

    def model(**more):
        fields = {1: flatbuffer.Scalar("i", 1), 2: flatbuffer.Scalar("i", 2), 3: flatbuffer.Scalar("i", 0),
                  4: flatbuffer.Scalar("f", -30),
                  6: flatbuffer.Table({0: flatbuffer.Vector(
                      numpy.uint32, trie({text.encode(): i for i, text in enumerate(pieces)}))}),
                  7: flatbuffer.Vector(numpy.float32, list(pieces.values())),
                  8: flatbuffer.Scalar("b", 1), 9: flatbuffer.Scalar("b", 1), 10: flatbuffer.Scalar("b", 1),
                  11: flatbuffer.Table({0: flatbuffer.Vector(numpy.uint32, trie({b"\t": 0, b"x": 2}))}),
                  12: flatbuffer.Vector(numpy.int8, numpy.frombuffer(b" \0yz\0", numpy.int8))}
        fields.update({int(slot[1:]): value for slot, value in more.items()})
        return flatbuffer.encode(flatbuffer.Table(fields), b"\0\0\0\0", 4)[0]

    yield "small", model()
    yield "fewer_scores", model(_7=flatbuffer.Vector(numpy.float32, [-1]))
    yield "other_version", model(_0=flatbuffer.Scalar("b", 1))
    yield "endless", model(_12=flatbuffer.Vector(numpy.int8, [32] * 300))
    # A node that is its own child.
    circle = [1 << 10, 0x80000000] + [0] * 254
    circle[1 ^ 0x20] = 0x20 | 0x100 | 0x20 << 10
    yield "circle", model(_11=flatbuffer.Table({0: flatbuffer.Vector(numpy.uint32, circle)}))


def main():
    for target, seeds in (("driver_manifest_fuzz", manifests),
                          ("mailbox_fuzz", mailboxes), ("metadata_fuzz", metadata), ("nntv_fuzz", conformanceFiles),
                          ("store_file_fuzz", storeFiles), ("bundle_file_fuzz", bundles),
                          ("blob_cache_fuzz", blobCaches),
                          ("prefix_block_fuzz", prefixHeads), ("kept_files_fuzz", keptFiles),
                          ("saved_compilation_fuzz", savedCompilations),
                          ("packing_map_fuzz", driverPlans), ("input_file_fuzz", inputFiles),
                          ("cached_model_fuzz", cachedModels), ("vulkan_plan_fuzz", gpuPlans),
                          ("call_sequence_fuzz", callSequences),
                          ("tflite_call_sequence_fuzz", tfliteCallSequences),
                          ("delegate_graph_fuzz", delegateGraphs),
                          ("chat_template_fuzz", chatTemplates), ("tokenizer_json_fuzz", tokenizers),
                          ("llm_metadata_fuzz", languageMetadata), ("chat_request_fuzz", chatRequests),
                          ("sentence_piece_fuzz", sentencePieces), ("json_schema_fuzz", jsonSchemas),
                          ("tool_calls_fuzz", toolCalls),
                          ("packed_strings_fuzz", packedStrings),
                          ("sentencepiece_model_fuzz", sentencepieceModels)):
        folder = FOLDER / target
        folder.mkdir(exist_ok=True)
        for name, content in seeds():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
