# SPDX-License-Identifier: Apache-2.0
"""Runs models in LiteRT, in the virtual environment that delegate_test.py makes.

usage: session.py JOBS       a JSON file with a list of jobs; prints a list of answers

A job has the path `model`, the .npz files `inputs` (RUN/in/NAME) and `outputs` (to be written:
RUN/NAME), the number of `runs`, the delegate's `library` and `options` (none: LiteRT alone), and
says whether the model is read by this program (`content`), how many `interpreters` run it, each in a
thread of its own, and the number of `threads` of each. Where the model has no signature, NAME is
the position of a tensor. With `signatures`, a list of their keys, each takes the place of a RUN. An
answer has `error`, a text, or null.
"""

import json
import sys
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter, load_delegate


def names(interpreter):
    """{name: tensor} of the inputs and of the outputs."""
    signatures = list(interpreter._get_full_signature_list().values())
    if len(signatures) == 1:
        return signatures[0]["inputs"], signatures[0]["outputs"]
    return tuple({str(position): detail["index"] for position, detail in enumerate(details)}
                 for details in (interpreter.get_input_details(), interpreter.get_output_details()))


def runAll(interpreter, arrays, runs):
    """The outputs of the runs, each with the shapes of its inputs and with fresh variables."""
    inputs, outputs = names(interpreter)
    shapes = {detail["index"]: tuple(detail["shape"]) for detail in interpreter.get_input_details()}
    results = {}
    for number in range(runs):
        for name, index in inputs.items():
            value = arrays[f"{number}/in/{name}"]
            if shapes[index] != value.shape:
                interpreter.resize_tensor_input(index, value.shape)
                shapes[index] = value.shape
        interpreter.allocate_tensors()
        interpreter.reset_all_variables()
        for name, index in inputs.items():
            interpreter.set_tensor(index, arrays[f"{number}/in/{name}"])
        interpreter.invoke()
        for name, index in outputs.items():
            results[f"{number}/{name}"] = interpreter.get_tensor(index)
    return results


def runSignatures(interpreter, arrays, keys):
    results = {}
    for key in keys:
        runner = interpreter.get_signature_runner(key)
        values = {name: arrays[f"{key}/in/{name}"] for name in runner.get_input_details()}
        # The arrays are views of the interpreter's memory, which the next signature may use.
        for name, array in runner(**values).items():
            results[f"{key}/{name}"] = np.array(array)
    return results


def work(job):
    delegates = []
    if job.get("library"):
        delegates = [load_delegate(job["library"], job.get("options", {}))]
    with open(job["model"], "rb") as file:
        model = {"model_content": file.read()} if job.get("content") else {
            "model_path": job["model"]}
    with np.load(job["inputs"]) as file:
        arrays = dict(file)
    count = job.get("interpreters", 1)
    results = [None] * count
    problems = []

    def runOne(position):
        try:
            interpreter = Interpreter(**model, experimental_delegates=delegates,
                                      num_threads=job.get("threads"))
            results[position] = (
                runSignatures(interpreter, arrays, job["signatures"]) if "signatures" in job
                else runAll(interpreter, arrays, job.get("runs", 1)))
        except Exception as error:  # pylint: disable=broad-except
            problems.append(error)

    threads = [threading.Thread(target=runOne, args=(position,)) for position in range(1, count)]
    for thread in threads:
        thread.start()
    runOne(0)
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    for other in results[1:]:
        for name, array in results[0].items():
            if array.tobytes() != other[name].tobytes():
                raise AssertionError(f"{name} differs between interpreters")
    np.savez(job["outputs"], **results[0])


def answer(job):
    try:
        work(job)
        return {"error": None}
    except (ValueError, RuntimeError, AssertionError) as error:
        return {"error": str(error)}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = json.load(file)
    print(json.dumps([answer(job) for job in jobs]))


if __name__ == "__main__":
    main()
