// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/library_model.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "memory/page_size.h"

namespace hearth::drivers::support_library {
namespace {

using graph::Lifetime;
using graph::OperandType;

constexpr uint32_t kAbsent = UINT32_MAX;

// Which operands of a subgraph something uses. The others stay out of the library's model.
std::vector<bool> usedOperands(const graph::Subgraph& subgraph) {
  std::vector<bool> isUsed(subgraph.operands.size());
  const auto use = [&](const std::vector<uint32_t>& list) {
    for (const uint32_t index : list) isUsed[index] = true;
  };
  use(subgraph.inputs);
  use(subgraph.outputs);
  for (const graph::Operation& operation : subgraph.operations) {
    use(operation.inputs);
    use(operation.outputs);
  }
  return isUsed;
}

}  // namespace

Result<PoolMemory> memoryOfPool(const SupportLibrary& library, const memory::Pool& pool) {
  if (pool.fd() < 0) return fail(ErrorCode::kBadData, "The pool has no descriptor.");
  const uint64_t shift = pool.offset() % memory::pageSize();
  const int protection = pool.writable() ? PROT_READ | PROT_WRITE : PROT_READ;
  HEARTH_ASSIGN(auto handle,
                makeObject<ANeuralNetworksMemory>(
                    "ANeuralNetworksMemory_createFromFd",
                    library.functions().ANeuralNetworksMemory_createFromFd,
                    library.functions().ANeuralNetworksMemory_free, pool.size() + shift, protection,
                    pool.fd(), pool.offset() - shift));
  return PoolMemory{std::move(handle), shift};
}

// Makes the library's models, those of referred subgraphs first.
class LibraryModel::Builder {
 public:
  Builder(LibraryModel* made, std::vector<std::string>* refusals)
      : made_(*made),
        source_(made->source()),
        functions_(made->library().functions()),
        refusals_(*refusals),
        models_(source_.subgraphs.size()) {}

  // Makes the model of a subgraph and those that it refers to. Reasons of operations go to
  // `refusals` for the main subgraph; of others the first one is the error.
  Result<ANeuralNetworksModel*> addSubgraph(uint32_t index) {
    if (models_[index] != nullptr) return models_[index];
    const graph::Subgraph& subgraph = source_.subgraphs[index];
    const std::vector<bool> isUsed = usedOperands(subgraph);
    for (size_t i = 0; i < subgraph.operands.size(); ++i)
      if (isUsed[i] && subgraph.operands[i].lifetime == Lifetime::kSubgraph)
        HEARTH_TRY(addSubgraph(subgraph.operands[i].subgraphIndex));
    HEARTH_ASSIGN(auto handle,
                  makeObject<ANeuralNetworksModel>("ANeuralNetworksModel_create",
                                                   functions_.ANeuralNetworksModel_create,
                                                   functions_.ANeuralNetworksModel_free));
    ANeuralNetworksModel* const model = handle.get();
    made_.models_.push_back(std::move(handle));
    std::vector<std::string> reasons(subgraph.operations.size());
    HEARTH_TRY(fill(model, subgraph, isUsed, &reasons));
    const auto refused =
        std::ranges::find_if(reasons, [](const auto& each) { return !each.empty(); });
    const bool isRefused = refused != reasons.end();
    std::string first = isRefused ? *refused : "";
    if (index == 0) refusals_ = std::move(reasons);
    if (isRefused) return fail(ErrorCode::kUnsupported, "{}", first);
    HEARTH_TRY(finish(model, subgraph));
    models_[index] = model;
    return model;
  }

 private:
  Status fill(ANeuralNetworksModel* model, const graph::Subgraph& subgraph,
              const std::vector<bool>& isUsed, std::vector<std::string>* reasons) {
    indices_.assign(subgraph.operands.size(), kAbsent);
    std::vector<std::string> problems(subgraph.operands.size());
    uint32_t added = 0;
    for (size_t i = 0; i < subgraph.operands.size(); ++i) {
      if (!isUsed[i]) continue;
      const graph::Operand& operand = subgraph.operands[i];
      if (Status status = addOperand(model, operand, added); !status) {
        problems[i] = graph::describe(operand) + ": " + status.error().toString();
        // An operand that the library refuses has no index in its model.
        if (!isAdded_) continue;
      }
      indices_[i] = added++;
    }
    for (size_t i = 0; i < subgraph.operations.size(); ++i)
      (*reasons)[i] = addOperation(model, subgraph.operations[i], problems);
    return {};
  }

