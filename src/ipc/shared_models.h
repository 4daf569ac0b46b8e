// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/sha256.h"
#include "graph/model.h"
#include "hal/device.h"
#include "ipc/client_memory.h"
#include "ipc/model_identity.h"
#include "memory/pool.h"

namespace hearth::ipc {

// A model that a host's driver has prepared.
struct ServedModel {
  std::shared_ptr<hal::PreparedModel> prepared;
  std::vector<graph::Operand> outputs;  // of the main subgraph; none for a model from a cache
  std::vector<memory::PoolRef> pools;   // so that none of the files behind its identity goes
  uint64_t bytes = 0;                   // that the driver has allocated to prepare it
};

// The models that clients of a host have in common: whoever prepares what another one has prepared,
// by their identities, gets the same model, with the same packed weights and the same memory for
// intermediate results. A model lives as long as one of them has it, and the ones that were taken
// last live on for the next client, where the device compiles for long. Thread-safe.
class SharedModels {
 public:
  struct Taken {
    std::shared_ptr<const ServedModel> model;
    bool isOwn = true;  // whether the caller has made it
  };
  using Make = std::function<Result<std::shared_ptr<const ServedModel>>()>;

  // How many models stay that no client has any more.
  explicit SharedModels(size_t kept = 0);

  // The model of this identity that there is, or else the one that `make` gives. Of several callers
  // one makes it while the others wait; where it fails, the next one tries. Errors: those of
  // `make`, which is called again without the models that nobody has if it lacks memory or the
  // driver fails; kMissedDeadlinePersistent when the deadline passes before it is this caller's
  // turn.
  Result<Taken> take(const ModelIdentity& identity, const base::Deadline& deadline,
                     const Make& make);

  // The model's device is gone: whoever prepares it next has it made anew.
  void forget(const std::shared_ptr<const ServedModel>& model);

  // Maps the pools of models that are made for take(). They may outlive the client that brought
  // them, so they do not count among its memories.
  ClientMemories& memories() { return memories_; }

  // How many models there are.
  size_t count() const;

 private:
  struct Place {
    bool isInWork = false;
    std::weak_ptr<const ServedModel> model;
  };
  class Work;
  using Kept = std::list<std::shared_ptr<const ServedModel>>;

  // Makes the model the last one that was taken. What need not stay is returned, since the end of a
  // model may take as long as its driver likes.
  [[nodiscard]] Kept keep(const std::shared_ptr<const ServedModel>& model);

  const size_t mostKept_;
  ClientMemories memories_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<base::Sha256Digest, Place> places_;
  Kept kept_;  // last taken first
};

// How a model started, for a client for whom another client's was taken.
hal::StartReport reportOfShared(hal::StartReport report);

}  // namespace hearth::ipc
