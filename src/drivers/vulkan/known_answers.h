// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace hearth::vulkan {

struct OpenGpu;

// Whether this GPU computes rightly. Compilers of GPUs' drivers make mistakes, mostly in some
// shaders only: before a shader is used for the first time, it computes a small model, whose
// results have to be those of the reference kernels. Thread-safe.
class KnownAnswers {
 public:
  // kUnsupported, naming it, for a shader that is wrong on this GPU. Other errors as those of a
  // preparation and an execution: the shader is then tried again the next time.
  Status check(const OpenGpu& open, const std::string& shader);

  // The shaders that were found wrong so far.
  std::vector<std::string> wrongShaders();

 private:
  base::Mutex mutex_;  // held while a shader is tried
  std::map<std::string, bool> isRight_;
};

}  // namespace hearth::vulkan
