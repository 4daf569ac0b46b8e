// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace hearth::base {

// Owns one file descriptor and closes it. Move-only; not thread-safe.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Descriptor() { reset(); }

  // open(2) with O_CLOEXEC added; `mode` matters with O_CREAT only. Errors: kNotFound, kIo.
  static Result<Descriptor> open(const std::string& path, int flags, unsigned mode = 0600);

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

  // Another descriptor of the same open file, close-on-exec.
  Result<Descriptor> duplicate() const;

  // The size in bytes, from fstat. Error: kIo.
  Result<uint64_t> size() const;

 private:
  int fd_ = -1;
};

}  // namespace hearth::base
