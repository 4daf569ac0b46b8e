// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/compilation_cache/cached_plan.h"

#include <array>
#include <string>
#include <utility>

namespace hearth::vulkan {
namespace {

constexpr std::array<char, 8> kMagic = {'H', 'V', 'U', 'L', 'P', 'L', 'A', 'N'};
constexpr uint32_t kVersion = 4;

// The least number of bytes of each kind of element, which bounds the lengths of lists.
constexpr size_t kLeastTensor = 21;
constexpr size_t kLeastBinding = 5;
constexpr size_t kLeastDispatch = 48;
constexpr size_t kLeastArgument = 17;
constexpr size_t kLeastPipeline = 20;

void writeArguments(ByteWriter& writer, const Plan& plan, bool areInputs) {
  const std::vector<uint32_t>& indices = areInputs ? plan.arguments.inputs : plan.arguments.outputs;
  writer.number(static_cast<uint64_t>(indices.size()));
  for (size_t i = 0; i < indices.size(); ++i) {
    const graph::Operand& operand = plan.arguments.operands[indices[i]];
    writer.number(operand.type);
    writer.list(operand.dimensions);
    writer.number(static_cast<uint8_t>(operand.isRankZeroTensor));
    writer.number((areInputs ? plan.inputs : plan.outputs)[i]);
    if (!areInputs) writer.list(plan.outputDimensions[i]);
  }
}

std::string readName(base::ByteReader& reader) {
  const auto letters = reader.list<char>();
  return {letters.begin(), letters.end()};
}

// Reads a plan and checks each number against what was read before.
class PlanReader {
 public:
  PlanReader(std::span<const uint8_t> bytes, const GpuFacts& facts)
      : reader_(bytes), facts_(facts) {}

  Result<CachedPlan> read() {
    for (const char letter : kMagic)
      if (reader_.number<char>() != letter)
        return fail(ErrorCode::kBadData, "The bytes are no plan of the GPU driver.");
    if (const auto version = reader_.number<uint32_t>(); version != kVersion)
      return fail(ErrorCode::kBadData, "A plan of the GPU driver has the version {}, not {}.",
                  version, kVersion);
    plan_.arenaBytes = reader_.number<uint64_t>();
    plan_.constantBytes = reader_.number<uint64_t>();
    HEARTH_TRY(readTensors());
    HEARTH_TRY(readDispatches());
    HEARTH_TRY(readArguments(true));
    HEARTH_TRY(readArguments(false));
    HEARTH_TRY(readFault());
    const bool isTuned = reader_.flag();
    pipelines_ = readPipelines(reader_);
    if (!reader_.isGood() || reader_.hasBytes())
      return fail(ErrorCode::kBadData, "A plan of the GPU driver has another length than it says.");
    return CachedPlan{std::move(plan_), std::move(pipelines_), isTuned};
  }

 private:
  Status readTensors() {
    const size_t count = reader_.count(kLeastTensor);
    for (size_t i = 0; i < count; ++i) {
      PlannedTensor tensor;
      const bool isConstant = reader_.flag();
      if (isConstant) tensor.place = PlannedTensor::Place::kConstants;
      tensor.bytes = reader_.number<uint64_t>();
      tensor.root = reader_.number<uint32_t>();
      tensor.offset = reader_.number<uint64_t>();
      const uint64_t memory = isConstant ? plan_.constantBytes : plan_.arenaBytes;
      const bool isInside = tensor.bytes != 0 && tensor.bytes <= facts_.maxBufferRange &&
                            tensor.offset % facts_.rangeAlignment == 0 && tensor.offset <= memory &&
                            tensor.bytes <= memory - tensor.offset;
      if (tensor.root >= count || (tensor.root == i && !isInside))
        return fail(ErrorCode::kBadData, "The tensor {} of a plan has {} bytes at {} of {}.", i,
                    tensor.bytes, tensor.offset, memory);
      plan_.tensors.push_back(std::move(tensor));
    }
    for (const PlannedTensor& tensor : plan_.tensors) {
      const PlannedTensor& root = plan_.tensors[tensor.root];
      if (&plan_.tensors[root.root] != &root || root.bytes != tensor.bytes)
        return fail(ErrorCode::kBadData, "A tensor of {} bytes of a plan lies in one of {}.",
                    tensor.bytes, root.bytes);
    }
    return {};
  }

  Status readDispatches() {
    const size_t count = reader_.count(kLeastDispatch);
    for (size_t i = 0; i < count && reader_.isGood(); ++i) {
      Dispatch dispatch;
      dispatch.shader = readName(reader_);
      dispatch.constant = reader_.number<uint32_t>();
      const size_t bindings = reader_.count(kLeastBinding);
      for (size_t b = 0; b < bindings; ++b) {
        const auto tensor = reader_.number<uint32_t>();
        dispatch.bindings.push_back({tensor, reader_.flag()});
        if (tensor >= plan_.tensors.size())
          return fail(ErrorCode::kBadData, "A dispatch of a plan has the tensor {} of {}.", tensor,
                      plan_.tensors.size());
        if (dispatch.bindings.back().isWritten &&
            plan_.rootOf(tensor).place == PlannedTensor::Place::kConstants)
          return fail(ErrorCode::kBadData, "A dispatch of a plan writes to a constant.");
      }
      dispatch.parameters = reader_.list<uint32_t>();
      bool fits = bindings != 0 && bindings <= kBindings && !dispatch.parameters.empty() &&
                  dispatch.parameters.size() * sizeof(uint32_t) <= kParameterBytes;
      for (size_t side = 0; side < dispatch.groups.size(); ++side) {
        dispatch.groups[side] = reader_.number<uint32_t>();
        fits &= dispatch.groups[side] != 0 && dispatch.groups[side] <= facts_.maxGroups[side];
      }
      dispatch.products = reader_.number<uint64_t>();
      if (!fits) return fail(ErrorCode::kBadData, "A dispatch of a plan exceeds what the GPU has.");
      plan_.dispatches.push_back(std::move(dispatch));
    }
    return {};
  }

