# SPDX-License-Identifier: Apache-2.0
"""Hearth's side as programs written for TensorFlow Lite have it. Serves jobs, like hearth_side.py.

usage: door_side.py LIBRARY     libtensorflowlite_c.so

A job has the paths `model` and `inputs` (a .npz file), the number of `runs`, `device`, `door`, and
`outputs`, the .npz file to write: RUN/NAME for each output of each run. The door is "tflite", the
interpreter of hearth.tflite, or "tflite_c", the C library's runner of the model's only signature.
The weight store is the one that the environment names.
"""

import ctypes
import sys
from pathlib import Path

import hearth
import hearth.tflite
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import service  # noqa: E402

TYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 8: np.complex64,
         9: np.int8, 10: np.float16, 11: np.float64, 16: np.uint32}


class NnapiOptions(ctypes.Structure):
    _fields_ = [("execution_preference", ctypes.c_int), ("accelerator_name", ctypes.c_char_p),
                ("cache_dir", ctypes.c_char_p), ("model_token", ctypes.c_char_p),
                ("disallow_nnapi_cpu", ctypes.c_int), ("allow_fp16", ctypes.c_int),
                ("max_number_delegated_partitions", ctypes.c_int), ("support_library", ctypes.c_void_p)]


class PythonDoor:
    def __init__(self, model, device):
        delegate = hearth.tflite.load_delegate(hearth.delegate_library(), {"device": device})
        self._interpreter = hearth.tflite.Interpreter(model_path=model, num_threads=1,
                                                      experimental_delegates=[delegate])
        [signature] = self._interpreter._get_full_signature_list().values()
        self.inputs, self._outputs = signature["inputs"], signature["outputs"]

    def run(self, inputs):
        for name, array in inputs.items():
            self._interpreter.resize_tensor_input(self.inputs[name], array.shape)
        self._interpreter.allocate_tensors()
        for name, array in inputs.items():
            self._interpreter.set_tensor(self.inputs[name], array)
        self._interpreter.invoke()
        return {name: self._interpreter.get_tensor(index) for name, index in self._outputs.items()}

    def close(self):
        del self._interpreter


class LibraryDoor:
    library = None

    @classmethod
    def open(cls, path):
        cls.library = ctypes.CDLL(path)
        for name in ("ModelCreateFromFile", "InterpreterOptionsCreate", "InterpreterCreate",
                     "InterpreterGetSignatureRunner", "SignatureRunnerGetInputTensor",
                     "SignatureRunnerGetOutputTensor", "TensorData", "NnapiDelegateCreate"):
            getattr(cls.library, f"TfLite{name}").restype = ctypes.c_void_p
        for name in ("InterpreterGetSignatureKey", "SignatureRunnerGetInputName", "SignatureRunnerGetOutputName"):
            getattr(cls.library, f"TfLite{name}").restype = ctypes.c_char_p
        for name in ("SignatureRunnerGetInputCount", "SignatureRunnerGetOutputCount", "TensorByteSize"):
            getattr(cls.library, f"TfLite{name}").restype = ctypes.c_size_t
        cls.library.TfLiteNnapiDelegateOptionsDefault.restype = NnapiOptions

    def __init__(self, model, device):
        library = self.library
        chosen = library.TfLiteNnapiDelegateOptionsDefault()
        chosen.accelerator_name = device.encode()
        opened = ctypes.c_void_p(library.TfLiteModelCreateFromFile(model.encode()))
        options = ctypes.c_void_p(library.TfLiteInterpreterOptionsCreate())
        self._delegate = ctypes.c_void_p(library.TfLiteNnapiDelegateCreate(ctypes.byref(chosen)))
        library.TfLiteInterpreterOptionsAddDelegate(options, self._delegate)
        self._interpreter = ctypes.c_void_p(library.TfLiteInterpreterCreate(opened, options))
        library.TfLiteInterpreterOptionsDelete(options)
        library.TfLiteModelDelete(opened)
        if not self._interpreter:
            raise ValueError("TfLiteInterpreterCreate returns null.")
        key = library.TfLiteInterpreterGetSignatureKey(self._interpreter, 0)
        self._runner = ctypes.c_void_p(library.TfLiteInterpreterGetSignatureRunner(self._interpreter, key))
        self.inputs = self._names("Input")
        self._outputs = self._names("Output")

    def _names(self, side):
        count = getattr(self.library, f"TfLiteSignatureRunnerGet{side}Count")(self._runner)
        name = getattr(self.library, f"TfLiteSignatureRunnerGet{side}Name")
        return [name(self._runner, place).decode() for place in range(count)]

    def _check(self, call, *arguments):
        status = getattr(self.library, call)(*arguments)
        if status != 0:
            raise ValueError(f"{call} returns {status}.")

    def run(self, inputs):
        library, runner = self.library, self._runner
        for name, array in inputs.items():
            dims = (ctypes.c_int * array.ndim)(*array.shape)
            self._check("TfLiteSignatureRunnerResizeInputTensor", runner, name.encode(), dims, array.ndim)
        self._check("TfLiteSignatureRunnerAllocateTensors", runner)
        for name, array in inputs.items():
            tensor = ctypes.c_void_p(library.TfLiteSignatureRunnerGetInputTensor(runner, name.encode()))
            array = np.ascontiguousarray(array)
            self._check("TfLiteTensorCopyFromBuffer", tensor, ctypes.c_void_p(array.ctypes.data),
                        ctypes.c_size_t(array.nbytes))
        self._check("TfLiteSignatureRunnerInvoke", runner)
        return {name: self._output(name) for name in self._outputs}

    def _output(self, name):
        library = self.library
        tensor = ctypes.c_void_p(library.TfLiteSignatureRunnerGetOutputTensor(self._runner, name.encode()))
        shape = [library.TfLiteTensorDim(tensor, i) for i in range(library.TfLiteTensorNumDims(tensor))]
        array = np.empty(shape, TYPES[library.TfLiteTensorType(tensor)])
        self._check("TfLiteTensorCopyToBuffer", tensor, ctypes.c_void_p(array.ctypes.data),
                    ctypes.c_size_t(array.nbytes))
        return array

    def close(self):
        self.library.TfLiteSignatureRunnerDelete(self._runner)
        self.library.TfLiteInterpreterDelete(self._interpreter)
        self.library.TfLiteNnapiDelegateDelete(self._delegate)


DOORS = {"tflite": PythonDoor, "tflite_c": LibraryDoor}


def run(job):
    door = DOORS[job["door"]](job["model"], job["device"])
    try:
        arrays = np.load(job["inputs"])
        result = {}
        for number in range(job["runs"]):
            inputs = {name: arrays[f"{number}/in/{name}"] for name in door.inputs}
            for name, value in door.run(inputs).items():
                result[f"{number}/{name}"] = value
    finally:
        door.close()
    np.savez(job["outputs"], **result)
    # The next start must find what this one has packed.
    hearth.flush()
    return {}


if __name__ == "__main__":
    LibraryDoor.open(sys.argv[1])
    service.serve(run)
