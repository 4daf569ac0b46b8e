// SPDX-License-Identifier: Apache-2.0
// Which files a folder of the store has, and when they were used last: that is their time of
// modification, since objects are never written again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cache {

// The names in a folder that end with `suffix`, without it, in no order.
std::vector<std::string> namesIn(int folder, std::string_view suffix);

// Nanoseconds since 1970, exact to an hour; 0 where the file does not tell.
int64_t lastUsed(int fd);

// Notes that the file is used. Does nothing where that was noted within the last hour, so that most
// starts write nothing.
void noteUse(int fd);

}  // namespace hearth::cache
