// SPDX-License-Identifier: Apache-2.0
#include "ipc/host.h"

#include <capnp/serialize.h>
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "ipc/encoding.h"
#include "ipc/frame.h"
#include "ipc/served_client.h"
#include "ipc/shared_models.h"

namespace hearth::ipc {
namespace {

// How often what has ended is looked at, while there is some.
constexpr std::chrono::milliseconds kReapInterval{50};
constexpr int kBacklog = 128;

using Clock = std::chrono::steady_clock;

timeval timevalOf(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
}

std::chrono::milliseconds restUntil(Clock::time_point when) {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()),
                  std::chrono::milliseconds(0));
}

// The shorter one of two times to wait, of which the first may be without an end (negative).
std::chrono::milliseconds earlier(std::chrono::milliseconds patience,
                                  std::chrono::milliseconds other) {
  return patience < patience.zero() ? other : std::min(patience, other);
}

// What to wait for at a client's socket. Its end is reported in any case.
pollfd eventsOf(const ServedClient& client) {
  return {client.socket(), static_cast<short>(client.isRead() ? 0 : POLLIN), 0};
}

// Makes the event one that has not happened.
void take(const base::Descriptor& event) {
  uint64_t count;
  static_cast<void>(::read(event.get(), &count, sizeof count));
}

ucred credentialsOf(int socket) {
  ucred credentials{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  socklen_t size = sizeof credentials;
  static_cast<void>(::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size));
  return credentials;
}

// Tells a client why it is not served; it may not wait to hear it.
void turnAway(int socket, const std::string& sentence) {
  base::logWarn("A client is turned away. {}", sentence);
  capnp::MallocMessageBuilder message;
  writeError(Error(ErrorCode::kResourceExhaustedTransient, sentence),
             message.initRoot<schema::Reply>().initError());
  const auto words = capnp::messageToFlatArray(message);
  static_cast<void>(sendFrame(socket, {words.begin(), words.size()}, {}));
}

}  // namespace

HostState::HostState() : isUnread(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ClientPresence::ClientPresence(std::shared_ptr<HostState> state) : state_(std::move(state)) {
  ++state_->clients;
}

ClientPresence::~ClientPresence() {
  const std::lock_guard lock(state_->mutex);
  if (--state_->clients == 0) state_->isLeft.notify_all();
}

Host::Host(std::shared_ptr<hal::Device> device, HostOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      turns_(std::max(1u, std::thread::hardware_concurrency())),
      models_(options_.isShared ? std::make_shared<SharedModels>(options_.keptModels) : nullptr) {}

Host::~Host() {
  while (!end(std::chrono::seconds(1))) {
  }
}

std::shared_ptr<ServedClient> Host::add(base::Descriptor socket) {
  const ucred peer = credentialsOf(socket.get());
  // A client that does not read its replies is ended, instead of holding a thread.
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  const timeval idle = timevalOf(options_.idleThreads);
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle));
  auto client = std::make_shared<ServedClient>(
      device_, options_, std::move(socket), peer.pid, peer.uid, state_,
      CommonOfClients{options_.isShared ? &turns_ : nullptr, models_});
  if (!client->start()) return nullptr;
  clients_.push_back(client);
  return client;
}

