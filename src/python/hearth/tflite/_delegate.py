# SPDX-License-Identifier: Apache-2.0
"""load_delegate(): the options of Hearth's own delegate. Other delegates need TensorFlow Lite."""

import ctypes
import hashlib
import os

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(text):
    unit = _UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def _token(text):
    return hashlib.sha256(text.encode()).digest()


# Options of docs/delegate.md: that of compile(), and what makes its value of a text.
_OPTIONS = {"cache_dir": ("cache_dir", str), "device": ("device", str),
            "max_activation_bytes": ("max_activation_bytes", _bytes), "model_token": ("cache_token", _token),
            "preference": ("preference", str), "preparation": ("preparation", str),
            "priority": ("priority", str), "store": ("store", str), "store_bytes": ("store_bytes", _bytes),
            "store_mode": ("cache", str), "threads": ("threads", int), "tuning": ("tuning", str),
            "weight_cache": ("weight_cache", str)}


class Delegate:
    """What load_delegate() returns, for Interpreter(experimental_delegates=[...])."""

    def __init__(self, library, options=None):
        if not os.path.basename(os.fsdecode(library)).startswith("libhearth_delegate.so"):
            ctypes.CDLL(library)  # OSError if there is none
            raise ValueError("A delegate is called by TensorFlow Lite, which hearth.tflite replaces: Hearth "
                             "chooses among its own devices. hearth.devices() lists them, and "
                             'load_delegate(hearth.delegate_library(), {"device": NAME}) names one.')
        self._options = {}
        for name, value in (options or {}).items():
            if str(name) not in _OPTIONS:
                raise ValueError(f"There is no option '{name}'. There are {', '.join(_OPTIONS)}.")
            option, convert = _OPTIONS[str(name)]
            try:
                self._options[option] = convert(str(value))
            except ValueError:
                raise ValueError(f"The option {name} is '{value}'. It needs a number.") from None


def load_delegate(library, options=None):
    """A delegate by the name of its library. It can be libhearth_delegate.so, with the options of
    docs/delegate.md; any other is refused with ValueError, or with OSError if it does not exist."""
    try:
        return Delegate(library, options)
    except ValueError as error:
        raise ValueError(f"Failed to load delegate from {library}\n{error}") from None


def options_of(delegate):
    """The options of compile() that an interpreter with this delegate has."""
    if not isinstance(delegate, Delegate):
        raise ValueError(f"{delegate!r} is no delegate of hearth.tflite.load_delegate().")
    return delegate._options
