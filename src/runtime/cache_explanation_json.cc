// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "runtime/cache_explanation.h"

namespace hearth::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json time(int64_t nanoseconds) {
  const std::chrono::sys_time<std::chrono::nanoseconds> when{std::chrono::nanoseconds(nanoseconds)};
  return base::formatText("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(when));
}

Json files(const std::vector<CacheFileState>& states) {
  Json list = Json::array();
  for (const CacheFileState& file : states)
    list.push_back({{"name", file.name},
                    {"kind", file.kind == CacheFileKind::kModel ? "model" : "data"},
                    {"exists", file.exists},
                    {"bytes", file.bytes},
                    {"modified", file.exists ? time(file.modified) : Json()},
                    {"locked", file.isLocked}});
  return list;
}

const char* stateName(CacheExplanation::State state) {
  switch (state) {
    case CacheExplanation::State::kHit:
      return "hit";
    case CacheExplanation::State::kMiss:
      return "miss";
    case CacheExplanation::State::kUncached:
      return "uncached";
    case CacheExplanation::State::kUnknown:
      break;
  }
  return "unknown";
}

// The state of the whole model.
const char* overall(const std::vector<CacheExplanation>& parts) {
  using State = CacheExplanation::State;
  State state = State::kUncached;
  for (const CacheExplanation& part : parts) {
    if (part.state == State::kMiss) return stateName(State::kMiss);
    if (part.state == State::kUnknown || (part.state == State::kHit && state == State::kUncached))
      state = part.state;
  }
  return stateName(state);
}

Json orNull(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

template <typename T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string explanationJson(const std::vector<CacheExplanation>& parts) {
  Json list = Json::array();
  for (const CacheExplanation& part : parts)
    list.push_back({{"device", part.device},
                    {"operations", part.operations},
                    {"state", stateName(part.state)},
                    {"code", part.code},
                    {"reason", part.reason},
                    {"same_model", orNull(part.isSameModel)},
                    {"key", orNull(part.key)},
                    {"files", files(part.files)}});
  return dump({{"state", overall(parts)}, {"parts", std::move(list)}});
}

std::string listingJson(const CacheListing& listing) {
  Json sets = Json::array();
  for (const CacheSet& set : listing.sets)
    sets.push_back({{"key", set.key},
                    {"verified", set.isVerified},
                    {"code", set.code},
                    {"reason", set.reason},
                    {"device", orNull(set.device)},
                    {"build", orNull(set.build)},
                    {"user", orNull(set.user)},
                    {"last_used", set.used ? time(*set.used) : Json()},
                    {"files", files(set.files)}});
  return dump({{"sets", std::move(sets)}, {"others", listing.others}});
}

}  // namespace hearth::runtime
