// SPDX-License-Identifier: Apache-2.0
#include "ipc/hosted_execution.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "hal/request_check.h"
#include "ipc/output_bytes.h"
#include "ipc/patience.h"

namespace hearth::ipc {
namespace {

constexpr uint64_t kAlignment = 64;
// Operands of NNAPI have less than 4 GiB.
constexpr uint64_t kMostArenaBytes = uint64_t{1} << 40;

// Nobody may shrink memory that the host is to use in place. The runtime's own is known to keep its
// size; that of clients is left as it is, and the host guards itself.
void seal(const memory::Pool& pool) {
  if (pool.kind() == memory::PoolKind::kAshmem)
    static_cast<void>(::fcntl(pool.fd(), F_ADD_SEALS, F_SEAL_SHRINK));
}

bool isCopied(const hal::Argument& argument) {
  if (argument.kind == hal::Argument::Kind::kPointer) return argument.pointer != nullptr;
  return argument.kind == hal::Argument::Kind::kPool && argument.pool != nullptr &&
         argument.pool->fd() < 0;
}

}  // namespace

HostedExecution::HostedExecution(std::shared_ptr<HostedModel> model, hal::Request request)
    : model_(std::move(model)), request_(std::move(request)) {}

HostedExecution::~HostedExecution() {
  if (object_ != 0) place_.session->release(schema::Release::Kind::EXECUTION, object_);
}

Result<std::unique_ptr<hal::Execution>> HostedExecution::create(std::shared_ptr<HostedModel> model,
                                                                hal::Request request) {
  std::unique_ptr<HostedExecution> execution(
      new HostedExecution(std::move(model), std::move(request)));
  HEARTH_TRY(execution->layOut());
  HEARTH_TRY(execution->bind());
  return execution;
}

Status HostedExecution::layOut() {
  uint64_t size = 0;
  HEARTH_TRY(layOut(request_.inputs, true, &inputs_, &size));
  HEARTH_TRY(layOut(request_.outputs, false, &outputs_, &size));
  if (inputs_.empty() && outputs_.empty()) return {};
  arenaBytes_ = std::max<uint64_t>(size, kAlignment);
  return makeArena();
}

Status HostedExecution::makeArena() {
  HEARTH_ASSIGN(arena_, memory::Pool::anonymous(arenaBytes_));
  if (::fcntl(arena_->fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return std::unexpected(base::errnoError(errno, "Sealing shared memory"));
  return {};
}

Status HostedExecution::layOut(const std::vector<hal::Argument>& arguments, bool isInput,
                               std::vector<Copied>* copied, uint64_t* size) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const hal::Argument& argument = arguments[i];
    if (!isCopied(argument)) continue;
    Copied copy{i, static_cast<uint8_t*>(argument.pointer), argument.length, *size};
    if (argument.kind == hal::Argument::Kind::kPool) {
      HEARTH_TRY_CONTEXT(hal::addressOf(argument, isInput), "while checking {} {} of the request",
                         isInput ? "input" : "output", i);
      copy.bytes = const_cast<uint8_t*>(argument.pool->data()) + argument.offset;
    }
    if (argument.length > kMostArenaBytes - *size)
      return fail(ErrorCode::kBadData, "The arguments of a request have more than {} bytes.",
                  kMostArenaBytes);
    *size += (argument.length + kAlignment - 1) / kAlignment * kAlignment;
    if (*size > kMostArenaBytes)
      return fail(ErrorCode::kBadData, "The arguments of a request have more than {} bytes.",
                  kMostArenaBytes);
    copied->push_back(copy);
  }
  return {};
}

void HostedExecution::writeArguments(const std::vector<hal::Argument>& arguments,
                                     const std::vector<Copied>& copied,
                                     capnp::List<schema::Argument>::Builder to,
                                     std::vector<memory::PoolRef>* memories) const {
  const auto indexOf = [&](const memory::PoolRef& pool) {
    const auto found = std::ranges::find(*memories, pool);
    const auto index = static_cast<uint32_t>(found - memories->begin());
    if (found == memories->end()) memories->push_back(pool);
    return index;
  };
  auto copy = copied.begin();
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    const hal::Argument& argument = arguments[i];
    auto builder = to[i];
    builder.setLength(argument.length);
    writeDimensions(argument.dimensions, builder);
    if (copy != copied.end() && copy->index == i) {
      builder.setKind(schema::Argument::Kind::MEMORY);
      builder.setMemory(indexOf(arena_));
      builder.setOffset(copy->offset);
      ++copy;
    } else if (argument.kind == hal::Argument::Kind::kNoValue) {
      builder.setKind(schema::Argument::Kind::NO_VALUE);
    } else if (argument.kind == hal::Argument::Kind::kBuffer) {
      builder.setKind(schema::Argument::Kind::BUFFER);
      builder.setBuffer(model_->link()->findBuffer(argument.token, place_.session));
    } else if (argument.kind == hal::Argument::Kind::kPool && argument.pool != nullptr) {
      seal(*argument.pool);
      builder.setKind(schema::Argument::Kind::MEMORY);
      builder.setMemory(indexOf(argument.pool));
      builder.setOffset(argument.offset);
    } else {
      builder.setKind(schema::Argument::Kind::NOTHING);
    }
  }
}

