# SPDX-License-Identifier: Apache-2.0
"""OpenVINO as `peer.py` runs it: its CPU device, which reads the .tflite file itself."""

import time

import numpy as np


class OpenVinoSide:
    """OpenVINO's own choice of precision, which is bfloat16 for float32 networks where the processor
    has instructions for it; `precision` asks for another one."""

    def __init__(self, path, threads, precision=None):
        import openvino
        import openvino.properties as properties
        settings = {properties.inference_num_threads(): threads, properties.num_streams(): 1}
        if precision is not None:
            settings[properties.hint.inference_precision()] = precision
        self.start = time.perf_counter()
        core = openvino.Core()
        self._compiled = core.compile_model(core.read_model(str(path)), "CPU", settings)
        self._request = self._compiled.create_infer_request()
        self.prepared = time.perf_counter()
        self.inputs = [(tuple(port.shape), port.element_type.to_dtype())
                       for port in self._compiled.inputs]
        self.run = self._request.infer
        self.reset = self._request.reset_state

    def write(self, arrays):
        for number, array in enumerate(arrays):
            self._request.get_input_tensor(number).data[...] = array

    def read(self):
        return [np.copy(self._request.get_output_tensor(number).data)
                for number in range(len(self._compiled.outputs))]

    def kernels(self):
        """{kernel of a convolution or a fully connected layer: number of layers}, which shows the
        instruction set that OpenVINO found."""
        counts = {}
        for node in self._compiled.get_runtime_model().get_ops():
            facts = node.get_rt_info()
            kind, kernel = (str(getattr(facts[key], "value", facts[key]))
                            for key in ("layerType", "primitiveType"))
            if kind in ("Convolution", "FullyConnected", "MatMul"):
                counts[kernel] = counts.get(kernel, 0) + 1
        return counts
