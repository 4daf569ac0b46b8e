// SPDX-License-Identifier: Apache-2.0
// Both ends of a mailbox whose page somebody else writes to between any two steps. Nothing may
// hang, and a mailbox beside it has to go on working.
#include <fcntl.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/deadline.h"
#include "ipc/mailbox_client.h"
#include "ipc/mailbox_server.h"

namespace {

using hearth::base::Deadline;
using hearth::ipc::MailboxClient;
using hearth::ipc::MailboxPage;
using hearth::ipc::MailboxServer;
using hearth::ipc::MailboxWords;

void require(bool holds) {
  if (!holds) std::abort();
}

// Bytes of the input, zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool isAtEnd() const { return size_ == 0; }
  template <typename Number>
  Number take() {
    Number number = 0;
    const size_t count = size_ < sizeof number ? size_ : sizeof number;
    std::memcpy(&number, data_, count);
    data_ += count;
    size_ -= count;
    return number;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

MailboxPage again(const MailboxPage& page) {
  const int copy = ::fcntl(page.fd(), F_DUPFD_CLOEXEC, 0);
  return MailboxPage::open(hearth::base::Descriptor(copy)).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const MailboxPage page = MailboxPage::create().value();
  const MailboxPage otherPage = MailboxPage::create().value();
  MailboxServer server(again(page));
  MailboxClient client(again(page));
  MailboxServer otherServer(again(otherPage));
  MailboxClient otherClient(again(otherPage));
  // Both sides and what lies between them.
  constexpr size_t kBytes = 256;
  auto* const bytes = static_cast<uint8_t*>(page.data());
  bool isClosed = false;
  while (!input.isAtEnd()) {
    switch (input.take<uint8_t>() % 6) {
      case 0: {
        const size_t offset = input.take<uint8_t>() % (kBytes / sizeof(uint32_t));
        std::atomic_ref(reinterpret_cast<uint32_t*>(bytes)[offset]) = input.take<uint32_t>();
        break;
      }
      case 1: {
        const size_t offset = input.take<uint8_t>() % (kBytes / sizeof(uint64_t));
        std::atomic_ref(reinterpret_cast<uint64_t*>(bytes)[offset]) = input.take<uint64_t>();
        break;
      }
      case 2:
        require(!(client.call({input.take<uint8_t>()}, Deadline::after(0)) && isClosed));
        break;
      case 3:
        require(!(server.receive(Deadline::after(0)) && isClosed));
        break;
      case 4:
        server.answer({input.take<uint64_t>(), input.take<uint8_t>()});
        break;
      default:
        if (input.take<uint8_t>() != 0) break;
        client.close();
        server.close();
        isClosed = true;
    }
  }
  // The call is over before it gets its answer, which stays in the page for the next one.
  require(!otherClient.call({1}, Deadline::after(0)));
  const auto request = otherServer.receive(Deadline::after(0));
  require(request && *request == MailboxWords{1});
  otherServer.answer({2});
  require(!otherClient.call({3}, Deadline::after(0)) && otherClient.isBusy());
  require(otherServer.receive(Deadline::after(0)).value() == MailboxWords{3});
  return 0;
}
