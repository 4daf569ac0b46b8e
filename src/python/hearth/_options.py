# SPDX-License-Identifier: Apache-2.0
"""The options of compile(), for people who look at it and for the library's module."""

import inspect
import os

_NAMES = ("device", "threads", "cache", "store", "store_bytes", "weight_cache", "preparation",
          "tuning", "preference", "priority", "cache_dir", "cache_token", "max_activation_bytes",
          "timeout")
_PATHS = ("store", "weight_cache", "cache_dir")


def native(options):
    """The options as the library's module takes them."""
    return {name: os.fsdecode(value) if name in _PATHS and value is not None else value
            for name, value in options.items()}


def shown(method):
    """Shows the options in the signature of a method that takes **options; None is the default of
    each. An unknown one is refused by the library, which lists those that there are."""
    signature = inspect.signature(method)
    fixed = [parameter for parameter in signature.parameters.values()
             if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
               for name in _NAMES]
    method.__signature__ = signature.replace(parameters=fixed + options)
    return method
