# SPDX-License-Identifier: Apache-2.0
"""LiteRT's environment, of which Hearth needs nothing: drivers are found as docs/drivers.md says."""

import dataclasses

__all__ = ["Environment", "EnvironmentOptions"]


@dataclasses.dataclass(frozen=True)
class EnvironmentOptions:
    """Taken, but without a meaning here."""

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""


class Environment:
    """What models may share; models keep running when it is closed."""

    def __init__(self, options):
        self._options = options
        self._is_open = True

    @classmethod
    def create(cls, *, options=None, runtime_path=None, compiler_plugin_path="", dispatch_library_path=""):
        if isinstance(options, str):
            if runtime_path is not None:
                raise ValueError("runtime_path was provided twice.")
            options, runtime_path = None, options
        if options is None:
            options = EnvironmentOptions(runtime_path, compiler_plugin_path, dispatch_library_path)
        elif runtime_path is not None or compiler_plugin_path or dispatch_library_path:
            raise ValueError("Pass either options or environment path shortcuts.")
        return cls(options)

    @property
    def options(self):
        return self._options

    def ensure_open(self):
        if not self._is_open:
            raise ValueError("Environment is no longer valid")

    def close(self):
        self._is_open = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
