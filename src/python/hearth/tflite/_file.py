# SPDX-License-Identifier: Apache-2.0
"""The tables of a .tflite file: tensors by their index, constants, operators and signatures. Nothing
is read before it is asked for. The library has verified a file before it comes here."""

import os
import struct
import weakref

import numpy as np

# By the number that a tensor's type has in the file: NumPy's type, and the name in messages.
TYPES = {0: (np.float32, "FLOAT32"), 1: (np.float16, "FLOAT16"), 2: (np.int32, "INT32"),
         3: (np.uint8, "UINT8"), 4: (np.int64, "INT64"), 5: (np.bytes_, "STRING"),
         6: (np.bool_, "BOOL"), 7: (np.int16, "INT16"), 8: (np.complex64, "COMPLEX64"),
         9: (np.int8, "INT8"), 10: (np.float64, "FLOAT64"), 11: (np.complex128, "COMPLEX128"),
         12: (np.uint64, "UINT64"), 13: (np.object_, "RESOURCE"),
         14: (np.object_, "VARIANT"), 15: (np.uint32, "UINT32"), 16: (np.uint16, "UINT16"),
         17: (np.int8, "INT4")}
# Types of which no arrays are made.
OPAQUE = ("RESOURCE", "VARIANT")
_BLOCKWISE_QUANTIZATION = 2


def unpacked(content):
    """The strings of a constant: their number, the offset of each and of the end, then their bytes."""
    count, = struct.unpack_from("<i", content) if len(content) >= 8 else (0,)
    if count < 0 or 4 * (count + 2) > len(content):
        raise ValueError(f"A buffer of {len(content)} bytes says that it has {count} strings.")
    offsets = struct.unpack_from(f"<{count + 1}i", content, 4)
    return [bytes(content[begin:end]) for begin, end in zip(offsets, offsets[1:])]


class Bytes:
    """A model in memory."""

    def __init__(self, content):
        self._content = memoryview(content)

    def read(self, offset, size):
        piece = self._content[offset:offset + size]
        if len(piece) != size:
            raise ValueError("The model is not a valid Flatbuffer buffer: it ends too early.")
        return piece

    def all(self):
        return bytes(self._content)


class FileBytes:
    """A model in a file, of which pieces are read and kept: a file that is cut off is an error here,
    and would be a signal for a mapping."""

    _PIECE = 1 << 16

    def __init__(self, path):
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        self._pieces = {}

    def read(self, offset, size):
        place, begin = divmod(offset, self._PIECE)
        if begin + size > self._PIECE:
            content = self._pread(offset, size)
        else:
            content = self._pieces.get(place)
            if content is None:
                content = self._pieces[place] = self._pread(place * self._PIECE, self._PIECE)
            content = content[begin:begin + size]
        if len(content) != size:
            raise ValueError("The model is not a valid Flatbuffer buffer: it ends too early.")
        return content

    def _pread(self, offset, size):
        pieces = []
        while size > 0 and (piece := os.pread(self._file, size, offset)):
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def all(self):
        return self._pread(0, os.fstat(self._file).st_size)


class Table:
    """A table of the file. A field that it lacks has its default value."""

    def __init__(self, content, position):
        self._content = content
        self._position = position
        back, = struct.unpack("<i", content.read(position, 4))
        self._fields = position - back
        self._field_bytes, = struct.unpack("<H", content.read(self._fields, 2))

    def place(self, field):
        """Where the field lies; 0 if the table lacks it."""
        entry = 4 + 2 * field
        if entry + 2 > self._field_bytes:
            return 0
        offset, = struct.unpack("<H", self._content.read(self._fields + entry, 2))
        return self._position + offset if offset else 0

    def scalar(self, field, code, default=0):
        place = self.place(field)
        if not place:
            return default
        return struct.unpack("<" + code, self._content.read(place, struct.calcsize(code)))[0]

    def _target(self, field):
        place = self.place(field)
        return place and place + struct.unpack("<I", self._content.read(place, 4))[0]

    def table(self, field):
        position = self._target(field)
        return Table(self._content, position) if position else None

    def vector(self, field):
        """(number of elements, where they begin); (0, 0) if there is none."""
        position = self._target(field)
        if not position:
            return 0, 0
        return struct.unpack("<I", self._content.read(position, 4))[0], position + 4

    def array(self, field, dtype):
        count, place = self.vector(field)
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(self._content.read(place, size), dtype) if count else np.array([], dtype)

    def text(self, field):
        count, place = self.vector(field)
        return bytes(self._content.read(place, count)).decode(errors="replace") if count else ""

    def length(self, field):
        return self.vector(field)[0]

    def item(self, field, index):
        """The table at a place of a vector."""
        place = self.vector(field)[1] + 4 * index
        return Table(self._content, place + struct.unpack("<I", self._content.read(place, 4))[0])

    def items(self, field):
        return (self.item(field, index) for index in range(self.length(field)))


