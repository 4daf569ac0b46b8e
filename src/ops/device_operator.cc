// SPDX-License-Identifier: Apache-2.0
#include "ops/device_operator.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/immortal.h"
#include "base/mutex.h"

namespace hearth::ops {
namespace {

class DeviceOperator final : public CustomOperator {
 public:
  explicit DeviceOperator(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  int32_t version() const override { return 1; }
  bool isOfDevice() const override { return true; }
  Result<std::shared_ptr<const CustomNode>> makeNode(const CustomCall& /*call*/) const override {
    return std::make_shared<const Node>(name_);
  }

 private:
  class Node final : public CustomNode {
   public:
    explicit Node(std::string name) : name_(std::move(name)) {}

    Result<CustomOutputs> describeOutputs(const CustomCall& call) const override {
      CustomOutputs said;
      for (size_t i = 0; i < call.outputs.size(); ++i) {
        const graph::Operand& declared = *call.outputs[i].operand;
        if (!graph::isFullySpecified(declared))
          return fail(ErrorCode::kUnsupported,
                      "The model does not say the shape of output {}, and only a device knows the "
                      "operator.",
                      i);
        said.outputs.push_back(declared);
      }
      return said;
    }
    Status compute(const CustomCall& /*call*/) const override {
      return fail(ErrorCode::kUnsupported, "Only a device computes the custom operator \"{}\".",
                  name_);
    }

   private:
    const std::string name_;
  };

  const std::string name_;
};

struct DeviceOperators {
  base::Mutex mutex;
  std::map<std::string, std::unique_ptr<const CustomOperator>, std::less<>> byName;
};

DeviceOperators& deviceOperators() {
  static constinit base::Immortal<DeviceOperators> all;
  return all.get();
}

}  // namespace

Status registerDeviceOperator(std::string_view name) {
  HEARTH_TRY(checkOperatorName(name));
  DeviceOperators& known = deviceOperators();
  const std::lock_guard lock(known.mutex);
  if (!known.byName.contains(name))
    known.byName.emplace(name, std::make_unique<const DeviceOperator>(std::string(name)));
  return {};
}

const CustomOperator* findDeviceOperator(std::string_view name) {
  DeviceOperators& known = deviceOperators();
  const std::lock_guard lock(known.mutex);
  const auto found = known.byName.find(name);
  return found == known.byName.end() ? nullptr : found->second.get();
}

}  // namespace hearth::ops
