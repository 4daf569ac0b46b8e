// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::tools {

enum class CacheAction { kList, kStat, kExplain, kWarm, kVerify, kPrune, kRemove, kPath };

// The options of `hearth cache`.
struct CacheOptions {
  CacheAction action = CacheAction::kList;
  std::string store;                 // folder; empty = what the environment sets
  std::string bundle;                // list, explain, warm, verify: this file in place of the store
  std::string cacheDir;              // list, explain, verify: an application's folder instead
  std::string token;                 // explain with cacheDir: hexadecimal digits
  std::string model;                 // explain, warm: a .tflite file
  std::string part;                  // explain, warm: of a container
  std::string signature;             // explain, warm: only this one
  std::string device;                // explain, warm
  std::vector<std::string> shapes;   // explain, warm: NAME=N,N,… of inputs
  uint32_t threads = 0;              // warm
  std::vector<std::string> targets;  // warm: packingTargetNames() in place of this processor
  std::string program;               // warm with targets: the hearth command to run; empty = this
  std::optional<uint64_t> maxBytes;  // prune
  std::optional<std::chrono::seconds> olderThan;  // prune
  std::vector<std::string> plans;                 // remove: keys, beginnings of keys, or models
  bool isAll = false;                             // remove, list: everything
  bool isJson = false;
};

}  // namespace hearth::tools
