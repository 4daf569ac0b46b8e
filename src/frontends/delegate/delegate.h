// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "frontends/delegate/delegate_options.h"
#include "frontends/delegate/kernel.h"
#include "tflite_abi/structures.h"

namespace hearth::delegate {

// A TfLiteDelegate for any number of interpreters. Thread-safe: several interpreters may be made
// with it at once.
class Delegate {
 public:
  explicit Delegate(DelegateOptions options);
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  // The structure that the runtime holds; it lives as long as this object.
  TfLiteDelegate* handle() { return &handle_; }
  static Delegate* from(const TfLiteDelegate* handle) {
    return static_cast<Delegate*>(handle->data_);
  }

  // Takes the nodes that Hearth can run and leaves the rest to the runtime; it is no error if there
  // are none. kOpFailed when the runtime does not let it take the nodes.
  Status apply(TfLiteContext* context);

 private:
  // Nodes of one partition, in run order.
  using Nodes = std::vector<int32_t>;

  // For `init`: the kernel that apply() has made for these nodes; null when there is none.
  std::unique_ptr<Kernel> takeKernel(TfLiteContext* context, const Nodes& nodes);
  static TfLiteRegistration registration();

  TfLiteDelegate handle_{};
  // Follow the structure, for runtimes in which it has grown; zeros.
  std::array<uint64_t, 4> reserved_{};
  const std::shared_ptr<const DelegateOptions> options_;
  base::Mutex mutex_;  // for waiting_
  std::map<std::pair<TfLiteContext*, Nodes>, std::unique_ptr<Kernel>> waiting_;
};

}  // namespace hearth::delegate
