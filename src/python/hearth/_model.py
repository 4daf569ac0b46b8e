# SPDX-License-Identifier: Apache-2.0
"""Models. What Python can do is done here and not in the library's module: see interpreter_lock.h."""

import json
import os

from . import _hearth

_PATHS = ("store", "weight_cache", "cache_dir")


def _native(options):
    """The options of compile() as the library's module takes them."""
    return {name: os.fsdecode(value) if name in _PATHS and value is not None else value
            for name, value in options.items()}


class Model(_hearth.Model):
    """A .tflite file, or the model `part` of a .task or .litertlm file."""

    def __init__(self, path, part=None):
        super().__init__(os.fsdecode(path), part or "")

    @classmethod
    def from_bytes(cls, content, part=None):
        """A model in memory, which is copied: bytes, or anything with the buffer protocol."""
        model = cls.__new__(cls)
        _hearth.Model.__init__(model, memoryview(content), part or "")
        return model

    def inspect(self):
        """What `hearth inspect --json` says."""
        return json.loads(self._inspect())

    def compile(self, signature=None, **options):
        """Makes a signature ready to run; None is the first."""
        return self._compile(signature or "", **_native(options))

    def compile_signatures(self, signatures, **options):
        """Makes several signatures ready at once: a list of compilations in this order."""
        return self._compile_signatures(list(signatures), **_native(options))

    def explain_start(self, signature=None, **options):
        """How compile() would start now."""
        return json.loads(self._explain_start(signature or "", **_native(options)))


def describe_container(path):
    """What `hearth inspect --json` says of a .task or .litertlm file."""
    return json.loads(_hearth._describe_container(os.fsdecode(path)))
