// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/library_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "drivers/support_library/library_prepared_model.h"
#include "hal/request_check.h"
#include "memory/page_size.h"

namespace hearth::drivers::support_library {
namespace {

// The library's memory of a client's, of exactly these bytes: a copy is of a whole memory.
struct ClientMemory {
  Handle<ANeuralNetworksMemory> handle{nullptr, nullptr};
  memory::PoolRef pool;  // what the handle is of
  uint8_t* client = nullptr;
};

Result<ClientMemory> clientMemory(const SupportLibrary& library, const memory::PoolRef& pool,
                                  uint64_t bytes, bool isInput) {
  hal::Argument whole;
  whole.kind = hal::Argument::Kind::kPool;
  whole.pool = pool;
  whole.length = bytes;
  ClientMemory made;
  HEARTH_ASSIGN(made.client, hal::addressOf(whole, isInput));
  made.pool = pool;
  // Libraries map whole pages.
  if (pool->fd() < 0 || pool->offset() % memory::pageSize() != 0) {
    HEARTH_ASSIGN(made.pool, memory::Pool::anonymous(bytes));
    if (isInput) std::memcpy(made.pool->mutableData(), made.client, bytes);
  }
  const int protection = isInput ? PROT_READ : PROT_READ | PROT_WRITE;
  HEARTH_ASSIGN(made.handle,
                makeObject<ANeuralNetworksMemory>(
                    "ANeuralNetworksMemory_createFromFd",
                    library.functions().ANeuralNetworksMemory_createFromFd,
                    library.functions().ANeuralNetworksMemory_free, static_cast<size_t>(bytes),
                    protection, made.pool->fd(), static_cast<size_t>(made.pool->offset())));
  return made;
}

Status copy(const SupportLibrary& library, const ANeuralNetworksMemory* from,
            const ANeuralNetworksMemory* to) {
  return asStatus(library.functions().ANeuralNetworksMemory_copy(from, to),
                  "ANeuralNetworksMemory_copy");
}

class LibraryBuffer final : public hal::Buffer {
 public:
  LibraryBuffer(std::shared_ptr<LibraryMemories> memories,
                std::shared_ptr<const LibraryMemory> memory)
      : memories_(std::move(memories)), memory_(std::move(memory)) {}
  ~LibraryBuffer() override { memories_->remove(memory_->token); }

  uint32_t token() const override { return memory_->token; }

  Status copyTo(const memory::PoolRef& destination) override {
    const SupportLibrary& library = memories_->library();
    HEARTH_ASSIGN(const ClientMemory to, clientMemory(library, destination, memory_->bytes, false));
    HEARTH_TRY(copy(library, memory_->handle.get(), to.handle.get()));
    if (to.pool != destination) std::memcpy(to.client, to.pool->data(), memory_->bytes);
    return hal::checkMemoriesWhole({&destination, 1});
  }

  Status copyFrom(const memory::PoolRef& source, const graph::Dimensions& dimensions) override {
    if (!dimensions.empty() && dimensions != memory_->dimensions)
      return fail(ErrorCode::kBadData, "The buffer has the dimensions {}, the source {}.",
                  graph::describeDimensions(memory_->dimensions),
                  graph::describeDimensions(dimensions));
    const SupportLibrary& library = memories_->library();
    HEARTH_ASSIGN(const ClientMemory from, clientMemory(library, source, memory_->bytes, true));
    HEARTH_TRY(copy(library, from.handle.get(), memory_->handle.get()));
    return hal::checkMemoriesWhole({&source, 1});
  }

