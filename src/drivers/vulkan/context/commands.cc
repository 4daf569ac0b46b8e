// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/commands.h"

namespace hearth::vulkan {
namespace {

constexpr VkPipelineStageFlags kWork =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

}  // namespace

Result<std::unique_ptr<Commands>> Commands::create(std::shared_ptr<Gpu> gpu) {
  std::unique_ptr<Commands> commands(new Commands(std::move(gpu)));
  HEARTH_TRY(commands->allocate());
  return commands;
}

Status Commands::allocate() {
  const VolkDeviceTable& vk = gpu_->functions();
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = gpu_->queueFamily();
  HEARTH_TRY(checkResult(vk.vkCreateCommandPool(gpu_->device(), &pool, nullptr, &pool_),
                         "vkCreateCommandPool"));
  return addPart();
}

Status Commands::addPart() {
  const VolkDeviceTable& vk = gpu_->functions();
  Part part;
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  HEARTH_TRY(checkResult(vk.vkAllocateCommandBuffers(gpu_->device(), &info, &part.buffer),
                         "vkAllocateCommandBuffers"));
  const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  HEARTH_TRY(
      checkResult(vk.vkCreateFence(gpu_->device(), &fence, nullptr, &part.fence), "vkCreateFence"));
  parts_.push_back(part);
  return {};
}

Commands::~Commands() {
  if (gpu_->isLost()) return;
  const VolkDeviceTable& vk = gpu_->functions();
  for (const Part& part : parts_) vk.vkDestroyFence(gpu_->device(), part.fence, nullptr);
  vk.vkDestroyCommandPool(gpu_->device(), pool_, nullptr);
}

Status Commands::begin() {
  HEARTH_TRY(gpu_->checkUsable());
  const VolkDeviceTable& vk = gpu_->functions();
  HEARTH_TRY(checkResult(vk.vkResetCommandPool(gpu_->device(), pool_, 0), "vkResetCommandPool"));
  used_ = 1;
  return beginPart();
}

Status Commands::beginPart() {
  const VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  return checkResult(gpu_->functions().vkBeginCommandBuffer(handle(), &info),
                     "vkBeginCommandBuffer");
}

Status Commands::split() {
  HEARTH_TRY(end());
  if (used_ == parts_.size()) HEARTH_TRY(addPart());
  ++used_;
  return beginPart();
}

Status Commands::end() {
  return checkResult(gpu_->functions().vkEndCommandBuffer(handle()), "vkEndCommandBuffer");
}

void Commands::barrier() {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
                          VK_ACCESS_HOST_READ_BIT;
  gpu_->functions().vkCmdPipelineBarrier(handle(), kWork, kWork | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                         &barrier, 0, nullptr, 0, nullptr);
}

void Commands::acquire(VkBuffer buffer) {
  VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
  barrier.dstAccessMask =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.srcQueueFamilyIndex = gpu_->facts().foreignFamily;
  barrier.dstQueueFamilyIndex = gpu_->queueFamily();
  barrier.buffer = buffer;
  barrier.size = VK_WHOLE_SIZE;
  gpu_->functions().vkCmdPipelineBarrier(handle(), VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, kWork, 0, 0,
                                         nullptr, 1, &barrier, 0, nullptr);
}

void Commands::release(VkBuffer buffer) {
  VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.srcQueueFamilyIndex = gpu_->queueFamily();
  barrier.dstQueueFamilyIndex = gpu_->facts().foreignFamily;
  barrier.buffer = buffer;
  barrier.size = VK_WHOLE_SIZE;
  gpu_->functions().vkCmdPipelineBarrier(handle(), kWork, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0,
                                         0, nullptr, 1, &barrier, 0, nullptr);
}

Status Commands::submit(const Part& part, std::span<const VkSemaphore> waits, VkSemaphore signal) {
  HEARTH_TRY(gpu_->checkUsable());
  HEARTH_TRY(checkResult(gpu_->functions().vkResetFences(gpu_->device(), 1, &part.fence),
                         "vkResetFences"));
  return gpu_->submit(part.buffer, part.fence, waits, signal);
}

Status Commands::run() {
  for (size_t i = 0; i < used_; ++i) {
    Status submitted = submit(parts_[i]);
    if (submitted) continue;
    // What is handed over has to end first.
    if (i != 0) HEARTH_TRY(gpu_->wait(parts_[i - 1].fence));
    return submitted;
  }
  // Those before it have ended, too: the queue runs them in their order.
  return gpu_->wait(parts_[used_ - 1].fence);
}

Result<base::Descriptor> Commands::start(std::span<const base::Descriptor> files) {
  if (!gpu_->facts().hasSyncFiles)
    return fail(ErrorCode::kUnsupported, "The GPU {} takes no sync files.", gpu_->facts().name);
  if (used_ != 1)
    return fail(ErrorCode::kUnsupported, "The GPU {} gets these commands in {} submissions.",
                gpu_->facts().name, used_);
  HEARTH_TRY(gpu_->checkUsable());
  if (syncFiles_ == nullptr) syncFiles_ = std::make_unique<SyncFiles>(gpu_);
  HEARTH_TRY(syncFiles_->take(files));
  HEARTH_ASSIGN(const VkSemaphore signal, syncFiles_->signal());
  HEARTH_TRY(submit(parts_[0], syncFiles_->waits(), signal));
  auto end = syncFiles_->give();
  if (!end) {
    // What is handed over has to end first; the semaphore that it has signalled is of no more use.
    HEARTH_TRY(gpu_->wait(parts_[0].fence));
    syncFiles_.reset();
  }
  return end;
}

Status Commands::finish() {
  return gpu_->wait(parts_[0].fence);
}

}  // namespace hearth::vulkan
