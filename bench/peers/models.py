# SPDX-License-Identifier: Apache-2.0
"""The models to compare: shared ones from a data folder and generated ones from a cache."""

import fnmatch
import hashlib
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workloads import tflite_schema as schema
from workloads.tflite_reader import TableView

GENERATOR = Path(__file__).resolve().parents[1] / "workloads" / "generate.py"
GENERATED = [("resnet50", "f32"), ("resnet50", "i8"), ("mobilenet_v2", "f32"),
             ("mobilenet_v2", "i8")]
# Networks of half a gigabyte, which only a pattern other than * chooses.
LARGE = [("text_encoder", "f32")]
# Models with custom operations that LiteRT does not have.
NOT_IN_LITERT = {"audio_preprocessor_int8"}
# LiteRT refuses the file because of a field that has no meaning in it.
TO_REPAIR = {"person_detect"}
# Largest accepted ratio of the steady times.
LIMIT = 1.05
STRICTER_LIMITS = {"resnet50_f32": 0.95}


@dataclass
class Model:
    name: str
    path: Path
    note: str = ""

    @property
    def limit(self):
        return STRICTER_LIMITS.get(self.name, LIMIT)


def collect(data, cache, wanted, say):
    """The models whose name `wanted` accepts. Generates missing files in `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    result = []
    for path in sorted((data / "models").glob("*.tflite")) if data is not None else []:
        if path.stem in NOT_IN_LITERT or not wanted(path.stem):
            continue
        if path.stem in TO_REPAIR:
            copy = cache / f"{path.stem}_repaired.tflite"
            copy.write_bytes(repairQuantizedDimension(path.read_bytes()))
            result.append(Model(path.stem, copy, "copy with quantized_dimension repaired"))
        else:
            result.append(Model(path.stem, path))
    for kind, quant in GENERATED + LARGE:
        name = f"{kind}_{quant}"
        if wanted(name):
            result.append(Model(name, generated(kind, quant, cache, say), "generated weights"))
    return result


def addData(parser):
    """The word that names the folder with the shared models."""
    shared = os.environ.get("HEARTH_TEST_DATA")
    parser.add_argument("--data", type=Path, help="folder with models/; default: "
                        "$HEARTH_TEST_DATA/data",
                        default=Path(shared) / "data" if shared is not None else None)


def choose(arguments, cache, say):
    """The models that the patterns `arguments.models` name; says so if there are none."""
    large = {f"{kind}_{quant}" for kind, quant in LARGE}
    wanted = lambda name: any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models
                              if pattern != "*" or name not in large)
    chosen = collect(arguments.data, cache, wanted, say)
    if not chosen:
        say(f"compare.py: no model matches {' '.join(arguments.models)}")
    return chosen


def generated(kind, quant, cache, say):
    """The workload's path. The file is written unless one of this version of the generator
    exists."""
    digest = hashlib.sha256()
    for source in sorted(GENERATOR.parent.glob("*.py")):
        digest.update(source.read_bytes())
    path = cache / f"{kind}_{quant}-{digest.hexdigest()[:12]}.tflite"
    if not path.exists():
        for outdated in cache.glob(f"{kind}_{quant}-*.tflite"):
            outdated.unlink()
        say(f"writing {path}")
        # OpenVINO reads no constants behind the FlatBuffer.
        options = (["--inline", "--form", quant] if (kind, quant) in LARGE else ["--quant", quant])
        subprocess.run([sys.executable, GENERATOR, kind, path, *options], check=True,
                       stdout=sys.stderr)
    return path


def repairQuantizedDimension(content):
    """The file with quantized_dimension 0 in all one-dimensional tensors; its size is unchanged."""
    data = bytearray(content)
    for subgraph in TableView.root(data).tables(schema.MODEL_SUBGRAPHS):
        for tensor in subgraph.tables(schema.SUBGRAPH_TENSORS):
            quantization = tensor.table(schema.TENSOR_QUANTIZATION)
            if quantization is None or len(tensor.vector(schema.TENSOR_SHAPE, np.int32)) != 1:
                continue
            position = quantization.fieldPosition(schema.QUANTIZATION_DIMENSION)
            if position is not None:
                struct.pack_into("<i", data, position, 0)
    return bytes(data)
