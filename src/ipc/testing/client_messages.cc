// SPDX-License-Identifier: Apache-2.0
#include "ipc/testing/client_messages.h"

#include <capnp/serialize.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "driver.capnp.h"
#include "ipc/frame.h"
#include "ipc/served_client.h"
#include "ipc/shared_models.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/socket_pair.h"

namespace hearth::ipc {
namespace {

constexpr size_t kMostMessages = 64;
constexpr off_t kMemoryBytes = 4096;

std::vector<base::Descriptor> descriptors() {
  std::vector<base::Descriptor> made;
  for (const bool isSealed : {true, false}) {
    made.emplace_back(::memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    static_cast<void>(::ftruncate(made.back().get(), kMemoryBytes));
    if (isSealed) static_cast<void>(::fcntl(made.back().get(), F_ADD_SEALS, F_SEAL_SHRINK));
  }
  made.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  return made;
}

// Forgets what the host has answered, so that it never waits.
void drain(int socket) {
  uint8_t byte;
  while (::recv(socket, &byte, sizeof byte, MSG_DONTWAIT) > 0) {
  }
}

// Calls send(words) for each message, until it returns false.
template <typename Send>
void forEachMessage(std::span<const uint8_t> messages, const Send& send) {
  for (size_t i = 0; i < kMostMessages && messages.size() >= 2; ++i) {
    const size_t claimed = messages[0] | static_cast<size_t>(messages[1]) << 8;
    messages = messages.subspan(2);
    const size_t count = std::min(claimed, messages.size() / sizeof(capnp::word));
    // Aligned, and with nothing behind it.
    const auto words = std::make_unique<capnp::word[]>(count);
    if (count != 0) std::memcpy(words.get(), messages.data(), count * sizeof(capnp::word));
    messages = messages.subspan(count * sizeof(capnp::word));
    if (!send(std::span<const capnp::word>(words.get(), count))) return;
  }
}

kj::Array<capnp::word> greeting() {
  capnp::MallocMessageBuilder message;
  auto hello = message.initRoot<schema::Request>().initHello();
  hello.setVersion(schema::VERSION);
  hello.setApiVersion(hal::kApiVersion);
  return capnp::messageToFlatArray(message);
}

}  // namespace

std::vector<uint8_t> joinMessages(const std::vector<std::vector<uint8_t>>& messages) {
  std::vector<uint8_t> joined;
  for (const std::vector<uint8_t>& message : messages) {
    const size_t words = message.size() / sizeof(capnp::word);
    joined.push_back(static_cast<uint8_t>(words));
    joined.push_back(static_cast<uint8_t>(words >> 8));
    joined.insert(joined.end(), message.begin(), message.end());
  }
  return joined;
}

void playClient(std::span<const uint8_t> messages) {
  SocketPair pair;
  const auto client = std::make_shared<ServedClient>(
      std::make_shared<FakeDevice>(),
      HostOptions{.isShared = true, .objects = 16, .memories = 16, .bytes = uint64_t{1} << 20},
      std::move(pair.right), 0, 0, std::make_shared<HostState>(),
      CommonOfClients{.models = std::make_shared<SharedModels>()});
  {
    const auto words = greeting();
    Frame frame = Frame::of({words.begin(), words.size()}, {});
    if (!client->handle(frame)) return client->end();
  }
  forEachMessage(messages, [&](std::span<const capnp::word> words) {
    drain(pair.left.get());
    Frame frame = Frame::of(words, descriptors());
    // A client that does not keep to the protocol is ended by the host's threads; here it goes on.
    static_cast<void>(client->handle(frame));
    return true;
  });
  client->end();
}

void sendMessages(int socket, std::span<const uint8_t> messages) {
  const auto words = greeting();
  if (!sendFrame(socket, {words.begin(), words.size()}, {})) return;
  forEachMessage(messages, [&](std::span<const capnp::word> message) {
    drain(socket);
    const std::vector<base::Descriptor> attached = descriptors();
    std::vector<int> numbers;
    for (const base::Descriptor& descriptor : attached) numbers.push_back(descriptor.get());
    return sendFrame(socket, message, numbers).has_value();
  });
}

}  // namespace hearth::ipc
