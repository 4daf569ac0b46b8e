// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_objects.h"

#include <utility>

#include "ipc/served_mailbox.h"

namespace hearth::ipc {
namespace {

std::unexpected<Error> connectionHasEnded() {
  return fail(ErrorCode::kDeadObject, "The connection has ended.");
}

}  // namespace

template <typename Object>
Result<uint64_t> ServedObjects::add(Map<Object>* objects, std::shared_ptr<Object> object) {
  const std::lock_guard lock(mutex_);
  if (isClosed_) return connectionHasEnded();
  if (models_.size() + executions_.size() + buffers_.size() >= limits_.objects)
    return fail(ErrorCode::kResourceExhaustedTransient,
                "A client wants one object more; {} at a time are the limit.", limits_.objects);
  objects->emplace(++lastName_, std::move(object));
  return lastName_;
}

Result<uint64_t> ServedObjects::add(std::shared_ptr<ClientModel> model) {
  return add(&models_, std::move(model));
}

Result<uint64_t> ServedObjects::add(std::shared_ptr<ServedExecution> execution) {
  return add(&executions_, std::move(execution));
}

Result<uint64_t> ServedObjects::add(std::shared_ptr<ClientBuffer> buffer) {
  return add(&buffers_, std::move(buffer));
}

Status ServedObjects::addMailbox(uint64_t execution, std::shared_ptr<ServedMailbox> mailbox) {
  const std::lock_guard lock(mutex_);
  if (isClosed_) return connectionHasEnded();
  if (mailboxes_.size() >= limits_.mailboxes)
    return fail(ErrorCode::kResourceExhaustedTransient,
                "A client wants one mailbox more; {} at a time are the limit.", limits_.mailboxes);
  if (!mailboxes_.emplace(execution, std::move(mailbox)).second)
    return fail(ErrorCode::kBadState, "The execution has a mailbox already.");
  return {};
}

template <typename Object>
std::shared_ptr<Object> ServedObjects::find(const Map<Object>& objects, uint64_t name) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : found->second;
}

std::shared_ptr<ClientModel> ServedObjects::model(uint64_t name) const {
  return find(models_, name);
}

std::shared_ptr<ServedExecution> ServedObjects::execution(uint64_t name) const {
  return find(executions_, name);
}

std::shared_ptr<ClientBuffer> ServedObjects::buffer(uint64_t name) const {
  return find(buffers_, name);
}

void ServedObjects::removeMailbox(uint64_t execution) {
  std::shared_ptr<ServedMailbox> gone;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = mailboxes_.find(execution); found != mailboxes_.end()) {
    gone = std::move(found->second);
    mailboxes_.erase(found);
  }
}

void ServedObjects::release(schema::Release::Kind kind, uint64_t name) {
  std::shared_ptr<void> gone;  // freed without the lock
  std::shared_ptr<ServedMailbox> closed;
  const std::lock_guard lock(mutex_);
  const auto take = [&](auto& objects) {
    const auto found = objects.find(name);
    if (found == objects.end()) return;
    gone = std::move(found->second);
    objects.erase(found);
  };
  switch (kind) {
    case schema::Release::Kind::MODEL:
      return take(models_);
    case schema::Release::Kind::EXECUTION:
      if (const auto found = mailboxes_.find(name); found != mailboxes_.end()) {
        closed = std::move(found->second);
        closed->close();
        mailboxes_.erase(found);
      }
      return take(executions_);
    case schema::Release::Kind::BUFFER:
      return take(buffers_);
  }
}

void ServedObjects::close() {
  // Freed without the lock.
  decltype(mailboxes_) mailboxes;
  decltype(models_) models;
  decltype(executions_) executions;
  decltype(buffers_) buffers;
  const std::lock_guard lock(mutex_);
  isClosed_ = true;
  mailboxes.swap(mailboxes_);
  models.swap(models_);
  executions.swap(executions_);
  buffers.swap(buffers_);
  for (const auto& [execution, mailbox] : mailboxes) mailbox->close();
}

}  // namespace hearth::ipc
