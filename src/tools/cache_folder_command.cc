// SPDX-License-Identifier: Apache-2.0
// `hearth cache` on the folder that an application gives to NNAPI for compilation caching: ls,
// verify and explain with --cache-dir. Nothing in the folder is changed.
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "hearth/hearth.hpp"
#include "tools/cache_token.h"
#include "tools/commands.h"
#include "tools/duration.h"
#include "tools/text_table.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownLetters = 12;

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

std::string textOf(const Json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : "";
}

uint64_t bytesOf(const Json& files) {
  uint64_t bytes = 0;
  for (const Json& file : files) bytes += file["bytes"].get<uint64_t>();
  return bytes;
}

// The age of a time in the JSON.
std::string agoText(const Json& time) {
  std::tm parts{};
  if (!time.is_string() ||
      ::strptime(time.get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr)
    return "";
  return ageText(std::chrono::seconds(std::time(nullptr) - ::timegm(&parts)));
}

// The time of the file that was written last.
std::string writtenText(const Json& files) {
  std::string last;
  for (const Json& file : files)
    if (file["modified"].is_string()) last = std::max(last, file["modified"].get<std::string>());
  return agoText(last);
}

std::string lockText(const Json& files) {
  for (const Json& file : files)
    if (file["locked"].get<bool>()) return ", locked";
  return "";
}

std::string describeSets(const Json& listing) {
  TextTable table({"key", "device", "files", "size", "written", "used", "state"}, "llrrrrl");
  for (const Json& set : listing["sets"]) {
    std::string state = set["reason"].get<std::string>();
    if (set["verified"].get<bool>())
      state = set["device"].is_null() ? "verified, of another build" : "verified";
    table.add({set["key"].get<std::string>().substr(0, kShownLetters), textOf(set["device"]),
               std::to_string(set["files"].size()), bytesText(bytesOf(set["files"])),
               writtenText(set["files"]), agoText(set["last_used"]),
               printable(state) + lockText(set["files"])});
  }
  std::string text = table.empty() ? "No cache files.\n" : table.toString();
  for (const Json& name : listing["others"])
    text += base::formatText("{} is no cache file.\n", textOf(name));
  return text;
}

Json describeFolder(const CacheOptions& options) {
  const Json listing = Json::parse(describeCacheFolder(options.cacheDir));
  return {{"path", options.cacheDir}, {"sets", listing["sets"]}, {"others", listing["others"]}};
}

Outcome<void> verify(const CacheOptions& options) {
  const Json folder = describeFolder(options);
  size_t wrong = 0;
  std::string first;
  uint64_t bytes = 0;
  for (const Json& set : folder["sets"]) {
    bytes += bytesOf(set["files"]);
    if (set["verified"].get<bool>()) continue;
    if (wrong++ == 0)
      first = base::formatText("{}: {}", set["key"].get<std::string>().substr(0, kShownLetters),
                               set["reason"].get<std::string>());
  }
  const size_t all = folder["sets"].size();
  if (wrong != 0)
    return std::unexpected(Failure(
        kExitFailure, base::formatText("{} of {} sets of cache files in {} are not what was "
                                       "written: {}",
                                       wrong, all, options.cacheDir, first)));
  if (options.isJson)
    print({{"path", options.cacheDir}, {"sets", all}, {"bytes", bytes}});
  else
    std::cout << base::formatText("{} sets of cache files with {} are right.\n", all,
                                  bytesText(bytes));
  return {};
}

CompileOptions compileOptions(const CacheOptions& options, const std::string& signature) {
  CompileOptions made;
  made.signature = signature;
  made.device = options.device;
  made.store = options.store;
  return made;
}

std::string describeParts(const Json& signatures) {
  TextTable table({"signature", "device", "operations", "key", "cache", "reason"}, "llrlll");
  for (const Json& signature : signatures)
    for (const Json& part : signature["parts"]) {
      const std::string name = signature["signature"].get<std::string>();
      std::string reason = part["reason"].get<std::string>();
      if (part["same_model"] == false)
        reason = "The files are of another model, which no compilation notices.";
      table.add({name.empty() ? "-" : printable(name), textOf(part["device"]),
                 std::to_string(part["operations"].get<uint64_t>()),
                 textOf(part["key"]).substr(0, kShownLetters), textOf(part["state"]),
                 printable(reason) + lockText(part["files"])});
    }
  return table.toString();
}

Outcome<void> explain(const CacheOptions& options) {
  const auto token = parseCacheToken(options.token);
  if (!token) return std::unexpected(token.error());
  Watchdog watchdog(0);
  watchdog.beginStage("reading the model");
  const Model model(options.model, options.part);
  std::vector<std::string> names = model.signatureKeys();
  if (!options.signature.empty()) names = {options.signature};
  Json signatures = Json::array();
  for (const std::string& name : names) {
    watchdog.beginStage("looking at the cache files");
    const Json found =
        Json::parse(model.explainCache(options.cacheDir, *token, compileOptions(options, name)));
    signatures.push_back(
        {{"signature", name}, {"state", found["state"]}, {"parts", found["parts"]}});
  }
  watchdog.beginStage("");
  if (options.isJson)
    print({{"model", options.model}, {"path", options.cacheDir}, {"signatures", signatures}});
  else
    std::cout << describeParts(signatures);
  return {};
}

}  // namespace

Outcome<void> cacheFolderCommand(const CacheOptions& options) {
  try {
    if (options.action == CacheAction::kExplain) return explain(options);
    if (options.action == CacheAction::kVerify) return verify(options);
    const Json folder = describeFolder(options);
    if (options.isJson)
      print(folder);
    else
      std::cout << describeSets(folder);
    return {};
  } catch (const Exception& exception) {
    Failure failure(exception);
    if (exception.code() == HEARTH_NOT_FOUND && options.action == CacheAction::kExplain)
      failure.exitCode = kExitUsage;
    return std::unexpected(std::move(failure));
  }
}

}  // namespace hearth::tools
