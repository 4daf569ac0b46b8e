// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "frontends/delegate/delegate_options.h"
#include "frontends/tflite_c/declarations.h"

namespace hearth::tflite_c {

// A delegate that this library makes. It takes no nodes, since Hearth runs all of them: its options
// mean Hearth's. Immutable.
class OwnDelegate {
 public:
  virtual ~OwnDelegate() = default;

  // Null for a delegate that somebody else made.
  static const OwnDelegate* from(const TfLiteDelegate* delegate);

  // Sets what the delegate's options say. kNotFound for a device that does not exist.
  virtual Status addTo(delegate::DelegateOptions* options) const = 0;

  TfLiteDelegate* handle() { return &handle_; }

 protected:
  explicit OwnDelegate(int64_t flags);

 private:
  TfLiteDelegate handle_{};
};

}  // namespace hearth::tflite_c
