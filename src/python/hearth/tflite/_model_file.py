# SPDX-License-Identifier: Apache-2.0
"""Opens a model for the library and for the tables of its file."""

import os

from .. import errors
from .._model import Model
from ._file import Bytes, FileBytes, ModelFile


def opened(path, content):
    """(the file's tables, the library's model) of a path, or of bytes."""
    try:
        if path:
            path = os.fsdecode(path)
            model = Model(path)
            tables = FileBytes(path)
        else:
            if not isinstance(content, (bytes, bytearray, memoryview)):
                raise TypeError(f"model_content is {type(content).__name__}. It needs bytes.")
            model = Model.from_bytes(content)
            tables = Bytes(bytes(content))
        if tables.read(4, 4) != b"TFL3":
            raise ValueError("The model is not a valid Flatbuffer buffer: hearth.Model opens files that "
                             "contain several models.")
        return ModelFile(tables), model
    except errors.InvalidArgument as error:
        sentence = "The model is not a valid Flatbuffer buffer."
        if not path and bytes(content)[4:8] != b"TFL3":
            identifier = bytes(content)[4:8].decode(errors="replace")
            sentence += f" Model provided has model identifier '{identifier}', should be 'TFL3'."
        raise ValueError(f"{sentence} {error}") from error
    except (errors.NotFound, errors.InputOutputError, OSError) as error:
        raise ValueError(f"Could not open '{path}'. {error}") from error