void Host::serve(base::Descriptor socket) {
  const std::shared_ptr<ServedClient> client = add(std::move(socket));
  if (client == nullptr) return base::logError("There is no thread for a client.");
  while (true) {
    std::array events = {eventsOf(*client), pollfd{state_->isUnread.get(), POLLIN, 0},
                         pollfd{client->pulse().socket(), POLLIN, 0}};
    if (::poll(events.data(), events.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (events[1].revents != 0) take(state_->isUnread);
    if (events[2].revents != 0) client->pulse().answer();
    if ((events[0].revents & ~POLLIN) != 0) break;
    if (events[0].revents != 0) readOn(*client);
  }
  client->end();
}

void Host::readOn(ServedClient& client) {
  if (client.start()) return;
  base::logError("There is no thread to read the messages of a client.");
  // There may be one later.
  std::this_thread::sleep_for(kReapInterval);
}

std::string Host::refusal(uid_t user) const {
  if (clients_.size() >= options_.clients)
    return base::formatText("The host has {} clients, its limit.", clients_.size());
  const auto ofUser = std::ranges::count(clients_, user, &ServedClient::user);
  if (options_.isShared && ofUser >= static_cast<std::ptrdiff_t>(options_.clientsOfUser))
    return base::formatText("The user {} has {} connections to the host, the limit.", user, ofUser);
  return "";
}

bool Host::acceptOne(int listening) {
  base::Descriptor socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) {
    // Descriptors may have run out; the next pass tries again.
    if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(kReapInterval);
    return false;
  }
  const std::string sentence = refusal(credentialsOf(socket.get()).uid);
  if (!sentence.empty())
    turnAway(socket.get(), sentence);
  else if (add(std::move(socket)) == nullptr)
    base::logError("There is no thread for a client.");
  return true;
}

void Host::acceptLast(int listening) {
  // From here on whoever connects is refused by the kernel. Those who are in the queue stay there.
  static_cast<void>(::shutdown(listening, SHUT_RDWR));
  bool isMore = true;
  while (isMore) base::logged("Accepting a client", [&] { isMore = acceptOne(listening); });
}

void Host::reap() {
  std::erase_if(clients_,
                [](const auto& client) { return client->hasEnded() && client->isIdle(); });
}

Status Host::serveAll(int listening, int stop, const Heartbeat& heartbeat) {
  auto nextBeat = Clock::now();
  auto idleSince = Clock::now();
  bool isClosed = false;  // nobody can connect any more
  while (true) {
    std::chrono::milliseconds patience{-1};
    if (isClosed && clients_.empty()) return {};
    if (options_.idleExit > options_.idleExit.zero() && clients_.empty())
      patience = restUntil(idleSince + options_.idleExit);
    if (heartbeat.beat != nullptr) {
      if (Clock::now() >= nextBeat) {
        heartbeat.beat();
        nextBeat = Clock::now() + heartbeat.interval;
      }
      patience = earlier(patience, restUntil(nextBeat));
    }
    std::vector<pollfd> events = {{stop, POLLIN, 0},
                                  {isClosed ? -1 : listening, POLLIN, 0},
                                  {state_->isUnread.get(), POLLIN, 0}};
    const size_t others = events.size();
    std::vector<std::shared_ptr<ServedClient>> watched;
    for (const std::shared_ptr<ServedClient>& client : clients_) {
      if (client->isEnding()) continue;
      events.push_back(eventsOf(*client));
      events.push_back({client->pulse().socket(), POLLIN, 0});
      watched.push_back(client);
    }
    const bool mustReap = watched.size() != clients_.size();
    if (mustReap) patience = earlier(patience, kReapInterval);
    if (::poll(events.data(), events.size(), static_cast<int>(patience.count())) < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(base::errnoError(errno, "Waiting for clients"));
    }
    if (events[0].revents != 0) return {};
    if (events[2].revents != 0) take(state_->isUnread);
    for (size_t i = 0; i < watched.size(); ++i) {
      const int seen = events[others + 2 * i].revents;
      if (events[others + 2 * i + 1].revents != 0) watched[i]->pulse().answer();
      if ((seen & ~POLLIN) != 0)
        watched[i]->endApart();
      else if (seen != 0)
        readOn(*watched[i]);
    }
    if (!clients_.empty()) idleSince = Clock::now();
    reap();
    if ((events[1].revents & POLLIN) != 0)
      base::logged("Accepting a client", [&] { acceptOne(listening); });
    else if (events[1].revents != 0)
      return fail(ErrorCode::kIo, "The socket of a host is no longer open.");
    if (options_.idleExit > options_.idleExit.zero() && clients_.empty() && !isClosed &&
        Clock::now() >= idleSince + options_.idleExit) {
      isClosed = true;
      acceptLast(listening);
    }
  }
}

bool Host::end(std::chrono::milliseconds patience) {
  for (const std::shared_ptr<ServedClient>& client : clients_) client->end();
  const auto until = std::chrono::steady_clock::now() + patience;
  for (const std::shared_ptr<ServedClient>& client : clients_)
    if (!client->waitUntilIdle(until)) return false;
  clients_.clear();
  // Threads are detached and hold their client, also such as were reaped, a moment longer than they
  // count. The last one would free what the device has while the process exits.
  std::unique_lock lock(state_->mutex);
  return state_->isLeft.wait_until(lock, until, [&] { return state_->clients == 0; });
}

void shareMallocArenas() {
  // As many as executions that are computed at a time.
  static_cast<void>(
      ::mallopt(M_ARENA_MAX, static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))));
}

Result<base::Descriptor> listenAt(const std::string& path) {
  return base::listenAt(path, {.type = SOCK_SEQPACKET, .backlog = kBacklog});
}

}  // namespace hearth::ipc
