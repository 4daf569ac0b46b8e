# SPDX-License-Identifier: Apache-2.0
"""The first inputs of fuzz targets for models, what they take, and programs that call them."""

import hashlib
import io
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
