// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_client.h"

#include <sys/socket.h>

#include <utility>

#include "base/caught.h"
#include "base/log.h"

namespace hearth::ipc {

ServedClient::ServedClient(std::shared_ptr<hal::Device> device, HostOptions options,
                           base::Descriptor socket, pid_t process, uid_t user,
                           std::shared_ptr<HostState> state, CommonOfClients common)
    : presence_(state),
      socket_(std::move(socket)),
      process_(process),
      user_(user),
      state_(std::move(state)),
      threads_(options.threads, state_->isUnread.get()),
      requests_(std::move(device), std::move(options), user, state_.get(), &threads_,
                std::move(common)) {}

bool ServedClient::start() {
  return threads_.startReader([self = shared_from_this()] { self->run(); });
}

void ServedClient::endApart() {
  if (isEnding_.exchange(true)) return;
  if (!threads_.start("hearth-end", [self = shared_from_this()] { self->end(); })) end();
}

void ServedClient::end() {
  isEnding_ = true;
  if (hasEnded_.exchange(true)) return;
  ::shutdown(socket_.get(), SHUT_RDWR);
  requests_.close();
}

void ServedClient::run() noexcept {
  while (!hasEnded()) {
    auto frame = base::caught([&] { return receiveFrame(socket_.get()); });
    if (!frame && frame.error().code() == ErrorCode::kMissedDeadlineTransient) {
      if (threads_.isNotNeeded()) return;
      continue;
    }
    const bool isLast = threads_.isLastToWait();
    Status status;
    if (frame) {
      // Somebody has to read on while this thread works.
      if (isLast) base::logged("Starting a thread of a host", [&] { start(); });
      status = base::caught([&] { return handle(*frame); });
    } else {
      status = std::unexpected(frame.error());
    }
    threads_.waitsAgain();
    if (status) continue;
    // A client that is gone, or that has heard why there is no device, is nothing to warn of.
    const bool isExpected = status.error().code() == ErrorCode::kDeadObject ||
                            status.error().code() == ErrorCode::kUnavailableDevice;
    if (!isExpected && !hasEnded())
      base::logWarn("The connection of process {} of user {} is ended. {}", process_, user_,
                    status.error().toString());
    end();
  }
  threads_.readerEnds();
}

Status ServedClient::handle(Frame& frame) {
  return requests_.handle(frame, socket_.get(), shared_from_this());
}

}  // namespace hearth::ipc
