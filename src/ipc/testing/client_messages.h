// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth::ipc {

// A list of messages as bytes, for fuzzing: for each its length in words (2 bytes, little endian)
// and then its words.
std::vector<uint8_t> joinMessages(const std::vector<std::vector<uint8_t>>& messages);

// Plays a client that sends such messages to a host with a FakeDevice, after a greeting. With each
// message come two memories and a descriptor that is none. Whatever the messages are, this returns.
void playClient(std::span<const uint8_t> messages);

// The same over a socket, to a host with any device. Ends when the host ends the connection.
void sendMessages(int socket, std::span<const uint8_t> messages);

}  // namespace hearth::ipc
