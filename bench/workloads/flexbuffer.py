# SPDX-License-Identifier: Apache-2.0
"""FlexBuffers that hold a map of numbers: the attributes of composite operators."""

import struct

_INT, _FLOAT, _MAP = 1, 3, 9
_WIDTH_4 = 2  # the width's logarithm, as type bytes hold it
_FORMATS = {0: "b", 1: "h", 2: "i", 3: "q"}
_FLOAT_FORMATS = {2: "f", 3: "d"}


def encode(numbers):
    """The bytes of a map: an int becomes a 32-bit integer, a float a 32-bit float."""
    names = sorted(numbers)
    out = bytearray()
    starts = []
    for name in names:
        starts.append(len(out))
        out += name.encode() + b"\0"
    out += bytes(-len(out) % 4)
    out += struct.pack("<I", len(names))
    keys = len(out)
    for start in starts:
        out += struct.pack("<I", len(out) - start)
    out += struct.pack("<III", len(out) - keys, 4, len(names))
    values = len(out)
    for name in names:
        out += struct.pack("<f" if isinstance(numbers[name], float) else "<i", numbers[name])
    for name in names:
        out.append((_FLOAT if isinstance(numbers[name], float) else _INT) << 2 | _WIDTH_4)
    if len(out) - values > 255:
        raise ValueError(f"{len(names)} numbers are too many for a map of one page")
    out += bytes([len(out) - values, _MAP << 2 | _WIDTH_4, 1])
    return bytes(out)


def decode(data):
    """The numbers of a map, whatever their width; other values are left out."""
    if not len(data):
        return {}
    data = bytes(data)
    kind, rootWidth = data[-2], data[-1]
    if kind >> 2 != _MAP:
        raise ValueError("the FlexBuffer is no map")
    width = 1 << (kind & 3)

    def unsigned(position, size):
        return int.from_bytes(data[position:position + size], "little")

    root = len(data) - 2 - rootWidth
    values = root - unsigned(root, rootWidth)
    count = unsigned(values - width, width)
    keyWidth = unsigned(values - 2 * width, width)
    keysField = values - 3 * width
    keys = keysField - unsigned(keysField, width)
    numbers = {}
    for i in range(count):
        slot = keys + i * keyWidth
        start = slot - unsigned(slot, keyWidth)
        name = data[start:data.index(0, start)].decode()
        packed = data[values + count * width + i]
        formats = {_INT: _FORMATS, _FLOAT: _FLOAT_FORMATS}.get(packed >> 2)
        if formats is not None:
            format_ = formats[(width).bit_length() - 1]
            numbers[name] = struct.unpack_from("<" + format_, data, values + i * width)[0]
    return numbers
