// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/store/segment_store.h"

namespace hearth::vulkan {

struct OpenGpu;

// Whether this GPU computes rightly. Compilers of GPUs' drivers make mistakes, mostly in some
// shaders only: before a shader is used for the first time, it computes a small model, whose
// results have to be those of the reference kernels. Which shaders are right is a fact of the
// weight store, so that later processes do not try them again. Thread-safe.
class KnownAnswers {
 public:
  // Opens the store at the first check; null or none: nothing is remembered.
  using OpenStore = std::function<std::shared_ptr<cache::SegmentStore>()>;
  explicit KnownAnswers(OpenStore openStore = {}) : openStore_(std::move(openStore)) {}

  // kUnsupported, naming it, for a shader that is wrong on this GPU, in these parts (of kParts in
  // plan/products.h). Other errors as those of a preparation and an execution: the shader is then
  // tried again the next time.
  Status check(const OpenGpu& open, const std::string& shader, uint32_t part = 0);

  // The shaders that were found wrong so far.
  std::vector<std::string> wrongShaders();

  // Returns when what was found out so far is stored.
  void flush();

 private:
  void recall(const OpenGpu& open);
  void remember();

  const OpenStore openStore_;
  base::Mutex mutex_;  // held while a shader is tried
  std::map<std::string, bool> isRight_;
  bool hasRecalled_ = false;
  std::shared_ptr<cache::SegmentStore> store_;  // null: nothing is remembered
  std::string key_;                             // of the fact
};

}  // namespace hearth::vulkan
