# SPDX-License-Identifier: Apache-2.0
"""load_delegate(): the options of Hearth's own delegate, and the external delegates of others."""

import os

from .. import _hearth

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(text):
    unit = _UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def _token(text):
    import hashlib  # takes a millisecond, and few programs need it

    return hashlib.sha256(text.encode()).digest()


# Options of docs/delegate.md: that of compile(), and what makes its value of a text.
_OPTIONS = {"cache_dir": ("cache_dir", str), "device": ("device", str),
            "max_activation_bytes": ("max_activation_bytes", _bytes), "model_token": ("cache_token", _token),
            "preference": ("preference", str), "preparation": ("preparation", str),
            "priority": ("priority", str), "store": ("store", str), "store_bytes": ("store_bytes", _bytes),
            "store_mode": ("cache", str), "threads": ("threads", int), "tuning": ("tuning", str),
            "weight_cache": ("weight_cache", str)}


class Delegate:
    """What load_delegate() returns, for Interpreter(experimental_delegates=[...]). It may serve several
    interpreters, which keep it until they are gone. A library of which an installed driver makes a device
    is not loaded: that device computes what it takes of each model, with the options of its manifest."""

    def __init__(self, library, options=None):
        self._library = None
        self._options = {}
        options = {str(name): str(value) for name, value in (options or {}).items()}
        if os.path.basename(os.fsdecode(library)).startswith("libhearth_delegate.so"):
            self._options = _own_options(options)
        elif not _hearth._has_delegate_device(os.fsdecode(library)):
            self._load(os.fsdecode(library), options)

    def _load(self, library, options):
        """Lets an external delegate's library make one. Its functions are called with Python's lock held."""
        import ctypes

        loaded = ctypes.PyDLL(library)
        reporter = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
        texts = ctypes.POINTER(ctypes.c_char_p)
        try:
            create, destroy = loaded.tflite_plugin_create_delegate, loaded.tflite_plugin_destroy_delegate
        except AttributeError as error:
            raise ValueError(f"It is no library of a delegate: {error}.") from None
        create.argtypes = [texts, texts, ctypes.c_size_t, reporter]
        create.restype = ctypes.c_void_p
        destroy.argtypes = [ctypes.c_void_p]
        destroy.restype = None
        names, values = ((ctypes.c_char_p * len(options))(*(text.encode() for text in column))
                         for column in (options.keys(), options.values()))
        messages = []
        callback = reporter(messages.append)
        self._pointer = create(names, values, len(options), callback)
        if not self._pointer:
            raise ValueError("".join(message.decode(errors="replace") for message in messages)
                             or "The library makes no delegate, and does not say why.")
        self._library = loaded

    def __del__(self):
        library, self._library = getattr(self, "_library", None), None
        if library is not None:
            library.tflite_plugin_destroy_delegate(self._pointer)

    def _get_native_delegate_pointer(self):
        return self._pointer


def _own_options(given):
    """The options of compile() that options of Hearth's delegate mean."""
    result = {}
    for name, value in given.items():
        if name not in _OPTIONS:
            raise ValueError(f"There is no option '{name}'. There are {', '.join(_OPTIONS)}.")
        option, convert = _OPTIONS[name]
        try:
            result[option] = convert(value)
        except ValueError:
            raise ValueError(f"The option {name} is '{value}'. It needs a number.") from None
    return result


def load_delegate(library, options=None):
    """A delegate by the name of its library: libhearth_delegate.so, with the options of docs/delegate.md,
    or an external delegate of TensorFlow Lite, which gets its options as texts. ValueError if the library
    makes no delegate, with what it reports; OSError if it cannot be loaded."""
    try:
        return Delegate(library, options)
    except ValueError as error:
        raise ValueError(f"Failed to load delegate from {library}\n{error}") from None


def divided(delegates):
    """(options of compile(), delegates of others) of what an interpreter is given."""
    options, others = {}, []
    for delegate in delegates:
        if isinstance(delegate, Delegate) and delegate._library is None:
            options.update(delegate._options)
        elif hasattr(delegate, "_get_native_delegate_pointer"):
            others.append(delegate)
        else:
            raise ValueError(f"{delegate!r} is no delegate: load_delegate() makes one.")
    return options, others
