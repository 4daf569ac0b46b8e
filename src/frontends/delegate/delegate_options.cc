// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/delegate_options.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/env.h"
#include "base/format.h"
#include "runtime/device_manager.h"

namespace hearth::delegate {
namespace {

Result<bool> parseSwitch(std::string_view name, std::string_view text) {
  HEARTH_ASSIGN(const std::string word,
                base::parseChoice(name, text, "true|false|1|0|on|off|yes|no"));
  return word == "true" || word == "1" || word == "on" || word == "yes";
}

// The options of the driver, which has names of its own for some.
Status setDriverOption(const char* name, std::string_view text, DelegateOptions* options) {
  options->compilation.prepare.driverOptions[name] = text;
  return {};
}

Status setAllowFp16(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(options->allowsFp16, parseSwitch("allow_fp16", text));
  return {};
}

Status setCacheFolder(std::string_view text, DelegateOptions* options) {
  options->cacheFolder = text;
  return {};
}

Status setDevice(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(options->compilation.devices, runtime::DeviceManager::shared().select(text));
  return {};
}

Status setMaxActivationBytes(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(options->compilation.prepare.maxActivationBytes,
                base::parseBytes("max_activation_bytes", text));
  return {};
}

Status setModelToken(std::string_view text, DelegateOptions* options) {
  options->modelToken = text;
  return {};
}

Status setPreference(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(
      const std::string word,
      base::parseChoice("preference", text, "low-power|fast-single-answer|sustained-speed"));
  options->compilation.prepare.preference = word == "low-power" ? hal::Preference::kLowPower
                                            : word == "fast-single-answer"
                                                ? hal::Preference::kFastSingleAnswer
                                                : hal::Preference::kSustainedSpeed;
  return {};
}

Status setPreparation(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(const std::string word,
                base::parseChoice("preparation", text, "whole|just-in-time"));
  options->compilation.preparation =
      word == "whole" ? hal::Preparation::kWhole : hal::Preparation::kJustInTime;
  return {};
}

Status setPriority(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(const std::string word, base::parseChoice("priority", text, "low|medium|high"));
  options->compilation.prepare.priority = word == "low"      ? hal::Priority::kLow
                                          : word == "medium" ? hal::Priority::kMedium
                                                             : hal::Priority::kHigh;
  return {};
}

Status setStore(std::string_view text, DelegateOptions* options) {
  return setDriverOption("store", text, options);
}

Status setStoreBytes(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(const uint64_t bytes, base::parseBytes("store_bytes", text));
  return setDriverOption("store_bytes", std::to_string(bytes), options);
}

Status setStoreMode(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(const std::string word,
                base::parseChoice("store_mode", text, "off|read-only|read-write|strict"));
  return setDriverOption("store_mode", word, options);
}

Status setThreads(std::string_view text, DelegateOptions* options) {
  constexpr int64_t kMostThreads = 1024;
  HEARTH_ASSIGN(const int64_t threads, base::parseInteger("threads", text, 1, kMostThreads));
  options->threads = static_cast<unsigned>(threads);
  return {};
}

Status setTuning(std::string_view text, DelegateOptions* options) {
  HEARTH_ASSIGN(options->compilation.isTuned, parseSwitch("tuning", text));
  return {};
}

Status setWeightCache(std::string_view text, DelegateOptions* options) {
  return setDriverOption("bundle", text, options);
}

struct KnownOption {
  std::string_view name;
  Status (*set)(std::string_view text, DelegateOptions* options);
};

constexpr KnownOption kKnownOptions[] = {
    {"allow_fp16", setAllowFp16},
    {"cache_dir", setCacheFolder},
    {"device", setDevice},
    {"max_activation_bytes", setMaxActivationBytes},
    {"model_token", setModelToken},
    {"preference", setPreference},
    {"preparation", setPreparation},
    {"priority", setPriority},
    {"store", setStore},
    {"store_bytes", setStoreBytes},
    {"store_mode", setStoreMode},
    {"threads", setThreads},
    {"tuning", setTuning},
    {"weight_cache", setWeightCache},
};

std::string knownNames() {
  std::string names;
  for (const KnownOption& option : kKnownOptions) {
    if (!names.empty()) names += ", ";
    names += option.name;
  }
  return names;
}

}  // namespace

Result<DelegateOptions> DelegateOptions::parse(
    std::span<const std::pair<std::string_view, std::string_view>> texts) {
  DelegateOptions options;
  std::set<std::string_view> seen;
  for (const auto& [name, text] : texts) {
    const auto* const known = std::ranges::find(kKnownOptions, name, &KnownOption::name);
    if (known == std::end(kKnownOptions))
      return fail(ErrorCode::kBadData, "The option \"{}\" is not known; the delegate has {}.", name,
                  knownNames());
    if (!seen.insert(name).second)
      return fail(ErrorCode::kBadData, "The option \"{}\" is given twice.", name);
    HEARTH_TRY(known->set(text, &options));
  }
  if (options.cacheFolder.empty() != options.modelToken.empty())
    return fail(ErrorCode::kBadData,
                "The option \"{}\" needs the option \"{}\": the files of a compilation cache are "
                "those of one model.",
                options.cacheFolder.empty() ? "model_token" : "cache_dir",
                options.cacheFolder.empty() ? "cache_dir" : "model_token");
  return options;
}

}  // namespace hearth::delegate
