// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan_record.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "cache/segment_key.h"

namespace hearth::cpu {
namespace {

using Json = nlohmann::json;

bool takeDigest(const Json& object, const char* name, base::Sha256Digest* digest) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_string()) return false;
  const auto key = cache::PlanKey::fromHex(it->get_ref<const std::string&>());
  if (!key) return false;
  *digest = key->bytes;
  return true;
}

std::optional<PlanOrigin> originFrom(const Json& object) {
  PlanOrigin origin;
  if (!object.is_object() || !takeDigest(object, "driver", &origin.build.driver) ||
      !takeDigest(object, "xnnpack", &origin.build.xnnpack) ||
      !takeDigest(object, "packing", &origin.build.packing) ||
      !takeDigest(object, "options", &origin.options) ||
      !takeDigest(object, "pools", &origin.pools))
    return std::nullopt;
  const auto features = object.find("cpu");
  if (features == object.end() || !features->is_array()) return std::nullopt;
  for (const Json& feature : *features)
    if (feature.is_string()) origin.build.cpuFeatures.push_back(feature.get<std::string>());
  return origin;
}

int likeness(const PlanOrigin& a, const PlanOrigin& b) {
  return (a.pools == b.pools ? 4 : 0) + (a.build.packing == b.build.packing ? 2 : 0) +
         (a.build.xnnpack == b.build.xnnpack ? 2 : 0) + (a.build.driver == b.build.driver ? 1 : 0) +
         (a.options == b.options ? 1 : 0);
}

std::string missingFrom(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  std::vector<std::string> missing;
  std::ranges::set_difference(all, some, std::back_inserter(missing));
  std::string text;
  for (const std::string& name : missing) text += (text.empty() ? "" : " and ") + name;
  return text;
}

}  // namespace

PlanRecord PlanRecord::parse(std::span<const uint8_t> bytes) {
  PlanRecord record;
  const Json list = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!list.is_array()) return record;
  for (const Json& object : list) {
    if (record.origins_.size() == kMost) break;
    if (auto origin = originFrom(object)) record.origins_.push_back(std::move(*origin));
  }
  return record;
}

std::vector<uint8_t> PlanRecord::encoded() const {
  Json list = Json::array();
  for (const PlanOrigin& origin : origins_)
    list.push_back({{"driver", base::toHex(origin.build.driver)},
                    {"xnnpack", base::toHex(origin.build.xnnpack)},
                    {"packing", base::toHex(origin.build.packing)},
                    {"cpu", origin.build.cpuFeatures},
                    {"options", base::toHex(origin.options)},
                    {"pools", base::toHex(origin.pools)}});
  const std::string text = list.dump();
  return {text.begin(), text.end()};
}

bool PlanRecord::add(PlanOrigin origin) {
  constexpr int kSame = 10;
  const auto same = std::ranges::find_if(
      origins_, [&](const PlanOrigin& known) { return likeness(known, origin) == kSame; });
  const bool isNew = same == origins_.end();
  if (!isNew) origins_.erase(same);
  origins_.insert(origins_.begin(), std::move(origin));
  if (origins_.size() > kMost) origins_.pop_back();
  return isNew;
}

std::string PlanRecord::difference(const PlanOrigin& wanted) const {
  const PlanOrigin* nearest = nullptr;
  for (const PlanOrigin& origin : origins_)
    if (nearest == nullptr || likeness(origin, wanted) > likeness(*nearest, wanted))
      nearest = &origin;
  if (nearest == nullptr) return "";
  if (nearest->pools != wanted.pools) return "model changed";
  if (nearest->build.packing != wanted.build.packing) {
    const std::string lost = missingFrom(nearest->build.cpuFeatures, wanted.build.cpuFeatures);
    const std::string gained = missingFrom(wanted.build.cpuFeatures, nearest->build.cpuFeatures);
    if (!lost.empty()) return "CPU lost " + lost;
    if (!gained.empty()) return "CPU gained " + gained;
  }
  if (nearest->build.xnnpack != wanted.build.xnnpack) return "library changed: XNNPACK";
  if (nearest->build.driver != wanted.build.driver) return "library changed: hearth-cpu";
  if (nearest->build.packing != wanted.build.packing) return "packing changed";
  if (nearest->options != wanted.options) return "options changed";
  return "";
}

}  // namespace hearth::cpu