class Tensor:
    """A tensor of a subgraph, as the file describes it."""

    def __init__(self, table, file, subgraph):
        self._file = file
        self._subgraph = subgraph
        self.name = table.text(3)
        self.shape = table.array(0, "<i4").astype(np.int32)
        self.shape_signature = table.array(7, "<i4").astype(np.int32)
        self.type = table.scalar(1, "b")
        self.buffer = table.scalar(2, "I")
        self.is_variable = bool(table.scalar(5, "b"))
        self._quantization = table.table(4)
        self._sparsity = table.table(6)

    @property
    def dtype(self):
        return TYPES[self.type][0] if self.type in TYPES else None

    @property
    def type_name(self):
        return TYPES[self.type][1] if self.type in TYPES else f"type {self.type}"

    def can_be_output(self):
        return self.dtype is not None and self.type_name not in OPAQUE and not self.is_variable

    def quantization(self):
        """(scales, zero points, dimension that they belong to, elements of a block)."""
        table = self._quantization
        if table is None:
            return np.array([], np.float32), np.array([], np.int32), 0, 0
        if table.scalar(4, "B") == _BLOCKWISE_QUANTIZATION and table.table(5) is not None:
            # The scales are another tensor.
            blocks = table.table(5)
            scales = self._subgraph.tensor(blocks.scalar(0, "i")).array()
            return (np.array([], np.float32) if scales is None else scales.reshape(-1), np.array([], np.int32),
                    table.scalar(6, "i"), blocks.scalar(2, "i"))
        scales = table.array(2, "<f4").astype(np.float32)
        zero_points = table.array(3, "<i8").astype(np.int32)
        if len(scales) and not len(zero_points):
            zero_points = np.zeros(len(scales), np.int32)
        return scales, zero_points, table.scalar(6, "i"), 0

    def array(self):
        """The elements of a constant, not to be written; None for other tensors. A sparse one is the list
        of the elements that are stored."""
        content = None if self.is_variable else self._file.constant(self)
        if content is None and 0 in self.shape:
            content = b""
        if content is None or self.dtype is None or self.type_name in OPAQUE:
            return None
        if self.type_name == "STRING":
            array = np.empty(int(np.prod(self.shape, dtype=np.int64)), object)
            array[:] = unpacked(content)
            array.flags.writeable = False
            return array.reshape(self.shape)
        array = np.frombuffer(content, self.dtype)
        if self.type_name == "INT4":
            # Two elements in a byte, the first in the low half.
            halves = np.stack([array << 4 >> 4, array >> 4], axis=-1).reshape(-1)
            array = halves[:np.prod(self.shape, dtype=np.int64)]
        array.flags.writeable = False
        return array if self._sparsity is not None else array.reshape(self.shape)

    def sparsity(self):
        """What the file says about an encoding that leaves zeros out; {} for a dense tensor."""
        table = self._sparsity
        if table is None:
            return {}
        result = {"traversal_order": table.array(0, "<i4").astype(np.int32)}
        if table.place(1):
            result["block_map"] = table.array(1, "<i4").astype(np.int32)
        result["dim_metadata"] = [self._sparse_dimension(dimension) for dimension in table.items(2)]
        return result

    @staticmethod
    def _sparse_dimension(table):
        dense, sparse = 0, 1
        if table.scalar(0, "b") != sparse:
            return {"format": dense, "dense_size": table.scalar(1, "i")}
        # Lists of three types of integers, as the number before them says.
        types = {1: "<i4", 2: "<u2", 3: "u1"}
        lists = [table.table(field + 1).array(0, types[table.scalar(field, "B")]).astype(np.int32)
                 if table.scalar(field, "B") in types else np.array([], np.int32) for field in (2, 4)]
        return {"format": sparse, "array_segments": lists[0], "array_indices": lists[1]}


