// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/execution_context.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/cancellation.h"
#include "base/log.h"
#include "base/thread_local.h"
#include "base/trace.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "hal/progress.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

HEARTH_THREAD_LOCAL constinit uint64_t copied = 0;

// Whether the kReadSlack bytes behind a buffer lie in its last page.
bool tailIsInLastPage(const void* data, uint64_t bytes) {
  static const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto end = reinterpret_cast<uintptr_t>(data) + bytes;
  return bytes != 0 && (end - 1) / page == (end - 1 + kReadSlack) / page;
}

bool isAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 8 == 0;
}

// Whether a run is cancelled by the flag, of which there may be none.
bool isSet(const std::atomic<bool>* cancellation) {
  return cancellation != nullptr && cancellation->load(std::memory_order_relaxed);
}

// Says once in a process that large buffers are copied which need not be.
void warnOfCopies(std::span<const ExecutionContext::Buffer> buffers, const char* kind) {
  constexpr uint64_t kLarge = uint64_t{1} << 20;
  static std::atomic<bool> isSaid = false;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& [data, bytes, hasReadableTail] = buffers[i];
    if (data == nullptr || bytes < kLarge) continue;
    const bool isInPlace = isAligned(data) && (hasReadableTail || tailIsInLastPage(data, bytes));
    if (isInPlace || isSaid.exchange(true)) continue;
    base::logWarn(
        "Runs may copy the {} bytes of {} {}, since {}. hearth_execution_set_input says what "
        "memory "
        "is used in place.",
        bytes, kind, i,
        isAligned(data) ? "they end where a page ends" : "their address is no multiple of 8");
  }
}

bool overlap(const ExecutionContext::Buffer& a, const ExecutionContext::Buffer& b) {
  const auto begin = reinterpret_cast<uintptr_t>(a.data);
  const auto other = reinterpret_cast<uintptr_t>(b.data);
  if (begin == 0 || other == 0 || a.bytes == 0 || b.bytes == 0) return false;
  return begin < other ? other - begin < a.bytes : begin - other < b.bytes;
}

}  // namespace

Result<std::unique_ptr<ExecutionContext>> ExecutionContext::create(
    const Plan& plan, std::shared_ptr<KernelFactory> kernels,
    std::shared_ptr<ActivationMemory> memory) {
  if (memory == nullptr) memory = std::make_shared<ActivationMemory>();
  HEARTH_TRY(memory->reserve(plan.arenaBytes + kReadSlack));
  std::unique_ptr<ExecutionContext> context(
      new ExecutionContext(plan, std::move(kernels), std::move(memory)));
  const size_t nodeCount = plan.nodes.size();
  context->addresses_.resize(plan.values.size());
  size_t inputCount = 0;
  size_t outputCount = 0;
  for (const Value& value : plan.values) {
    if (value.place == Value::Place::kInput)
      inputCount = std::max<size_t>(inputCount, value.index + 1);
    if (value.place == Value::Place::kOutput)
      outputCount = std::max<size_t>(outputCount, value.index + 1);
  }
  context->boundInputs_.resize(inputCount);
  context->boundOutputs_.resize(outputCount);
  context->inputStaging_.resize(inputCount);
  context->outputStaging_.resize(outputCount);
  context->outputWriteSlack_.resize(outputCount, 0);
  context->outputIsRead_.resize(outputCount, false);
  context->touchesClient_.resize(nodeCount, false);
  context->isSetUp_.resize(nodeCount, false);
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const Value& value = plan.values[id];
    const Value& root = plan.values[plan.resolve(id).root];
    if (root.place != Value::Place::kOutput) continue;
    uint64_t& slack = context->outputWriteSlack_[root.index];
    slack = std::max(slack, value.writeSlack);
  }
  for (size_t n = 0; n < nodeCount; ++n) {
    for (const auto* list : {&plan.nodes[n].inputs, &plan.nodes[n].outputs}) {
      for (ValueId id : *list) {
        const Value& root = plan.values[plan.resolve(id).root];
        if (root.place == Value::Place::kInput || root.place == Value::Place::kOutput)
          context->touchesClient_[n] = true;
        if (root.place == Value::Place::kOutput && list == &plan.nodes[n].inputs)
          context->outputIsRead_[root.index] = true;
      }
    }
  }
  context->findInPlacePairs();
  return context;
}

uint64_t ExecutionContext::copiedBytes() {
  return copied;
}

