// SPDX-License-Identifier: Apache-2.0
// Compilations of a support library in a client's cache files. The library compiles from its cache
// only with the model at hand, while a driver restores without one; so the model is kept with what
// the library wrote. The model cache has the model and the sizes of the library's files, the data
// cache the constants and the bytes of these files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "cache/compilation/known_content.h"
#include "graph/model.h"
#include "hal/device.h"
#include "memory/mapping.h"

namespace hearth::drivers::support_library {

// What the driver asks of its clients, whatever the library wants.
inline constexpr hal::CacheFileCounts kCacheFileCounts = {1, 1};

// The most files of one kind that a library may want.
inline constexpr uint32_t kMaxLibraryFiles = 32;

// The files of a library, in memory of this process: no client can change what the library reads.
struct LibraryFiles {
  std::vector<base::Descriptor> model;
  std::vector<base::Descriptor> data;
};

// Empty files. Error: kOutOfMemory.
Result<LibraryFiles> makeLibraryFiles(const hal::CacheFileCounts& counts);

// What the model cache says.
struct SavedHead {
  std::vector<uint64_t> modelSizes;  // of the library's files
  std::vector<uint64_t> dataSizes;
  uint64_t constantBytes = 0;      // in front of these in the data cache
  std::span<const uint8_t> model;  // graph::encodeModel(), with all constants of pools in one pool
};

std::vector<uint8_t> encodeHead(const SavedHead& head);
// Trusts nothing in `bytes`, which the result refers to. kBadData for bytes that encodeHead() did
// not write, and where the parts do not fill a data cache of this size.
Result<SavedHead> parseHead(std::span<const uint8_t> bytes, uint64_t dataBytes);

// Writes a model and the library's files to the client's files, and registers them with the mapping
// manager. Errors: kBadData for another number of the client's files; kUnsupported where the
// library has written nothing; kOutOfMemory, kIo.
Status saveCompilation(const graph::Model& model, const LibraryFiles& files,
                       const cache::CacheOwner& owner, const hal::Cache& cache);

struct SavedCompilation {
  std::shared_ptr<const graph::Model> model;  // owns its constants
  LibraryFiles files;
};

// What saveCompilation() wrote, from private copies of the client's files. Errors: kBadData for
// another number of files, of the client's or the library's; kNotFound for files that the mapping
// manager does not know, which are not interpreted then; kOutOfMemory.
Result<SavedCompilation> loadCompilation(const hal::CacheFileCounts& counts,
                                         const cache::CacheOwner& owner, const hal::Cache& cache);

}  // namespace hearth::drivers::support_library