  // Sets isAdded_ once the operand has an index, whether or not its value is taken.
  Status addOperand(ANeuralNetworksModel* model, const graph::Operand& operand, uint32_t index) {
    isAdded_ = false;
    graph::Dimensions dimensions = operand.dimensions;
    if (operand.isRankZeroTensor && !graph::isDriverCode(operand.type)) dimensions = {1};
    ANeuralNetworksOperandType type = made_.typeOf(operand, dimensions);
    // NNAPI wants a scale of quantised operands though they are omitted.
    if (!operand.hasValue() && graph::isQuantized(operand.type) && type.scale == 0.0f &&
        operand.type != OperandType::kTensorQuant8SymmPerChannel)
      type.scale = 1.0f;
    HEARTH_TRY(asStatus(functions_.ANeuralNetworksModel_addOperand(model, &type),
                        "ANeuralNetworksModel_addOperand"));
    isAdded_ = true;
    const auto position = static_cast<int32_t>(index);
    HEARTH_TRY(setParameters(model, operand, position));
    return setValue(model, operand, position);
  }

  Status setParameters(ANeuralNetworksModel* model, const graph::Operand& operand, int32_t index) {
    const graph::PerChannelQuantization& perChannel = operand.perChannel;
    std::vector<uint8_t> data = operand.driverData;
    if (operand.type == OperandType::kTensorInt4 && !perChannel.scales.empty()) {
      // What hearth.tflite defines for this type: the channel dimension, then the scales.
      data.resize(sizeof(uint32_t) + perChannel.scales.size() * sizeof(float));
      std::memcpy(data.data(), &perChannel.channelDim, sizeof(uint32_t));
      std::memcpy(data.data() + sizeof(uint32_t), perChannel.scales.data(),
                  perChannel.scales.size() * sizeof(float));
    }
    if (!data.empty())
      HEARTH_TRY(asStatus(functions_.ANeuralNetworksModel_setOperandExtensionData(
                              model, index, data.data(), data.size()),
                          "ANeuralNetworksModel_setOperandExtensionData"));
    if (operand.type != OperandType::kTensorQuant8SymmPerChannel || perChannel.scales.empty())
      return {};
    const ANeuralNetworksSymmPerChannelQuantParams parameters = {
        perChannel.channelDim, static_cast<uint32_t>(perChannel.scales.size()),
        perChannel.scales.data()};
    return asStatus(functions_.ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
                        model, index, &parameters),
                    "ANeuralNetworksModel_setOperandSymmPerChannelQuantParams");
  }

  Status setValue(ANeuralNetworksModel* model, const graph::Operand& operand, int32_t index) {
    if (operand.lifetime == Lifetime::kNoValue)
      return asStatus(functions_.ANeuralNetworksModel_setOperandValue(model, index, nullptr, 0),
                      "ANeuralNetworksModel_setOperandValue");
    if (operand.lifetime == Lifetime::kSubgraph) {
      return asStatus(functions_.ANeuralNetworksModel_setOperandValueFromModel(
                          model, index, models_[operand.subgraphIndex]),
                      "ANeuralNetworksModel_setOperandValueFromModel");
    }
    if (!operand.isConstant()) return {};
    const graph::DataLocation& place = operand.location;
    if (operand.lifetime == Lifetime::kConstantReference) {
      const PoolMemory& memory = made_.memories_[place.pool];
      if (memory.memory != nullptr)
        return asStatus(
            functions_.ANeuralNetworksModel_setOperandValueFromMemory(
                model, index, memory.memory.get(), memory.shift + place.offset, place.length),
            "ANeuralNetworksModel_setOperandValueFromMemory");
    }
    return asStatus(functions_.ANeuralNetworksModel_setOperandValue(
                        model, index, source_.constantData(operand), place.length),
                    "ANeuralNetworksModel_setOperandValue");
  }

  // Why the library does not take the operation; empty when it does.
  std::string addOperation(ANeuralNetworksModel* model, const graph::Operation& operation,
                           const std::vector<std::string>& problems) {
    std::vector<uint32_t> lists[2];
    for (const auto* from : {&operation.inputs, &operation.outputs})
      for (const uint32_t index : *from) {
        if (!problems[index].empty()) return problems[index];
        lists[from == &operation.inputs ? 0 : 1].push_back(indices_[index]);
      }
    const Status added = asStatus(functions_.ANeuralNetworksModel_addOperation(
                                      model, made_.codeOf(static_cast<int32_t>(operation.type)),
                                      static_cast<uint32_t>(lists[0].size()), lists[0].data(),
                                      static_cast<uint32_t>(lists[1].size()), lists[1].data()),
                                  "ANeuralNetworksModel_addOperation");
    return added ? "" : graph::nameOf(operation.type) + ": " + added.error().toString();
  }