void ExecutionContext::findInPlacePairs() {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> lastRead(boundInputs_.size(), 0);
  std::vector<bool> isRead(boundInputs_.size());
  std::vector<size_t> firstWrite(boundOutputs_.size(), kNever);
  for (size_t n = 0; n < plan_.nodes.size(); ++n) {
    for (const ValueId id : plan_.nodes[n].inputs) {
      const Value& root = plan_.values[plan_.resolve(id).root];
      if (root.place != Value::Place::kInput) continue;
      lastRead[root.index] = n;
      isRead[root.index] = true;
    }
    for (const ValueId id : plan_.nodes[n].outputs) {
      const Value& root = plan_.values[plan_.resolve(id).root];
      if (root.place == Value::Place::kOutput)
        firstWrite[root.index] = std::min(firstWrite[root.index], n);
    }
  }
  mayOverwrite_.assign(boundInputs_.size(), std::vector<bool>(boundOutputs_.size()));
  for (size_t i = 0; i < boundInputs_.size(); ++i) {
    for (size_t o = 0; o < boundOutputs_.size(); ++o) {
      if (!isRead[i] || lastRead[i] < firstWrite[o]) {
        mayOverwrite_[i][o] = true;
        continue;
      }
      if (lastRead[i] != firstWrite[o]) continue;
      // The last reader of the input writes the output: possible if its kernel can run in place.
      const Node& node = plan_.nodes[lastRead[i]];
      const auto isWhole = [&](ValueId id, Value::Place place, size_t index) {
        const auto [rootId, offset] = plan_.resolve(id);
        const Value& root = plan_.values[rootId];
        return offset == 0 && root.place == place && root.index == index;
      };
      size_t reads = 0;
      bool isInPlace = false;
      for (uint32_t position = 0; position < node.inputs.size(); ++position) {
        const Value& root = plan_.values[plan_.resolve(node.inputs[position]).root];
        if (root.place != Value::Place::kInput || root.index != i) continue;
        ++reads;
        isInPlace = std::ranges::find(node.inPlaceInputs, position) != node.inPlaceInputs.end() &&
                    isWhole(node.inputs[position], Value::Place::kInput, i);
      }
      mayOverwrite_[i][o] =
          reads == 1 && isInPlace && isWhole(node.outputs[0], Value::Place::kOutput, o);
    }
  }
}

// Whether a kernel would overwrite an input that a later kernel reads.
bool ExecutionContext::isOverwritten(size_t input, const Buffer& buffer,
                                     std::span<const Buffer> outputs) const {
  for (size_t o = 0; o < boundOutputs_.size(); ++o) {
    if (!overlap(buffer, outputs[o])) continue;
    const bool isSame = buffer.data == outputs[o].data && buffer.bytes <= outputs[o].bytes;
    if (!isSame || !mayOverwrite_[input][o]) return true;
  }
  return false;
}

Result<void*> ExecutionContext::staging(std::vector<Area>* list, size_t index, uint64_t bytes) {
  Area& area = (*list)[index];
  if (area == nullptr) {
    HEARTH_ASSIGN(area, ActivationMemory::Area::make(std::max<uint64_t>(bytes, 1)));
  }
  return area->data();
}

void ExecutionContext::copyInputs(std::span<const Buffer> inputs) {
  for (size_t i = 0; i < boundInputs_.size(); ++i) {
    if (boundInputs_[i] == inputs[i].data) continue;
    std::memcpy(boundInputs_[i], inputs[i].data, inputs[i].bytes);
    copied += inputs[i].bytes;
  }
}

Status ExecutionContext::bind(std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  bool changed = !isBound_;
  isBound_ = false;
  warnOfCopies(inputs, "input");
  warnOfCopies(outputs, "output");
  for (size_t i = 0; i < boundInputs_.size(); ++i) {
    void* address = inputs[i].data;
    if (!isAligned(address) || isOverwritten(i, inputs[i], outputs) ||
        (!inputs[i].hasReadableTail && !tailIsInLastPage(address, inputs[i].bytes))) {
      HEARTH_ASSIGN(address, staging(&inputStaging_, i, inputs[i].bytes + kReadSlack));
    }
    changed |= boundInputs_[i] != address;
    boundInputs_[i] = address;
  }
  for (size_t i = 0; i < boundOutputs_.size(); ++i) {
    void* address = outputs[i].data;
    const bool lacksTail = outputIsRead_[i] && !outputs[i].hasReadableTail &&
                           !tailIsInLastPage(address, outputs[i].bytes);
    if (address == nullptr || outputWriteSlack_[i] != 0 || lacksTail || !isAligned(address)) {
      const uint64_t slack = kReadSlack + outputWriteSlack_[i];
      HEARTH_ASSIGN(address, staging(&outputStaging_, i, outputs[i].bytes + slack));
    }
    changed |= boundOutputs_[i] != address;
    boundOutputs_[i] = address;
  }
  if (changed) {
    resolveAddresses();
    for (size_t n = 0; n < isSetUp_.size(); ++n)
      if (touchesClient_[n]) isSetUp_[n] = false;
    stepsAreSetUp_ = false;
  }
  std::swap(bound_, boundBefore_);
  bound_.inputs.assign(inputs.begin(), inputs.end());
  bound_.outputs.assign(outputs.begin(), outputs.end());
  isBound_ = true;
  return {};
}

