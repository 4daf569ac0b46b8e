// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/plan_record.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "cache/object/store_key.h"
#include "drivers/cpu/platform/processor_features.h"

namespace hearth::cpu {
namespace {

using Json = nlohmann::json;

struct NamedDigest {
  const char* name;
  base::Sha256Digest& (*of)(PlanOrigin& origin);
};
constexpr NamedDigest kDigests[] = {
    {"driver",
     [](PlanOrigin& origin) -> base::Sha256Digest& {
       return origin.build.driver;
     }},
    {"xnnpack",
     [](PlanOrigin& origin) -> base::Sha256Digest& {
       return origin.build.xnnpack;
     }},
    {"packing",
     [](PlanOrigin& origin) -> base::Sha256Digest& {
       return origin.build.packing;
     }},
    {"options",
     [](PlanOrigin& origin) -> base::Sha256Digest& {
       return origin.options;
     }},
    {"pools",
     [](PlanOrigin& origin) -> base::Sha256Digest& {
       return origin.pools;
     }},
};

// The name, if it is one that some build has; records are as little trusted as any file.
std::string knownArchitecture(const std::string& name) {
  return std::ranges::contains(kArchitectures, name) ? name : "";
}

// Parses the list event by event. A parsed document would allocate even while it is destroyed, and
// end the program when memory is short.
class Reader final : public Json::json_sax_t {
 public:
  explicit Reader(size_t most) : most_(most) {}
  std::vector<PlanOrigin>& origins() { return origins_; }

  bool start_array(size_t) override { return open(); }
  bool start_object(size_t) override {
    if (depth_ == 1) {
      origin_ = {};
      found_ = 0;
    }
    return open();
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1 && found_ == kAll && origins_.size() < most_)
      origins_.push_back(std::move(origin_));
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 2) key_ = name;
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 3 && key_ == "cpu") origin_.build.cpuFeatures.push_back(value);
    if (depth_ != 2) return true;
    if (key_ == "architecture") origin_.build.architecture = knownArchitecture(value);
    for (size_t i = 0; i < std::size(kDigests); ++i) {
      if (key_ != kDigests[i].name) continue;
      const auto digest = cache::PlanKey::fromHex(value);
      if (!digest) continue;
      kDigests[i].of(origin_) = digest->bytes;
      found_ |= 1u << i;
    }
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  static constexpr unsigned kFeatures = 1u << std::size(kDigests);
  static constexpr unsigned kAll = 2 * kFeatures - 1;

  // Called where an array or object begins. Notes that an origin has its list of features.
  bool open() {
    if (depth_ == 2 && key_ == "cpu") found_ |= kFeatures;
    ++depth_;
    return true;
  }

  const size_t most_;
  std::vector<PlanOrigin> origins_;
  size_t depth_ = 0;
  PlanOrigin origin_;
  std::string key_;
  unsigned found_ = 0;  // a bit for each digest, and one for the features
};

// The greater, the earlier the list of what is equal has its first difference.
int likeness(const PlanOrigin& a, const PlanOrigin& b) {
  int likeness = 0;
  for (const bool isEqual : {a.pools == b.pools, a.build.architecture == b.build.architecture,
                             a.build.packing == b.build.packing, a.build.xnnpack == b.build.xnnpack,
                             a.build.driver == b.build.driver, a.options == b.options})
    likeness = 2 * likeness + (isEqual ? 1 : 0);
  return likeness;
}
constexpr int kSame = (1 << 6) - 1;

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
  Reader reader(kMost);
  if (Json::sax_parse(bytes.begin(), bytes.end(), &reader))
    record.origins_ = std::move(reader.origins());
  return record;
}

std::vector<uint8_t> PlanRecord::encoded() const {
  std::string text = "[";
  for (const PlanOrigin& known : origins_) {
    PlanOrigin origin = known;
    text += text.size() == 1 ? "{" : ",{";
    for (const NamedDigest& digest : kDigests)
      text += base::formatText("\"{}\":\"{}\",", digest.name, base::toHex(digest.of(origin)));
    text += base::formatText("\"architecture\":\"{}\",\"cpu\":[", origin.build.architecture);
    for (const std::string& feature : origin.build.cpuFeatures)
      text += base::formatText("{}\"{}\"", text.ends_with('[') ? "" : ",", feature);
    text += "]}";
  }
  text += ']';
  return {text.begin(), text.end()};
}

bool PlanRecord::add(PlanOrigin origin) {
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
  // Before the model: of contents that this CPU has never packed, it may not know that the store
  // has them, since CPUs that lack a carry-less product make other tags (base/universal_hash.h).
  const std::string& architecture = nearest->build.architecture;
  if (!architecture.empty() && architecture != wanted.build.architecture)
    return base::formatText("packed for {}, not for {}", architecture, wanted.build.architecture);
  if (nearest->build.packing != wanted.build.packing) {
    const std::string lost = missingFrom(nearest->build.cpuFeatures, wanted.build.cpuFeatures);
    const std::string gained = missingFrom(wanted.build.cpuFeatures, nearest->build.cpuFeatures);
    if (!lost.empty()) return "CPU lost " + lost;
    if (!gained.empty()) return "CPU gained " + gained;
  }
  if (nearest->pools != wanted.pools) return "model changed";
  if (nearest->build.xnnpack != wanted.build.xnnpack) return "library changed: XNNPACK";
  if (nearest->build.driver != wanted.build.driver) return "library changed: hearth-cpu";
  if (nearest->build.packing != wanted.build.packing) return "packing changed";
  if (nearest->options != wanted.options) return "options changed";
  return "";
}

}  // namespace hearth::cpu
