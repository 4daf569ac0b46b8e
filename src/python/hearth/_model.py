# SPDX-License-Identifier: Apache-2.0
"""Models. What Python can do is done here and not in the library's module: see interpreter_lock.h."""

import os

from . import _hearth, _options
from ._text import parsed
from .errors import BadState, InvalidArgument, NotFound


class Model(_hearth.Model):
    """A .tflite file, or the model `part` of a .task or .litertlm file. `with` closes it at the end;
    compilations made of it go on."""

    def __init__(self, path, part=None):
        if isinstance(path, (bytearray, memoryview)) or isinstance(path, bytes) and b"\0" in path:
            raise InvalidArgument("A path is given as text. Model.from_bytes() takes the bytes of a model.")
        path = os.path.abspath(os.fsdecode(path))
        super().__init__(path, part or "")
        self._source = (path, part)

    @classmethod
    def from_bytes(cls, content, part=None):
        """A model in memory, which is copied: bytes, or anything with the buffer protocol."""
        model = cls.__new__(cls)
        _hearth.Model.__init__(model, memoryview(content), part or "")
        model._source = None
        return model

    def inspect(self, shapes=None):
        """What `hearth inspect --json` says, with other shapes of the inputs as compile() takes them."""
        return parsed(self._inspect(**_options.native({"shapes": shapes})))

    @property
    def metadata(self):
        """What the file says about itself: name, description, author, license, inputs, outputs and
        the files packed behind the model. docs/cli.md describes the keys."""
        return parsed(self._metadata())

    def labels(self, output=0, locale=None):
        """The labels that the metadata has for an output, by its place or its name there, in a
        language such as "en"; None is the first. An empty list if there are none."""
        if isinstance(output, str):
            names = [tensor["name"] for tensor in self.metadata["outputs"]]
            if output not in names:
                raise NotFound(f"The metadata has no output {output!r}; there are: {', '.join(names) or 'none'}.")
            output = names.index(output)
        return self._labels(output, locale or "")

    def packed_file(self, name):
        """The bytes of a file that is packed behind the model."""
        return self._packed_file(name)

    @_options.shown("self, signature=None")
    def compile(self, signature=None, **options):
        """Makes a signature ready to run; None is the first. docs/python.md describes the options."""
        return self._named(self._compile(signature or "", **_options.native(options)), signature, options)

    @_options.shown("self, signatures")
    def compile_signatures(self, signatures, **options):
        """Makes several signatures ready at once: a list of compilations in this order."""
        signatures = list(signatures)
        made = self._compile_signatures(signatures, **_options.native(options))
        return [self._named(compilation, signature, options)
                for compilation, signature in zip(made, signatures)]

    @_options.shown("self, signature=None")
    def explain_start(self, signature=None, **options):
        """How compile() would start now."""
        return parsed(self._explain_start(signature or "", **_options.native(options)))

    def _named(self, compilation, signature, options):
        compilation._source = (self, signature, options)
        return compilation

    def close(self):
        """Frees it, once no compilation of it is left."""
        self._close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        if self._source is None:
            raise TypeError("A model made by from_bytes() cannot be sent to another process. Send the "
                            "bytes, and call Model.from_bytes() there.")
        return Model, self._source

    def __repr__(self):
        name = "of bytes" if self._source is None else repr(os.path.basename(self._source[0]))
        if self._source is not None and self._source[1]:
            name += f" part {self._source[1]!r}"
        try:
            count = len(self.signatures)
            first = parsed(self._describe_signature())
        except BadState:
            return f"<hearth.Model {name}, closed>"
        text = f"{count} signature{'' if count == 1 else 's'}"
        for kind in ("input", "output"):
            tensors = [f"{tensor['type']}[{_shape(tensor['shape'])}]" for tensor in first[kind + "s"]]
            if len(tensors) > 4:
                tensors[3:] = [f"{len(tensors) - 3} more"]
            if tensors:
                text += f", {kind} {', '.join(tensors)}"
        return f"<hearth.Model {name}, {text}>"


def _shape(dimensions):
    return ",".join(str(dimension or "?") for dimension in dimensions)


def describe_container(path):
    """What `hearth inspect --json` says of a .task or .litertlm file."""
    return parsed(_hearth._describe_container(os.fsdecode(path)))