Status HostedExecution::bind() {
  // Without a lock. The model goes to another session when this one is dead, which it stays.
  if (object_ != 0 && !place_.session->isDead()) return {};
  for (int attempt = 0;; ++attempt) {
    HEARTH_ASSIGN(const HostedModel::Place place, model_->place());
    if (object_ != 0 && place.session == place_.session) return {};
    if (arena_ == nullptr && arenaBytes_ != 0) HEARTH_TRY(makeArena());
    mailbox_.reset();
    toldShapes_.clear();
    hasComputed_ = false;
    wantsMailbox_ = true;
    place_ = place;
    object_ = 0;
    Outgoing outgoing;
    auto request = outgoing.request.initCreateExecution();
    request.setModel(place.object);
    std::vector<memory::PoolRef> memories;
    writeArguments(request_.inputs, inputs_,
                   request.initInputs(static_cast<uint32_t>(request_.inputs.size())), &memories);
    writeArguments(request_.outputs, outputs_,
                   request.initOutputs(static_cast<uint32_t>(request_.outputs.size())), &memories);
    auto list = request.initMemories(static_cast<uint32_t>(memories.size()));
    for (uint32_t i = 0; i < memories.size(); ++i)
      writeMemory(memories[i], list[i], &outgoing.attachments);
    request.setLoopTimeout(request_.loopTimeout);
    const auto reply = place.session->call(outgoing);
    if (!reply && place.session->isDead() && attempt == 0) continue;
    if (!reply) return std::unexpected(reply.error());
    HEARTH_ASSIGN(object_,
                  readReply(*reply, schema::Reply::OBJECT,
                            [](auto from) -> Result<uint64_t> { return from.getObject(); }));
    return {};
  }
}

std::optional<uint64_t> HostedExecution::bytesOf(size_t output,
                                                 const hal::ExecutionResult& result) const {
  const graph::Model* const model = model_->model();
  if (model == nullptr || output >= model->main().outputs.size() ||
      output >= result.outputShapes.size())
    return std::nullopt;
  return outputBytes(model->main().operands[model->main().outputs[output]],
                     result.outputShapes[output].dimensions);
}

void HostedExecution::copyIn() const {
  for (const Copied& input : inputs_)
    if (input.length != 0)
      std::memcpy(arena_->mutableData() + input.offset, input.bytes, input.length);
  // Where it is not known how many bytes a computation writes, the others stay as they were.
  if (model_->model() != nullptr) return;
  for (const Copied& output : outputs_)
    if (output.length != 0)
      std::memcpy(arena_->mutableData() + output.offset, output.bytes, output.length);
}

Result<uint64_t> HostedExecution::copyOut(const hal::ExecutionResult& result) const {
  uint64_t copied = 0;
  for (const Copied& output : outputs_) {
    uint64_t length = output.length;
    if (model_->model() != nullptr) {
      const std::optional<uint64_t> bytes = bytesOf(output.index, result);
      if (!bytes)
        return fail(ErrorCode::kOpFailed,
                    "The host of a driver does not say how large output {} is.", output.index);
      length = std::min(length, *bytes);
    }
    if (length != 0) std::memcpy(output.bytes, arena_->data() + output.offset, length);
    copied += length;
  }
  return copied;
}

Patience HostedExecution::patience(const base::Deadline& deadline) const {
  const Session& session = *place_.session;
  return session.device().isShared || session.isHostOwn()
             ? session.patience(deadline, model_->longestStep())
             : Patience::endless();
}

Error HostedExecution::abandon(bool hasDeadline) {
  mailbox_.reset();
  const std::string& name = place_.session->device().name;
  if (!hasDeadline) {
    place_.session->giveUp();
    object_ = 0;
    arena_.reset();
    return Error(ErrorCode::kDeadObject,
                 base::formatText("The host of the device {} hangs: it has not answered its pulse, "
                                  "or has begun no step, for long.",
                                  name));
  }
  if (place_.session->isHostOwn()) {
    place_.session->endHost();
    object_ = 0;
    return Error(ErrorCode::kMissedDeadlineTransient,
                 base::formatText("The host of the device {} had not answered long after the "
                                  "deadline and was ended: its driver hung, or computed for very "
                                  "long.",
                                  name));
  }
  place_.session->release(schema::Release::Kind::EXECUTION, object_);
  object_ = 0;
  arena_.reset();
  return Error(ErrorCode::kMissedDeadlineTransient,
               base::formatText("The host of the device {} has not answered long after the "
                                "deadline: its driver hangs, or computes for very long.",
                                name));
}

