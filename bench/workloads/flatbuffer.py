# SPDX-License-Identifier: Apache-2.0
"""A small FlatBuffers writer: describe the tree with the classes below, then `encode` it.

Parents are written before their children, since FlatBuffers' references are unsigned distances
forward. Large byte vectors (`Blob`) are only reserved: `encode` returns where each of them goes,
and the caller streams their bytes behind the tables.
"""

import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Scalar:
    """One number in a table; `format` is a struct character."""

    format: str
    value: object


@dataclass(frozen=True, eq=False)
class String:
    text: str


class Vector:
    """Numbers of one NumPy type, little-endian."""

    def __init__(self, dtype, values):
        self.values = np.asarray(values, dtype=np.dtype(dtype).newbyteorder("<"))


@dataclass(frozen=True, eq=False)
class TableVector:
    tables: list


@dataclass(frozen=True, eq=False)
class Blob:
    """A byte vector whose content the caller writes itself. `key` names it in `encode`'s answer."""

    key: object
    size: int


class Table:
    """`fields` maps a slot to an object of these classes; None is an absent field."""

    def __init__(self, fields):
        self.fields = {slot: value for slot, value in fields.items() if value is not None}


def encode(root, identifier, blobAlignment):
    """Lays out the tree.

    Returns (head, places): the bytes of all tables, and for each Blob a (key, position) with the
    position of its data in the file, in ascending order and aligned to `blobAlignment`. The four
    bytes before a position hold the blob's size.
    """
    encoder = _Encoder()
    encoder.out += struct.pack("<I4s", 0, identifier)
    encoder.reference(0, encoder.write(root))
    places = []
    end = len(encoder.out)
    for slot, blob in encoder.blobs:
        position = end + 4
        position += -position % blobAlignment
        encoder.reference(slot, position - 4)
        places.append((blob.key, position))
        end = position + blob.size
    if end >= 1 << 31:
        raise ValueError(f"the file would have {end} bytes; FlatBuffers end at 2147483647")
    return bytes(encoder.out), places


class _Encoder:
    def __init__(self):
        self.out = bytearray()
        self.blobs = []

    def align(self, alignment, offset=0):
        """Pads so that the position `offset` bytes ahead is aligned."""
        self.out += bytes(-(len(self.out) + offset) % alignment)

    def reference(self, slot, target):
        if target - slot < 1 << 32:
            struct.pack_into("<I", self.out, slot, target - slot)

    def write(self, node):
        if isinstance(node, Table):
            return self.writeTable(node)
        if isinstance(node, String):
            text = node.text.encode()
            self.align(4)
            position = len(self.out)
            self.out += struct.pack("<I", len(text)) + text + b"\0"
            return position
        if isinstance(node, Vector):
            self.align(max(4, node.values.itemsize), offset=4)
            position = len(self.out)
            self.out += struct.pack("<I", len(node.values)) + node.values.tobytes()
            return position
        assert isinstance(node, TableVector), node
        self.align(4)
        position = len(self.out)
        self.out += struct.pack("<I", len(node.tables)) + bytes(4 * len(node.tables))
        for i, table in enumerate(node.tables):
            slot = position + 4 + 4 * i
            self.reference(slot, self.write(table))
        return position

    def writeTable(self, table):
        formats = {slot: "I" if not isinstance(value, Scalar) else value.format
                   for slot, value in table.fields.items()}
        # Large fields first: no padding inside the table.
        order = sorted(formats, key=lambda slot: -struct.calcsize(formats[slot]))
        offsets = {}
        size = 4
        for slot in order:
            width = struct.calcsize(formats[slot])
            size += -size % width
            offsets[slot] = size
            size += width
        slots = max(offsets, default=-1) + 1
        self.align(2)
        vtable = len(self.out)
        self.out += struct.pack(f"<{2 + slots}H", 4 + 2 * slots, size,
                                *(offsets.get(slot, 0) for slot in range(slots)))
        self.align(8)
        position = len(self.out)
        self.out += struct.pack("<i", position - vtable) + bytes(size - 4)
        for slot, value in table.fields.items():
            at = position + offsets[slot]
            if isinstance(value, Scalar):
                struct.pack_into("<" + value.format, self.out, at, value.value)
            elif isinstance(value, Blob):
                self.blobs.append((at, value))
            else:
                self.reference(at, self.write(value))
        return position
