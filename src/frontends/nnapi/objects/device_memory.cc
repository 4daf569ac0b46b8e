// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/device_memory.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "base/mutex.h"
#include "frontends/nnapi/objects/operand_type.h"

namespace hearth::nnapi {
namespace {

class DeviceMemory final : public Memory {
 public:
  DeviceMemory(std::unique_ptr<hal::Buffer> buffer, memory::PoolRef pool, graph::Operand operand,
               DeviceMemoryRoles roles)
      : buffer_(std::move(buffer)),
        operand_(std::move(operand)),
        roles_(std::move(roles)),
        grows_(buffer_ == nullptr && !graph::isFullySpecified(operand_)),
        pool_(std::move(pool)),
        dimensions_(operand_.dimensions) {}

  bool isWhole() const override { return true; }
  bool hasState() const override { return true; }

  Result<memory::PoolRef> constantPool(const MemoryRange& /*range*/) override {
    return fail(ErrorCode::kBadData, "A device memory holds no constants.");
  }

  Result<graph::Dimensions> checkArgument(const ArgumentRole& role,
                                          const graph::Dimensions& dimensions,
                                          const MemoryRange& range) override {
    if (range.offset != 0 || range.length != 0)
      return fail(ErrorCode::kBadData, "A device memory is used as a whole; the range is {}+{}.",
                  range.offset, range.length);
    if (!roles_.roles.contains(role))
      return fail(ErrorCode::kBadData, "The device memory is not for {} {} of this compilation.",
                  role.isInput ? "input" : "output", role.index);
    return combineDimensions(operand_.dimensions, dimensions);
  }

  Result<hal::Argument> argument(bool isInput, const graph::Dimensions& dimensions,
                                 const MemoryRange& /*range*/) override {
    const std::lock_guard lock(mutex_);
    if (isInput) HEARTH_TRY(checkValueLocked());
    return argumentLocked(isInput, dimensions);
  }

  Result<hal::Argument> laterArgument(const graph::Dimensions& dimensions,
                                      const MemoryRange& /*range*/) override {
    if (!graph::isFullySpecified(operand_))
      return fail(ErrorCode::kUnsupported, "The device memory is {}, so its size may change.",
                  graph::describe(operand_));
    const std::lock_guard lock(mutex_);
    return argumentLocked(true, dimensions);
  }

  Status checkValue() override {
    const std::lock_guard lock(mutex_);
    return checkValueLocked();
  }

  Result<bool> grow(const graph::Dimensions& dimensions) override {
    if (!grows_) return false;
    graph::Operand sized = operand_;
    HEARTH_ASSIGN(sized.dimensions, combineDimensions(operand_.dimensions, dimensions));
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(sized));
    const std::lock_guard lock(mutex_);
    HEARTH_TRY(makeRoom(bytes));
    return true;
  }

  void finishOutput(bool succeeded, const graph::Dimensions& dimensions) override {
    const std::lock_guard lock(mutex_);
    hasValue_ = false;
    dimensions_ = succeeded && !dimensions.empty() ? dimensions : operand_.dimensions;
    hasValue_ = succeeded;
  }

  Result<MemoryContents> contents() override {
    const std::lock_guard lock(mutex_);
    if (!hasValue_)
      return fail(ErrorCode::kBadData, "The device memory that is copied from has no value.");
    MemoryContents contents;
    contents.operand = operand_;
    contents.operand->dimensions = dimensions_;
    HEARTH_ASSIGN(contents.length, graph::byteSize(*contents.operand));
    contents.pool = pool_;
    if (buffer_ != nullptr) {
      HEARTH_ASSIGN(contents.pool, memory::Pool::anonymous(contents.length));
      HEARTH_TRY(buffer_->copyTo(contents.pool));
    }
    return contents;
  }

  Status setContents(const MemoryContents& contents) override {
    const std::lock_guard lock(mutex_);
    Status status = take(contents);
    hasValue_ = status.has_value();
    if (!hasValue_) dimensions_ = operand_.dimensions;
    return status;
  }

  void loseContents() override { finishOutput(false, {}); }

