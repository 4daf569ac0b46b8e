// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/memory_desc.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "frontends/nnapi/objects/device_memory.h"
#include "frontends/nnapi/objects/operand_type.h"

namespace hearth::nnapi {
namespace {

bool isSameKind(const graph::Operand& a, const graph::Operand& b) {
  return a.type == b.type && a.scale == b.scale && a.zeroPoint == b.zeroPoint &&
         a.perChannel.channelDim == b.perChannel.channelDim &&
         a.perChannel.scales == b.perChannel.scales;
}

}  // namespace

Status MemoryDesc::requireOpen() const {
  if (!isFinished_) return {};
  return fail(ErrorCode::kBadState, "The memory descriptor is finished already.");
}

Status MemoryDesc::addRole(const Compilation& compilation, bool isInput, uint32_t index,
                           float frequency) {
  HEARTH_TRY(requireOpen());
  auto compiled = compilation.compiled();
  if (!compiled) return fail(ErrorCode::kBadData, "{}", compiled.error().message());
  const size_t count = isInput ? (*compiled)->inputCount() : (*compiled)->outputCount();
  const char* const side = isInput ? "input" : "output";
  if (index >= count)
    return fail(ErrorCode::kBadData, "There is no {} {}; the model has {}.", side, index, count);
  if (!(frequency > 0.0f && frequency <= 1.0f))
    return fail(ErrorCode::kBadData, "The frequency {} is not above 0 and at most 1.", frequency);
  const ArgumentRole role{compiled->get(), isInput, index};
  if (roles_.contains(role))
    return fail(ErrorCode::kBadData, "The role of {} {} is there already.", side, index);
  const graph::Operand& operand = isInput ? (*compiled)->input(index) : (*compiled)->output(index);
  if (!roles_.empty() && !isSameKind(operand, operand_))
    return fail(ErrorCode::kBadData, "The {} {} is {}, another role's is {}.", side, index,
                graph::describe(operand), graph::describe(operand_));
  if (graph::isScalar(operand.type) && !operand_.dimensions.empty())
    return fail(ErrorCode::kBadData, "The {} {} is a scalar, the descriptor has dimensions {}.",
                side, index, graph::describeDimensions(operand_.dimensions));
  HEARTH_ASSIGN(graph::Dimensions dimensions,
                combineDimensions(operand_.dimensions, operand.dimensions));
  operand_ = operand;
  operand_.dimensions = std::move(dimensions);
  roles_.emplace(role, frequency);
  compiled_.insert(std::move(*compiled));
  return {};
}

Status MemoryDesc::setDimensions(std::span<const uint32_t> dimensions) {
  HEARTH_TRY(requireOpen());
  if (!roles_.empty() && graph::isScalar(operand_.type) && !dimensions.empty())
    return fail(ErrorCode::kBadData, "The role of a scalar gets {} dimensions.", dimensions.size());
  HEARTH_ASSIGN(operand_.dimensions,
                combineDimensions(operand_.dimensions, {dimensions.begin(), dimensions.end()}));
  return {};
}

Status MemoryDesc::finish() {
  HEARTH_TRY(requireOpen());
  if (roles_.empty()) return fail(ErrorCode::kBadData, "The memory descriptor has no role.");
  isFinished_ = true;
  return {};
}

Result<std::unique_ptr<hal::Buffer>> MemoryDesc::allocate(
    const std::shared_ptr<hal::Device>& device, const std::vector<hal::BufferRole>& roles) const {
  HEARTH_ASSIGN(std::unique_ptr<hal::Buffer> buffer,
                device->allocate({operand_.dimensions}, roles));
  if (buffer == nullptr || buffer->token() == 0)
    return fail(ErrorCode::kOpFailed, "The device {} allocates no buffer.", device->name());
  return buffer;
}

Result<std::shared_ptr<Memory>> MemoryDesc::createMemory() const {
  if (!isFinished_) return fail(ErrorCode::kBadState, "The memory descriptor is not finished.");
  std::vector<hal::BufferRole> driverRoles;
  std::shared_ptr<hal::Device> device;
  bool isOnOneDevice = true;
  bool hasExplicitDevices = false;
  for (const auto& [role, frequency] : roles_) {
    hasExplicitDevices |= role.compiled->hasExplicitDevices();
    const runtime::PartitionedModel& parts = role.compiled->parts();
    for (const runtime::ArgumentUse& use :
         (role.isInput ? parts.inputUses : parts.outputUses)[role.index]) {
      isOnOneDevice &= use.device != nullptr && (device == nullptr || device == use.device);
      device = use.device;
      driverRoles.push_back({use.prepared, role.isInput, use.index, frequency});
    }
  }
  std::set<ArgumentRole> roles;
  for (const auto& [role, frequency] : roles_) roles.insert(role);
  DeviceMemoryRoles kept{std::move(roles), compiled_};
  bool isInCpuMemory = false;
  if (isOnOneDevice && device != nullptr) {
    auto buffer = allocate(device, driverRoles);
    if (buffer) return deviceMemory(std::move(*buffer), operand_, std::move(kept));
    base::logDebug("Device memory comes from the runtime. {}", buffer.error().toString());
    // A device of the CPU computes in any memory.
    isInCpuMemory =
        device->type() == hal::DeviceType::kCpu && buffer.error().code() == ErrorCode::kUnsupported;
  }
  const bool isSizeKnown = graph::isFullySpecified(operand_);
  if (!isSizeKnown && !isInCpuMemory)
    return fail(ErrorCode::kOpFailed, "No device allocates {}, whose size is unknown.",
                graph::describe(operand_));
  if (hasExplicitDevices && !isInCpuMemory)
    return fail(ErrorCode::kOpFailed,
                "The device allocates no memory for {}, and a compilation for listed devices takes "
                "no other.",
                graph::describe(operand_));
  uint64_t bytes = 0;
  if (isSizeKnown) {
    HEARTH_ASSIGN(bytes, graph::byteSize(operand_));
  }
  HEARTH_ASSIGN(memory::PoolRef pool, memory::Pool::anonymous(std::max<uint64_t>(bytes, 1)));
  return deviceMemory(std::move(pool), operand_, std::move(kept));
}

}  // namespace hearth::nnapi
