// SPDX-License-Identifier: Apache-2.0
// Messages with descriptors over a Unix socket of the type SOCK_SEQPACKET, where a message arrives
// whole or not at all.
#pragma once

#include <capnp/common.h>
#include <capnp/message.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "memory/pool.h"

namespace hearth::ipc {

// The limits of a message: the kernel's for descriptors, ours for the bytes. Larger messages are
// refused by the sender, and end the connection at the receiver.
inline constexpr size_t kMaxDescriptors = 253;
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

// A message that was received: words of Cap'n Proto, not yet looked at, and descriptors.
class Frame {
 public:
  std::span<const capnp::word> words() const { return words_; }
  std::vector<base::Descriptor>& descriptors() { return descriptors_; }

  // A frame that never went over a socket.
  static Frame of(std::span<const capnp::word> words, std::vector<base::Descriptor> descriptors);

 private:
  friend Result<Frame> receiveFrame(int socket);

  std::unique_ptr<capnp::word[]> inline_;
  memory::PoolRef spilled_;  // a long message, which its sender can no longer change
  std::span<const capnp::word> words_;
  std::vector<base::Descriptor> descriptors_;
};

// Sends a message. One that is longer than what a socket takes at once goes in sealed memory. The
// descriptors are duplicated by the kernel. Thread-safe. Errors: kDeadObject when the peer has
// closed the connection, or has not read for the socket's time limit; kUnsupported for a message
// beyond the limits above; kOutOfMemory, kIo.
Status sendFrame(int socket, std::span<const capnp::word> words, std::span<const int> descriptors);

// The same for a message that has been built, of which it makes no copy in this process's memory.
Status sendMessage(int socket, capnp::MessageBuilder& message, std::span<const int> descriptors);

// Waits for the next message. Allocates nothing in proportion to what the peer claims. Several
// threads may wait; each message goes to one of them. Errors: kDeadObject when the peer has closed
// the connection; kMissedDeadlineTransient when nothing has come within the socket's time limit, if
// it has one; kBadData for bytes that sendFrame() did not send, after which the connection should
// be closed.
Result<Frame> receiveFrame(int socket);

}  // namespace hearth::ipc