void ExecutionContext::resolveAddresses() {
  for (ValueId id = 0; id < plan_.values.size(); ++id) {
    const auto [rootId, offset] = plan_.resolve(id);
    const Value& root = plan_.values[rootId];
    uint8_t* base = nullptr;
    switch (root.place) {
      case Value::Place::kArena:
        base = block_->arena->data() + root.arenaOffset;
        break;
      case Value::Place::kInput:
        base = static_cast<uint8_t*>(boundInputs_[root.index]);
        break;
      case Value::Place::kOutput:
        base = static_cast<uint8_t*>(boundOutputs_[root.index]);
        break;
      case Value::Place::kConstant:
        base = const_cast<uint8_t*>(root.constant);
        break;
    }
    addresses_[id] = base == nullptr ? nullptr : base + offset;
  }
}

// Scratch memory that suffices for a kernel that has been made.
Result<void*> ExecutionContext::workspaceFor(const KernelFactory& maker, size_t node) {
  Area& scratch = block_->scratch;
  const uint64_t room = scratch != nullptr ? scratch->size() - kReadSlack : 0;
  if (maker.workspaceBytes(node) > room) {
    HEARTH_ASSIGN(Area larger, ActivationMemory::Area::make(maker.workspaceBytes() + kReadSlack));
    if (scratch != nullptr) outgrown_.push_back(std::move(scratch));
    scratch = std::move(larger);
  }
  return scratch != nullptr ? scratch->data() : nullptr;
}

void ExecutionContext::forgetSetups() {
  isSetUp_.assign(isSetUp_.size(), false);
  stepsAreSetUp_ = false;
}

bool ExecutionContext::hasMemoryOfLastRun() const {
  const auto& [arena, scratch] = *block_;
  const uint64_t scratchBytes = scratch != nullptr ? scratch->size() : 0;
  const void* const scratchAddress = scratch != nullptr ? scratch->data() : nullptr;
  return arena->data() == arenaAddress_ && scratchAddress == scratchAddress_ &&
         scratchBytes == scratchBytes_;
}

Status ExecutionContext::takeOtherMemory() {
  if (block_ == nullptr) {
    HEARTH_ASSIGN(block_, memory_->take(plan_.arenaBytes + kReadSlack, arenaAddress_));
    if (hasMemoryOfLastRun()) return {};
  }
  forgetSetups();
  const void* const arena = block_->arena->data();
  if (std::exchange(arenaAddress_, arena) != arena && isBound_) resolveAddresses();
  return {};
}

void ExecutionContext::giveMemoryBack() {
  if (!outgrown_.empty()) {
    outgrown_.clear();
    forgetSetups();
  }
  const Area& scratch = block_->scratch;
  scratchAddress_ = scratch != nullptr ? scratch->data() : nullptr;
  scratchBytes_ = scratch != nullptr ? scratch->size() : 0;
  memory_->giveBack(std::move(block_));
}

Status ExecutionContext::setUp(const KernelFactory& maker, size_t node, Kernel* kernel) {
  HEARTH_ASSIGN(void* const workspace, workspaceFor(maker, node));
  return kernel->setup(addresses_, workspace);
}

Status ExecutionContext::runMeasured(size_t node, threads::ThreadPool* pool,
                                     const Measurement& measurement) {
  using Clock = std::chrono::steady_clock;
  const KernelChoice choice = choiceOf(measurement.choices, node);
  const bool isOther = choice.which == KernelChoice::Which::kOther;
  KernelFactory* const maker = isOther ? measurement.others : kernels_.get();
  HEARTH_ASSIGN(Kernel* const kernel, maker->get(node));
  // Other kernels are set up for each run: isSetUp_ tells only of the context's own kernels.
  if (isOther || !isSetUp_[node]) {
    HEARTH_TRY(setUp(*maker, node, kernel));
    if (!isOther) isSetUp_[node] = true;
  }
  const Clock::time_point begin = Clock::now();
  HEARTH_TRY(kernel->run(choice.isSerial ? nullptr : pool));
  measurement.times[node] = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  return {};
}

Status ExecutionContext::run(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                             threads::ThreadPool* pool, const base::Deadline& deadline,
                             const Measurement* measurement) {
  // A pool of one thread has nobody to share a run with.
  if (pool != nullptr && pool->threadCount() == 1) pool = nullptr;
  const threads::ActiveRun active(pool);
  return runActive(inputs, outputs, pool, deadline, measurement);
}

