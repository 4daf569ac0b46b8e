// SPDX-License-Identifier: Apache-2.0
// What the system says of a file, and how much of it proves that its bytes are what they were.
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
  unsigned long system = 0;   // the file system's type, as statfs has it; 0 = unknown
  uint64_t mounting = 0;      // no two mountings of one boot have the same; 0 = unknown
  uint64_t diskSequence = 0;  // counts what was put into the block device; 0 = unknown or none
  BootId boot{};              // all zeros = unknown
  bool isSealed = false;      // memory that the kernel lets nobody write any more
  std::optional<base::Sha256Digest> verity;  // of fs-verity's digest of the content

  // Of an open file, or, with a name, of what has it in the folder `fd` (never through a link).
  // `asksServer`: whatever the system remembers of a server's answers, which takes a request.
  // Error: kIo.
  static Result<FileFacts> of(int fd, const char* name = "", bool asksServer = false);
};

// What shows that a file's bytes have not changed. docs/settings.md has the rules as a table.
enum class ChangeProof : uint8_t {
  // Nothing: memory, files without a name, servers that make attributes up, systems that tell too
  // little. The bytes have to be read each time.
  kNone,
  // Nobody can change the bytes as long as a descriptor is open. It tells nothing of later ones.
  kSeal,
  // A digest that the kernel holds every read against.
  kContent,
  // A local file system, and stamps that a running kernel has set: every change sets others.
  kStamps,
  // A local file system, and stamps that whoever made an image may have set: they are the same in
  // the next version of the image. Changes within one mounting are seen.
  kMounting,
  // A server's stamps, of a clock that is not ours.
  kServer,
};

ChangeProof proofOf(const FileFacts& facts);

// What, beside the file's own stamps, has to stay the same for the proof to hold: zeros for kStamps
// and kServer, the digest for kContent, boot, mounting and medium for kMounting.
base::Sha256Digest scopeOf(const FileFacts& facts, ChangeProof proof);

// The mounting that the file is seen through, where its stamps alone do not tell it from one of
// another image; else 0.
uint64_t mountingNumber(const FileFacts& facts);

// How long before its bytes are read (nanoseconds) the last change must lie.
uint64_t racyWindow(ChangeProof proof);

// For tests: `change` gets the facts of each descriptor, as the system has them, and may alter
// them, so that files look as on other file systems. Empty: as they are. Without HEARTH_TEST_HOOKS
// nothing happens. Thread-safe.
void changeFileFacts(std::function<void(int fd, FileFacts& facts)> change);

}  // namespace hearth::cache
