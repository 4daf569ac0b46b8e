# SPDX-License-Identifier: Apache-2.0
"""Options of LiteRT's CompiledModel for the compilers of two vendors. They are taken, so that programs run, and
have no meaning here."""

import dataclasses
import enum

__all__ = ["IntelOpenVinoGraphBackend", "IntelOpenVinoOptions", "IntelOpenVinoPerformanceMode", "QualcommBackend",
           "QualcommDspPerformanceMode", "QualcommGraphIOTensorMemType", "QualcommGraphPriority",
           "QualcommHtpPerformanceMode", "QualcommLogLevel", "QualcommOptimizationLevel", "QualcommOptions",
           "QualcommProfiling"]


def _numbered(name, *members):
    return enum.IntEnum(name, members, start=0, module=__name__)


_LEVELS = ("DEFAULT", "SUSTAINED_HIGH_PERFORMANCE", "BURST", "HIGH_PERFORMANCE", "POWER_SAVER", "LOW_POWER_SAVER",
           "HIGH_POWER_SAVER", "LOW_BALANCED", "BALANCED")
QualcommLogLevel = _numbered("QualcommLogLevel", "OFF", "ERROR", "WARN", "INFO", "VERBOSE", "DEBUG")
QualcommHtpPerformanceMode = _numbered("QualcommHtpPerformanceMode", *_LEVELS, "EXTREME_POWER_SAVER")
QualcommDspPerformanceMode = _numbered("QualcommDspPerformanceMode", *_LEVELS)
QualcommProfiling = _numbered("QualcommProfiling", "OFF", "BASIC", "DETAILED", "LINTING", "OPTRACE")
QualcommOptimizationLevel = _numbered("QualcommOptimizationLevel", "OPTIMIZE_FOR_INFERENCE", "OPTIMIZE_FOR_PREPARE",
                                      "OPTIMIZE_FOR_INFERENCE_O3")
QualcommGraphPriority = _numbered("QualcommGraphPriority", "DEFAULT", "LOW", "NORMAL", "NORMAL_HIGH", "HIGH")
QualcommBackend = _numbered("QualcommBackend", "UNDEFINED", "GPU", "HTP", "DSP", "IR")
QualcommGraphIOTensorMemType = _numbered("QualcommGraphIOTensorMemType", "RAW", "MEM_HANDLE")
IntelOpenVinoGraphBackend = _numbered("IntelOpenVinoGraphBackend", "CPU", "GPU", "NPU")
IntelOpenVinoPerformanceMode = _numbered("IntelOpenVinoPerformanceMode", "LATENCY", "THROUGHPUT",
                                         "CUMULATIVE_THROUGHPUT")


@dataclasses.dataclass
class QualcommOptions:
    """None stands for the compiler's default."""

    LOG_LEVEL = QualcommLogLevel
    HTP_PERFORMANCE_MODE = QualcommHtpPerformanceMode
    DSP_PERFORMANCE_MODE = QualcommDspPerformanceMode
    PROFILING = QualcommProfiling
    OPTIMIZATION_LEVEL = QualcommOptimizationLevel
    GRAPH_PRIORITY = QualcommGraphPriority
    BACKEND = QualcommBackend
    GRAPH_IO_TENSOR_MEM_TYPE = QualcommGraphIOTensorMemType

    log_level: QualcommLogLevel | None = None
    htp_performance_mode: QualcommHtpPerformanceMode | None = None
    dsp_performance_mode: QualcommDspPerformanceMode | None = None
    use_int64_bias_as_int32: bool | None = None
    enable_weight_sharing: bool | None = None
    use_conv_hmx: bool | None = None
    use_fold_relu: bool | None = None
    profiling: QualcommProfiling | None = None
    dump_tensor_ids: list[int] | None = None
    ir_json_dir: str = ""
    dlc_dir: str = ""
    vtcm_size: int | None = None
    num_hvx_threads: int | None = None
    optimization_level: QualcommOptimizationLevel | None = None
    graph_priority: QualcommGraphPriority | None = None
    backend: QualcommBackend | None = None
    saver_output_dir: str = ""
    graph_io_tensor_mem_type: QualcommGraphIOTensorMemType | None = None


@dataclasses.dataclass
class IntelOpenVinoOptions:
    """None stands for the compiler's default."""

    GRAPH_BACKEND = IntelOpenVinoGraphBackend
    PERFORMANCE_MODE = IntelOpenVinoPerformanceMode

    graph_backend: IntelOpenVinoGraphBackend | None = None
    performance_mode: IntelOpenVinoPerformanceMode | None = None
    configs_map: dict[str, str] = dataclasses.field(default_factory=dict)
    enable_weight_sharing: bool | None = None
