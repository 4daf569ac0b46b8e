# SPDX-License-Identifier: Apache-2.0
"""The first inputs of nntv_fuzz: files of conformance cases."""

import struct


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
