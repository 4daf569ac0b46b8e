// SPDX-License-Identifier: Apache-2.0
#include "base/useful_threads.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/format.h"

namespace hearth::base {
namespace {

// The begin of a file; empty where it cannot be read. Those read here have a line or a few.
std::string textOf(const std::string& path) {
  const auto file = Descriptor::open(path, O_RDONLY);
  if (!file) return "";
  std::string text(4096, '\0');
  const ssize_t size = ::read(file->get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

// Takes a number off the front of a text, with the space behind it.
std::optional<uint64_t> takeNumber(std::string_view& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return number;
}

// The capacities of the allowed processors, of which the greatest of a machine is 1024; empty where
// one has none: then all are alike.
std::vector<uint64_t> capacitiesOf(const cpu_set_t& allowed, const std::string& folder) {
  std::vector<uint64_t> capacities;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(static_cast<size_t>(i), &allowed)) continue;
    const std::string text = textOf(formatText("{}/cpu{}/cpu_capacity", folder, i));
    std::string_view rest = text;
    const std::optional<uint64_t> capacity = takeNumber(rest);
    if (!capacity) return {};
    capacities.push_back(*capacity);
  }
  return capacities;
}

// How many processors a quota, "MICROSECONDS PERIOD", pays for; none for "max PERIOD".
std::optional<uint64_t> processorsOfQuota(std::string_view text) {
  const std::optional<uint64_t> quota = takeNumber(text);
  const std::optional<uint64_t> period = takeNumber(text);
  if (!quota || !period || *period == 0) return std::nullopt;
  return *quota / *period + (*quota % *period != 0 ? 1 : 0);
}

// The least that the group of this process and the groups around it pay for.
std::optional<uint64_t> processorsOfGroups(const ProcessorFiles& files) {
  // The line of version 2 is "0::/PATH".
  const std::string groups = textOf(files.ownGroup);
  constexpr std::string_view kMark = "0::/";
  size_t begin = groups.starts_with(kMark) ? 0 : groups.find("\n0::/");
  if (begin == std::string::npos) return std::nullopt;
  begin = groups.find('/', begin);
  std::string path = groups.substr(begin, groups.find('\n', begin) - begin);
  std::optional<uint64_t> least;
  for (;;) {
    const auto found = processorsOfQuota(textOf(files.groups + path + "/cpu.max"));
    if (found) least = std::min(least.value_or(*found), *found);
    if (path.empty()) return least;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

size_t usefulThreads(const cpu_set_t& allowed, const ProcessorFiles& files) {
  // Machines with more have one kind, and to read the files of all would take a while.
  constexpr int kMostOfSeveralKinds = 32;
  auto count = static_cast<size_t>(std::max(1, CPU_COUNT(&allowed)));
  if (count <= kMostOfSeveralKinds) {
    const std::vector<uint64_t> capacities = capacitiesOf(allowed, files.processors);
    if (!capacities.empty()) {
      const uint64_t best = std::ranges::max(capacities);
      count = static_cast<size_t>(std::ranges::count_if(
          capacities, [best](uint64_t capacity) { return capacity >= best - best / 2; }));
    }
  }
  if (const auto paid = processorsOfGroups(files))
    count = static_cast<size_t>(std::clamp<uint64_t>(*paid, 1, count));
  return count;
}

size_t usefulThreads() {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? usefulThreads(allowed) : 1;
}

}  // namespace hearth::base
