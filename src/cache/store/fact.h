// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::cache {

// A small value that a driver keeps: what it measured or tested on this machine.
struct Fact {
  std::string key;  // the name of the kind of fact, a zero byte, and all that the fact depends on
  std::vector<uint8_t> value;
};

}  // namespace hearth::cache
