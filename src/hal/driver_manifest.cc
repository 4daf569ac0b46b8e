// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_manifest.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/descriptor.h"
#include "base/env.h"
#include "base/format.h"
#include "ops/custom_operator.h"

namespace hearth::hal {
namespace {

constexpr size_t kMaxManifestSize = 64 << 10;

Result<std::string> stringField(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_string() || it->get_ref<const std::string&>().empty())
    return fail(ErrorCode::kBadData, "The field \"{}\" of a driver manifest is not a text.", key);
  return it->get_ref<const std::string&>();
}

Result<std::vector<std::string>> textsField(const nlohmann::json& json, const char* key) {
  std::vector<std::string> paths;
  const auto it = json.find(key);
  if (it == json.end()) return paths;
  const bool areTexts =
      it->is_array() && std::ranges::all_of(*it, [](const auto& each) {
        return each.is_string() && !each.template get_ref<const std::string&>().empty();
      });
  if (!areTexts)
    return fail(ErrorCode::kBadData,
                "The field \"{}\" of what a driver needs is not a list of texts.", key);
  return it->get<std::vector<std::string>>();
}

// False where there is no such field.
Result<bool> truthField(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end()) return false;
  if (!it->is_boolean())
    return fail(ErrorCode::kBadData,
                "The field \"{}\" of a driver manifest is neither true nor false.", key);
  return it->get<bool>();
}

Result<DriverManifest::Files> filesOf(const nlohmann::json& json) {
  DriverManifest::Files files;
  HEARTH_ASSIGN(files.readWrite, textsField(json, "read_write"));
  HEARTH_ASSIGN(files.readOnly, textsField(json, "read_only"));
  HEARTH_ASSIGN(files.devices, textsField(json, "devices"));
  return files;
}

Result<std::vector<std::string>> variablesField(const nlohmann::json& json) {
  HEARTH_ASSIGN(std::vector<std::string> names, textsField(json, "variables"));
  for (const std::string& name : names)
    if (name.contains('=') || name.contains('\0'))
      return fail(ErrorCode::kBadData, "\"{}\" among what a driver needs is no name of a variable.",
                  name);
  return names;
}

Result<DriverManifest::Needs> needsField(const nlohmann::json& json) {
  DriverManifest::Needs needs;
  const auto it = json.find("needs");
  if (it == json.end()) return needs;
  if (!it->is_object())
    return fail(ErrorCode::kBadData, "The field \"needs\" of a driver manifest is not an object.");
  HEARTH_ASSIGN(static_cast<DriverManifest::Files&>(needs), filesOf(*it));
  if (const auto present = it->find("if_present"); present != it->end()) {
    if (!present->is_object())
      return fail(ErrorCode::kBadData,
                  "The field \"if_present\" of what a driver needs is not an object.");
    HEARTH_ASSIGN(needs.ifPresent, filesOf(*present));
  }
  HEARTH_ASSIGN(needs.variables, variablesField(*it));
  HEARTH_ASSIGN(needs.code, truthField(*it, "code"));
  return needs;
}

// Empty without such a field.
Result<std::string> askedForByField(const nlohmann::json& json) {
  if (!json.contains("asked_for_by")) return "";
  HEARTH_ASSIGN(std::string name, stringField(json, "asked_for_by"));
  const bool isKnown =
      std::ranges::contains(base::environmentVariables(), name, &base::EnvVariable::name);
  if (!isKnown)
    return fail(
        ErrorCode::kBadData,
        "The field \"asked_for_by\" of a driver manifest is \"{}\", which is no variable of "
        "Hearth's.",
        name);
  return name;
}

// A value of an option or a variable, as the text that a delegate gets.
std::optional<std::string> valueText(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  return std::nullopt;
}

Result<std::vector<std::pair<std::string, std::string>>> valuesField(const nlohmann::json& json,
                                                                     const char* key) {
  std::vector<std::pair<std::string, std::string>> values;
  const auto it = json.find(key);
  if (it == json.end()) return values;
  if (!it->is_object())
    return fail(ErrorCode::kBadData, "The field \"{}\" of a delegate is not an object.", key);
  for (const auto& [name, value] : it->items()) {
    const std::optional<std::string> text = valueText(value);
    const bool hasZero = name.contains('\0') || (text && text->contains('\0'));
    if (name.empty() || !text || hasZero || name.contains('='))
      return fail(ErrorCode::kBadData,
                  "The value \"{}\" among the {} of a delegate is no text, number or boolean.",
                  name, key);
    values.emplace_back(name, *text);
  }
  return values;
}

