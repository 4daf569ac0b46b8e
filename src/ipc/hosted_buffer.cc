// SPDX-License-Identifier: Apache-2.0
#include "ipc/hosted_buffer.h"

#include <cstring>
#include <utility>

#include "ipc/hosted_model.h"

namespace hearth::ipc {

HostedBuffer::HostedBuffer(std::shared_ptr<HostLink> link, std::shared_ptr<Session> session,
                           uint64_t object)
    : link_(std::move(link)),
      session_(std::move(session)),
      object_(object),
      token_(link_->addBuffer(session_, object)) {}

HostedBuffer::~HostedBuffer() {
  link_->removeBuffer(token_);
  session_->release(schema::Release::Kind::BUFFER, object_);
}

Result<std::unique_ptr<hal::Buffer>> HostedBuffer::allocate(
    std::shared_ptr<HostLink> link, const hal::BufferDescription& description,
    const std::vector<hal::BufferRole>& roles) {
  std::shared_ptr<Session> session;
  Outgoing outgoing;
  auto allocation = outgoing.request.initAllocate();
  writeDimensions(description.dimensions, allocation);
  auto list = allocation.initRoles(static_cast<uint32_t>(roles.size()));
  for (uint32_t i = 0; i < roles.size(); ++i) {
    auto* const model = dynamic_cast<HostedModel*>(roles[i].preparedModel.get());
    if (model == nullptr || model->link()->device().name != link->device().name)
      return fail(ErrorCode::kBadData, "A role of a buffer is of a model of another device.");
    if (i == 0)
      link = model->link();
    else if (model->link() != link)
      return fail(ErrorCode::kBadData,
                  "The roles of a buffer are of models in two hosts, since the options of their "
                  "preparation name different files.");
    HEARTH_ASSIGN(const HostedModel::Place place, model->place());
    if (session != nullptr && place.session != session)
      return fail(ErrorCode::kDeadObject, "The host of the driver has ended meanwhile.");
    session = place.session;
    list[i].setModel(place.object);
    list[i].setIsInput(roles[i].isInput);
    list[i].setIndex(roles[i].index);
    list[i].setFrequency(roles[i].frequency);
  }
  if (session == nullptr) {
    HEARTH_ASSIGN(session, link->session());
  }
  HEARTH_ASSIGN(const Frame reply, session->call(outgoing));
  HEARTH_ASSIGN(const uint64_t object,
                readReply(reply, schema::Reply::OBJECT,
                          [](auto from) -> Result<uint64_t> { return from.getObject(); }));
  return std::unique_ptr<hal::Buffer>(
      new HostedBuffer(std::move(link), std::move(session), object));
}

Status HostedBuffer::done(Outgoing& outgoing) const {
  HEARTH_ASSIGN(const Frame reply, session_->call(outgoing));
  return readReply(reply, schema::Reply::DONE, [](auto) { return Status(); });
}

Status HostedBuffer::copyTo(const memory::PoolRef& destination) {
  if (destination == nullptr || (destination->data() == nullptr && destination->size() != 0))
    return fail(ErrorCode::kOpFailed, "The memory to copy to is not mapped.");
  if (!destination->writable())
    return fail(ErrorCode::kOpFailed, "The memory pool of {} bytes is read-only.",
                destination->size());
  Outgoing outgoing;
  auto copy = outgoing.request.initCopyTo();
  copy.setBuffer(object_);
  writeMemory(destination, copy.initMemory(), &outgoing.attachments);
  return done(outgoing);
}

Status HostedBuffer::copyFrom(const memory::PoolRef& source, const graph::Dimensions& dimensions) {
  if (source == nullptr || source->data() == nullptr || source->size() == 0)
    return fail(ErrorCode::kOpFailed, "The memory to copy from is not mapped.");
  memory::PoolRef shared = source;
  if (source->fd() < 0) {
    HEARTH_ASSIGN(shared, memory::Pool::anonymous(source->size()));
    std::memcpy(shared->mutableData(), source->data(), source->size());
  }
  Outgoing outgoing;
  auto copy = outgoing.request.initCopyFrom();
  copy.setBuffer(object_);
  writeMemory(shared, copy.initMemory(), &outgoing.attachments);
  copy.getMemory().setIsWritable(false);
  writeDimensions(dimensions, copy);
  return done(outgoing);
}

}  // namespace hearth::ipc
