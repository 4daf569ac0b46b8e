// SPDX-License-Identifier: Apache-2.0
// What the operating system says of a file, and how far that proves that its bytes are unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/object/boot_id.h"

namespace hearth::cache {

struct FileFacts {
  bool isRegular = false;
  uint64_t links = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified = 0;  // nanoseconds since 1970, as are the next two
  int64_t changed = 0;
  int64_t born = 0;           // 0 = unknown
  unsigned long system = 0;   // type of the file system, from statfs; 0 = unknown
  uint64_t mounting = 0;      // unique among the mounts of one boot; 0 = unknown
  uint64_t diskSequence = 0;  // counts the media put into the block device; 0 = unknown or none
  BootId boot{};              // all zeros = unknown
  bool isSealed = false;      // memory that is sealed against writes
  std::optional<base::Sha256Digest> verity;  // from the fs-verity digest of the content

  // Reads the facts of an open file or, given a name, of that entry of the folder `fd` (a symbolic
  // link is not followed). `asksServer`: ask the server anew instead of using the attributes that
  // the kernel has cached, at the cost of a request. Error: kIo.
  static Result<FileFacts> of(int fd, const char* name = "", bool asksServer = false);
};

// What proves that a file's bytes are unchanged. docs/settings.md lists the rules in a table.
enum class ChangeProof : uint8_t {
  // Nothing does: memory, files without a name, servers that invent attributes, systems that tell
  // too little. The bytes must be read each time.
  kNone,
  // The memory is sealed: nobody can change its bytes while a descriptor is open. Proves nothing
  // about a later descriptor.
  kSeal,
  // The kernel checks every read against a digest (fs-verity).
  kContent,
  // A local file system with time stamps set by a running kernel: every change sets new ones.
  kStamps,
  // A local file system with time stamps that the builder of an image may have set: the next
  // version of the image has the same ones. Only changes within one mount are seen.
  kMounting,
  // The time stamps of a server, whose clock is not ours.
  kServer,
};

ChangeProof proofOf(const FileFacts& facts);

// What must stay the same for the proof to hold, besides the file's own time stamps: the digest for
// kContent; boot, mount and medium for kMounting; zeros otherwise.
base::Sha256Digest scopeOf(const FileFacts& facts, ChangeProof proof);

// The mount through which the file is seen, where the time stamps alone cannot tell the file from
// one of another image; else 0.
uint64_t mountingNumber(const FileFacts& facts);

// How long, in nanoseconds, the last change must lie before the bytes are read.
uint64_t racyWindow(ChangeProof proof);

// For tests: `change` may alter the facts of each descriptor, so that files look as if they were on
// another file system. An empty function ends that. Does nothing without HEARTH_TEST_HOOKS.
// Thread-safe.
void changeFileFacts(std::function<void(int fd, FileFacts& facts)> change);

}  // namespace hearth::cache