  Status readArguments(bool areInputs) {
    const size_t count = reader_.count(kLeastArgument);
    for (size_t i = 0; i < count && reader_.isGood(); ++i) {
      graph::Operand operand;
      operand.type = reader_.number<graph::OperandType>();
      operand.dimensions = reader_.list<uint32_t>();
      operand.isRankZeroTensor = reader_.flag();
      const auto tensor = reader_.number<uint32_t>();
      graph::Operand sized = operand;
      if (!areInputs) {
        sized.dimensions = reader_.list<uint32_t>();
        sized.isRankZeroTensor = sized.dimensions.empty();
        plan_.outputDimensions.push_back(sized.dimensions);
      }
      HEARTH_TRY(checkArgument(sized, tensor, areInputs));
      graph::Subgraph& arguments = plan_.arguments;
      (areInputs ? arguments.inputs : arguments.outputs)
          .push_back(static_cast<uint32_t>(arguments.operands.size()));
      arguments.operands.push_back(std::move(operand));
      (areInputs ? plan_.inputs : plan_.outputs).push_back(tensor);
    }
    return {};
  }

  Status checkArgument(const graph::Operand& operand, TensorId tensor, bool isInput) const {
    if (graph::findOperandType(operand.type) == nullptr)
      return fail(ErrorCode::kBadData, "An argument of a plan is of the unknown {}.",
                  graph::nameOf(operand.type));
    if (isInput && tensor == kNoTensor) return {};
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
    if (tensor >= plan_.tensors.size() || plan_.tensors[tensor].bytes != bytes)
      return fail(ErrorCode::kBadData, "An argument of {} bytes is not the tensor {} of its plan.",
                  bytes, tensor);
    if (isInput && plan_.rootOf(tensor).place == PlannedTensor::Place::kConstants)
      return fail(ErrorCode::kBadData, "An input of a plan is a constant.");
    return {};
  }

  Status readFault() {
    plan_.fault = reader_.number<uint32_t>();
    if (plan_.fault == kNoTensor) return {};
    const bool fits = plan_.fault < plan_.tensors.size() &&
                      plan_.tensors[plan_.fault].bytes == sizeof(uint32_t) &&
                      plan_.rootOf(plan_.fault).place == PlannedTensor::Place::kArena;
    if (!fits)
      return fail(ErrorCode::kBadData, "The tensor {} of a plan is no number for faults.",
                  plan_.fault);
    return {};
  }

  base::ByteReader reader_;
  const GpuFacts& facts_;
  Plan plan_;
  std::vector<SavedPipeline> pipelines_;
};

}  // namespace

void writePipelines(ByteWriter& writer, std::span<const SavedPipeline> pipelines) {
  writer.number(static_cast<uint64_t>(pipelines.size()));
  for (const SavedPipeline& pipeline : pipelines) {
    writer.list(pipeline.key.shader);
    writer.number(pipeline.key.constant);
    writer.list(pipeline.data);
  }
}

std::vector<SavedPipeline> readPipelines(base::ByteReader& reader) {
  std::vector<SavedPipeline> pipelines;
  const size_t count = reader.count(kLeastPipeline);
  for (size_t i = 0; i < count && reader.isGood(); ++i) {
    SavedPipeline pipeline;
    pipeline.key.shader = readName(reader);
    pipeline.key.constant = reader.number<uint32_t>();
    pipeline.data = reader.list<uint8_t>();
    pipelines.push_back(std::move(pipeline));
  }
  return pipelines;
}

std::vector<uint8_t> encodePlan(const Plan& plan, std::span<const SavedPipeline> pipelines,
                                bool isTuned) {
  ByteWriter writer;
  for (const char letter : kMagic) writer.number(letter);
  writer.number(kVersion);
  writer.number(plan.arenaBytes);
  writer.number(plan.constantBytes);
  writer.number(static_cast<uint64_t>(plan.tensors.size()));
  for (const PlannedTensor& tensor : plan.tensors) {
    const PlannedTensor& root = plan.rootOf(tensor.root);
    writer.number(static_cast<uint8_t>(root.place == PlannedTensor::Place::kConstants));
    writer.number(tensor.bytes);
    writer.number(static_cast<uint32_t>(&root - plan.tensors.data()));
    writer.number(root.offset);
  }
  writer.number(static_cast<uint64_t>(plan.dispatches.size()));
  for (const Dispatch& dispatch : plan.dispatches) {
    writer.list(dispatch.shader);
    writer.number(dispatch.constant);
    writer.number(static_cast<uint64_t>(dispatch.bindings.size()));
    for (const Binding& binding : dispatch.bindings) {
      writer.number(binding.tensor);
      writer.number(static_cast<uint8_t>(binding.isWritten));
    }
    writer.list(dispatch.parameters);
    for (const uint32_t groups : dispatch.groups) writer.number(groups);
    writer.number(dispatch.products);
  }
  writeArguments(writer, plan, true);
  writeArguments(writer, plan, false);
  writer.number(plan.fault);
  writer.number(static_cast<uint8_t>(isTuned));
  writePipelines(writer, pipelines);
  return std::move(writer.bytes);
}

Result<CachedPlan> parsePlan(std::span<const uint8_t> bytes, const GpuFacts& facts) {
  return PlanReader(bytes, facts).read();
}

}  // namespace hearth::vulkan
