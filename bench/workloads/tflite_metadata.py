# SPDX-License-Identifier: Apache-2.0
"""Writes TFLite's metadata, for tests: what a model says about itself, and files behind it."""

import zipfile

import numpy as np

from .flatbuffer import Scalar, String, Table, TableVector, Vector, encode

_CONTENTS = {"feature": 1, "image": 2, "bounding box": 3, "audio": 4}
_FILE_TYPES = {"": 0, "axis labels": 2, "value labels": 3, "score calibration": 4}


def _files(files):
    return TableVector([Table({0: String(name), 2: Scalar("b", _FILE_TYPES[kind]), 3: String(locale)})
                        for name, kind, locale in files])


def tensor(name, description="", content="", properties=None, mean=None, std=None,
           threshold=None, calibration=None, files=()):
    """Metadata of an input or output. `properties` are the slots of the content's table;
    `calibration` is (transformation, default score); `files` have (name, kind, locale)."""
    units = []
    if mean is not None:
        units.append((1, Table({0: Vector(np.float32, mean), 1: Vector(np.float32, std)})))
    if calibration is not None:
        units.append((2, Table({0: Scalar("b", calibration[0]), 1: Scalar("f", calibration[1])})))
    if threshold is not None:
        units.append((3, Table({0: Scalar("f", threshold)})))
    fields = {0: String(name), 1: String(description),
              4: TableVector([Table({0: Scalar("B", kind), 1: unit}) for kind, unit in units]),
              6: _files(files)}
    if content:
        fields[3] = Table({0: Scalar("B", _CONTENTS[content]), 1: Table(properties or {})})
    return Table(fields)


def metadata(name, inputs, outputs, description="", author="", license=""):
    """The content of the buffer TFLITE_METADATA."""
    graph = Table({2: TableVector(inputs), 3: TableVector(outputs)})
    root = Table({0: String(name), 1: String(description), 2: String("1"), 3: TableVector([graph]),
                  4: String(author), 5: String(license), 7: String("1.3.0")})
    return encode(root, b"M001", 4)[0]


def pack(path, files):
    """Packs files, by name, behind a model."""
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
