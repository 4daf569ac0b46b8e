// SPDX-License-Identifier: Apache-2.0
// Which files a process may still open, create, rename and remove (Landlock, Linux 5.13).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace hearth::ipc {

// Paths that exist, each a folder with all that is in it, or a file.
struct FileRules {
  std::vector<std::string> readWrite;  // files: all; folders: also to make, rename and remove
  std::vector<std::string> readOnly;
  std::vector<std::string> devices;  // device nodes, or folders of them: to read, write and control
};

// Rules that were read and can be imposed on threads. Nothing of a file system can be opened then
// but what they name; nothing can be executed, and no device, socket, pipe or symbolic link made.
// Descriptors that are open keep what they may, those that arrive too, and memory files can be
// opened again through /proc/self/fd. Not covered by Landlock, so bounded by the user's rights
// only: whether a file exists, its attributes, and where symbolic links lead. Move-only.
class Landlock {
 public:
  // The version of the kernel's Landlock; 0 where it has none or it is disabled.
  static int version();

  // Opens the paths. Errors: kUnsupported without Landlock; kNotFound and kIo, which name the path.
  static Result<Landlock> prepare(const FileRules& rules);

  // What the kernel's version leaves open of the above, in sentences.
  const std::vector<std::string>& gaps() const { return gaps_; }

  // For restrictThread().
  int fd() const { return ruleset_.get(); }

  // Imposes the rules on the calling thread, and on threads and processes that it starts from now
  // on, for ever; forbids new privileges, without which that is not allowed. Returns 0 or an error
  // number. Safe in a signal handler, hence static.
  static int restrictThread(int fd);

 private:
  Landlock(base::Descriptor ruleset, std::vector<std::string> gaps);

  base::Descriptor ruleset_;
  std::vector<std::string> gaps_;
};

}  // namespace hearth::ipc
