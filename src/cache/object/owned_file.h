// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "cache/object/file_facts.h"

namespace hearth::cache {

// What one look at an open file tells: its facts, and who may change it.
struct OwnedFile {
  FileFacts facts;
  uint32_t owner = 0;
  uint32_t mode = 0;  // type and permissions

  // Error: kIo.
  static Result<OwnedFile> of(int fd);
};

}  // namespace hearth::cache