Status ExecutionContext::makeKernelsFor(std::span<const Buffer> inputs,
                                        std::span<const Buffer> outputs) {
  const auto isOverAnInput = [&](const Buffer& output) {
    return std::ranges::any_of(inputs, [&](const Buffer& input) { return overlap(input, output); });
  };
  if (!std::ranges::any_of(outputs, isOverAnInput)) return {};
  kernels_->finish();
  for (size_t n = 0; n < isSetUp_.size(); ++n) HEARTH_TRY(kernels_->get(n));
  return {};
}

// A run with the buffers and the memory of the last one does nothing here that is not needed: the
// smallest models take no longer than this itself.
Status ExecutionContext::runActive(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                                   threads::ThreadPool* pool, const base::Deadline& deadline,
                                   const Measurement* measurement) {
  block_ = memory_->takeRecent(plan_.arenaBytes + kReadSlack, arenaAddress_);
  if (block_ == nullptr || !hasMemoryOfLastRun()) HEARTH_TRY(takeOtherMemory());
  const MemoryOfRun memory(*this);
  if (!kernels_->isComplete()) HEARTH_TRY(makeKernelsFor(inputs, outputs));
  if (!isBoundTo(inputs, outputs)) HEARTH_TRY(bind(inputs, outputs));
  copyInputs(inputs);
  hal::Progress* const progress = hal::progressOfThread();
  if (stepsAreSetUp_ && measurement == nullptr && !base::traceEnabled())
    HEARTH_TRY(runSteps(pool, deadline, progress));
  else
    HEARTH_TRY(runNodes(pool, deadline, progress, measurement));
  for (size_t i = 0; i < boundOutputs_.size(); ++i) {
    if (outputs[i].data == nullptr || boundOutputs_[i] == outputs[i].data) continue;
    std::memcpy(outputs[i].data, boundOutputs_[i], outputs[i].bytes);
    copied += outputs[i].bytes;
  }
  return {};
}

std::unexpected<Error> ExecutionContext::ended(size_t node, const base::Deadline& deadline) const {
  const std::string& name = plan_.nodes[node].name;
  if (deadline.hasPassed())
    return fail(ErrorCode::kMissedDeadlineTransient, "The deadline passes before {}.", name);
  return fail(ErrorCode::kMissedDeadlineTransient, "The run is cancelled before {}.", name);
}

Status ExecutionContext::runSteps(threads::ThreadPool* pool, const base::Deadline& deadline,
                                  hal::Progress* progress) {
  const std::atomic<bool>* const cancellation = base::cancellationOfThread();
  for (size_t n = 0; n < steps_.size(); ++n) {
    if (progress != nullptr) progress->begins(n, steps_.size());
    if (deadline.hasPassed() || isSet(cancellation)) [[unlikely]]
      return ended(n, deadline);
    const Step& step = steps_[n];
    HEARTH_TRY_CONTEXT(step.kernel->run(step.isSerial ? nullptr : pool),
                       "while running operation {}", plan_.nodes[n].operation);
  }
  return {};
}

Status ExecutionContext::runNodes(threads::ThreadPool* pool, const base::Deadline& deadline,
                                  hal::Progress* progress, const Measurement* measurement) {
  const std::atomic<bool>* const cancellation = base::cancellationOfThread();
  for (size_t n = 0; n < isSetUp_.size(); ++n) {
    if (progress != nullptr) progress->begins(n, isSetUp_.size());
    if (deadline.hasPassed() || isSet(cancellation)) return ended(n, deadline);
    if (measurement != nullptr) {
      HEARTH_TRY_CONTEXT(runMeasured(n, pool, *measurement), "while running operation {}",
                         plan_.nodes[n].operation);
      continue;
    }
    HEARTH_ASSIGN(Kernel* const kernel, kernels_->get(n));
    if (!isSetUp_[n]) {
      HEARTH_TRY(setUp(*kernels_, n, kernel));
      isSetUp_[n] = true;
    }
    const bool isSerial = kernels_->choice(n).isSerial;
    base::TraceSpan span("kernel", plan_.nodes[n].name);
    HEARTH_TRY_CONTEXT(kernel->run(isSerial ? nullptr : pool), "while running operation {}",
                       plan_.nodes[n].operation);
  }
  // Kernels that were set up with scratch memory that has been outgrown have to be set up again.
  if (measurement != nullptr || !outgrown_.empty()) return {};
  for (size_t n = steps_.size(); n < isSetUp_.size(); ++n) {
    HEARTH_ASSIGN(Kernel* const kernel, kernels_->get(n));
    steps_.push_back({kernel, kernels_->choice(n).isSerial});
  }
  stepsAreSetUp_ = true;
  return {};
}

Status ExecutionContext::runInside(std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                                   threads::ThreadPool* pool, const base::Deadline& deadline) {
  const hal::ProgressScope silent(nullptr);
  // A second active run would leave it fewer threads of the pool, of two threads one.
  return runActive(inputs, outputs, pool, deadline, nullptr);
}

}  // namespace hearth::cpu
