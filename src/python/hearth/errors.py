# SPDX-License-Identifier: Apache-2.0
"""What the library raises. Each exception has the sentence of hearth_error_message(), and the status
of hearth.h as `status`."""


class Error(RuntimeError):
    """A call of the library fails. `status` is the number of a hearth_status."""

    status = 0


class InvalidArgument(Error, ValueError):
    """An argument or a model is wrong (HEARTH_BAD_DATA)."""

    status = 4


class BadState(Error):
    """The call is not allowed now, for instance during a run (HEARTH_BAD_STATE)."""

    status = 6


class OutOfMemory(Error, MemoryError):
    """There is not enough memory, or more would be used than allowed."""


class NotFound(Error, LookupError):
    """A file, a device, a signature or a tensor does not exist."""


class InputOutputError(Error, OSError):
    """The operating system refuses to read, write, map or lock a file."""


class Unsupported(Error, NotImplementedError):
    """The model is valid, but nothing here can run it."""


class DeadlineMissed(Error, TimeoutError):
    """The time-out passed."""


class DeviceUnavailable(Error):
    """A device is busy, broken or gone."""


# By the number of a hearth_status; all others are Error. The library makes the exceptions.
CLASSES = {1: OutOfMemory, 3: InvalidArgument, 4: InvalidArgument, 6: BadState,
           9: DeviceUnavailable, 10: DeadlineMissed, 11: DeadlineMissed, 12: OutOfMemory,
           13: OutOfMemory, 14: DeviceUnavailable, 100: NotFound, 101: InputOutputError,
           102: Unsupported}