// The names of options of a delegate's cache.
Result<std::optional<DriverManifest::Delegate::Cache>> cacheField(const nlohmann::json& json) {
  const auto it = json.find("cache");
  if (it == json.end()) return std::nullopt;
  if (!it->is_object())
    return fail(ErrorCode::kBadData, "The field \"cache\" of a delegate is not an object.");
  DriverManifest::Delegate::Cache cache;
  HEARTH_ASSIGN(cache.option, stringField(*it, "option"));
  HEARTH_ASSIGN(const std::string kind, stringField(*it, "kind"));
  if (kind != "file" && kind != "folder")
    return fail(ErrorCode::kBadData,
                "The \"kind\" of a delegate's cache is \"{}\"; kinds are \"file\" and \"folder\".",
                kind);
  cache.isFolder = kind == "folder";
  if (it->contains("token")) {
    HEARTH_ASSIGN(cache.tokenOption, stringField(*it, "token"));
  }
  for (const std::string* const name : {&cache.option, &cache.tokenOption})
    if (name->contains('\0'))
      return fail(ErrorCode::kBadData, "The name of an option of a delegate's cache has a zero.");
  return cache;
}

Result<std::optional<DriverManifest::Delegate>> delegateField(const nlohmann::json& json) {
  const auto it = json.find("delegate");
  if (it == json.end()) return std::nullopt;
  if (!it->is_object())
    return fail(ErrorCode::kBadData,
                "The field \"delegate\" of a driver manifest is not an object.");
  DriverManifest::Delegate delegate;
  HEARTH_ASSIGN(delegate.library, stringField(*it, "library"));
  HEARTH_ASSIGN(delegate.options, valuesField(*it, "options"));
  HEARTH_ASSIGN(delegate.variables, valuesField(*it, "variables"));
  if (it->contains("tflite")) {
    HEARTH_ASSIGN(delegate.version, stringField(*it, "tflite"));
  }
  if (const auto seconds = it->find("prepare_seconds"); seconds != it->end()) {
    constexpr uint64_t kMost = 86400;
    if (!seconds->is_number_unsigned() || seconds->get<uint64_t>() > kMost)
      return fail(ErrorCode::kBadData,
                  "The field \"prepare_seconds\" of a delegate is not a whole number up to {}.",
                  kMost);
    delegate.prepareSeconds = seconds->get<uint32_t>();
  }
  HEARTH_ASSIGN(delegate.cache, cacheField(*it));
  return delegate;
}

Result<std::vector<std::string>> operatorsField(const nlohmann::json& json) {
  std::vector<std::string> names;
  const auto it = json.find("custom_operators");
  if (it == json.end()) return names;
  if (!it->is_array())
    return fail(ErrorCode::kBadData,
                "The field \"custom_operators\" of a driver manifest is not a list of names.");
  for (const auto& each : *it) {
    if (!each.is_string())
      return fail(ErrorCode::kBadData, "A name among the \"custom_operators\" is no text.");
    names.push_back(each.get<std::string>());
    HEARTH_TRY(ops::checkOperatorName(names.back()));
  }
  return names;
}

// All paths of a manifest.
std::vector<std::string*> pathsOf(DriverManifest* manifest) {
  std::vector<std::string*> paths = {&manifest->library, &manifest->host, &manifest->socket};
  for (DriverManifest::Files* const files :
       {static_cast<DriverManifest::Files*>(&manifest->needs), &manifest->needs.ifPresent})
    for (auto* const list : {&files->readWrite, &files->readOnly, &files->devices})
      for (std::string& path : *list) paths.push_back(&path);
  if (manifest->delegate) paths.push_back(&manifest->delegate->library);
  return paths;
}

Result<std::string> readSmallFile(const std::string& path) {
  // Without O_NONBLOCK opening a FIFO would block.
  HEARTH_ASSIGN(base::Descriptor file, base::Descriptor::open(path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return std::unexpected(base::errnoError(errno, "Reading the size of " + path));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kBadData, "{} is not a file.", path);
  std::string text(kMaxManifestSize + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(base::errnoError(errno, "Reading " + path));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kMaxManifestSize)
    return fail(ErrorCode::kBadData, "The driver manifest {} has more than {} bytes.", path,
                kMaxManifestSize);
  text.resize(size);
  return text;
}

}  // namespace

