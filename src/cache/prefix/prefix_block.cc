// SPDX-License-Identifier: Apache-2.0
#include "cache/prefix/prefix_block.h"

#include <algorithm>
#include <cstring>

#include "cache/object/file_format.h"

namespace hearth::cache {
namespace {

constexpr char kPrefixMagic[8] = {'H', 'R', 'T', 'H', 'P', 'F', 'X', '\n'};
constexpr uint32_t kPrefixVersion = 1;

struct PrefixHead {
  char magic[8];
  uint32_t version;
  uint32_t position;
  uint32_t tokens;
  uint32_t modelSize;
  uint8_t predecessor[kDigestSize];
  char model[200];
};
static_assert(sizeof(PrefixHead) == kPrefixHeadBytes);

}  // namespace

std::vector<uint8_t> makePrefixHead(const PrefixBlock& block) {
  PrefixHead head{};
  std::memcpy(head.magic, kPrefixMagic, sizeof kPrefixMagic);
  head.version = kPrefixVersion;
  head.position = block.position;
  head.tokens = block.tokens;
  head.modelSize = static_cast<uint32_t>(std::min(block.model.size(), sizeof head.model));
  std::memcpy(head.predecessor, block.predecessor.bytes.data(), kDigestSize);
  std::copy_n(block.model.begin(), head.modelSize, head.model);
  std::vector<uint8_t> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

StoreResult<PrefixBlock> parsePrefixHead(std::span<const uint8_t> bytes) {
  if (bytes.size() != sizeof(PrefixHead))
    return storeFail(StoreReason::kCorrupt, "The head of a stored prefix has {} bytes, not {}.",
                     bytes.size(), sizeof(PrefixHead));
  PrefixHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.magic, kPrefixMagic, sizeof kPrefixMagic) != 0 ||
      head.version != kPrefixVersion)
    return storeFail(StoreReason::kCorrupt, "A stored prefix has no head of version {}.",
                     kPrefixVersion);
  if (head.modelSize > sizeof head.model || head.tokens == 0 ||
      head.tokens > UINT32_MAX - head.position)
    return storeFail(StoreReason::kCorrupt,
                     "The head of a stored prefix claims {} tokens from {} on and a name of {} "
                     "bytes.",
                     head.tokens, head.position, head.modelSize);
  PrefixBlock block;
  std::memcpy(block.predecessor.bytes.data(), head.predecessor, kDigestSize);
  block.position = head.position;
  block.tokens = head.tokens;
  block.model.assign(head.model, head.modelSize);
  return block;
}

}  // namespace hearth::cache
