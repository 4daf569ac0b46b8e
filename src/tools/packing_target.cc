// SPDX-License-Identifier: Apache-2.0
#include "tools/packing_target.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/descriptor.h"
#include "base/format.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

// A kind of processor, and the one of qemu-user for which XNNPACK packs alike: its layouts follow
// instruction sets, and on ARM64 cores without dot product their kind as well.
struct PackingTarget {
  std::string_view name;
  std::string_view architecture;  // as qemu-ARCHITECTURE has it
  std::string_view processor;
};
constexpr PackingTarget kTargets[] = {
    {"arm64-cortex-a53", "aarch64", "cortex-a53"},
    {"arm64-cortex-a72", "aarch64", "cortex-a72"},
    {"arm64-dotprod", "aarch64", "cortex-a76"},
    {"arm64-i8mm", "aarch64", "neoverse-v1"},
    {"x86-64-v2", "x86_64", "Nehalem"},
    {"x86-64-v3", "x86_64", "Haswell-noTSX"},
};

#if defined(__aarch64__)
constexpr std::string_view kOwnArchitecture = "aarch64";
#else
constexpr std::string_view kOwnArchitecture = "x86_64";
#endif

// The command line of a target's `hearth cache warm`, without the emulator's name.
Outcome<std::vector<std::string>> commandFor(const PackingTarget& target,
                                             const CacheOptions& options) {
  std::string program = options.program;
  if (program.empty()) {
    if (target.architecture != kOwnArchitecture)
      return usage(
          "{} takes the hearth command of this version that was built for it: name it with "
          "--program.",
          target.name);
    std::array<char, 4096> path;
    const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
    if (size <= 0 || static_cast<size_t>(size) == path.size())
      return usage("This program's own path is not known: name it with --program.");
    program.assign(path.data(), static_cast<size_t>(size));
  }
  std::vector<std::string> command = {"-cpu", std::string(target.processor), program, "cache",
                                      "warm"};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {name, value});
  };
  add("--store", options.store);
  add("--weight-cache", options.bundle);
  add("--part", options.part);
  add("--signature", options.signature);
  add("--device", options.device);
  for (const std::string& shape : options.shapes) add("--shape", shape);
  if (options.threads != 0) add("--threads", std::to_string(options.threads));
  if (options.isJson) command.emplace_back("--json");
  command.insert(command.end(), {"--", options.model});
  return command;
}

// What shells end with when there is no such program.
constexpr int kNotFound = 127;

// Becomes the first of these programs that PATH has, with standard output in `output`.
[[noreturn]] void become(std::span<const std::string> emulators, std::vector<std::string> command,
                         const base::Descriptor& output) {
  if (::dup2(output.get(), STDOUT_FILENO) < 0) ::_exit(kExitFailure);
  command.insert(command.begin(), "");
  for (const std::string& emulator : emulators) {
    command.front() = emulator;
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    ::execvp(emulator.c_str(), arguments.data());
  }
  ::_exit(kNotFound);
}

std::string readToEnd(const base::Descriptor& from) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t size = ::read(from.get(), part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(part.data(), static_cast<size_t>(size));
  }
}

// What the command printed.
Outcome<std::string> outputFor(const PackingTarget& target, const CacheOptions& options) {
  auto command = commandFor(target, options);
  if (!command) return std::unexpected(std::move(command.error()));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return std::unexpected(Failure(base::errnoError(errno, "Making a pipe")));
  const base::Descriptor from(ends[0]);
  base::Descriptor to(ends[1]);
  const std::string emulators[] = {base::formatText("qemu-{}", target.architecture),
                                   base::formatText("qemu-{}-static", target.architecture)};
  const pid_t process = ::fork();
  if (process < 0)
    return std::unexpected(Failure(base::errnoError(errno, "Starting another process")));
  if (process == 0) become(emulators, std::move(*command), to);
  to = {};
  std::string text = readToEnd(from);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound)
    return std::unexpected(
        Failure(kExitFailure,
                base::formatText("{} is packed for under {}, which PATH does not have; it comes "
                                 "with the package qemu-user.",
                                 target.name, emulators[0])));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return std::unexpected(
        Failure(kExitFailure,
                base::formatText("Packing for {} failed: {} ended with {} {}.", target.name,
                                 emulators[0], WIFEXITED(status) ? "exit code" : "signal",
                                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status))));
  return text;
}

}  // namespace

std::vector<std::string> packingTargetNames() {
  std::vector<std::string> names;
  for (const PackingTarget& target : kTargets) names.emplace_back(target.name);
  return names;
}

Outcome<void> cacheWarmForTargets(const CacheOptions& options) {
  if (!options.bundle.empty() && options.targets.size() > 1)
    return usage(
        "A bundle holds what is packed for one kind of processor: --weight-cache takes one name "
        "with --for, --store takes several.");
  Json all = Json::array();
  for (const std::string& name : options.targets) {
    const auto* const target = std::ranges::find(kTargets, name, &PackingTarget::name);
    if (target == std::end(kTargets)) return usage("--for {}: There is no such target.", name);
    const auto text = outputFor(*target, options);
    if (!text) return std::unexpected(text.error());
    if (!options.isJson) {
      std::cout << name << ":\n" << *text << std::flush;
      continue;
    }
    Json warmed = Json::parse(*text, nullptr, false);
    if (!warmed.is_object())
      return std::unexpected(Failure(
          kExitFailure,
          base::formatText("The program that packed for {} printed no JSON object.", name)));
    warmed["for"] = name;
    all.push_back(std::move(warmed));
  }
  if (options.isJson)
    std::cout << Json{{"targets", all}}.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return {};
}

}  // namespace hearth::tools
