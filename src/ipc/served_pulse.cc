// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_pulse.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "ipc/pulse.h"

namespace hearth::ipc {
namespace {

// Of questions that are read in a row, so that a client that asks without end holds nobody up.
constexpr int kMostQuestions = 16;

}  // namespace

void ServedPulse::connect(base::Descriptor socket) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(socket);
}

int ServedPulse::socket() const {
  const std::lock_guard lock(mutex_);
  return socket_.get();
}

void ServedPulse::answer() {
  const std::lock_guard lock(mutex_);
  if (!socket_.valid()) return;
  PulseQuestion question;
  bool isAsked = false;
  for (int i = 0; i < kMostQuestions; ++i) {
    const ssize_t size = ::recv(socket_.get(), &question, sizeof question, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (size != sizeof question) {
      socket_ = {};
      return;
    }
    isAsked = true;
  }
  if (!isAsked) return;
  const PulseAnswer said{question.number, steps_.load(std::memory_order_relaxed)};
  if (::send(socket_.get(), &said, sizeof said, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof said)
    socket_ = {};
}

}  // namespace hearth::ipc
