# SPDX-License-Identifier: Apache-2.0
"""Runs models with TensorFlow Lite's C library and its NNAPI delegate, through ctypes.

usage: client.py LIBRARY JOBS       a JSON file with a list of jobs; prints a list of answers

A job has the path `model`, the .npz files `inputs` (0, 1, … by place) and `outputs` (to be written, the
same), the `options` of the delegate (null: none), the number of `runs`, and how many `interpreters` run
the model, each in a thread of its own. An answer has `error`, a text or null, and `same`, whether all
interpreters gave the same outputs.
"""

import ctypes
import json
import sys
import threading

import numpy as np

TYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 9: np.int8}


class Options(ctypes.Structure):
    _fields_ = [("execution_preference", ctypes.c_int), ("accelerator_name", ctypes.c_char_p),
                ("cache_dir", ctypes.c_char_p), ("model_token", ctypes.c_char_p),
                ("disallow_nnapi_cpu", ctypes.c_int), ("allow_fp16", ctypes.c_int),
                ("max_number_delegated_partitions", ctypes.c_int), ("support_library", ctypes.c_void_p)]


def opened(path):
    library = ctypes.CDLL(path)
    pointers = ("TfLiteModelCreateFromFile", "TfLiteInterpreterOptionsCreate", "TfLiteInterpreterCreate",
                "TfLiteInterpreterGetInputTensor", "TfLiteInterpreterGetOutputTensor", "TfLiteTensorData",
                "TfLiteNnapiDelegateCreate")
    for name in pointers:
        getattr(library, name).restype = ctypes.c_void_p
    library.TfLiteNnapiDelegateOptionsDefault.restype = Options
    library.TfLiteTensorByteSize.restype = ctypes.c_size_t
    return library


class Failure(Exception):
    pass


class Interpreter:
    def __init__(self, library, job):
        self.library = library
        self.delegate = None
        self.kept = []
        model = ctypes.c_void_p(library.TfLiteModelCreateFromFile(job["model"].encode()))
        options = ctypes.c_void_p(library.TfLiteInterpreterOptionsCreate())
        if not model:
            raise Failure("The model cannot be opened.")
        if job["options"] is not None:
            chosen = library.TfLiteNnapiDelegateOptionsDefault()
            for name, value in job["options"].items():
                if isinstance(value, str):
                    value = value.encode()
                    self.kept.append(value)
                setattr(chosen, name, value)
            self.delegate = ctypes.c_void_p(library.TfLiteNnapiDelegateCreate(ctypes.byref(chosen)))
            if not self.delegate:
                raise Failure("The delegate cannot be created.")
            library.TfLiteInterpreterOptionsAddDelegate(options, self.delegate)
        self.interpreter = ctypes.c_void_p(library.TfLiteInterpreterCreate(model, options))
        library.TfLiteInterpreterOptionsDelete(options)
        library.TfLiteModelDelete(model)
        if not self.interpreter:
            raise Failure("The interpreter cannot be created.")
        if library.TfLiteInterpreterAllocateTensors(self.interpreter) != 0:
            raise Failure("The tensors cannot be allocated.")

    def tensors(self, side):
        count = getattr(self.library, f"TfLiteInterpreterGet{side}TensorCount")(self.interpreter)
        get = getattr(self.library, f"TfLiteInterpreterGet{side}Tensor")
        return [ctypes.c_void_p(get(self.interpreter, place)) for place in range(count)]

    def run(self, arrays):
        library = self.library
        for place, tensor in enumerate(self.tensors("Input")):
            array = np.ascontiguousarray(arrays[str(place)])
            if library.TfLiteTensorCopyFromBuffer(tensor, array.ctypes.data_as(ctypes.c_void_p),
                                                  ctypes.c_size_t(array.nbytes)) != 0:
                raise Failure(f"Input {place} does not take {array.nbytes} bytes.")
        if library.TfLiteInterpreterInvoke(self.interpreter) != 0:
            raise Failure("The model cannot be run.")
        results = {}
        for place, tensor in enumerate(self.tensors("Output")):
            shape = [library.TfLiteTensorDim(tensor, i) for i in range(library.TfLiteTensorNumDims(tensor))]
            array = np.empty(shape, TYPES[library.TfLiteTensorType(tensor)])
            library.TfLiteTensorCopyToBuffer(tensor, array.ctypes.data_as(ctypes.c_void_p),
                                             ctypes.c_size_t(array.nbytes))
            results[str(place)] = array
        return results

    def close(self):
        self.library.TfLiteInterpreterDelete(self.interpreter)
        if self.delegate is not None:
            self.library.TfLiteNnapiDelegateDelete(self.delegate)


def answer(library, job):
    arrays = np.load(job["inputs"])
    arrays = {name: arrays[name] for name in arrays}
    results, errors = [], []

    def work():
        try:
            interpreter = Interpreter(library, job)
            for _ in range(job.get("runs", 1)):
                result = interpreter.run(arrays)
            interpreter.close()
            results.append(result)
        except Failure as failure:
            errors.append(str(failure))

    threads = [threading.Thread(target=work) for _ in range(job.get("interpreters", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        return {"error": errors[0], "same": False}
    np.savez(job["outputs"], **results[0])
    same = all(np.array_equal(result[name], results[0][name]) for result in results for name in result)
    return {"error": None, "same": same}


def main():
    library = opened(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        jobs = json.load(file)
    print(json.dumps([answer(library, job) for job in jobs]))


if __name__ == "__main__":
    main()
