// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
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
// intermediate results. A model lives as long as one of them has it. Thread-safe.
class SharedModels {
 public:
  struct Taken {
    std::shared_ptr<const ServedModel> model;
    bool isOwn = true;  // whether the caller has made it
  };
  using Make = std::function<Result<std::shared_ptr<const ServedModel>>()>;

  SharedModels();

  // The model of this identity that there is, or else the one that `make` gives. Of several callers
  // one makes it while the others wait; where it fails, the next one tries. Errors: those of
  // `make`; kMissedDeadlinePersistent when the deadline passes before it is this caller's turn.
  Result<Taken> take(const ModelIdentity& identity, const base::Deadline& deadline,
                     const Make& make);

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

  ClientMemories memories_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<base::Sha256Digest, Place> places_;
};

// How a model started, for a client for whom another client's was taken.
hal::StartReport reportOfShared(hal::StartReport report);

}  // namespace hearth::ipc
