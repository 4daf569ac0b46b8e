# SPDX-License-Identifier: Apache-2.0
"""A program written for LiteRT's interpreter, which tflite_litert_test.py runs in LiteRT and in Hearth.

usage: tflite_session.py STRINGS MODEL...       prints what the interpreter says of each model as JSON, what the model
                                                of strings_model.py computes, which shapes inputs can get, and the
                                                options of CompiledModel
"""

import dataclasses
import enum
import hashlib
import importlib
import json
import pathlib
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def plain(value):
    """Values and types as JSON has them."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, np.ndarray):
        return [value.dtype.name, list(value.shape), value.ravel().tolist()]
    if isinstance(value, type):
        return value.__name__
    return [type(value).__name__, value if isinstance(value, (int, float, str, bool)) else str(value)]


def raised(call):
    """The exception of a call; of a ValueError with its sentence."""
    try:
        return plain(call())
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0] if isinstance(error, ValueError) else ""]


def tensorOf(interpreter, index):
    """A tensor by its index, if it is there before the tensors are allocated."""
    try:
        value = interpreter.get_tensor(index)
    except ValueError as error:
        return str(error)[:20]
    digest = hashlib.sha256(np.asarray(value).tobytes()).hexdigest()
    return [type(value).__name__, str(value.dtype), list(value.shape), digest]


def described(path):
    # Kernels of delegates change what the interpreter says.
    interpreter = Interpreter(model_path=path,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    result = {
        "inputs": interpreter.get_input_details(),
        "outputs": interpreter.get_output_details(),
        "tensors": [interpreter.get_tensor_details(each) for each in range(interpreter.num_subgraphs())],
        "operators": interpreter._get_ops_details(),
        "signatures": interpreter.get_signature_list(),
        "signature indices": interpreter._get_full_signature_list(),
        "runners": [[runner.get_input_details(), runner.get_output_details()] for runner in
                    map(interpreter.get_signature_runner, interpreter.get_signature_list())],
    }
    result = plain(result)
    result["constants"] = [tensorOf(interpreter, detail["index"])
                           for detail in interpreter.get_tensor_details()
                           if detail["dtype"] not in (np.object_, np.bytes_) and 0 not in detail["shape"]]
    return result


def mistakes(path):
    fresh, interpreter = Interpreter(path), Interpreter(path)
    interpreter.allocate_tensors()
    count = len(fresh.get_tensor_details())
    detail, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    i, o = detail["index"], result["index"]
    x = np.zeros(detail["shape"], detail["dtype"])
    kept = []

    def keep():
        kept.append(interpreter.tensor(i)())
        try:
            interpreter.invoke()
        finally:
            kept.clear()

    def wrongSize():
        interpreter.resize_tensor_input(i, [3, 5], strict=True)

    calls = [
        fresh.invoke,
        lambda: fresh.set_tensor(i, x),
        lambda: fresh.get_tensor(o),
        lambda: fresh.tensor(i)(),
        lambda: interpreter.set_tensor(i, x.astype(np.complex64)),
        lambda: interpreter.set_tensor(i, x.astype(np.float64)),
        lambda: interpreter.set_tensor(i, x.astype(np.int64)),
        lambda: interpreter.set_tensor(i, x.astype(np.bool_)),
        lambda: interpreter.set_tensor(i, "text"),
        lambda: interpreter.set_tensor(i, None),
        lambda: interpreter.set_tensor(i, x[0]),
        lambda: interpreter.set_tensor(i, x[..., :1][..., [0] * 7]),
        lambda: interpreter.set_tensor(count + 7, x),
        lambda: interpreter.set_tensor(-1, x),
        lambda: interpreter.set_tensor("a", x),
        lambda: interpreter.get_tensor(count + 7),
        lambda: interpreter.get_tensor(1.5),
        lambda: interpreter.get_tensor(o, 9),
        lambda: interpreter.tensor(count + 7)(),
        lambda: fresh._get_tensor_details(count + 7, 0),
        lambda: interpreter.get_tensor_details(9),
        lambda: fresh._get_op_details(100000),
        lambda: interpreter.get_signature_runner("none"),
        wrongSize,
        keep,
        lambda: Interpreter(),
        lambda: Interpreter(path, b"TFL3"),
        lambda: Interpreter(path, num_threads=0),
        lambda: Interpreter(path, num_threads=2.0),
        lambda: Interpreter(path, experimental_op_resolver_type="x"),
        lambda: Interpreter(model_content="text"),
    ]
    return [raised(call) for call in calls]


def strings(path):
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    words = [b"a", b"", "b\u00e4".encode(), b"zz", b"a b", b"\0x"]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(words, object).reshape(2, 3))
    interpreter.invoke()
    results = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    return [[value.dtype.name, list(value.shape), [str(each) for each in value.ravel().tolist()]] for value in results]


# By model: shapes that its inputs get, of other ranks and without elements.
RESIZED = {
    "squared-difference-broadcast-int8": [[[3, 1], [4]], [[2, 3, 1], [2, 3, 4]], [[0, 1], [0, 4]], [[3, 1], [2, 0, 4]]],
    "activation-gelu-int8": [[[48]], [[1, 3, 16]], [[0, 16]], [[]]],
    "dense-aiedge-dynamic4-blocks": [[[1, 2, 64]], [[128]], [[0, 64]]],
    "conv-3x3-same-open-batch-dynamic": [[[0, 12, 12, 4]], [[12, 12, 4]]],
    "cumsum-exclusive-reverse-float32": [[[2, 5]], [[2, 0, 3]]],
    "top-k-int16x8": [[[3, 2, 10]], [[10]]],
    "layer-norm-int8": [[[4, 8]]],
    "average-pool-3x3-same-int8": [[[0, 9, 8, 5]]],
    "matrix-set-diag-float32": [[[3], [3, 4]]],
}


def resized(path, shapes):
    """The shapes of inputs and outputs after a run; "refused" if there cannot be one."""
    interpreter = Interpreter(path)
    for detail, shape in zip(interpreter.get_input_details(), shapes):
        interpreter.resize_tensor_input(detail["index"], shape)
    try:
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
        interpreter.invoke()
    except RuntimeError:
        return "refused"
    return [[list(map(int, detail["shape"])), list(interpreter.get_tensor(detail["index"]).shape)]
            for detail in interpreter.get_input_details() + interpreter.get_output_details()]


OPTIONS = ("cpu_kernel_mode", "cpu_options", "gpu_options", "hardware_accelerator", "intel_openvino_options", "options",
           "qualcomm_options")


def options():
    """By module and class: members of enumerations with their numbers, fields with their defaults."""
    result = {}
    for module in OPTIONS:
        for name, each in vars(importlib.import_module(f"ai_edge_litert.{module}")).items():
            if isinstance(each, type) and issubclass(each, enum.Enum):
                result[f"{module}.{name}"] = {member: int(value) for member, value in each.__members__.items()}
            elif dataclasses.is_dataclass(each) and name != "Options":
                result[f"{module}.{name}"] = [[field.name, str(getattr(each(), field.name))]
                                              for field in dataclasses.fields(each)]
    return result


def main():
    stringModel, *models = sys.argv[1:]
    print(json.dumps({"models": {path: described(path) for path in models}, "mistakes": mistakes(models[0]),
                      "strings": strings(stringModel), "options": options(),
                      "shapes": {f"{name} {shapes}": resized(path, shapes)
                                 for path in models for name in [pathlib.Path(path).stem]
                                 for shapes in RESIZED.get(name, [])}}))


if __name__ == "__main__":
    main()
