// SPDX-License-Identifier: Apache-2.0
#include "ipc/encoding.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "graph/model_bytes.h"
#include "ipc/frame.h"
#include "memory/constant_pool.h"

namespace hearth::ipc {
namespace {

uint32_t sizeOf(const auto& list) {
  return static_cast<uint32_t>(list.size());
}

capnp::Text::Reader textOf(const std::string& text) {
  return {text.c_str(), text.size()};
}

void writeTexts(const std::vector<std::string>& texts, capnp::List<capnp::Text>::Builder to) {
  for (uint32_t i = 0; i < to.size(); ++i) to.set(i, textOf(texts[i]));
}

void writePerformance(const hal::PerformanceInfo& info, schema::Performance::Builder to) {
  to.setExecTime(info.execTime);
  to.setPowerUsage(info.powerUsage);
}

// Where the bytes of each pool without a descriptor go in one piece of memory.
struct BorrowedBytes {
  std::vector<uint64_t> offsets;  // by pool; unused for the others
  uint64_t size = 0;
};

constexpr uint64_t kAlignment = 64;

BorrowedBytes layOutBorrowed(const std::vector<memory::PoolRef>& pools) {
  BorrowedBytes bytes;
  for (const memory::PoolRef& pool : pools) {
    bytes.offsets.push_back(bytes.size);
    if (pool->fd() < 0) bytes.size += (pool->size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return bytes;
}

// Calls `use` with the kind, subgraph, index and text of each name. Twice is cheaper than a list: a
// client's heap would keep the memory.
template <typename Use>
void forEachName(const graph::Model& model, Use&& use) {
  using Kind = schema::Name::Kind;
  for (uint32_t s = 0; s < model.subgraphs.size(); ++s) {
    const graph::Subgraph& subgraph = model.subgraphs[s];
    const auto offer = [&](Kind kind, size_t index, const std::string& text) {
      if (!text.empty()) use(kind, s, static_cast<uint32_t>(index), text);
    };
    offer(Kind::SUBGRAPH, 0, subgraph.name);
    for (size_t i = 0; i < subgraph.operands.size(); ++i)
      offer(Kind::OPERAND, i, subgraph.operands[i].name);
    for (size_t i = 0; i < subgraph.operations.size(); ++i)
      offer(Kind::OPERATION, i, subgraph.operations[i].name);
  }
}

void writeNames(const graph::Model& model, schema::Model::Builder to) {
  uint32_t count = 0;
  forEachName(model, [&](schema::Name::Kind, uint32_t, uint32_t, const std::string&) { ++count; });
  auto list = to.initNames(count);
  uint32_t i = 0;
  forEachName(model, [&](schema::Name::Kind kind, uint32_t subgraph, uint32_t index,
                         const std::string& text) {
    auto name = list[i++];
    name.setKind(kind);
    name.setSubgraph(subgraph);
    name.setIndex(index);
    name.setText(textOf(text));
  });
}

}  // namespace

uint32_t Attachments::add(int fd) {
  const auto found = std::ranges::find(descriptors_, fd);
  if (found != descriptors_.end()) return static_cast<uint32_t>(found - descriptors_.begin());
  descriptors_.push_back(fd);
  return sizeOf(descriptors_) - 1;
}

uint32_t Attachments::add(memory::PoolRef pool) {
  const int fd = pool->fd();
  pools_.push_back(std::move(pool));
  return add(fd);
}

int64_t encodeDeadline(const base::Deadline& deadline) {
  if (deadline.isNever()) return std::numeric_limits<int64_t>::max();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.when().time_since_epoch())
      .count();
}

void writeError(const Error& error, schema::Error::Builder to) {
  to.setCode(static_cast<int32_t>(error.code()));
  to.setMessage(textOf(error.message()));
  writeTexts(error.context(), to.initContext(sizeOf(error.context())));
}

void writeMemory(const memory::PoolRef& pool, schema::Memory::Builder to,
                 Attachments* attachments) {
  to.setDescriptor(attachments->add(pool));
  to.setOffset(pool->offset());
  to.setSize(pool->size());
  to.setIsWritable(pool->writable());
}

Status writeModel(const graph::Model& model, schema::Model::Builder to, Attachments* attachments) {
  for (size_t i = 0; i < model.pools.size(); ++i)
    if (model.pools[i] == nullptr || (model.pools[i]->data() == nullptr && model.pools[i]->size()))
      return fail(ErrorCode::kOpFailed, "Pool {} of the model is not mapped.", i);
  const BorrowedBytes borrowed = layOutBorrowed(model.pools);
  memory::PoolRef copy;
  if (borrowed.size != 0) {
    HEARTH_ASSIGN(copy, memory::constantPool(borrowed.size, [&](uint8_t* bytes) {
                    for (size_t i = 0; i < model.pools.size(); ++i)
                      if (model.pools[i]->fd() < 0 && model.pools[i]->size() != 0)
                        std::memcpy(bytes + borrowed.offsets[i], model.pools[i]->data(),
                                    model.pools[i]->size());
                  }));
  }
  auto pools = to.initPools(sizeOf(model.pools));
  for (uint32_t i = 0; i < model.pools.size(); ++i) {
    const memory::PoolRef& pool = model.pools[i];
    if (pool->size() == 0) continue;
    if (pool->fd() >= 0) {
      writeMemory(pool, pools[i], attachments);
      // No driver writes constants.
      pools[i].setIsWritable(false);
      continue;
    }
    pools[i].setDescriptor(attachments->add(copy));
    pools[i].setOffset(borrowed.offsets[i]);
    pools[i].setSize(pool->size());
  }
  const size_t size = graph::encodedSize(model);
  if (size > kMaxMessageBytes)
    return fail(ErrorCode::kUnsupported,
                "A model of {} bytes is too large for a message; the limit is {}.", size,
                kMaxMessageBytes);
  capnp::Data::Builder bytes = to.initBytes(static_cast<uint32_t>(size));
  graph::encodeModel(model, std::span<uint8_t>(bytes.begin(), bytes.size()));
  writeNames(model, to);
  return {};
}

void writeOptions(const hal::PrepareOptions& options, schema::Preparation::Builder to) {
  to.setPreparation(static_cast<uint8_t>(options.preparation));
  to.setPreference(static_cast<int32_t>(options.preference));
  to.setPriority(static_cast<int32_t>(options.priority));
  to.setDeadline(encodeDeadline(options.deadline));
  to.setThreads(options.threads);
  to.setIsTuned(options.isTuned);
  auto list = to.initDriverOptions(sizeOf(options.driverOptions));
  uint32_t i = 0;
  for (const auto& [name, value] : options.driverOptions) {
    list[i].setName(textOf(name));
    list[i].setValue(textOf(value));
    ++i;
  }
  to.setMaxActivationBytes(options.maxActivationBytes);
  auto shapes = to.initExpectedInputs(sizeOf(options.expectedInputs));
  for (uint32_t input = 0; input < shapes.size(); ++input) {
    const graph::Dimensions& dimensions = options.expectedInputs[input];
    auto shape = shapes.init(input, sizeOf(dimensions));
    for (uint32_t k = 0; k < shape.size(); ++k) shape.set(k, dimensions[k]);
  }
}

void writeCache(const hal::Cache& cache, schema::CacheFiles::Builder to, Attachments* attachments) {
  const auto write = [&](const std::vector<base::Descriptor>& files,
                         capnp::List<int32_t>::Builder list) {
    for (uint32_t i = 0; i < list.size(); ++i)
      list.set(i, files[i].valid() ? static_cast<int32_t>(attachments->add(files[i].get())) : -1);
  };
  write(cache.modelFiles, to.initModel(sizeOf(cache.modelFiles)));
  write(cache.dataFiles, to.initData(sizeOf(cache.dataFiles)));
  to.setToken(kj::arrayPtr(cache.token.data(), cache.token.size()));
}

void writeDevice(const hal::Device& device, schema::Device::Builder to) {
  to.setVersion(schema::VERSION);
  to.setName(textOf(device.name()));
  to.setDeviceVersion(textOf(device.version()));
  to.setType(static_cast<int32_t>(device.type()));
  to.setFeatureLevel(device.featureLevel());
  const hal::Capabilities capabilities = device.capabilities();
  auto list = to.initOperandPerformance(sizeOf(capabilities.operandPerformance));
  uint32_t i = 0;
  for (const auto& [type, info] : capabilities.operandPerformance) {
    list[i].setOperandType(static_cast<int32_t>(type));
    writePerformance(info, list[i]);
    ++i;
  }
  writePerformance(capabilities.relaxedFloat32, to.initRelaxedFloat32());
  writePerformance(capabilities.ifPerformance, to.initIfPerformance());
  writePerformance(capabilities.whilePerformance, to.initWhilePerformance());
  const std::vector<std::string> extensions = device.supportedExtensions();
  writeTexts(extensions, to.initExtensions(sizeOf(extensions)));
  const std::vector<hal::ExtensionOperandType> types = device.extensionOperandTypes();
  auto typeList = to.initExtensionTypes(sizeOf(types));
  for (uint32_t t = 0; t < typeList.size(); ++t) {
    typeList[t].setExtension(textOf(types[t].extension));
    typeList[t].setNumber(types[t].number);
    typeList[t].setElementSize(types[t].elementSize);
    typeList[t].setIsTensor(types[t].isTensor);
  }
  if (const auto counts = device.numberOfCacheFilesNeeded()) {
    to.setModelFiles(counts->model);
    to.setDataFiles(counts->data);
  } else {
    writeError(counts.error(), to.initCacheFilesError());
  }
  to.setProcess(::getpid());
}

void writeSupport(const std::vector<hal::OperationSupport>& support, schema::Reply::Builder to) {
  auto list = to.initSupport(sizeOf(support));
  for (uint32_t i = 0; i < support.size(); ++i) {
    list[i].setIsSupported(support[i].supported);
    if (!support[i].kernel.empty()) list[i].setKernel(textOf(support[i].kernel));
    if (!support[i].reason.empty()) list[i].setReason(textOf(support[i].reason));
  }
}

void writeReport(const hal::StartReport& report, schema::StartReport::Builder to) {
  to.setState(static_cast<uint8_t>(report.state));
  to.setReason(textOf(report.reason));
  auto packed = to.initPackedBytes(sizeOf(report.packedBytes));
  uint32_t i = 0;
  for (const auto& [kind, bytes] : report.packedBytes) {
    packed[i].setKind(textOf(kind));
    packed[i].setBytes(bytes);
    ++i;
  }
  to.setRepackedBytes(report.repackedBytes);
  to.setRepairedBytes(report.repairedBytes);
  to.setMappedBytes(report.mappedBytes);
  to.setSharedBytes(report.sharedBytes);
  to.setHashedBytes(report.hashedBytes);
  to.setActivationBytes(report.activationBytes);
  writeTexts(report.routedAround, to.initRoutedAround(sizeOf(report.routedAround)));
  writeTexts(report.slowOperations, to.initSlowOperations(sizeOf(report.slowOperations)));
  to.setTuningState(static_cast<uint8_t>(report.tuning.state));
  to.setTuningExecutions(report.tuning.executions);
  to.setChangedNodes(report.tuning.changedNodes);
  to.setQuickTime(report.tuning.quickTime);
  to.setChosenTime(report.tuning.chosenTime);
  to.setCacheProblem(textOf(report.cacheProblem));
  to.setShapes(report.shapes);
}

void writeVerdict(const hal::CacheVerdict& verdict, schema::CacheVerdict::Builder to) {
  using SameModel = schema::CacheVerdict::SameModel;
  to.setIsHit(verdict.isHit);
  to.setCode(textOf(verdict.code));
  to.setReason(textOf(verdict.reason));
  if (verdict.isSameModel) to.setIsSameModel(*verdict.isSameModel ? SameModel::YES : SameModel::NO);
}

void writeResult(const hal::ExecutionResult& result, schema::ExecutionResult::Builder to) {
  if (!result.status) writeError(result.status.error(), to.initError());
  auto shapes = to.initOutputShapes(sizeOf(result.outputShapes));
  for (uint32_t i = 0; i < result.outputShapes.size(); ++i) {
    writeDimensions(result.outputShapes[i].dimensions, shapes[i]);
    shapes[i].setIsSufficient(result.outputShapes[i].isSufficient);
  }
  to.setOnDevice(result.timing.onDevice);
  to.setInDriver(result.timing.inDriver);
  to.setCopiedBytes(result.copiedBytes);
}

}  // namespace hearth::ipc
