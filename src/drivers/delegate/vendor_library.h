// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "tflite_abi/structures.h"

namespace hearth::drivers::delegate {

// Keys and values in their order, which some libraries depend on.
using DelegateOptions = std::vector<std::pair<std::string, std::string>>;

class VendorLibrary;

// Gives a delegate back to its library.
struct DestroyDelegate {
  std::shared_ptr<VendorLibrary> library;
  void operator()(TfLiteDelegate* delegate) const;
};
using DelegatePointer = std::unique_ptr<TfLiteDelegate, DestroyDelegate>;

// A library with TensorFlow Lite's interface of external delegates. It stays in the process: its
// threads may outlive its delegates.
//
// Several say that they are not for more than one thread, so whoever calls into the library or into
// what it made holds mutex().
class VendorLibrary : public std::enable_shared_from_this<VendorLibrary> {
 public:
  // kNotFound with the loader's words, which name a missing dependency; kBadData for a library
  // without the two functions; kIo.
  static Result<std::shared_ptr<VendorLibrary>> load(const std::string& path);

  // A new delegate. kUnavailableDevice with what the library reports, if it makes none.
  Result<DelegatePointer> makeDelegate(const DelegateOptions& options);

  const std::string& path() const { return path_; }
  // SHA-256 of the file, as hexadecimal digits.
  const std::string& digest() const { return digest_; }
  base::Mutex& mutex() { return mutex_; }

 private:
  friend struct DestroyDelegate;
  using Create = TfLiteDelegate* (*)(const char* const* keys, const char* const* values,
                                     size_t count, void (*report)(const char* message));
  using Destroy = void (*)(TfLiteDelegate* delegate);

  VendorLibrary() = default;

  std::string path_;
  std::string digest_;
  Create create_ = nullptr;
  Destroy destroy_ = nullptr;
  base::Mutex mutex_;
};

}  // namespace hearth::drivers::delegate
