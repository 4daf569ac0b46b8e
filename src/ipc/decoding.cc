// SPDX-License-Identifier: Apache-2.0
#include "ipc/decoding.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

namespace hearth::ipc {
namespace {

constexpr int kMostNesting = 16;
// A well-formed message is read twice at most; the rest is for short ones.
constexpr uint64_t kMostReads = 6;
constexpr uint64_t kWordsForShort = 4096;

std::vector<std::string> readTexts(capnp::List<capnp::Text>::Reader from) {
  std::vector<std::string> texts;
  for (const capnp::Text::Reader text : from) texts.push_back(readText(text));
  return texts;
}

bool isKnownCode(int32_t code) {
  return (code >= static_cast<int32_t>(ErrorCode::kOutOfMemory) &&
          code <= static_cast<int32_t>(ErrorCode::kDeadObject)) ||
         (code >= static_cast<int32_t>(ErrorCode::kNotFound) &&
          code <= static_cast<int32_t>(ErrorCode::kUnsupported));
}

Result<hal::PerformanceInfo> readPerformance(schema::Performance::Reader from) {
  const hal::PerformanceInfo info{from.getExecTime(), from.getPowerUsage()};
  if (!std::isfinite(info.execTime) || !std::isfinite(info.powerUsage))
    return fail(ErrorCode::kBadData, "The performance of a device is no number.");
  return info;
}

Result<std::vector<base::Descriptor>> readFiles(capnp::List<int32_t>::Reader from,
                                                const std::vector<base::Descriptor>& descriptors) {
  std::vector<base::Descriptor> files;
  // More than the kernel lets through with one message are not files.
  if (from.size() > 2 * descriptors.size() + 64)
    return fail(ErrorCode::kBadData, "A message names {} cache files.", from.size());
  for (const int32_t index : from) {
    if (index < 0) {
      files.emplace_back();
      continue;
    }
    HEARTH_ASSIGN(const int fd, findDescriptor(static_cast<uint32_t>(index), descriptors));
    base::Descriptor copy;
    for (const base::Descriptor& descriptor : descriptors) {
      if (descriptor.get() != fd) continue;
      HEARTH_ASSIGN(copy, descriptor.duplicate());
      break;
    }
    files.push_back(std::move(copy));
  }
  return files;
}

}  // namespace

capnp::ReaderOptions readerOptions(std::span<const capnp::word> words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kMostReads * words.size() + kWordsForShort;
  options.nestingLimit = kMostNesting;
  return options;
}

std::string readText(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

base::Deadline decodeDeadline(int64_t nanoseconds) {
  if (nanoseconds == std::numeric_limits<int64_t>::max()) return {};
  return base::Deadline(
      base::Deadline::Clock::time_point(std::chrono::duration_cast<base::Deadline::Clock::duration>(
          std::chrono::nanoseconds(nanoseconds))));
}

Error readError(schema::Error::Reader from) {
  const ErrorCode code =
      isKnownCode(from.getCode()) ? static_cast<ErrorCode>(from.getCode()) : ErrorCode::kOpFailed;
  Error error(code, readText(from.getMessage()));
  for (std::string& step : readTexts(from.getContext())) {
    Error outer = std::move(error).addContext(std::move(step));
    error = std::move(outer);
  }
  return error;
}

Result<int> findDescriptor(uint32_t index, const std::vector<base::Descriptor>& descriptors) {
  if (index < descriptors.size()) return descriptors[index].get();
  return fail(ErrorCode::kBadData, "A message names descriptor {}; it came with {}.", index,
              descriptors.size());
}

Result<base::Descriptor> duplicateDescriptor(uint32_t index,
                                             const std::vector<base::Descriptor>& descriptors) {
  HEARTH_ASSIGN(const int found, findDescriptor(index, descriptors));
  base::Descriptor own(::fcntl(found, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return std::unexpected(base::errnoError(errno, "Duplicating a descriptor"));
  return own;
}

Status readNames(capnp::List<schema::Name>::Reader from, graph::Model* model) {
  for (const schema::Name::Reader name : from) {
    const uint32_t s = name.getSubgraph();
    const uint32_t i = name.getIndex();
    std::string* text = nullptr;
    if (s < model->subgraphs.size()) {
      graph::Subgraph& subgraph = model->subgraphs[s];
      switch (name.getKind()) {
        case schema::Name::Kind::SUBGRAPH:
          text = &subgraph.name;
          break;
        case schema::Name::Kind::OPERAND:
          if (i < subgraph.operands.size()) text = &subgraph.operands[i].name;
          break;
        case schema::Name::Kind::OPERATION:
          if (i < subgraph.operations.size()) text = &subgraph.operations[i].name;
          break;
      }
    }
    if (text == nullptr)
      return fail(ErrorCode::kBadData,
                  "A message names thing {} of subgraph {}, which is not there.", i, s);
    *text = readText(name.getText());
  }
  return {};
}

Result<hal::PrepareOptions> readOptions(schema::Preparation::Reader from) {
  hal::PrepareOptions options;
  if (from.getPreparation() > static_cast<uint8_t>(hal::Preparation::kJustInTime))
    return fail(ErrorCode::kBadData, "The kind of preparation {} is unknown.",
                from.getPreparation());
  options.preparation = static_cast<hal::Preparation>(from.getPreparation());
  if (from.getPreference() < 0 ||
      from.getPreference() > static_cast<int32_t>(hal::Preference::kSustainedSpeed))
    return fail(ErrorCode::kBadData, "The preference {} is unknown.", from.getPreference());
  options.preference = static_cast<hal::Preference>(from.getPreference());
  options.priority = static_cast<hal::Priority>(from.getPriority());
  if (options.priority != hal::Priority::kLow && options.priority != hal::Priority::kMedium &&
      options.priority != hal::Priority::kHigh)
    return fail(ErrorCode::kBadData, "The priority {} is unknown.", from.getPriority());
  options.deadline = decodeDeadline(from.getDeadline());
  options.threads = from.getThreads();
  options.isTuned = from.getIsTuned();
  for (const schema::Option::Reader option : from.getDriverOptions())
    options.driverOptions[readText(option.getName())] = readText(option.getValue());
  options.maxActivationBytes = from.getMaxActivationBytes();
  for (const auto shape : from.getExpectedInputs()) {
    graph::Dimensions& dimensions = options.expectedInputs.emplace_back();
    for (const uint32_t dimension : shape) dimensions.push_back(dimension);
  }
  return options;
}

Result<hal::Cache> readCache(schema::CacheFiles::Reader from,
                             const std::vector<base::Descriptor>& descriptors) {
  hal::Cache cache;
  HEARTH_ASSIGN(cache.modelFiles, readFiles(from.getModel(), descriptors));
  HEARTH_ASSIGN(cache.dataFiles, readFiles(from.getData(), descriptors));
  const capnp::Data::Reader token = from.getToken();
  if (token.size() == 0 && cache.modelFiles.empty() && cache.dataFiles.empty()) return cache;
  if (token.size() != cache.token.size())
    return fail(ErrorCode::kBadData, "A token has {} bytes, not {}.", token.size(),
                cache.token.size());
  std::copy(token.begin(), token.end(), cache.token.begin());
  return cache;
}

Result<DeviceDescription> readDevice(schema::Device::Reader from) {
  if (from.getVersion() != schema::VERSION)
    return fail(ErrorCode::kUnsupported,
                "The host of a driver speaks version {} of the connection, this is {}.",
                from.getVersion(), schema::VERSION);
  DeviceDescription device;
  device.name = readText(from.getName());
  if (device.name.empty()) return fail(ErrorCode::kBadData, "A device has no name.");
  device.version = readText(from.getDeviceVersion());
  device.type = static_cast<hal::DeviceType>(from.getType());
  if (device.type < hal::DeviceType::kUnknown || device.type > hal::DeviceType::kAccelerator)
    return fail(ErrorCode::kBadData, "The type {} of a device is unknown.", from.getType());
  device.featureLevel = from.getFeatureLevel();
  for (const schema::Performance::Reader each : from.getOperandPerformance()) {
    HEARTH_ASSIGN(device.capabilities
                      .operandPerformance[static_cast<graph::OperandType>(each.getOperandType())],
                  readPerformance(each));
  }
  HEARTH_ASSIGN(device.capabilities.relaxedFloat32, readPerformance(from.getRelaxedFloat32()));
  HEARTH_ASSIGN(device.capabilities.ifPerformance, readPerformance(from.getIfPerformance()));
  HEARTH_ASSIGN(device.capabilities.whilePerformance, readPerformance(from.getWhilePerformance()));
  device.extensions = readTexts(from.getExtensions());
  for (const schema::ExtensionType::Reader type : from.getExtensionTypes())
    device.extensionTypes.push_back({readText(type.getExtension()), type.getNumber(),
                                     type.getElementSize(), type.getIsTensor()});
  if (from.hasCacheFilesError())
    device.cacheFiles = std::unexpected(readError(from.getCacheFilesError()));
  else
    device.cacheFiles = hal::CacheFileCounts{from.getModelFiles(), from.getDataFiles()};
  device.process = from.getProcess();
  device.isShared = from.getIsShared();
  device.libraryDevices = from.getLibraryDevices();
  return device;
}

std::vector<hal::OperationSupport> readSupport(capnp::List<schema::Support>::Reader from) {
  std::vector<hal::OperationSupport> support;
  for (const schema::Support::Reader each : from)
    support.push_back(
        {each.getIsSupported(), readText(each.getKernel()), readText(each.getReason())});
  return support;
}

Result<hal::StartReport> readReport(schema::StartReport::Reader from) {
  hal::StartReport report;
  if (from.getState() > static_cast<uint8_t>(hal::StartReport::State::kUncached) ||
      from.getTuningState() > static_cast<uint8_t>(hal::TuningReport::State::kRecalled))
    return fail(ErrorCode::kBadData, "A start report has the states {} and {}.", from.getState(),
                from.getTuningState());
  report.state = static_cast<hal::StartReport::State>(from.getState());
  report.reason = readText(from.getReason());
  for (const schema::PackedBytes::Reader each : from.getPackedBytes())
    report.packedBytes[readText(each.getKind())] = each.getBytes();
  report.repackedBytes = from.getRepackedBytes();
  report.repairedBytes = from.getRepairedBytes();
  report.mappedBytes = from.getMappedBytes();
  report.sharedBytes = from.getSharedBytes();
  report.hashedBytes = from.getHashedBytes();
  report.activationBytes = from.getActivationBytes();
  report.routedAround = readTexts(from.getRoutedAround());
  report.slowOperations = readTexts(from.getSlowOperations());
  report.tuning = {static_cast<hal::TuningReport::State>(from.getTuningState()),
                   from.getTuningExecutions(), from.getChangedNodes(), from.getQuickTime(),
                   from.getChosenTime()};
  report.cacheProblem = readText(from.getCacheProblem());
  report.shapes = from.getShapes();
  return report;
}

Result<hal::CacheVerdict> readVerdict(schema::CacheVerdict::Reader from) {
  using SameModel = schema::CacheVerdict::SameModel;
  hal::CacheVerdict verdict{from.getIsHit(), readText(from.getCode()), readText(from.getReason()),
                            std::nullopt};
  switch (from.getIsSameModel()) {
    case SameModel::UNKNOWN:
      break;
    case SameModel::NO:
    case SameModel::YES:
      verdict.isSameModel = from.getIsSameModel() == SameModel::YES;
      break;
    default:
      return fail(ErrorCode::kBadData, "A verdict on cache files says {} of their model.",
                  static_cast<unsigned>(from.getIsSameModel()));
  }
  return verdict;
}

Result<base::Sha256Digest> readDigest(capnp::Data::Reader from) {
  base::Sha256Digest digest;
  if (from.size() != digest.size())
    return fail(ErrorCode::kBadData, "A digest has {} bytes, not {}.", from.size(), digest.size());
  std::copy(from.begin(), from.end(), digest.begin());
  return digest;
}

hal::ExecutionResult readResult(schema::ExecutionResult::Reader from) {
  hal::ExecutionResult result;
  if (from.hasError()) result.status = std::unexpected(readError(from.getError()));
  for (const schema::OutputShape::Reader shape : from.getOutputShapes())
    result.outputShapes.push_back({readDimensions(shape), shape.getIsSufficient()});
  result.timing = {from.getOnDevice(), from.getInDriver()};
  result.copiedBytes = from.getCopiedBytes();
  return result;
}

}  // namespace hearth::ipc
