# SPDX-License-Identifier: Apache-2.0
"""LiteRT's TensorBuffer: memory of an input or output."""

import numpy as np

__all__ = ["TensorBuffer"]

# What LiteRT takes; the buffer's own type is taken in any case.
_TYPES = {np.dtype(each) for each in (np.float32, np.float16, np.int32, np.int8, np.uint8, np.bool_)}


class TensorBuffer:
    """Memory with a type and a shape. CompiledModel makes it, or create_from_host_memory() of an array."""

    def __init__(self, array):
        self._array = array

    @classmethod
    def create_from_host_memory(cls, data_array):
        """A buffer in the memory of an array, which has to be contiguous."""
        if not isinstance(data_array, np.ndarray):
            raise ValueError("data_array must be a NumPy array")
        if not data_array.flags.c_contiguous:
            raise ValueError("data_array must be C-contiguous for zero-copy host-memory binding")
        return cls(data_array.reshape(-1))

    def write(self, data_array):
        """Copies the bytes of an array to the begin of the buffer."""
        if not isinstance(data_array, np.ndarray):
            raise ValueError("data_array must be a NumPy array")
        target = self._bytes("WriteTensorBuffer")
        self._checked(data_array.dtype)
        source = np.ascontiguousarray(data_array).reshape(-1).view(np.uint8)
        if source.size > target.size:
            raise RuntimeError("WriteTensorBuffer: source buffer is larger than the tensor buffer: "
                               f"{source.size} bytes, and {target.size}")
        target[:source.size] = source

    def read(self, num_elements, output_dtype):
        """A new array with the first elements of the buffer."""
        source = self._bytes("ReadTensorToBuffer")
        result = np.empty(num_elements, self._checked(output_dtype))
        if result.nbytes > source.size:
            raise RuntimeError("ReadTensorToBuffer: destination buffer is larger than the tensor buffer: "
                               f"{result.nbytes} bytes, and {source.size}")
        result.reshape(-1).view(np.uint8)[:] = source[:result.nbytes]
        return result

    def get_tensor_details(self):
        self._bytes("GetTensorDetails")
        return {"dtype": self._array.dtype.name, "shape": list(self._array.shape)}

    def destroy(self):
        """Frees the memory, once no run uses it."""
        self._array = None

    @property
    def array(self):
        """The memory itself."""
        if self._array is None:
            raise ValueError("TensorBuffer has been destroyed")
        return self._array

    # The name that LiteRT has for what it hands to its own library.
    capsule = array

    def _bytes(self, call):
        if self._array is None:
            raise RuntimeError(f"{call}: the TensorBuffer has been destroyed")
        return self._array.reshape(-1).view(np.uint8)

    def _checked(self, dtype):
        try:
            dtype = np.dtype(dtype)
        except TypeError as error:
            raise ValueError(f"Unsupported dtype: {dtype}") from error
        if dtype not in _TYPES and dtype != self._array.dtype:
            raise ValueError(f"Unsupported dtype: {dtype}")
        return dtype