Result<DriverManifest> parseDriverManifest(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return fail(ErrorCode::kBadData, "The driver manifest is not a JSON object.");
  DriverManifest manifest;
  HEARTH_ASSIGN(manifest.name, stringField(json, "name"));
  HEARTH_ASSIGN(manifest.isSupportLibrary, truthField(json, "support_library"));
  for (const auto& [key, field] :
       {std::pair("library", &manifest.library), std::pair("host", &manifest.host),
        std::pair("socket", &manifest.socket), std::pair("device", &manifest.device)})
    if (json.contains(key)) {
      HEARTH_ASSIGN(*field, stringField(json, key));
    }
  HEARTH_ASSIGN(manifest.delegate, delegateField(json));
  HEARTH_ASSIGN(manifest.isShared, truthField(json, "shared"));
  HEARTH_ASSIGN(manifest.isOptional, truthField(json, "optional"));
  HEARTH_ASSIGN(manifest.askedForBy, askedForByField(json));
  HEARTH_ASSIGN(manifest.isMeasured, truthField(json, "measured"));
  HEARTH_ASSIGN(manifest.isNumbered, truthField(json, "numbered"));
  if (manifest.isNumbered && (manifest.library.empty() || manifest.isSupportLibrary))
    return fail(ErrorCode::kBadData,
                "A driver manifest of numbered devices has no \"library\" of a driver.");
  if (manifest.delegate && !manifest.library.empty())
    return fail(ErrorCode::kBadData,
                "A driver manifest has a \"library\" or a \"delegate\", not both.");
  if (manifest.delegate && manifest.host.empty() && manifest.socket.empty())
    manifest.host = kHearthHost;
  const bool isInProcessOrSpawned = !manifest.library.empty() || !manifest.host.empty();
  if (isInProcessOrSpawned != manifest.socket.empty())
    return fail(ErrorCode::kBadData,
                "A driver manifest has a \"library\", a \"host\" or both, or else a \"socket\".");
  if (manifest.isShared && manifest.host.empty() && !manifest.isSupportLibrary)
    return fail(ErrorCode::kBadData, "A driver manifest that is \"shared\" names no \"host\".");
  if (manifest.isSupportLibrary) {
    if (manifest.library.empty())
      return fail(ErrorCode::kBadData, "The manifest of a support library names no \"library\".");
    if (manifest.host.empty()) manifest.host = kHearthHost;
  } else if (const auto version = json.find("api_version"); version != json.end()) {
    if (!version->is_number_unsigned())
      return fail(ErrorCode::kBadData,
                  "The field \"api_version\" of a driver manifest is not a whole number.");
    manifest.apiVersion = version->get<uint64_t>();
  } else if (!manifest.delegate && manifest.socket.empty()) {
    // A host that runs already says its version itself.
    return fail(ErrorCode::kBadData, "The field \"api_version\" of a driver manifest is missing.");
  }
  HEARTH_ASSIGN(manifest.needs, needsField(json));
  HEARTH_ASSIGN(manifest.customOperators, operatorsField(json));
  // The calls that take a path or name would cut it off at a zero byte.
  if (manifest.name.contains('\0') || manifest.device.contains('\0') ||
      std::ranges::any_of(pathsOf(&manifest),
                          [](const auto* path) { return path->contains('\0'); }))
    return fail(ErrorCode::kBadData, "A text of the driver manifest contains a zero.");
  return manifest;
}

Result<DriverManifest> readDriverManifest(const std::string& path) {
  HEARTH_ASSIGN(const std::string text, readSmallFile(path));
  auto manifest = parseDriverManifest(text);
  if (!manifest)
    return std::unexpected(std::move(manifest.error()).addContext("while reading " + path));
  manifest->path = path;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  for (std::string* const file : pathsOf(&*manifest))
    if (!file->empty() && *file != kHearthHost) *file = (folder / *file).string();
  return manifest;
}

DriverManifest numberedManifest(const DriverManifest& manifest, uint32_t number) {
  DriverManifest numbered = manifest;
  numbered.name += base::formatText("-{}", number);
  numbered.number = number;
  numbered.firstName = manifest.name;
  numbered.isOptional = true;
  numbered.askedForBy.clear();
  return numbered;
}

std::optional<DriverManifest> manifestOfDevice(const DriverManifest& manifest,
                                               std::string_view name) {
  if (name == manifest.name) return manifest;
  if (!manifest.isNumbered) return std::nullopt;
  for (uint32_t number = 2; number <= kMostNumbered; ++number)
    if (DriverManifest numbered = numberedManifest(manifest, number); numbered.name == name)
      return numbered;
  return std::nullopt;
}

std::vector<std::string> presentPaths(const std::string& path) {
  if (!path.contains('*'))
    return ::access(path.c_str(), F_OK) == 0 ? std::vector{path} : std::vector<std::string>();
  const std::filesystem::path pattern(path);
  std::vector<std::string> present;
  std::error_code error;
  std::filesystem::directory_iterator it(pattern.parent_path(), error);
  while (!error && it != std::filesystem::directory_iterator()) {
    if (::fnmatch(pattern.filename().c_str(), it->path().filename().c_str(),
                  FNM_NOESCAPE | FNM_PERIOD) == 0)
      present.push_back(it->path().string());
    it.increment(error);
  }
  std::ranges::sort(present);
  return present;
}

std::vector<std::string> findDriverManifests(std::string_view searchPath,
                                             std::vector<std::string>* problems) {
  std::vector<std::string> found;
  while (!searchPath.empty()) {
    const size_t colon = searchPath.find(':');
    const std::string folder(searchPath.substr(0, colon));
    searchPath = colon == std::string_view::npos ? "" : searchPath.substr(colon + 1);
    if (folder.empty()) continue;
    std::error_code error;
    std::filesystem::directory_iterator it(folder, error);
    std::vector<std::string> here;
    while (!error && it != std::filesystem::directory_iterator()) {
      if (it->path().extension() == ".json") here.push_back(it->path().string());
      it.increment(error);
    }
    if (error && error != std::errc::no_such_file_or_directory)
      problems->push_back(
          base::formatText("The driver folder {} cannot be read: {}.", folder, error.message()));
    std::sort(here.begin(), here.end());
    found.insert(found.end(), here.begin(), here.end());
  }
  return found;
}

}  // namespace hearth::hal