  Status finish(ANeuralNetworksModel* model, const graph::Subgraph& subgraph) {
    std::vector<uint32_t> lists[2];
    for (const auto* from : {&subgraph.inputs, &subgraph.outputs})
      for (const uint32_t index : *from) {
        if (indices_[index] == kAbsent)
          return fail(ErrorCode::kUnsupported,
                      "The support library does not take {}, an input or output.",
                      graph::describe(subgraph.operands[index]));
        lists[from == &subgraph.inputs ? 0 : 1].push_back(indices_[index]);
      }
    // A list without elements still has an address.
    for (std::vector<uint32_t>& list : lists) list.reserve(1);
    HEARTH_TRY(asStatus(functions_.ANeuralNetworksModel_identifyInputsAndOutputs(
                            model, static_cast<uint32_t>(lists[0].size()), lists[0].data(),
                            static_cast<uint32_t>(lists[1].size()), lists[1].data()),
                        "ANeuralNetworksModel_identifyInputsAndOutputs"));
    if (source_.relaxFloat32ToFloat16)
      HEARTH_TRY(
          asStatus(functions_.ANeuralNetworksModel_relaxComputationFloat32toFloat16(model, true),
                   "ANeuralNetworksModel_relaxComputationFloat32toFloat16"));
    return asStatus(functions_.ANeuralNetworksModel_finish(model), "ANeuralNetworksModel_finish");
  }

  LibraryModel& made_;
  const graph::Model& source_;
  const NnApiSLDriverImplFL5& functions_;
  std::vector<std::string>& refusals_;
  std::vector<ANeuralNetworksModel*> models_;  // by subgraph; null until made
  std::vector<uint32_t> indices_;              // of the current subgraph's operands in the library
  bool isAdded_ = false;
};

Result<std::shared_ptr<const LibraryModel>> LibraryModel::make(
    std::shared_ptr<const SupportLibrary> library, std::shared_ptr<const graph::Model> source,
    std::vector<std::string>* refusals) {
  const std::shared_ptr<LibraryModel> made(new LibraryModel(std::move(library), std::move(source)));
  HEARTH_TRY(made->findPrefixes());
  for (const memory::PoolRef& pool : made->source().pools) {
    // Constants that the library cannot map it gets by their address.
    auto memory = memoryOfPool(made->library(), *pool);
    made->memories_.push_back(memory ? std::move(*memory) : PoolMemory{{nullptr, nullptr}, 0});
  }
  HEARTH_TRY(Builder(made.get(), refusals).addSubgraph(0));
  return made;
}

// Models before those that they refer to, which their memories outlive.
LibraryModel::~LibraryModel() {
  while (!models_.empty()) models_.pop_back();
}

Status LibraryModel::findPrefixes() {
  HEARTH_ASSIGN(const auto scratch,
                makeObject<ANeuralNetworksModel>("ANeuralNetworksModel_create",
                                                 library_->functions().ANeuralNetworksModel_create,
                                                 library_->functions().ANeuralNetworksModel_free));
  const auto find = [&](int32_t prefix, const std::string& name) -> Status {
    int32_t code = 0;
    HEARTH_TRY(asStatus(library_->functions().ANeuralNetworksModel_getExtensionOperandType(
                            scratch.get(), name.c_str(), 0, &code),
                        "ANeuralNetworksModel_getExtensionOperandType"));
    if (code >> 16 <= 0)
      return fail(ErrorCode::kOpFailed,
                  "The support library gives the extension \"{}\" the code {}, without a prefix.",
                  name, code);
    prefixes_.push_back({prefix, code >> 16});
    return {};
  };
  for (const graph::Extension& extension : source_->extensions)
    HEARTH_TRY(find(extension.prefix, extension.name));
  // A library without hearth.tflite may refuse the name; no operation then needs it.
  static_cast<void>(find(graph::kTfliteExtensionPrefix, std::string(graph::kTfliteExtensionName)));
  return {};
}

int32_t LibraryModel::codeOf(int32_t code) const {
  for (const Prefix& prefix : prefixes_)
    if (prefix.ours == code >> 16) return (prefix.theirs << 16) | (code & 0xffff);
  return code;
}

ANeuralNetworksOperandType LibraryModel::typeOf(const graph::Operand& operand,
                                                const graph::Dimensions& dimensions) const {
  const bool isPerChannel = operand.type == OperandType::kTensorQuant8SymmPerChannel;
  return {.type = codeOf(static_cast<int32_t>(operand.type)),
          .dimensionCount = static_cast<uint32_t>(dimensions.size()),
          .dimensions = dimensions.empty() ? nullptr : dimensions.data(),
          .scale = isPerChannel ? 0.0f : operand.scale,
          .zeroPoint = isPerChannel ? 0 : operand.zeroPoint};
}

}  // namespace hearth::drivers::support_library
