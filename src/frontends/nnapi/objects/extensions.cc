// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/extensions.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/immortal.h"
#include "base/mutex.h"
#include "graph/codes.h"

namespace hearth::nnapi {
namespace {

// Prefixes are the upper half of a positive int32_t.
constexpr size_t kMaxPrefix = 0x7fff;

struct Names {
  base::Mutex mutex;
  // The prefix of a name is its position; no name has 0. A deque, because its elements never move.
  std::deque<std::string> list = {"", std::string(graph::kTfliteExtensionName)};
};
static_assert(graph::kTfliteExtensionPrefix == 1);

Names& names() {
  static constinit base::Immortal<Names> names;
  return names.get();
}

}  // namespace

Result<int32_t> extensionType(std::string_view name, uint16_t code) {
  if (name.empty()) return fail(ErrorCode::kBadData, "The name of the extension is empty.");
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  auto it = std::find(known.list.begin() + 1, known.list.end(), name);
  if (it == known.list.end()) {
    if (known.list.size() > kMaxPrefix)
      return fail(ErrorCode::kBadData, "There are {} extensions already, \"{}\" is one too many.",
                  kMaxPrefix, name);
    known.list.emplace_back(name);
    it = known.list.end() - 1;
  }
  const auto prefix = static_cast<int32_t>(it - known.list.begin());
  return (prefix << 16) | code;
}

Result<const char*> lastingExtensionName(std::string_view name) {
  HEARTH_ASSIGN(const int32_t type, extensionType(name, 0));
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  return known.list[static_cast<size_t>(type >> 16)].c_str();
}

std::optional<std::string> extensionName(int32_t type) {
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  const int32_t prefix = type >> 16;
  if (prefix <= 0 || static_cast<size_t>(prefix) >= known.list.size()) return std::nullopt;
  return known.list[static_cast<size_t>(prefix)];
}

}  // namespace hearth::nnapi
