// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/extensions.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/immortal.h"
#include "base/mutex.h"
#include "frontends/nnapi/objects/devices.h"
#include "graph/codes.h"

namespace hearth::nnapi {
namespace {

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

// The types of one extension on a device, by number; nullopt without the extension.
std::optional<std::vector<hal::ExtensionOperandType>> typesOf(const hal::Device& device,
                                                              const std::string& extension) {
  const std::vector<std::string> names = device.supportedExtensions();
  if (std::ranges::find(names, extension) == names.end()) return std::nullopt;
  std::vector<hal::ExtensionOperandType> types = device.extensionOperandTypes();
  std::erase_if(types, [&](const auto& type) { return type.extension != extension; });
  std::ranges::sort(types, {}, &hal::ExtensionOperandType::number);
  return types;
}

}  // namespace

Result<int32_t> extensionType(std::string_view name, uint16_t code) {
  if (name.empty()) return fail(ErrorCode::kBadData, "The name of the extension is empty.");
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  auto it = std::find(known.list.begin() + 1, known.list.end(), name);
  if (it == known.list.end()) {
    if (known.list.size() > size_t{graph::kMaxExtensionPrefix})
      return fail(ErrorCode::kBadData, "There are {} extensions already, \"{}\" is one too many.",
                  graph::kMaxExtensionPrefix, name);
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

Result<hal::ExtensionOperandType> driverOperandType(int32_t type) {
  const std::optional<std::string> name = extensionName(type);
  if (!name) return fail(ErrorCode::kBadData, "No extension has the prefix {}.", type >> 16);
  std::optional<std::vector<hal::ExtensionOperandType>> types;
  std::string describedBy;
  for (const auto& handle : devices()) {
    auto described = typesOf(*handle->device, *name);
    if (!described) continue;
    if (types && *types != *described)
      return fail(ErrorCode::kBadData,
                  "The devices {} and {} describe the extension \"{}\" differently.", describedBy,
                  handle->name, *name);
    types = std::move(described);
    describedBy = handle->name;
  }
  if (!types) return fail(ErrorCode::kBadData, "No device has the extension \"{}\".", *name);
  const auto it =
      std::ranges::find(*types, static_cast<uint16_t>(type), &hal::ExtensionOperandType::number);
  if (it == types->end())
    return fail(ErrorCode::kBadData, "The extension \"{}\" has no operand type {}.", *name,
                type & 0xffff);
  return *std::move(it);
}

}  // namespace hearth::nnapi
