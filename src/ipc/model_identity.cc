// SPDX-License-Identifier: Apache-2.0
#include "ipc/model_identity.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "ipc/decoding.h"

namespace hearth::ipc {
namespace {

// Somebody who may look at a file's facts need not be allowed to read it.
bool isReadable(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
}

}  // namespace

// Hashes parts of a request. Each part has its length in front, so that no two requests have the
// same bytes.
class ModelIdentity::Maker {
 public:
  explicit Maker(const std::vector<base::Descriptor>& descriptors) : descriptors_(descriptors) {}

  template <typename Number>
    requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void add(Number number) {
    hash_.update(&number, sizeof number);
  }
  void add(std::span<const uint8_t> bytes) {
    add(bytes.size());
    hash_.update(bytes);
  }
  void add(const std::string& text) {
    add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }

  void add(const hal::PrepareOptions& options) {
    add(options.preparation);
    add(options.preference);
    add(options.priority);
    add(options.threads);
    add(options.isTuned);
    add(options.driverOptions.size());
    for (const auto& [name, value] : options.driverOptions) {
      add(name);
      add(value);
    }
    add(options.maxActivationBytes);
    add(options.expectedInputs.size());
    for (const graph::Dimensions& dimensions : options.expectedInputs) {
      add(dimensions.size());
      for (const uint32_t dimension : dimensions) add(dimension);
    }
  }

  // False when the bytes may change without notice.
  bool addRange(int64_t descriptor, uint64_t offset, uint64_t size) {
    if (descriptor < 0 || descriptor >= static_cast<int64_t>(descriptors_.size())) return false;
    const int fd = descriptors_[static_cast<size_t>(descriptor)].get();
    if (!isReadable(fd)) return false;
    const auto file = cache::ContentSource::of(fd, offset, size);
    if (!file.tellsChanges()) return false;
    add(cache::contentKey(*file.file(), offset, size));
    identity_.files_.push_back(file);
    return true;
  }
  bool addFile(int32_t descriptor) { return addRange(descriptor, 0, 0); }

  ModelIdentity finish() {
    identity_.digest_ = hash_.finish();
    return std::move(identity_);
  }

 private:
  const std::vector<base::Descriptor>& descriptors_;
  base::Sha256 hash_;
  ModelIdentity identity_;
};

std::optional<ModelIdentity> ModelIdentity::ofModel(
    schema::Model::Reader model, const hal::PrepareOptions& options,
    const std::vector<base::Descriptor>& descriptors) {
  Maker maker(descriptors);
  maker.add(true);
  maker.add(options);
  const auto pools = model.getPools();
  maker.add(pools.size());
  for (const schema::Memory::Reader pool : pools) {
    maker.add(pool.getSize());
    if (pool.getSize() == 0) continue;
    if (pool.getIsWritable() ||
        !maker.addRange(pool.getDescriptor(), pool.getOffset(), pool.getSize()))
      return std::nullopt;
  }
  const auto names = model.getNames();
  maker.add(names.size());
  for (const schema::Name::Reader name : names) {
    maker.add(name.getKind());
    maker.add(name.getSubgraph());
    maker.add(name.getIndex());
    maker.add(readText(name.getText()));
  }
  const capnp::Data::Reader bytes = model.getBytes();
  maker.add(std::span<const uint8_t>(bytes.begin(), bytes.size()));
  return maker.finish();
}

std::optional<ModelIdentity> ModelIdentity::ofCache(
    schema::CacheFiles::Reader files, const hal::CacheToken& token,
    const hal::PrepareOptions& options, const std::vector<base::Descriptor>& descriptors) {
  Maker maker(descriptors);
  maker.add(false);
  maker.add(options);
  maker.add(std::span<const uint8_t>(token));
  for (const auto& list : {files.getModel(), files.getData()}) {
    maker.add(list.size());
    for (const int32_t descriptor : list)
      if (!maker.addFile(descriptor)) return std::nullopt;
  }
  return maker.finish();
}

bool ModelIdentity::isUnchanged() const {
  return std::ranges::all_of(files_, &cache::ContentSource::isUnchanged);
}

}  // namespace hearth::ipc
