// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/node_selection.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/env.h"
#include "base/log.h"
#include "frontends/delegate/node_reader.h"

namespace hearth::delegate {
namespace {

// A partition below both of these costs more than it saves if the runtime runs the rest.
constexpr size_t kFewNodes = 4;
constexpr uint64_t kFewConstantBytes = 16384;

using OwnedArray = std::unique_ptr<TfLiteIntArray, decltype(&std::free)>;

OwnedArray arrayOf(const std::set<int32_t>& numbers) {
  auto* const array = static_cast<TfLiteIntArray*>(
      std::malloc(sizeof(TfLiteIntArray) + numbers.size() * sizeof(int32_t)));
  if (array != nullptr) {
    array->size = static_cast<int32_t>(numbers.size());
    std::ranges::copy(numbers, array->data);
  }
  return {array, &std::free};
}

// Number of threads for the kernels of an interpreter that asks for `recommended`.
unsigned threadsFor(const DelegateOptions& options, int32_t recommended) {
  if (options.threads != 0) return options.threads;
  const auto set = base::envInteger(base::Env::kThreads);
  if (set && *set != 0) return static_cast<unsigned>(*set);
  return recommended > 0 ? static_cast<unsigned>(recommended) : 0;
}

}  // namespace

NodeSelection::NodeSelection(TfLiteContext* context, std::shared_ptr<const DelegateOptions> options)
    : context_(context), reader_(context), options_(std::move(options)) {
  if (!context->allow_fp32_relax_to_fp16 || options_->allowsFp16) return;
  auto relaxed = std::make_shared<DelegateOptions>(*options_);
  relaxed->allowsFp16 = true;
  options_ = std::move(relaxed);
}

Status NodeSelection::readPlan() {
  HEARTH_ASSIGN(const std::vector<int32_t> plan, reader_.plan());
  plan_.reserve(plan.size());
  for (const int32_t index : plan) {
    HEARTH_ASSIGN(GraphReader::Node node, reader_.node(index));
    plan_.push_back(std::move(node));
  }
  for (const GraphReader::Node& node : plan_)
    if (node.source) sources_.emplace(node.index, &*node.source);
  return {};
}

Status NodeSelection::select() {
  HEARTH_TRY(readPlan());
  if (sources_.empty() || context_->PreviewDelegatePartitioning == nullptr) return {};
  if (sources_.size() == plan_.size()) {
    for (const auto& [index, source] : sources_) selected_.insert(index);
    HEARTH_ASSIGN(const bool isWhole, makeKernels(false));
    if (isWhole) return {};
  }
  kernels_.clear();
  selected_.clear();
  selectOneByOne();
  // When the nodes of a partition are given up, the others are partitioned again.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    HEARTH_ASSIGN(const bool isDone, makeKernels(true));
    if (isDone) return {};
  }
  kernels_.clear();
  selected_.clear();
  return {};
}

bool NodeSelection::isOpen(int32_t tensor) {
  if (reader_.tensor(tensor) == nullptr) return false;
  const std::optional<SourceTensor>& read = reader_.sourceTensor(tensor);
  return read && !read->isOpen.empty();
}

bool NodeSelection::isTaken(const GraphReader::Node& node) {
  const SourceNode* const source = &*node.source;
  auto partition = reader_.partition({&source, 1}, node.inputs, node.outputs);
  if (!partition) return false;
  for (const int32_t input : partition->inputs)
    if (const auto known = knownShapes_.find(input); known != knownShapes_.end())
      partition->tensors.at(input).dimensions = known->second;
  const auto translated = translate(*partition);
  const Status isTaken = translated ? checkDevices(*translated->model, *options_)
                                    : Status(std::unexpected(translated.error()));
  if (!isTaken) {
    base::logDebug("Node {} stays with the runtime: {}", node.index, isTaken.error().toString());
    if (isTaken.error().code() == ErrorCode::kIncomplete)
      unknownShapes_.insert(node.outputs.begin(), node.outputs.end());
    return false;
  }
  const graph::Subgraph& main = translated->model->main();
  for (size_t i = 0; i < partition->outputs.size(); ++i)
    knownShapes_[partition->outputs[i]] = main.operands[main.outputs[i]].dimensions;
  return true;
}

void NodeSelection::selectOneByOne() {
  for (const GraphReader::Node& node : plan_) {
    const bool readsUnknown = std::ranges::any_of(
        node.inputs, [&](int32_t tensor) { return unknownShapes_.contains(tensor); });
    if (!readsUnknown && node.source && isTaken(node)) {
      selected_.insert(node.index);
      continue;
    }
    // A shape that is open in an output, but in no input, depends on values that the node computes.
    const auto open = [this](int32_t tensor) {
      return isOpen(tensor);
    };
    const bool findsShapes = std::ranges::none_of(node.inputs, open);
    for (const int32_t output : node.outputs)
      if (readsUnknown || (findsShapes && isOpen(output))) unknownShapes_.insert(output);
  }
}

Result<std::vector<NodeSelection::Partition>> NodeSelection::preview() {
  const OwnedArray nodes = arrayOf(selected_);
  TfLiteDelegateParams* params = nullptr;
  int32_t count = 0;
  if (nodes == nullptr ||
      context_->PreviewDelegatePartitioning(context_, nodes.get(), &params, &count) != kTfLiteOk)
    return fail(ErrorCode::kOpFailed, "The runtime does not partition its graph.");
  std::vector<Partition> partitions;
  for (int32_t i = 0; i < count; ++i)
    partitions.push_back({listOf(params[i].nodes_to_replace), listOf(params[i].input_tensors),
                          listOf(params[i].output_tensors)});
  return partitions;
}

Result<std::unique_ptr<Kernel>> NodeSelection::makeKernel(const Partition& partition) {
  std::vector<const SourceNode*> nodes;
  for (const int32_t index : partition.nodes) nodes.push_back(sources_.at(index));
  HEARTH_ASSIGN(PartitionSource source,
                reader_.partition(nodes, partition.inputs, partition.outputs));
  HEARTH_TRY(copyConstants(&source));
  Kernel::Settings settings{options_, threadsFor(*options_, context_->recommended_num_threads), {}};
  if (!reader_.files().paths().empty()) settings.file = reader_.files().paths().front();
  return Kernel::create(std::move(source), std::move(settings));
}

// Makes the kernels of the selected nodes. False when that failed for a partition, whose nodes are
// then no longer selected; partitions that are not worth it count as such if `mayLeaveSmall`.
Result<bool> NodeSelection::makeKernels(bool mayLeaveSmall) {
  if (selected_.empty()) return true;
  HEARTH_ASSIGN(const std::vector<Partition> partitions, preview());
  Kernels made;
  bool isWhole = true;
  const auto leave = [&](const Partition& partition) {
    for (const int32_t index : partition.nodes) selected_.erase(index);
    isWhole = false;
  };
  for (const Partition& partition : partitions) {
    if (const auto known = kernels_.find(partition.nodes); known != kernels_.end()) {
      made.insert(kernels_.extract(known));
      continue;
    }
    auto kernel = makeKernel(partition);
    if (!kernel) {
      base::logInfo("A partition of {} nodes stays with the runtime: {}", partition.nodes.size(),
                    kernel.error().toString());
      leave(partition);
    } else if (mayLeaveSmall && (*kernel)->nodeCount() < kFewNodes &&
               (*kernel)->constantBytes() < kFewConstantBytes) {
      leave(partition);
    } else {
      made.emplace(partition.nodes, std::move(*kernel));
    }
  }
  kernels_ = std::move(made);
  return isWhole;
}

}  // namespace hearth::delegate
