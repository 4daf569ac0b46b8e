# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as `peer.py` runs it: its CPU kernels with its default settings, and with an .onnx file
that `onnx_export.py` wrote."""

import time

import numpy as np


class OnnxRuntimeSide:
    def __init__(self, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        self.start = time.perf_counter()
        self._session = onnxruntime.InferenceSession(str(path), options,
                                                     providers=["CPUExecutionProvider"])
        self.prepared = time.perf_counter()
        self.inputs = [(tuple(port.shape), np.dtype(np.int8) if isShifted(port) else
                        DTYPES[port.type]) for port in self._session.get_inputs()]
        self._feeds, self._results = {}, []

    def write(self, arrays):
        self._feeds = {port.name: array.view(np.uint8) ^ np.uint8(128) if isShifted(port) else array
                       for port, array in zip(self._session.get_inputs(), arrays)}

    def run(self):
        self._results = self._session.run(None, self._feeds)

    def read(self):
        return [(array ^ np.uint8(128)).view(np.int8) if isShifted(port) else array
                for port, array in zip(self._session.get_outputs(), self._results)]

    def reset(self):
        """A session has no state."""


def isShifted(port):
    """Whether an input or output is int8 in the network and uint8 in its ONNX form."""
    return port.name.startswith("shifted_")


DTYPES = {"tensor(float)": np.dtype(np.float32), "tensor(int8)": np.dtype(np.int8),
          "tensor(uint8)": np.dtype(np.uint8), "tensor(int32)": np.dtype(np.int32),
          "tensor(int64)": np.dtype(np.int64)}