class Subgraph:
    def __init__(self, table, file):
        self._table = table
        self._file = file
        self._tensors = {}
        self.tensor_count = table.length(0)
        self.operator_count = table.length(3)
        self.inputs = table.array(1, "<i4").tolist()
        self.outputs = table.array(2, "<i4").tolist()

    def tensor(self, index):
        if index not in self._tensors:
            self._tensors[index] = Tensor(self._table.item(0, index), self._file, self)
        return self._tensors[index]

    def operator(self, index):
        """(inputs, outputs) of an operator, as arrays of tensors' indices; -1 stands for none."""
        table = self._table.item(3, index)
        return table.array(1, "<i4").astype(np.int32), table.array(2, "<i4").astype(np.int32)

    def operator_code(self, index):
        """The place of the operator's kind among those of the file."""
        return self._table.item(3, index).scalar(0, "I")

    def computed(self):
        """The tensors that operators write."""
        return sorted({int(tensor) for index in range(self.operator_count)
                       for tensor in self.operator(index)[1] if tensor >= 0})

    def preserved(self):
        """The outputs, then all other tensors that operators write and an array can hold."""
        return self.outputs + [index for index in self.computed()
                               if index not in self.outputs and self.tensor(index).can_be_output()]

    def outputs_place(self):
        return self._table.place(2)


class Signature:
    """Names of inputs and outputs of a subgraph, in the order of the file, with the tensors' indices."""

    def __init__(self, subgraph, inputs, outputs):
        self.subgraph = subgraph
        self.inputs = inputs
        self.outputs = outputs

    @staticmethod
    def of(table):
        inputs, outputs = ({entry.text(0): entry.scalar(1, "I") for entry in table.items(side)}
                           for side in (0, 1))
        return Signature(table.scalar(4, "I"), inputs, outputs)


class ModelFile:
    """`content`: Bytes or FileBytes."""

    def __init__(self, content):
        self._content = content
        self._root = Table(content, struct.unpack("<I", content.read(0, 4))[0])
        self.subgraphs = [Subgraph(table, self) for table in self._root.items(2)]
        self.signatures = {table.text(2): Signature.of(table) for table in self._root.items(7)}

    def kind(self, code):
        """(number, name of a custom operator, version) of a kind of operators."""
        table = self._root.item(1, code)
        # The older one of two fields for the number has 8 bits.
        return max(table.scalar(0, "b"), table.scalar(3, "i")), table.text(1), table.scalar(2, "i", 1)

    def constant(self, tensor):
        """The bytes of a constant; None for other tensors."""
        if tensor.buffer >= self._root.length(4):
            return None
        buffer = self._root.item(4, tensor.buffer)
        count, place = buffer.vector(0)
        if not count:
            # Large buffers lie behind the tables.
            place, count = buffer.scalar(1, "Q"), buffer.scalar(2, "Q")
            if place <= 1 or not count:
                return None
        return self._content.read(place, count)

    def without_signatures(self, subgraph, outputs=None):
        """The bytes of the same model with no signatures, so that the library compiles subgraph 0, with
        these outputs of a subgraph."""
        content = bytearray(self._content.all())
        count, place = self._root.vector(7)
        if count:
            struct.pack_into("<I", content, place - 4, 0)
        if outputs is not None:
            field = self.subgraphs[subgraph].outputs_place()
            content.extend(bytes(-len(content) % 4))
            struct.pack_into("<I", content, field, len(content) - field)
            content.extend(struct.pack(f"<I{len(outputs)}i", len(outputs), *outputs))
        return bytes(content)