void HostedExecution::openMailbox() {
  wantsMailbox_ = false;
  auto opened = ExecutionMailbox::open(place_.session, object_);
  if (opened)
    mailbox_ = std::move(*opened);
  else
    base::logDebug("An execution has no mailbox. {}", opened.error().toString());
}

Result<hal::ExecutionResult> HostedExecution::computeByMessage(const base::Deadline& deadline,
                                                               bool* isBegun) {
  Outgoing outgoing;
  auto computation = outgoing.request.initCompute();
  computation.setExecution(object_);
  computation.setDeadline(encodeDeadline(deadline));
  const auto reply = place_.session->call(outgoing, patience(deadline));
  *isBegun = outgoing.isSent;
  if (!reply) return std::unexpected(reply.error());
  HEARTH_ASSIGN(
      hal::ExecutionResult result,
      readReply(*reply, schema::Reply::RESULT, [](auto from) -> Result<hal::ExecutionResult> {
        return readResult(from.getResult());
      }));
  if (result.status) toldShapes_ = result.outputShapes;
  hasComputed_ = true;
  return result;
}

Result<hal::ExecutionResult> HostedExecution::computeOnce(const base::Deadline& deadline,
                                                          bool* isBegun) {
  HEARTH_TRY(bind());
  copyIn();
  if (hasComputed_ && wantsMailbox_) openMailbox();
  auto result = mailbox_ == nullptr
                    ? computeByMessage(deadline, isBegun)
                    : mailbox_->compute(deadline, &toldShapes_, isBegun, patience(deadline));
  if (!result && result.error().code() == ErrorCode::kMissedDeadlineTransient)
    return std::unexpected(abandon(!deadline.isNever()));
  if (mailbox_ == nullptr) return result;
  if (!result && result.error().code() == ErrorCode::kDeadObject) {
    // A host that closes a mailbox is not to be trusted with another one.
    mailbox_.reset();
    if (!place_.session->isHostThere()) place_.session->noteDeath();
  }
  return result;
}

hal::ExecutionResult HostedExecution::compute(const base::Deadline& deadline) {
  bool isBegun = false;
  auto computed = computeOnce(deadline, &isBegun);
  // A host that had ended before has begun nothing.
  if (!computed && computed.error().code() == ErrorCode::kDeadObject && !isBegun)
    computed = computeOnce(deadline, &isBegun);
  hal::ExecutionResult result;
  if (!computed) {
    result.status = std::unexpected(std::move(computed.error()));
    return result;
  }
  result = std::move(*computed);
  if (!result.status) return result;
  for (const Copied& input : inputs_) result.copiedBytes += input.length;
  if (const auto copied = copyOut(result))
    result.copiedBytes += *copied;
  else
    result.status = std::unexpected(copied.error());
  return result;
}

Result<base::Descriptor> HostedExecution::startFenced(std::vector<base::Descriptor> fences,
                                                      const base::Deadline& deadline) {
  if (!inputs_.empty() || !outputs_.empty())
    return fail(ErrorCode::kUnsupported, "The host does not see all arguments.");
  if (fences.size() > kMaxDescriptors)
    return fail(ErrorCode::kUnsupported, "The computation waits for {} fences; a message takes {}.",
                fences.size(), kMaxDescriptors);
  if (fence_.valid())
    return fail(ErrorCode::kBadState, "A fenced execution has been started and not finished.");
  HEARTH_TRY(bind());
  Outgoing outgoing;
  auto computation = outgoing.request.initStartFenced();
  computation.setExecution(object_);
  computation.setDeadline(encodeDeadline(deadline));
  auto list = computation.initFences(static_cast<uint32_t>(fences.size()));
  for (uint32_t i = 0; i < fences.size(); ++i)
    list.set(i, outgoing.attachments.add(fences[i].get()));
  HEARTH_ASSIGN(Frame reply, place_.session->call(outgoing));
  HEARTH_ASSIGN(const uint32_t index,
                readReply(reply, schema::Reply::FENCE,
                          [](auto from) -> Result<uint32_t> { return from.getFence(); }));
  HEARTH_ASSIGN(base::Descriptor fence, duplicateDescriptor(index, reply.descriptors()));
  fence_ = std::move(reply.descriptors()[index]);
  return fence;
}

hal::ExecutionResult HostedExecution::finishFenced() {
  hal::ExecutionResult result;
  if (!fence_.valid()) {
    result.status = fail(ErrorCode::kBadState, "No fenced execution has been started.");
    return result;
  }
  const base::Descriptor fence = std::move(fence_);
  pollfd ended{fence.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  Outgoing outgoing;
  outgoing.request.setFinishFenced(object_);
  auto finished = [&]() -> Result<hal::ExecutionResult> {
    HEARTH_ASSIGN(const Frame reply, place_.session->call(outgoing));
    return readReply(reply, schema::Reply::RESULT, [](auto from) -> Result<hal::ExecutionResult> {
      return readResult(from.getResult());
    });
  }();
  if (finished) return *std::move(finished);
  result.status = std::unexpected(std::move(finished.error()));
  return result;
}

}  // namespace hearth::ipc
