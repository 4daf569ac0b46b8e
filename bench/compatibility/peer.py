# SPDX-License-Identifier: Apache-2.0
"""LiteRT's side: runs models. Serves jobs in the virtual environment that environment.py makes.

A job has the paths `model` and `inputs` (a .npz file), the number of `runs`, the set of `kernels`,
and `outputs`, the .npz file to write: RUN/NAME for each output of each run.
"""

import sys
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

sys.path.insert(0, str(Path(__file__).resolve().parent))
import service  # noqa: E402

RESOLVERS = {"default": OpResolverType.AUTO,
             "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
             "reference": OpResolverType.BUILTIN_REF}


def run(job):
    interpreter = Interpreter(job["model"], num_threads=1,
                              experimental_op_resolver_type=RESOLVERS[job["kernels"]])
    # {name: number of the tensor}. The objects that the public functions give would refer to the
    # interpreter's memory, which may then not be allocated anew.
    [signature] = interpreter._get_full_signature_list().values()
    shapes = {detail["index"]: tuple(detail["shape"]) for detail in interpreter.get_input_details()}
    arrays = np.load(job["inputs"])
    result = {}
    for number in range(job["runs"]):
        values = {index: arrays[f"{number}/in/{name}"]
                  for name, index in signature["inputs"].items()}
        for index, value in values.items():
            if number > 0 or shapes[index] != value.shape:
                interpreter.resize_tensor_input(index, value.shape)
        interpreter.allocate_tensors()
        interpreter.reset_all_variables()
        for index, value in values.items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        for name, index in signature["outputs"].items():
            result[f"{number}/{name}"] = interpreter.get_tensor(index)
    np.savez(job["outputs"], **result)
    return {}


if __name__ == "__main__":
    service.serve(run)
