// SPDX-License-Identifier: Apache-2.0
#include "base/env.h"

#include <sys/auxv.h>

#include <charconv>
#include <cstdlib>

#include "base/passed_variables.h"

namespace hearth::base {
namespace {

constexpr EnvVariable kTable[] = {
    {Env::kLog, "HEARTH_LOG", EnvKind::kChoice, "warn",
     "The least severe messages that go to standard error.", "trace|debug|info|warn|error|off"},
    {Env::kTrace, "HEARTH_TRACE", EnvKind::kString, "",
     "File for a Chrome trace of what the process does; %p in the name becomes the process id."},
    {Env::kThreads, "HEARTH_THREADS", EnvKind::kInteger, "0",
     "Threads that execute a model; 0 is one for each CPU that the process may use.", "", 0, 1024},
    {Env::kPreparation, "HEARTH_PREPARATION", EnvKind::kChoice, "whole",
     "When a model is made ready: whole, before a compilation returns; or just-in-time, while the "
     "program goes on and in the first execution.",
     "whole|just-in-time"},
    {Env::kTuning, "HEARTH_TUNING", EnvKind::kChoice, "on",
     "Whether kernels are chosen by measuring executions of a model that is used for a while.",
     "on|off"},
    {Env::kDriverPath, "HEARTH_DRIVER_PATH", EnvKind::kString,
     "/usr/local/share/hearth/drivers:/usr/share/hearth/drivers",
     "Folders with driver manifests, separated by colons."},
    {Env::kDriverHosts, "HEARTH_DRIVER_HOSTS", EnvKind::kString, "",
     "Where the drivers of devices run, as DEVICE=process, DEVICE=spawn, DEVICE=spawn:/PROGRAM, "
     "DEVICE=shared or DEVICE=/SOCKET, separated by commas."},
    {Env::kVulkanDevice, "HEARTH_VULKAN_DEVICE", EnvKind::kString, "",
     "Part of the name of the GPU that the device vulkan-gpu is; an implementation of Vulkan on "
     "the "
     "CPU is taken only if it is named here."},
    {Env::kListenFds, "LISTEN_FDS", EnvKind::kInteger, "0",
     "How many sockets the service manager hands to hearth serve.", "", 0, 1024},
    {Env::kListenPid, "LISTEN_PID", EnvKind::kInteger, "0", "The process that LISTEN_FDS is for.",
     "", 0, INT32_MAX},
    {Env::kNotifySocket, "NOTIFY_SOCKET", EnvKind::kString, "",
     "Socket of the service manager, which hearth serve tells that it is ready and alive."},
    {Env::kWatchdogMicroseconds, "WATCHDOG_USEC", EnvKind::kInteger, "0",
     "Microseconds after which the service manager ends a hearth serve that has not said that it "
     "is "
     "alive; 0 is never."},
    {Env::kWatchdogPid, "WATCHDOG_PID", EnvKind::kInteger, "0",
     "The process that WATCHDOG_USEC is for; 0 is any.", "", 0, INT32_MAX},
    {Env::kStore, "HEARTH_STORE", EnvKind::kString, "",
     "Folder of the weight store; unset it is hearth/store in XDG_CACHE_HOME, or "
     ".cache/hearth/store in HOME."},
    {Env::kStoreMode, "HEARTH_STORE_MODE", EnvKind::kChoice, "read-write",
     "What the weight store may do; strict checks every byte before it is used.",
     "off|read-only|read-write|strict"},
    {Env::kStoreSize, "HEARTH_STORE_SIZE", EnvKind::kBytes, "0",
     "Bytes that the weight store may take; 0 is 16G or a tenth of the file system, the smaller."},
    {Env::kSystemStores, "HEARTH_SYSTEM_STORES", EnvKind::kString, "/usr/share/hearth/store",
     "Weight stores that are only read, and before the user's own, separated by colons."},
    {Env::kReport, "HEARTH_REPORT", EnvKind::kString, "",
     "File that gets a line of JSON for each start of a model; %p in the name becomes the process "
     "id."},
    {Env::kAtExit, "HEARTH_AT_EXIT", EnvKind::kChoice, "write",
     "Whether a process that exits first writes what it has packed and not written yet.",
     "write|leave"},
    {Env::kCrashAt, "HEARTH_CRASH_AT", EnvKind::kString, "",
     "Test builds only: NAME or NAME:N, the crash point at whose N-th pass the process is killed."},
    {Env::kFault, "HEARTH_FAULT", EnvKind::kString, "",
     "Test builds only: CALL:FAULT[:FIRST[:COUNT]],..., the system calls that fail, and how."},
    {Env::kPackingSalt, "HEARTH_PACKING_SALT", EnvKind::kString, "",
     "For tests: any text, which makes packed weights those of another CPU, and machine code that "
     "of another GPU."},
    {Env::kHome, "HOME", EnvKind::kString, "",
     "The user's folder, in which .cache and .local/state are."},
    {Env::kCacheHome, "XDG_CACHE_HOME", EnvKind::kString, "",
     "Folder in whose hearth/store the weight store is; unset it is .cache in HOME."},
    {Env::kStateHome, "XDG_STATE_HOME", EnvKind::kString, "",
     "Folder in whose hearth the map of compilation caches and saved conversations are; unset it "
     "is "
     ".local/state in HOME."},
    {Env::kRuntimeDir, "XDG_RUNTIME_DIR", EnvKind::kString, "",
     "Folder in whose hearth the hosts of drivers listen that the user's programs share."},
    {Env::kTemporary, "TMPDIR", EnvKind::kString, "/tmp",
     "Folder for the temporary files of hearth conformance."},
};

constexpr bool isInOrder() {
  for (size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<size_t>(kTable[i].id) != i) return false;
  return std::size(kTable) == static_cast<size_t>(Env::kTemporary) + 1;
}
static_assert(isInOrder());

Result<std::string> textOf(Env id, EnvKind kind) {
  const EnvVariable& variable = environmentVariable(id);
  if (variable.kind != kind)
    return fail(ErrorCode::kBadState, "The variable {} is read as another kind than its own.",
                variable.name);
  return envString(id);
}

}  // namespace

std::span<const EnvVariable> environmentVariables() {
  return kTable;
}

const EnvVariable& environmentVariable(Env id) {
  return kTable[static_cast<size_t>(id)];
}

bool isSecureProcess() {
  const int forced = internal::secureProcess.load(std::memory_order_relaxed);
  return forced >= 0 ? forced != 0 : ::getauxval(AT_SECURE) != 0;
}

std::string envString(Env id) {
  const EnvVariable& variable = environmentVariable(id);
  const char* value = isSecureProcess() ? nullptr : std::getenv(variable.name);
  return value != nullptr && *value != '\0' ? value : variable.standard;
}

Result<std::string> envChoice(Env id) {
  HEARTH_ASSIGN(const std::string text, textOf(id, EnvKind::kChoice));
  const EnvVariable& variable = environmentVariable(id);
  return parseChoice(variable.name, text, variable.choices);
}

Result<int64_t> envInteger(Env id) {
  HEARTH_ASSIGN(const std::string text, textOf(id, EnvKind::kInteger));
  const EnvVariable& variable = environmentVariable(id);
  return parseInteger(variable.name, text, variable.least, variable.most);
}

Result<uint64_t> envBytes(Env id) {
  HEARTH_ASSIGN(const std::string text, textOf(id, EnvKind::kBytes));
  const EnvVariable& variable = environmentVariable(id);
  HEARTH_ASSIGN(const uint64_t bytes, parseBytes(variable.name, text));
  if (bytes < static_cast<uint64_t>(variable.least) || bytes > static_cast<uint64_t>(variable.most))
    return fail(ErrorCode::kBadData, "{} is {} bytes, outside {} to {}.", variable.name, bytes,
                variable.least, variable.most);
  return bytes;
}

std::string envFolder(Env id) {
  std::string path = envString(id);
  return path.starts_with('/') ? path : std::string();
}

Result<std::string> parseChoice(std::string_view name, std::string_view text,
                                std::string_view choices) {
  for (std::string_view rest = choices; !rest.empty();) {
    const size_t end = rest.find('|');
    if (rest.substr(0, end) == text) return std::string(text);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return fail(ErrorCode::kBadData, "{} is \"{}\", which is none of {}.", name, text, choices);
}

Result<int64_t> parseInteger(std::string_view name, std::string_view text, int64_t least,
                             int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return fail(ErrorCode::kBadData, "{} is \"{}\", which is no whole number.", name, text);
  if (error == std::errc::result_out_of_range || value < least || value > most)
    return fail(ErrorCode::kBadData, "{} is {}, outside {} to {}.", name, text, least, most);
  return value;
}

Result<uint64_t> parseBytes(std::string_view name, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  constexpr std::string_view kUnits = "KMGT";
  int shift = 0;
  if (!unit.empty()) {
    const char letter = unit[0] >= 'a' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    const size_t power = kUnits.find(letter);
    if (unit.size() != 1 || power == std::string_view::npos)
      shift = -1;
    else
      shift = 10 * (static_cast<int>(power) + 1);
  }
  if (error == std::errc::invalid_argument || shift < 0)
    return fail(ErrorCode::kBadData,
                "{} is \"{}\", which is no number of bytes (digits, then K, M, G or T).", name,
                text);
  if (error == std::errc::result_out_of_range || value > (UINT64_MAX >> shift))
    return fail(ErrorCode::kBadData, "{} is {}, more than 64 bits hold.", name, text);
  return value << shift;
}

std::vector<std::string> passedVariables(std::span<const std::string> names) {
  std::vector<std::string> passed;
  if (isSecureProcess()) return passed;
  for (const std::string& name : names)
    if (const char* const value = std::getenv(name.c_str())) passed.push_back(name + "=" + value);
  return passed;
}

}  // namespace hearth::base
