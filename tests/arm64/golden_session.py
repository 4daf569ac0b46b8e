# SPDX-License-Identifier: Apache-2.0
"""Computes golden models in Python where Hearth is installed, and prints the names of those whose outputs are to
the byte the golden ones.

usage: golden_session.py hearth|tflite MODEL...     with "tflite" under python3 -m hearth.tflite
"""

import pathlib
import sys

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent / "data"


def goldenOutputs(folder):
    """LiteRT's outputs of a model: those of XNNPACK's kernels where its reference kernels have others."""
    outputs = []
    while (path := folder / f"output_{len(outputs)}.npy").is_file():
        other = path.with_suffix(".xnnpack.npy")
        outputs.append(np.load(other if other.is_file() else path))
    return outputs


def runHearth(path, inputs):
    import hearth
    return list(hearth.Model(path).compile(device="hearth-cpu").run(inputs).values())


def runTflite(path, inputs):
    from tflite_runtime.interpreter import Interpreter
    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def isRight(run, name):
    folder = DATA / "golden" / name
    inputs = [np.load(path) for path in sorted(folder.glob("input_?.npy"))]
    outputs = run(DATA / "models" / f"{name}.tflite", inputs)
    return ([(one.dtype, one.shape, one.tobytes()) for one in outputs] ==
            [(one.dtype, one.shape, one.tobytes()) for one in goldenOutputs(folder)])


if __name__ == "__main__":
    chosen = {"hearth": runHearth, "tflite": runTflite}[sys.argv[1]]
    print(*(name for name in sys.argv[2:] if isRight(chosen, name)))