 private:
  const std::shared_ptr<LibraryMemories> memories_;
  const std::shared_ptr<const LibraryMemory> memory_;
};

bool hasMemories(const NnApiSLDriverImplFL5& functions) {
  return functions.ANeuralNetworksMemoryDesc_create != nullptr &&
         functions.ANeuralNetworksMemoryDesc_addInputRole != nullptr &&
         functions.ANeuralNetworksMemoryDesc_addOutputRole != nullptr &&
         functions.ANeuralNetworksMemoryDesc_setDimensions != nullptr &&
         functions.ANeuralNetworksMemoryDesc_finish != nullptr &&
         functions.ANeuralNetworksMemoryDesc_free != nullptr &&
         functions.ANeuralNetworksMemory_createFromDesc != nullptr &&
         functions.ANeuralNetworksMemory_copy != nullptr;
}

// The operand of a role, with the dimensions that the descriptor adds.
Result<graph::Operand> operandOf(const graph::Model& model, const hal::BufferRole& role,
                                 const graph::Dimensions& wanted) {
  const graph::Subgraph& main = model.main();
  const std::vector<uint32_t>& list = role.isInput ? main.inputs : main.outputs;
  const char* const side = role.isInput ? "input" : "output";
  if (role.index >= list.size())
    return fail(ErrorCode::kBadData, "There is no {} {}; the model has {}.", side, role.index,
                list.size());
  graph::Operand operand = main.operands[list[role.index]];
  if (operand.dimensions.empty() && !graph::isScalar(operand.type) && !operand.isRankZeroTensor)
    operand.dimensions = wanted;
  bool fits = wanted.empty() || wanted.size() == operand.dimensions.size();
  for (size_t i = 0; fits && i < wanted.size(); ++i) {
    uint32_t& dimension = operand.dimensions[i];
    fits = dimension == 0 || wanted[i] == 0 || dimension == wanted[i];
    dimension = std::max(dimension, wanted[i]);
  }
  if (!fits)
    return fail(ErrorCode::kBadData, "The {} {}, {}, gets the dimensions {}.", side, role.index,
                graph::describe(main.operands[list[role.index]]),
                graph::describeDimensions(wanted));
  if (!graph::isFullySpecified(operand))
    return fail(ErrorCode::kUnsupported, "The size of the {} {}, {}, is not known.", side,
                role.index, graph::describe(operand));
  return operand;
}

}  // namespace

Result<std::unique_ptr<hal::Buffer>> LibraryMemories::allocate(
    const hal::BufferDescription& description, const std::vector<hal::BufferRole>& roles) {
  const NnApiSLDriverImplFL5& functions = library_->functions();
  if (!hasMemories(functions))
    return fail(ErrorCode::kUnsupported, "The support library has no memory of its own.");
  if (roles.empty()) return fail(ErrorCode::kBadData, "The buffer is to have no role.");
  HEARTH_ASSIGN(auto wanted,
                makeObject<ANeuralNetworksMemoryDesc>("ANeuralNetworksMemoryDesc_create",
                                                      functions.ANeuralNetworksMemoryDesc_create,
                                                      functions.ANeuralNetworksMemoryDesc_free));
  auto made = std::make_shared<LibraryMemory>();
  for (const hal::BufferRole& role : roles) {
    const auto* const model = dynamic_cast<const LibraryPreparedModel*>(role.preparedModel.get());
    if (model == nullptr || &model->model().library() != library_.get())
      return fail(ErrorCode::kUnsupported, "A role of the buffer is of a model elsewhere.");
    HEARTH_ASSIGN(const graph::Operand operand,
                  operandOf(model->model().source(), role, description.dimensions));
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
    if (!made->models.empty() && (bytes != made->bytes || operand.dimensions != made->dimensions))
      return fail(ErrorCode::kBadData, "One role of the buffer has the dimensions {}, another {}.",
                  graph::describeDimensions(made->dimensions),
                  graph::describeDimensions(operand.dimensions));
    made->bytes = bytes;
    made->dimensions = operand.dimensions;
    made->models.push_back(role.preparedModel);
    HEARTH_TRY(asStatus((role.isInput ? functions.ANeuralNetworksMemoryDesc_addInputRole
                                      : functions.ANeuralNetworksMemoryDesc_addOutputRole)(
                            wanted.get(), model->compilation(), role.index, role.frequency),
                        role.isInput ? "ANeuralNetworksMemoryDesc_addInputRole"
                                     : "ANeuralNetworksMemoryDesc_addOutputRole"));
  }
  if (!made->dimensions.empty())
    HEARTH_TRY(asStatus(
        functions.ANeuralNetworksMemoryDesc_setDimensions(
            wanted.get(), static_cast<uint32_t>(made->dimensions.size()), made->dimensions.data()),
        "ANeuralNetworksMemoryDesc_setDimensions"));
  HEARTH_TRY(asStatus(functions.ANeuralNetworksMemoryDesc_finish(wanted.get()),
                      "ANeuralNetworksMemoryDesc_finish"));
  HEARTH_ASSIGN(made->handle, makeObject<ANeuralNetworksMemory>(
                                  "ANeuralNetworksMemory_createFromDesc",
                                  functions.ANeuralNetworksMemory_createFromDesc,
                                  functions.ANeuralNetworksMemory_free, wanted.get()));
  {
    const std::lock_guard lock(mutex_);
    if (lastToken_ == UINT32_MAX)
      return fail(ErrorCode::kResourceExhaustedPersistent,
                  "The device has given all {} tokens of buffers.", lastToken_);
    made->token = ++lastToken_;
    memories_.emplace(made->token, made);
  }
  return std::make_unique<LibraryBuffer>(shared_from_this(), std::move(made));
}

std::shared_ptr<const LibraryMemory> LibraryMemories::find(uint32_t token) {
  const std::lock_guard lock(mutex_);
  const auto it = memories_.find(token);
  return it == memories_.end() ? nullptr : it->second;
}

void LibraryMemories::remove(uint32_t token) {
  std::shared_ptr<const LibraryMemory> last;  // is freed outside the lock
  const std::lock_guard lock(mutex_);
  const auto it = memories_.find(token);
  if (it == memories_.end()) return;
  last = std::move(it->second);
  memories_.erase(it);
}

}  // namespace hearth::drivers::support_library
