// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/sha256.h"
#include "cache/object/store_key.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/weights/plan_record.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::cpu {

// The names under which a store keeps what belongs to one signature of a model, as this build
// prepares it on this CPU with these options. Immutable.
class PlanKeys {
 public:
  // Reads the model's structure and none of its pools. `threads` is a part of the names of facts,
  // such as measured times, that depend on it. `model` and `build` outlive this.
  PlanKeys(const graph::Model& model, const hal::PrepareOptions& options,
           const BuildIdentity& build, unsigned threads);

  // Tells the signatures of a model apart; no content is in it.
  const base::Sha256Digest& graph() const { return graph_; }

  // `content` is the digest of the model's pools.
  cache::PlanKey plan(const base::Sha256Digest& content) const;
  // The same in a bundle, which keeps all signatures of a model under one name.
  cache::PlanKey bundle(const base::Sha256Digest& content) const;
  // Of the list of builds, options and contents of which there were plans (PlanRecord).
  cache::PlanKey record() const;
  // Of the list of packings (KnownPackings) that this build made for models with constants of the
  // same types and sizes.
  cache::PlanKey packings() const;
  // What this build packs for, for people (BuildIdentity::target).
  std::string target() const { return build_->target(); }
  PlanOrigin origin(const base::Sha256Digest& content) const;
  // Held by who packs the model. It does not depend on the content, so that no process has to read
  // the model for it.
  cache::SegmentKey buildLock() const;
  // Of a fact of this kind.
  std::string fact(std::string_view kind) const;

 private:
  const graph::Model* model_;
  const BuildIdentity* build_;
  base::Sha256Digest fingerprint_;
  base::Sha256Digest structure_;
  base::Sha256Digest options_;
  base::Sha256Digest graph_;
  unsigned threads_;
};

}  // namespace hearth::cpu
