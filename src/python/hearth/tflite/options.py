# SPDX-License-Identifier: Apache-2.0
"""Options of LiteRT's CompiledModel, and what they mean here."""

import dataclasses
import enum
import os

from .. import _hearth
from .vendor_options import (IntelOpenVinoGraphBackend, IntelOpenVinoOptions, IntelOpenVinoPerformanceMode,
                             QualcommBackend, QualcommDspPerformanceMode, QualcommGraphIOTensorMemType,
                             QualcommGraphPriority, QualcommHtpPerformanceMode, QualcommLogLevel,
                             QualcommOptimizationLevel, QualcommOptions, QualcommProfiling)

__all__ = ["CpuKernelMode", "CpuOptions", "GpuOptions", "HardwareAccelerator", "IntelOpenVinoGraphBackend",
           "IntelOpenVinoOptions", "IntelOpenVinoPerformanceMode", "Options", "QualcommBackend",
           "QualcommDspPerformanceMode", "QualcommGraphIOTensorMemType", "QualcommGraphPriority",
           "QualcommHtpPerformanceMode", "QualcommLogLevel", "QualcommOptimizationLevel", "QualcommOptions",
           "QualcommProfiling"]


class HardwareAccelerator(enum.IntFlag):
    """Where a model may run. Without CPU, a device of another type has to run all of it."""

    CPU = 1
    GPU = 2
    NPU = 4


class CpuKernelMode(enum.IntEnum):
    """Sets of kernels in LiteRT. Hearth has one set, so they make no difference."""

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2


@dataclasses.dataclass
class CpuOptions:
    """`num_threads`: 0 leaves it to the device. `xnnpack_weight_cache_path`: a file that keeps packed
    weights, or a folder that becomes a weight store. The others make no difference."""

    num_threads: int = 0
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""


@dataclasses.dataclass
class GpuOptions:
    """Taken, but without a meaning here."""

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False


class Options:
    """The options of one model. Groups are made when they are first asked for."""

    _GROUPS = {"cpu_options": CpuOptions, "gpu_options": GpuOptions, "qualcomm_options": QualcommOptions,
               "intel_openvino_options": IntelOpenVinoOptions}

    def __init__(self, hardware_accelerators=HardwareAccelerator.CPU, cpu_options=None, gpu_options=None,
                 qualcomm_options=None, intel_openvino_options=None):
        self.hardware_accelerators = hardware_accelerators
        given = {"cpu_options": cpu_options, "gpu_options": gpu_options, "qualcomm_options": qualcomm_options,
                 "intel_openvino_options": intel_openvino_options}
        for name, group in given.items():
            if group is not None:
                setattr(self, name, group)

    @classmethod
    def create(cls):
        return cls()

    def __getattr__(self, name):
        if name not in self._GROUPS:
            raise AttributeError(f"Options has no {name!r}.")
        setattr(self, name, self._GROUPS[name]())
        return getattr(self, name)


def compile_options(options):
    """The options of compile() for an Options."""
    result = {"device": _device(HardwareAccelerator(options.hardware_accelerators))}
    if options.cpu_options.num_threads > 0:
        result["threads"] = options.cpu_options.num_threads
    path = os.fspath(options.cpu_options.xnnpack_weight_cache_path)
    if path:
        result["store" if os.path.isdir(path) else "weight_cache"] = path
    return result


def _device(accelerators):
    """The device that the flags ask for; None leaves the choice to the library."""
    if not accelerators or HardwareAccelerator.CPU in accelerators:
        return None
    types_of_flags = {HardwareAccelerator.NPU: "accelerator", HardwareAccelerator.GPU: "gpu"}
    wanted = [name for flag, name in types_of_flags.items() if flag in accelerators]
    present = {device.type for device in _hearth._devices()}
    for name in wanted:
        if name in present:
            return name
    raise RuntimeError(f"There is no device of the type {' or '.join(wanted)}: hearth.devices() lists those "
                       "that there are. With HardwareAccelerator.CPU the model runs without one.")
