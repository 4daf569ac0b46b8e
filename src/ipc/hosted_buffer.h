// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hal/device.h"
#include "ipc/host_link.h"

namespace hearth::ipc {

// Memory in a host. It is lost with the host: kDeadObject from then on.
class HostedBuffer final : public hal::Buffer {
 public:
  // In the host of the models that the roles are of; in that of `link` where there are no roles.
  // Errors: kBadData for roles of models that another device prepared, or that are in several
  // hosts.
  static Result<std::unique_ptr<hal::Buffer>> allocate(std::shared_ptr<HostLink> link,
                                                       const hal::BufferDescription& description,
                                                       const std::vector<hal::BufferRole>& roles);
  ~HostedBuffer() override;

  uint32_t token() const override { return token_; }
  Status copyTo(const memory::PoolRef& destination) override;
  Status copyFrom(const memory::PoolRef& source, const graph::Dimensions& dimensions) override;

 private:
  HostedBuffer(std::shared_ptr<HostLink> link, std::shared_ptr<Session> session, uint64_t object);
  Status done(Outgoing& outgoing) const;

  const std::shared_ptr<HostLink> link_;
  const std::shared_ptr<Session> session_;
  const uint64_t object_;
  const uint32_t token_;
};

}  // namespace hearth::ipc