 private:
  // The callers of these two hold mutex_.
  Status checkValueLocked() const {
    if (hasValue_) return {};
    return fail(ErrorCode::kOpFailed, "The device memory of an input has no value.");
  }
  Result<hal::Argument> argumentLocked(bool isInput, const graph::Dimensions& dimensions) {
    hal::Argument argument;
    argument.dimensions = dimensions;
    if (isInput) {
      if (!combineDimensions(dimensions, dimensions_))
        return fail(ErrorCode::kOpFailed, "The device memory holds {}; the input is {}.",
                    graph::describeDimensions(dimensions_), graph::describeDimensions(dimensions));
      argument.dimensions = dimensions_;
    }
    if (buffer_ != nullptr) {
      argument.kind = hal::Argument::Kind::kBuffer;
      argument.token = buffer_->token();
      return argument;
    }
    argument.kind = hal::Argument::Kind::kPool;
    argument.pool = pool_;
    graph::Operand sized = operand_;
    sized.dimensions = argument.dimensions;
    if (!graph::isFullySpecified(sized)) {
      argument.length = pool_->size();
      return argument;
    }
    HEARTH_ASSIGN(argument.length, graph::byteSize(sized));
    if (!isInput) {
      HEARTH_TRY(makeRoom(argument.length));
      argument.pool = pool_;
    }
    if (argument.length > pool_->size())
      return fail(ErrorCode::kOpFailed, "{} does not fit into the device memory of {} bytes.",
                  graph::describe(sized), pool_->size());
    return argument;
  }

  // A larger memory with the same value takes the place of the pool, which whoever reads or writes
  // it keeps. The caller holds mutex_.
  Status makeRoom(uint64_t bytes) {
    if (!grows_ || bytes <= pool_->size()) return {};
    HEARTH_ASSIGN(memory::PoolRef larger, memory::Pool::anonymous(bytes));
    if (hasValue_) std::memcpy(larger->mutableData(), pool_->data(), pool_->size());
    pool_ = std::move(larger);
    return {};
  }

  // The caller holds mutex_.
  Status take(const MemoryContents& contents) {
    graph::Operand taken = operand_;
    if (contents.operand) {
      const graph::Operand& source = *contents.operand;
      if (source.type != operand_.type || source.scale != operand_.scale ||
          source.zeroPoint != operand_.zeroPoint ||
          source.perChannel.scales != operand_.perChannel.scales)
        return fail(ErrorCode::kBadData, "The source is {}, the device memory {}.",
                    graph::describe(source), graph::describe(operand_));
      HEARTH_ASSIGN(taken.dimensions, combineDimensions(source.dimensions, operand_.dimensions));
    }
    // Fails if a dimension is still unknown: plain bytes do not tell dimensions.
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(taken));
    if (bytes != contents.length)
      return fail(ErrorCode::kBadData, "The source has {} bytes; {} needs {}.", contents.length,
                  graph::describe(taken), bytes);
    if (buffer_ != nullptr) {
      HEARTH_TRY(buffer_->copyFrom(contents.pool, taken.dimensions));
    } else {
      HEARTH_TRY(makeRoom(bytes));
      if (bytes > pool_->size())
        return fail(ErrorCode::kBadData, "{} does not fit into the device memory of {} bytes.",
                    graph::describe(taken), pool_->size());
      std::memcpy(pool_->mutableData(), contents.pool->data(), bytes);
    }
    dimensions_ = taken.dimensions;
    return {};
  }

  const std::unique_ptr<hal::Buffer> buffer_;
  const graph::Operand operand_;
  const DeviceMemoryRoles roles_;
  const bool grows_;
  base::Mutex mutex_;     // protects the members below
  memory::PoolRef pool_;  // used when buffer_ is null
  bool hasValue_ = false;
  graph::Dimensions dimensions_;  // of the value, or of the descriptor if there is none
};

}  // namespace

std::shared_ptr<Memory> deviceMemory(std::unique_ptr<hal::Buffer> buffer, graph::Operand operand,
                                     DeviceMemoryRoles roles) {
  return std::make_shared<DeviceMemory>(std::move(buffer), nullptr, std::move(operand),
                                        std::move(roles));
}

std::shared_ptr<Memory> deviceMemory(memory::PoolRef pool, graph::Operand operand,
                                     DeviceMemoryRoles roles) {
  return std::make_shared<DeviceMemory>(nullptr, std::move(pool), std::move(operand),
                                        std::move(roles));
}

}  // namespace hearth::nnapi
