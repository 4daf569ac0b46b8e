# SPDX-License-Identifier: Apache-2.0
"""The options of compile(), for people who look at it and for the library's module."""

import collections.abc
import numbers
import operator
import os

from .errors import InvalidArgument

_NAMES = ("device", "threads", "cache", "store", "store_bytes", "weight_cache", "preparation",
          "tuning", "preference", "priority", "cache_dir", "cache_token", "max_activation_bytes",
          "timeout", "longest_step", "shapes", "outputs")
_PATHS = ("store", "weight_cache", "cache_dir")


def _shape(name, given):
    try:
        sizes = [operator.index(size) for size in given]
    except TypeError:
        raise InvalidArgument(f"The shape {given!r} of {name!r} is not a sequence of numbers.") from None
    if not all(1 <= size < 1 << 32 for size in sizes):
        raise InvalidArgument(f"The shape {tuple(sizes)} of {name!r} has a dimension that is not "
                              "from 1 to 4294967295.")
    return sizes


def _shapes(given):
    if not isinstance(given, collections.abc.Mapping):
        raise InvalidArgument(f"shapes is {given!r}. It maps names of inputs to shapes, for instance "
                              "{'image': (4, 224, 224, 3)}.")
    return {name: _shape(name, shape) for name, shape in given.items()}


def _outputs(given):
    # A text is a sequence of texts, too, and the library takes none for all outputs.
    if isinstance(given, str) or not isinstance(given, collections.abc.Sequence) or not given \
            or not all(isinstance(name, str) for name in given):
        raise InvalidArgument(f"outputs is {given!r}. It lists names of outputs, for instance ['scores'].")
    return list(given)


def seconds(timeout):
    """A time limit as the library's module takes it; None for none."""
    if timeout is None or isinstance(timeout, numbers.Real):
        return timeout
    raise InvalidArgument(f"timeout is {timeout!r}. It needs a number of seconds.")


def native(options):
    """The options as the library's module takes them."""
    made = dict(options)
    for name, value in options.items():
        if value is None:
            continue
        if name in _PATHS:
            made[name] = os.fsdecode(value)
        elif name == "shapes":
            made[name] = _shapes(value)
        elif name == "outputs":
            made[name] = _outputs(value)
    return made


def shown(parameters):
    """Shows `parameters` and the options in the signature of a method that takes **options; None is the
    default of each option. An unknown one is refused by the library, which lists those that there are."""
    # inspect.signature() looks at what a function says it wraps. Signatures made here would need the module
    # inspect, which takes longer to import than the rest of this package.
    made = {}
    exec(f"def shape({parameters}, *, {', '.join(f'{name}=None' for name in _NAMES)}): pass", made)

    def decorated(method):
        method.__wrapped__ = made["shape"]
        return method

    return decorated
