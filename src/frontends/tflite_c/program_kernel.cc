// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_kernel.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/immortal.h"
#include "base/mutex.h"
#include "frontends/tflite/reader/file_operators.h"
#include "frontends/tflite_c/program_graph.h"
#include "ops/custom_operator.h"

namespace hearth::tflite_c {
namespace {

struct KernelTable {
  base::Mutex mutex;
  // Ids are counted, so that a program that does the same has the same models.
  uint64_t next = 1;
  std::map<uint64_t, std::pair<std::weak_ptr<ProgramGraph>, size_t>> kernels;
  bool isProvided = false;
};

KernelTable& kernelTable() {
  static constinit base::Immortal<KernelTable> table;
  return table.get();
}

class KernelNode final : public ops::CustomNode {
 public:
  KernelNode(std::shared_ptr<ProgramGraph> graph, size_t node)
      : graph_(std::move(graph)), node_(node) {}
  Result<ops::CustomOutputs> describeOutputs(const ops::CustomCall& call) const override {
    return graph_->describe(node_, call);
  }
  Status compute(const ops::CustomCall& call) const override {
    return graph_->compute(node_, call);
  }

 private:
  const std::shared_ptr<ProgramGraph> graph_;
  const size_t node_;
};

class KernelOperator final : public ops::CustomOperator {
 public:
  std::string_view name() const override { return name_; }
  int32_t version() const override { return 1; }
  bool takesStrings() const override { return true; }
  Result<std::shared_ptr<const ops::CustomNode>> makeNode(
      const ops::CustomCall& call) const override {
    uint64_t id = 0;
    if (call.options.size() == sizeof(id)) std::memcpy(&id, call.options.data(), sizeof(id));
    KernelTable& table = kernelTable();
    std::pair<std::shared_ptr<ProgramGraph>, size_t> found;
    {
      const std::lock_guard lock(table.mutex);
      const auto entry = table.kernels.find(id);
      if (entry != table.kernels.end()) found = {entry->second.first.lock(), entry->second.second};
    }
    if (found.first == nullptr)
      return fail(ErrorCode::kBadState, "The interpreter with this delegate's kernel is gone.");
    return std::make_shared<const KernelNode>(std::move(found.first), found.second);
  }

 private:
  const std::string name_ = kernelOperatorName();
};

}  // namespace

std::string kernelOperatorName() {
  return std::string(1, tflite::kReservedPrefix).append("kernel of the program");
}

std::vector<uint8_t> kernelOptions(uint64_t id) {
  std::vector<uint8_t> options(sizeof(id));
  std::memcpy(options.data(), &id, sizeof(id));
  return options;
}

uint64_t registerKernel(std::weak_ptr<ProgramGraph> graph, size_t node) {
  KernelTable& table = kernelTable();
  const std::lock_guard lock(table.mutex);
  const uint64_t id = table.next++;
  table.kernels.emplace(id, std::pair(std::move(graph), node));
  return id;
}

void forgetKernel(uint64_t id) {
  KernelTable& table = kernelTable();
  const std::lock_guard lock(table.mutex);
  table.kernels.erase(id);
}

Status provideKernelOperator() {
  KernelTable& table = kernelTable();
  const std::lock_guard lock(table.mutex);
  if (table.isProvided) return {};
  HEARTH_TRY(ops::registerCustomOperator(std::make_unique<KernelOperator>()));
  table.isProvided = true;
  return {};
}

}  // namespace hearth::tflite_c
