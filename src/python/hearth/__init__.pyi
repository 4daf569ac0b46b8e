# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy
from numpy.typing import ArrayLike
from typing_extensions import Buffer

from . import errors as errors
from .errors import Error as Error

Inputs = Mapping[str, ArrayLike] | Sequence[ArrayLike] | ArrayLike
Outputs = dict[str, numpy.ndarray]

__version__: str

class Options(TypedDict, total=False):
    device: str | None
    threads: int | None
    cache: Literal["default", "off", "read-only", "read-write", "strict"] | None
    store: str | os.PathLike[str] | None
    store_bytes: int | None
    weight_cache: str | os.PathLike[str] | None
    preparation: Literal["default", "whole", "just-in-time"] | None
    tuning: Literal["default", "on", "off"] | None
    preference: Literal["low-power", "fast-single-answer", "sustained-speed"] | None
    priority: Literal["low", "medium", "high"] | None
    cache_dir: str | os.PathLike[str] | None
    cache_token: bytes | None
    max_activation_bytes: int | None
    timeout: float | None
    longest_step: float | None
    shapes: Mapping[str, Sequence[int]] | None
    outputs: Sequence[str] | None

class Tuning(TypedDict):
    state: Literal["off", "measuring", "measured", "recalled"]
    executions: int
    changed_steps: int
    first_ms: float
    second_ms: float

class StartReport(TypedDict):
    state: Literal["cold", "warm", "uncached"]
    reason: str
    prepare_ms: float
    packed_bytes: int
    packed_bytes_by_operation: dict[str, int]
    repacked_bytes: int
    repaired_bytes: int
    mapped_bytes: int
    shared_bytes: int
    hashed_bytes: int
    activation_bytes: int
    shapes: int
    routed_around: list[str]
    slow_operations: list[str]
    tuning: Tuning
    cache: str
    device_choice: str

class AssociatedFile(TypedDict):
    name: str
    description: str
    type: str
    locale: str

class PackedFile(TypedDict):
    name: str
    bytes: int
    problem: str | None

class TensorMetadata(TypedDict):
    name: str
    description: str
    dimension_names: list[str]
    content: str
    color_space: str
    box: dict[str, Any] | None
    audio: dict[str, int] | None
    mean: list[float | None]
    std: list[float | None]
    min: list[float | None]
    max: list[float | None]
    calibration: dict[str, Any] | None
    score_threshold: float | None
    files: list[AssociatedFile]

class Metadata(TypedDict):
    name: str
    description: str
    version: str
    author: str
    license: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    files: list[AssociatedFile]
    packed: list[PackedFile]
    output_operations: list[str]
    problem: str | None

class Argument(TypedDict):
    name: str
    shape: list[int]
    default_shape: list[int]
    type: str
    scale: float | None
    zero_point: int

class Signature(TypedDict):
    key: str
    problem: str | None
    inputs: list[Argument]
    outputs: list[Argument]
    state_tensors: int
    devices: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    plan: dict[str, Any] | None

class Inspection(TypedDict):
    description: str
    version: int
    file_bytes: int
    weight_bytes: int
    metadata: Metadata
    signatures: list[Signature]
    subgraphs: list[dict[str, Any]]

class Tensor:
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int | None, ...]: ...
    @property
    def default_shape(self) -> tuple[int | None, ...]: ...
    @property
    def scale(self) -> float: ...
    @property
    def zero_point(self) -> int: ...
    @property
    def alignment(self) -> int: ...
    @property
    def padding(self) -> int: ...
    def empty(self, shape: Sequence[int] | int | None = None) -> numpy.ndarray: ...

class Device:
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def feature_level(self) -> int: ...
    @property
    def extensions(self) -> str: ...

class Statistics:
    @property
    def runs(self) -> int: ...
    @property
    def last_ns(self) -> int: ...
    @property
    def copied_bytes(self) -> int: ...

class Run:
    def wait(self, timeout: float | None = None) -> Outputs | None: ...
    @property
    def is_done(self) -> bool: ...
    def __await__(self) -> Generator[Any, None, Outputs]: ...

class Execution:
    def run(self, inputs: Inputs | None = None, *,
            outputs: Mapping[str, numpy.ndarray] | None = None,
            timeout: float | None = None) -> Outputs: ...
    def __call__(self, inputs: Inputs | None = None, *,
                 outputs: Mapping[str, numpy.ndarray] | None = None,
                 timeout: float | None = None) -> Outputs: ...
    def start(self, inputs: Inputs | None = None, *,
              outputs: Mapping[str, numpy.ndarray] | None = None,
              timeout: float | None = None) -> Run: ...
    def reset_state(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
    @property
    def statistics(self) -> Statistics: ...

class Compilation:
    @property
    def device(self) -> str: ...
    @property
    def inputs(self) -> tuple[Tensor, ...]: ...
    @property
    def outputs(self) -> tuple[Tensor, ...]: ...
    @property
    def start_report(self) -> StartReport: ...
    def create_execution(self) -> Execution: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
    def run(self, inputs: Inputs | None = None, *,
            outputs: Mapping[str, numpy.ndarray] | None = None,
            timeout: float | None = None) -> Outputs: ...
    def __call__(self, inputs: Inputs | None = None, *,
                 outputs: Mapping[str, numpy.ndarray] | None = None,
                 timeout: float | None = None) -> Outputs: ...

class Model:
    def __init__(self, path: str | os.PathLike[str], part: str | None = None) -> None: ...
    @classmethod
    def from_bytes(cls, content: Buffer, part: str | None = None) -> Self: ...
    @property
    def signatures(self) -> list[str]: ...
    @property
    def metadata(self) -> Metadata: ...
    def labels(self, output: int | str = 0, locale: str | None = None) -> list[str]: ...
    def packed_file(self, name: str) -> bytes: ...
    def inspect(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Inspection: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
    def compile(self, signature: str | None = None, **options: Unpack[Options]) -> Compilation: ...
    def compile_signatures(self, signatures: Sequence[str],
                           **options: Unpack[Options]) -> list[Compilation]: ...
    def explain_start(self, signature: str | None = None,
                      **options: Unpack[Options]) -> dict[str, Any]: ...

def delegate_library() -> str: ...
def tflite_library() -> str: ...
def describe_container(path: str | os.PathLike[str]) -> dict[str, Any]: ...
def devices() -> list[Device]: ...
def flush(timeout: float | None = None) -> None: ...
def version() -> str: ...
