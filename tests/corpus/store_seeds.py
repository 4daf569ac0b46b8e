# SPDX-License-Identifier: Apache-2.0
"""The first inputs of fuzz targets for what the weight store and drivers keep in files."""

import hashlib
import json
import struct


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
    """Plans of the GPU driver: RELU of two floats, and ADD of a constant to a reshaped tensor; and these for shapes."""
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

    def plan(arena, constants, tensors, dispatches, inputs, outputs, version=4):
        noFault = 2**32 - 1
        return (b"HVULPLAN" + struct.pack("<IQQ", version, arena, constants) +
                b"".join(map(counted, (tensors, dispatches, inputs, outputs))) + struct.pack("<IB", noFault, 0) +
                counted([text(b"unary.f32") + struct.pack("<I", 0) + text(b"code")]))

    relu = [dispatch(b"unary.f32", [(0, 0), (1, 1)], [2, 0, 0x7f800000])]
    yield "relu.plan", plan(32, 0, [tensor(0, 8, 0, 0), tensor(0, 8, 1, 16)], relu, [argument(0, 2)], [output(1, 2)])
    add = [dispatch(b"binary.f32", [(1, 0), (2, 0), (3, 1)], [2] * 20)]
    yield "add.plan", plan(32, 16, [tensor(0, 8, 0, 0), tensor(0, 8, 0, 0), tensor(1, 8, 2, 0), tensor(0, 8, 3, 16)],
                           add, [argument(0, 1, 2)], [output(3, 2)])
    yield "other.plan", plan(32, 0, [], [], [], [], version=2)

    def member(shapes, bytes, pieces):
        return (counted([struct.pack(f"<Q{len(shape)}I", len(shape), *shape) for shape in shapes]) + text(bytes) +
                counted([struct.pack("<QQ", *piece) for piece in pieces]))

    def family(constants, members, version=1):
        return (b"HVULFAMI" + struct.pack("<IQ", version, constants) + text(b"model") + counted(members) +
                counted([text(b"unary.f32") + struct.pack("<I", 0) + text(b"code")]))

    reluPlan = plan(32, 0, [tensor(0, 8, 0, 0), tensor(0, 8, 1, 16)], relu, [argument(0, 2)], [output(1, 2)])
    addPlan = plan(32, 16, [tensor(0, 8, 0, 0), tensor(0, 8, 0, 0), tensor(1, 8, 2, 0), tensor(0, 8, 3, 16)],
                   add, [argument(0, 1, 2)], [output(3, 2)])
    yield "shapes.family", family(16, [member([[2]], reluPlan, []), member([[1, 2]], addPlan, [(0, 8), (16, 8)])])
    yield "far.family", family(16, [member([[1, 2]], addPlan, [(56, 16)])])
    yield "none.family", family(0, [])


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
