// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/device_tensors.h"

#include <algorithm>
#include <span>

#include "drivers/vulkan/context/transfer.h"
#include "hal/request_check.h"

namespace hearth::vulkan {
namespace {

// Shaders and the clearing of memory work on words.
constexpr uint64_t kWord = 4;

class VulkanBuffer final : public hal::Buffer {
 public:
  VulkanBuffer(std::shared_ptr<DeviceTensors> tensors, std::shared_ptr<DeviceTensor> tensor)
      : tensors_(std::move(tensors)), tensor_(std::move(tensor)) {}
  ~VulkanBuffer() override { tensors_->remove(tensor_->token()); }

  uint32_t token() const override { return tensor_->token(); }

  Status copyTo(const memory::PoolRef& destination) override {
    HEARTH_ASSIGN(uint8_t* const to, placeIn(destination, false));
    HEARTH_TRY(tensor_->read(to));
    return hal::checkMemoriesWhole({&destination, 1});
  }

  Status copyFrom(const memory::PoolRef& source, const graph::Dimensions& dimensions) override {
    if (!mayBeSame(dimensions, tensor_->dimensions()))
      return fail(ErrorCode::kBadData, "The buffer has the dimensions {}, the source {}.",
                  graph::describeDimensions(tensor_->dimensions()),
                  graph::describeDimensions(dimensions));
    HEARTH_ASSIGN(const uint8_t* const from, placeIn(source, true));
    HEARTH_TRY(tensor_->write(from));
    return hal::checkMemoriesWhole({&source, 1});
  }

 private:
  Result<uint8_t*> placeIn(const memory::PoolRef& pool, bool isInput) const {
    hal::Argument whole;
    whole.kind = hal::Argument::Kind::kPool;
    whole.pool = pool;
    whole.length = tensor_->bytes();
    return hal::addressOf(whole, isInput);
  }

  const std::shared_ptr<DeviceTensors> tensors_;
  const std::shared_ptr<DeviceTensor> tensor_;
};

}  // namespace

bool mayBeSame(const graph::Dimensions& a, const graph::Dimensions& b) {
  if (a.empty() || b.empty()) return true;
  return std::ranges::equal(
      a, b, [](uint32_t left, uint32_t right) { return left == 0 || right == 0 || left == right; });
}

Result<std::shared_ptr<DeviceTensor>> DeviceTensor::create(std::shared_ptr<Gpu> gpu, uint64_t bytes,
                                                           uint32_t token,
                                                           graph::Dimensions dimensions) {
  std::shared_ptr<DeviceTensor> tensor(
      new DeviceTensor(std::move(gpu), bytes, token, std::move(dimensions)));
  HEARTH_ASSIGN(tensor->buffer_, Buffer::create(tensor->gpu_, (bytes + kWord - 1) / kWord * kWord,
                                                Buffer::Kind::kDevice));
  // Memory of the GPU may hold what others have left there.
  HEARTH_TRY(clear(tensor->gpu_, *tensor->buffer_));
  return tensor;
}

Status DeviceTensor::write(const uint8_t* from) {
  const std::span<const uint8_t> bytes(from, bytes_);
  return upload(gpu_, {&bytes, 1}, *buffer_);
}

Status DeviceTensor::read(uint8_t* to) {
  return download(gpu_, *buffer_, {to, bytes_});
}

Result<std::unique_ptr<hal::Buffer>> DeviceTensors::allocate(std::shared_ptr<Gpu> gpu,
                                                             uint64_t bytes,
                                                             graph::Dimensions dimensions) {
  uint32_t token = 0;
  {
    const std::lock_guard lock(mutex_);
    if (lastToken_ == UINT32_MAX)
      return fail(ErrorCode::kResourceExhaustedPersistent,
                  "The GPU driver has given all {} tokens of buffers.", lastToken_);
    token = ++lastToken_;
  }
  HEARTH_ASSIGN(std::shared_ptr<DeviceTensor> tensor,
                DeviceTensor::create(std::move(gpu), bytes, token, std::move(dimensions)));
  {
    const std::lock_guard lock(mutex_);
    tensors_.emplace(token, tensor);
  }
  return std::make_unique<VulkanBuffer>(shared_from_this(), std::move(tensor));
}

std::shared_ptr<DeviceTensor> DeviceTensors::find(uint32_t token) {
  const std::lock_guard lock(mutex_);
  const auto it = tensors_.find(token);
  return it == tensors_.end() ? nullptr : it->second;
}

void DeviceTensors::remove(uint32_t token) {
  const std::lock_guard lock(mutex_);
  tensors_.erase(token);
}

}  // namespace hearth::vulkan
