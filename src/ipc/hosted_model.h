// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "graph/model.h"
#include "hal/device.h"
#include "ipc/host_link.h"

namespace hearth::ipc {

// What a model is prepared from, again when its host has ended: the model, or else the files of a
// compilation cache.
struct ModelSource {
  std::shared_ptr<const graph::Model> model;
  hal::PrepareOptions options;
  hal::Cache cache;
};

// A model that a host has prepared.
class HostedModel final : public hal::PreparedModel,
                          public std::enable_shared_from_this<HostedModel> {
 public:
  // Where the prepared model is.
  struct Place {
    std::shared_ptr<Session> session;
    uint64_t object = 0;
    bool hasFences = false;
  };

  // Prepares a model. Takes what is needed to do that again.
  static Result<std::shared_ptr<HostedModel>> prepare(std::shared_ptr<HostLink> link,
                                                      ModelSource source);
  ~HostedModel() override;

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  bool hasFences() const override;
  hal::StartReport startReport() const override { return report(true); }
  hal::StartReport startReportSoFar() const override { return report(false); }

  // Where the model is now; prepares it again when its host has ended. kDeadObject when that fails.
  Result<Place> place();

  const std::shared_ptr<HostLink>& link() const { return link_; }
  // Null when the model comes from a cache.
  const graph::Model* model() const { return source_.model.get(); }
  // How long a computation may take for a step, as the options say; 0 when they do not.
  std::chrono::nanoseconds longestStep() const { return longestStep_; }

 private:
  HostedModel(std::shared_ptr<HostLink> link, ModelSource source);
  Result<Place> prepareOn(const std::shared_ptr<Session>& session) const;
  bool isThere() const { return place_.session != nullptr && !place_.session->isDead(); }
  hal::StartReport report(bool isFinal) const;

  const std::shared_ptr<HostLink> link_;
  ModelSource source_;
  std::chrono::nanoseconds longestStep_{0};
  mutable base::Mutex mutex_;
  Turn preparing_;
  Place place_;  // guarded by mutex_
};

}  // namespace hearth::ipc
